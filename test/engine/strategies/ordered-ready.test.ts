import { describe, expect, it } from 'vitest';
import { replacedBy } from '../../../engine/decision.ts';
import { planGroups } from '../../../engine/plan/plan.ts';
import { holdingPartition } from '../../../policies/strategies.ts';
import { adopted, group } from '../../kit/groups.ts';
import { manifests, planInput } from '../../kit/manifests.ts';
import { newRevision, type PodChanges } from '../../kit/objects.ts';
import { ago, minuteMs, outdatedSets, runOf } from '../../kit/questions.ts';
import { podsIn, replacedPods, roll } from '../../kit/rolls.ts';

const strategies = ['pinned', 'partition', 'onDelete'] as const;
type Strategy = (typeof strategies)[number];
const zones = [{ name: 'a', maxUnavailable: 3 }];
const run = runOf({ target: { a: newRevision }, openZone: 'a' });
const lost = { isReady: false, readyChangedMs: ago(minuteMs), nodeReady: false };
const starting = { revision: newRevision, isReady: false, readyChangedMs: ago(1000) };

function rolled(strategy: Strategy, pods: PodChanges) {
  const setOf = { onDelete: { updateStrategy: 'OnDelete' }, partition: rolling(), pinned: rolling() } as const;
  const statefulSets = outdatedSets(['a'], { replicas: 5, podManagementPolicy: 'OrderedReady', ...setOf[strategy] });
  return roll(group({ zones, rollout: { strategy } }), run, { statefulSets, ...podsIn({ a: pods }) });
}

function rolling() {
  return { updateStrategy: 'RollingUpdate', partition: holdingPartition } as const;
}

/** Returns the number of replaced pods. */
function count(strategy: Strategy, pods: PodChanges): number {
  return rolled(strategy, pods).actions.flatMap(replacedBy).length;
}

describe.each(strategies)('OrderedReady under the strategy %s', (strategy) => {
  it('has at most one pod in flight with every budget', () => {
    expect(count(strategy, {})).toBe(1);
    expect(count(strategy, { 4: starting })).toBe(0);
  });

  it('replaces no pod above an unavailable ordinal, and says which one', () => {
    const { steps } = rolled(strategy, { 0: lost });
    expect(count(strategy, { 0: lost })).toBe(0);
    expect(steps[0]?.results.at(-1)).toMatchObject({
      rule: 'pods-in-flight',
      outcome: 'wait',
      fact: 'a successor of ingester-zone-a-4 would wait for ingester-zone-a-0 (podManagementPolicy OrderedReady)',
    });
  });
});

describe('OrderedReady in other groups', () => {
  it('replaces pods below an unavailable ordinal, because the StatefulSet controller creates them', () => {
    expect(replacedPods(rolled('onDelete', { 2: lost }))).toBe('a-1');
  });

  it('changes nothing in drop-in groups: grafana/rollout-operator replaces several pods', () => {
    const statefulSets = outdatedSets(['a'], { replicas: 5, podManagementPolicy: 'OrderedReady' });
    expect(replacedPods(roll(adopted({ zones }), run, { statefulSets }))).toBe('a-0 a-1 a-2');
  });

  it('shows one pod at once in the plan', () => {
    const [plan] = planGroups(
      planInput({
        groups: [group({ zones: ['a', 'b', 'c'].map((name) => ({ name, maxUnavailable: 2 })) })],
        current: manifests({ spec: { podManagementPolicy: 'OrderedReady' } }),
        desired: manifests({ spec: { podManagementPolicy: 'OrderedReady' }, image: 'grafana/mimir:2' }),
      }),
    ).groups;
    expect(plan?.waves.flatMap(({ steps }) => steps.map(({ atOnce }) => atOnce))).toEqual([1, 1, 1]);
  });
});
