import { describe, expect, it } from 'vitest';
import { isStuck, stuckInstants } from '../../../engine/rules/pod-state.ts';
import type { PodView } from '../../../engine/snapshot.ts';
import { holdingPartition } from '../../../policies/strategies.ts';
import { adopted, group } from '../../kit/groups.ts';
import { kitNowMs, newRevision, oldRevision, pod, statefulSet } from '../../kit/objects.ts';
import { ago, contextWith, minuteMs, zoneIn } from '../../kit/questions.ts';
import { podsIn } from '../../kit/rolls.ts';

const when = (rule: 'any' | 'crashing' | 'none') =>
  group({ zones: ['a'], rollout: { replaceUnready: { when: rule, afterMs: 5 * minuteMs } } });
const set = statefulSet({ minReadySeconds: 60 });
const unready = { isReady: false, readyChangedMs: ago(5 * minuteMs) };
const crashing = { isReady: false, readyChangedMs: ago(1), waitingReasons: ['CrashLoopBackOff'] };

describe('a pod is stuck', () => {
  it.each<[string, Partial<PodView>, readonly [boolean, boolean, boolean]]>([
    ['when it has been unready for long enough', unready, [true, false, false]],
    ['not a moment earlier', { ...unready, readyChangedMs: ago(5 * minuteMs) + 1 }, [false, false, false]],
    ['at once when it crashes', crashing, [true, true, false]],
    ['not while it terminates', { ...crashing, isTerminating: true }, [false, false, false]],
    ['not on a node that is down', { ...crashing, nodeReady: false }, [false, false, false]],
    ['not when it is available, whatever it waits for', { waitingReasons: ['CrashLoopBackOff'] }, [false, false, false]],
    ['not when it is ready and only not available yet', { readyChangedMs: ago(30_000) }, [false, false, false]],
  ])('%s: by any, by crashing, by none', (_name, changes, expected) => {
    const answers = (['any', 'crashing', 'none'] as const).map((rule) => {
      const context = contextWith(when(rule), { statefulSets: [set] });
      return isStuck(context, zoneIn(context), pod(set, 0, changes));
    });
    expect(answers).toEqual(expected);
  });

  it('by its containers in adopted groups', () => {
    const context = contextWith(adopted({ zones: ['a'] }));
    const waiting = { waitingReasons: ['ErrImagePull'], isReady: true };
    expect(isStuck(context, zoneIn(context), pod(set, 0, { ...waiting, containersReady: false }))).toBe(true);
    expect(isStuck(context, zoneIn(context), pod(set, 0, { ...waiting, containersReady: true }))).toBe(false);
  });
});

describe('below the partition a pod is stuck', () => {
  const partitioned = group({ zones: ['a'], rollout: { strategy: 'partition' } });
  const held = statefulSet({ updateStrategy: 'RollingUpdate', partition: holdingPartition, status: { updateRevision: newRevision } });
  const isStuckAt = (ordinal: number, revision: string): boolean => {
    const changes = { [ordinal]: { ...crashing, revision } };
    const context = contextWith(partitioned, { statefulSets: [held], ...podsIn({ a: changes }) });
    return isStuck(context, zoneIn(context), pod(held, ordinal, changes[ordinal]));
  };

  it('if it is the next one down', () => {
    expect(isStuckAt(2, oldRevision)).toBe(true);
  });

  it('not if it would come back at the same revision, behind pods of another revision', () => {
    expect(isStuckAt(1, oldRevision)).toBe(false);
  });

  it('if it is at an intermediate revision, and would come back at the current revision', () => {
    expect(isStuckAt(1, 'between')).toBe(true);
  });
});

describe('the times at which pods become stuck', () => {
  const pods = [
    pod(set, 0, { isReady: false, readyChangedMs: ago(minuteMs) }),
    pod(set, 1, { isReady: false, readyChangedMs: ago(5 * minuteMs) }),
    pod(set, 2, { isReady: false, readyChangedMs: ago(2 * minuteMs), isTerminating: true }),
    pod(set, 3, { isReady: false, readyChangedMs: ago(3 * minuteMs), nodeReady: false }),
    pod(set, 4),
    pod(set, 5, { isReady: false, readyChangedMs: ago(4 * minuteMs) }),
  ];
  const ask = (rule: 'any' | 'crashing' | 'none') => {
    const context = contextWith(when(rule), { statefulSets: [set] });
    return stuckInstants(context, zoneIn(context), pods);
  };

  it('are in the future, for unavailable pods that may be replaced', () => {
    expect(ask('any')).toEqual([kitNowMs + 4 * minuteMs, kitNowMs + minuteMs]);
  });

  it('are absent if time makes no pod stuck', () => {
    expect(ask('crashing')).toEqual([]);
    expect(ask('none')).toEqual([]);
  });
});
