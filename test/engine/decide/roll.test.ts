import { describe, expect, it } from 'vitest';
import { decideGroup } from '../../../engine/decide/decide.ts';
import type { RunState } from '../../../engine/run/run-state.ts';
import type { GroupDefinition } from '../../../policies/definition.ts';
import { adopted, group, wave } from '../../kit/groups.ts';
import { kitNowMs, newRevision, statefulSet } from '../../kit/objects.ts';
import {
  ago,
  exception,
  freeze,
  hourMs,
  intent,
  ledgerOf,
  line,
  minuteMs,
  outdatedSets,
  policy,
  policyRule,
  runOf,
  updatedPods,
} from '../../kit/questions.ts';
import { blockedSteps, podsIn, replacedPods, roll } from '../../kit/rolls.ts';
import { type SnapshotOverrides, snapshotOf } from '../../kit/snapshots.ts';

const native = group();
const unready = { isReady: false, readyChangedMs: ago(minuteMs) };
const stuck = { isReady: false, readyChangedMs: ago(hourMs) };

describe('a replacement', () => {
  const target = {
    namespace: 'mimir',
    zone: 'a',
    statefulSet: 'ingester-zone-a',
    pod: 'ingester-zone-a-2',
    ordinal: 2,
    uid: 'uid-ingester-zone-a-2',
  };

  it('by deletion carries UID and resourceVersion', () => {
    expect(roll(native, undefined).actions).toEqual([{ kind: 'deletePod', ...target, resourceVersion: '100', because: 'outdated' }]);
  });

  it('by eviction carries the UID alone', () => {
    expect(roll(group({ rollout: { rotateBy: 'evict' } }), undefined).actions).toEqual([
      { kind: 'evictPod', ...target, because: 'outdated' },
    ]);
  });

  it('of a stuck pod is a deletion in any case', () => {
    expect(roll(group({ rollout: { rotateBy: 'evict' } }), undefined, podsIn({ a: { 2: stuck } })).actions).toEqual([
      { kind: 'deletePod', ...target, resourceVersion: '100', because: 'stuck' },
    ]);
  });

  it('opens the zone and is recorded in the run', () => {
    const run = roll(native, runOf()).run;
    expect(run).toMatchObject({ openZone: 'a', lastDisruptionMs: kitNowMs, movableMs: minuteMs, movableAsOfMs: kitNowMs, isMovable: true });
    expect(run?.wave).toBe(0);
  });
});

describe('a roll step', () => {
  it('lists the remaining pods and every evaluated rule', () => {
    const [step] = roll(native, undefined).steps;
    expect(step).toMatchObject({ id: 'roll/a', kind: 'roll', zone: 'a', outcome: 'act' });
    expect(step?.pods).toEqual(['ingester-zone-a-2', 'ingester-zone-a-1', 'ingester-zone-a-0']);
    expect(step?.results.map(({ rule, outcome }) => `${rule} ${outcome}`)).toEqual([
      'update-strategy ok',
      'view-complete ok',
      'run-failed ok',
      'paused ok',
      'replica-write-in-flight ok',
      'other-zones-ready ok',
      'min-interval skip',
      'ledger-full ok',
      'window skip',
      'progress-deadline skip',
      'run-deadline skip',
      'zone-budget ok',
    ]);
  });

  it('is absent if no template was ever rolled out and no pod is outdated', () => {
    expect(roll(native, undefined, { statefulSets: [] })).toEqual({ steps: [], actions: [], warnings: [], wantedReadings: [] });
  });

  it('reports pods in flight when no rule blocks and no pod may be replaced', () => {
    const leaving = roll(
      group({ zones: [{ name: 'a', maxUnavailable: 4 }] }),
      runOf({ target: { a: newRevision } }),
      podsIn({ a: { 0: { isTerminating: true }, 1: { isTerminating: true }, 2: { isTerminating: true } } }),
    );
    expect(replacedPods(leaving)).toBe('');
    expect(leaving.steps[0]?.results.at(-1)).toEqual({
      rule: 'pods-in-flight',
      outcome: 'wait',
      fact: '3 pods of zone a are in flight',
    });
    expect(leaving.steps[0]?.outcome).toBe('wait');
  });

  it('is blocked by a rule that denies, and waits for any other', () => {
    const denied = { policies: [policy({ rules: [policyRule()] })] };
    expect(blockedSteps(roll(native, undefined, denied))).toEqual(['roll/a blocked: safety/rule']);
    expect(blockedSteps(roll(native, undefined, { intents: [intent({ action: 'pause' })] }))).toEqual(['roll/a wait: paused']);
    expect(blockedSteps(roll(native, undefined, {}, true))).toEqual(['roll/a wait: replica-write-in-flight']);
  });

  it('is carried out if an exception allows as many pods', () => {
    const denied = { policies: [policy({ rules: [policyRule()] })] };
    const allowing = (podsAtMost: number) => ({ ...denied, exceptions: [exception('safety/rule', { zone: 'a', allow: { podsAtMost } })] });
    expect(replacedPods(roll(native, undefined, allowing(1)))).toBe('a-2');
    expect(replacedPods(roll(native, undefined, allowing(0)))).toBe('');
  });

  describe('with an exception that allows fewer pods at once than the budget', () => {
    const two = group({ zones: [{ name: 'a', maxUnavailable: 2 }, 'b'] });
    const ofPolicy = exception('safety/rule', { name: 'of-policy', allow: { podsAtMost: 1 } });
    const ofWindow = exception('window', { name: 'of-window', allow: { podsAtMost: 1 } });
    const blocked = { policies: [policy({ rules: [policyRule()] })] };
    const closed = { policies: [policy({ windows: [freeze()] })] };
    const denied = { policies: [policy({ rules: [policyRule()], windows: [freeze()] })] };
    const some = (podsAtMost: number) => ({ ...ofPolicy, allow: { podsAtMost } });

    it.each([
      ['fewer pods', { ...blocked, exceptions: [ofPolicy] }, 'a-2'],
      ['fewer pods in a closed window', { ...closed, exceptions: [ofWindow] }, 'a-2'],
      ['the fewest pods of both exceptions that it needs', { ...denied, exceptions: [some(2), ofWindow] }, 'a-2'],
      ['no pod while one is unavailable', { ...blocked, exceptions: [ofPolicy], ...podsIn({ a: { 0: unready } }) }, ''],
      ['no pod while one is in flight', { ...blocked, exceptions: [ofPolicy], ...podsIn({ a: { 2: { isTerminating: true } } }) }, ''],
      ['as many pods as the budget', { ...blocked, exceptions: [some(3)] }, 'a-2 a-1'],
      ['as many pods as the budget, if no result needs the exception', { exceptions: [ofPolicy, ofWindow] }, 'a-2 a-1'],
    ])('replaces %s', (_, overrides, replaced) => {
      expect(replacedPods(roll(two, undefined, overrides))).toBe(replaced);
    });

    it('names the exception as the place of the limit', () => {
      const inFlight = podsIn({ a: { 2: { isTerminating: true } } });
      const [step] = roll(two, undefined, { ...blocked, exceptions: [ofPolicy], ...inFlight }).steps;
      expect(step?.results.filter(({ rule }) => rule === 'zone-budget')).toEqual([
        { rule: 'zone-budget', outcome: 'wait', fact: '1 of at most 1 pod unavailable in zone a', limit: '1', source: ofPolicy.source },
      ]);
    });
  });

  it('contains the warnings of policies', () => {
    const warned = roll(native, undefined, { policies: [policy({ rules: [policyRule({ effect: 'warn' })] })] });
    expect(warned.warnings).toEqual([{ rule: 'safety/rule', outcome: 'ok', fact: 'the rule always applies', source: line(10) }]);
    expect(replacedPods(warned)).toBe('a-2');
  });
});

describe('zones with different images', () => {
  const updated = { a: updatedPods(), b: updatedPods(), c: updatedPods() };
  const warnings = (images: readonly string[], pods: Parameters<typeof podsIn>[0] = updated, run?: RunState) => {
    const statefulSets = outdatedSets().map((set, index) => ({ ...set, images: { app: images[index] ?? '', side: 'side:1' } }));
    return roll(native, run, { statefulSets, ...podsIn(pods) }).warnings.map(({ rule, fact }) => `${rule}: ${fact}`);
  };

  it('are a warning while no pod is left to replace', () => {
    expect(warnings(['x/app:1', 'app:2', 'app:2'])).toEqual([
      'zone-images: the zones request different images: container app has app:1 in a; app:2 in b and c',
    ]);
    expect(warnings(['x/app:2', 'y/app:2', 'app:2'])).toEqual([]);
  });

  it('are expected between the writes of an apply, before the StatefulSet controller observes the first one', () => {
    const images = ['app:2', 'app:1', 'app:1'];
    const written = (observedGeneration: number) =>
      outdatedSets().map((set, index) => ({
        ...set,
        images: { app: images[index] ?? '' },
        ...(index === 0 ? { generation: 2, status: { ...set.status, observedGeneration } } : {}),
      }));
    const rules = (observedGeneration: number) =>
      roll(native, undefined, { statefulSets: written(observedGeneration), ...podsIn(updated) }).warnings.map(({ rule }) => rule);
    expect(rules(1)).toEqual([]);
    expect(rules(2)).toEqual(['zone-images']);
  });

  it('are expected during a rollout and after a failed run', () => {
    expect(warnings(['app:1', 'app:2', 'app:2'], { ...updated, c: {} })).toEqual([]);
    const target = { a: newRevision, b: newRevision, c: newRevision };
    const failed = runOf({ outcome: 'failed', failedMs: kitNowMs, failure: 'x', target });
    expect(warnings(['app:1', 'app:2', 'app:2'], updated, failed)).toEqual([]);
  });
});

describe('the order of zones', () => {
  const all = outdatedSets();
  it.each<[string, GroupDefinition, RunState | undefined, SnapshotOverrides, string]>([
    ['is as listed', native, undefined, {}, 'a-2'],
    ['begins with the zone that is open', native, runOf({ openZone: 'b' }), podsIn({ b: { 2: { revision: newRevision } } }), 'b-1'],
    ['begins with the one zone that is not whole', native, runOf(), podsIn({ c: { 1: stuck } }), 'c-1'],
    [
      'cures one zone after the other when stuck pods are what two zones lack',
      native,
      runOf(),
      podsIn({ b: { 1: stuck }, c: { 1: stuck } }),
      'b-1',
    ],
    [
      'cures the open zone first of those that lack stuck pods',
      native,
      runOf({ openZone: 'c' }),
      podsIn({ b: { 1: stuck }, c: { 1: stuck } }),
      'c-1',
    ],
    [
      'cures a zone although the open one, which is whole, is not finished',
      native,
      runOf({ openZone: 'a' }),
      podsIn({ c: { 1: stuck } }),
      'c-1',
    ],
    ['lets nothing go when two zones lack pods that are not stuck', native, runOf(), podsIn({ b: { 1: unready }, c: { 1: unready } }), ''],
    [
      'lets nothing but stuck pods go beside another zone',
      native,
      runOf({ openZone: 'b' }),
      podsIn({ b: { 1: stuck, 2: unready }, c: { 1: unready } }),
      'b-1',
    ],
    [
      'lets nothing go in adopted groups when two zones are not whole',
      adopted(),
      runOf(),
      podsIn({ b: { 1: stuck }, c: { 1: stuck } }),
      '',
    ],
    ['leaves out zones that have their amount', native, runOf(), podsIn({ a: updatedPods() }), 'b-2'],
    ['leaves out zones of later waves', group({ rollout: { waves: [wave('b', ['b']), wave('rest', ['a', 'c'])] } }), undefined, {}, 'b-2'],
    ['passes over a zone that is paused by its settings', group({ zones: [{ name: 'a', paused: true }, 'b'] }), undefined, {}, 'b-2'],
    [
      'starts no other zone after the pause of the open zone by a person',
      native,
      runOf({ openZone: 'a' }),
      { ...podsIn({ a: { 2: { revision: newRevision } } }), intents: [intent({ action: 'pause', zone: 'a' })] },
      '',
    ],
    [
      'continues before it is the turn of a zone that a person paused',
      native,
      undefined,
      { intents: [intent({ action: 'pause', zone: 'b' })] },
      'a-2',
    ],
    [
      'continues after a zone that a person paused if its pods are updated',
      native,
      undefined,
      { ...podsIn({ a: updatedPods() }), intents: [intent({ action: 'pause', zone: 'a' })] },
      'b-2',
    ],
    ['stops with the pause of the group', native, undefined, { intents: [intent({ action: 'pause' })] }, ''],
    ['does not finish an open zone first in adopted groups', adopted(), runOf({ openZone: 'b' }), {}, 'a-0'],
    [
      'begins with the one zone that is not whole in adopted groups too',
      adopted(),
      runOf({ openZone: 'b' }),
      podsIn({ c: { 2: { containersReady: false, waitingReasons: ['ErrImagePull'] } } }),
      'c-2',
    ],
    ['is as listed however the StatefulSets are', native, undefined, { statefulSets: all.toReversed() }, 'a-2'],
  ])('%s', (_name, definition, run, overrides, expected) => {
    expect(replacedPods(roll(definition, run, overrides))).toBe(expected);
  });

  it.each([
    ['repairs a zone although a claim of another zone stays, because its successor is stuck', 'gone', 'b-1'],
    ['repairs no zone while a claim of another zone may still be applied', 'uid-ingester-zone-c-1', ''],
  ])('%s', (_name, uid, expected) => {
    const claims = [{ verb: 'evictPod' as const, zone: 'c', uid, ordinal: 1, atMs: kitNowMs }];
    const state = { ...podsIn({ b: { 1: stuck }, c: { 1: stuck } }), ledgers: [ledgerOf({ run: runOf(), claims })] };
    expect(replacedPods(roll(native, undefined, state))).toBe(expected);
  });

  it('stops at a blocked zone, and names the reason for that zone only', () => {
    expect(blockedSteps(roll(native, runOf({ openZone: 'a' }), podsIn({ a: { 2: unready } })))).toEqual(['roll/a wait: zone-budget']);
    const deny = { policies: [policy({ rules: [policyRule({ when: { '==': [{ var: 'target.zone' }, 'a'] } })] })] };
    expect(blockedSteps(roll(native, undefined, deny))).toEqual(['roll/a blocked: safety/rule']);
  });

  it('names a paused zone and continues with the next', () => {
    const paused = group({ zones: [{ name: 'a', paused: true }, 'b'] });
    expect(blockedSteps(roll(paused, undefined))).toEqual(['roll/a wait: paused', 'roll/b act: ']);
    const everyone = group({
      zones: [
        { name: 'a', paused: true },
        { name: 'b', paused: true },
      ],
    });
    expect(blockedSteps(roll(everyone, runOf({ target: { a: newRevision, b: newRevision } })))).toEqual([
      'roll/a wait: paused',
      'roll/b wait: paused',
    ]);
    expect(roll(everyone, undefined).run?.isMovable).toBe(false);
  });

  it('fails the run at its progress deadline also while the settings pause every zone', () => {
    const rollout = { deadlines: { progressMs: 20 * minuteMs } };
    const everyone = group({ rollout, zones: ['a', 'b', 'c'].map((name) => ({ name, paused: true })) });
    const run = runOf({ openZone: 'a', lastDisruptionMs: ago(hourMs), inFlightSinceMs: ago(hourMs) });
    expect(roll(everyone, run, podsIn({ a: { 2: { ...stuck, revision: newRevision } } })).run).toMatchObject({ outcome: 'failed' });
  });

  it('waits in a zone that a user paused, and does not count the time of the wait', () => {
    const paused = roll(native, runOf({ openZone: 'a' }), { intents: [intent({ action: 'pause', zone: 'a' })] });
    expect(blockedSteps(paused)).toEqual(['roll/a wait: paused']);
    expect(paused.run?.isMovable).toBe(false);
  });
});

describe('an idle group with a member that does not fit its strategy', () => {
  const atRest = (strategy: 'onDelete' | 'partition' | 'pinned') => {
    const definition = group({ zones: ['a'], rollout: { strategy } });
    const statefulSets = [statefulSet({ name: 'ingester-zone-a', updateStrategy: 'OnDelete' })];
    return decideGroup(snapshotOf({ groups: [definition], statefulSets }), definition);
  };

  it.each(['partition', 'pinned'] as const)('is done under %s, with a warning that names the change', (strategy) => {
    const { phase, warnings } = atRest(strategy);
    expect(phase).toBe('Done');
    expect(warnings).toMatchObject([
      {
        rule: 'update-strategy',
        fact: `ingester-zone-a has the update strategy OnDelete: the strategy ${strategy} needs RollingUpdate`,
        endsWith: expect.stringMatching(/^kubectl patch statefulset ingester-zone-a -n mimir .*1000000/),
      },
    ]);
  });

  it('names each member that does not fit, once, also while a rollout is blocked by the first', () => {
    const definition = group({ zones: ['a', 'b', 'c'], rollout: { strategy: 'pinned' } });
    const statefulSets = outdatedSets(['a', 'b', 'c'], { updateStrategy: 'OnDelete' });
    const { steps, warnings } = decideGroup(snapshotOf({ groups: [definition], statefulSets }), definition);
    const answers = [...steps.flatMap(({ results }) => results), ...warnings];
    const facts = answers.filter(({ rule }) => rule === 'update-strategy').map(({ fact }) => fact.split(' ')[0]);
    expect(facts.sort()).toEqual(['ingester-zone-a', 'ingester-zone-b', 'ingester-zone-c']);
  });

  it('has no warning if the member fits', () => expect(atRest('onDelete').warnings).toEqual([]));
});
