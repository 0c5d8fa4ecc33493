import { describe, expect, it } from 'vitest';
import { choosePods } from '../../../engine/rules/budget.ts';
import type { PodView } from '../../../engine/snapshot.ts';
import type { RolloutDefinition } from '../../../policies/definition.ts';
import { group, type ZoneOverrides } from '../../kit/groups.ts';
import { kitNowMs, newRevision, type PodChanges, statefulSet } from '../../kit/objects.ts';
import { ago, contextWith, exception, intent, line, minuteMs, outdatedSets, policy, rollQuestion } from '../../kit/questions.ts';
import type { SnapshotOverrides } from '../../kit/snapshots.ts';

interface Given {
  readonly zone?: Omit<ZoneOverrides, 'name'>;
  readonly rollout?: Partial<RolloutDefinition>;
  readonly pods?: PodChanges;
  readonly more?: SnapshotOverrides;
}

/** The pods of zone a that go now, of five outdated ones. */
function choose({ zone = {}, rollout = {}, pods = {}, more = {} }: Given) {
  const definition = group({ zones: [{ name: 'a', ...zone }, 'b'], rollout, sources: { 'zones.a.maxUnavailable': line(1) } });
  const statefulSets = outdatedSets(['a', 'b'], { replicas: 5 });
  return choosePods(rollQuestion(contextWith(definition, { statefulSets, podChanges: { 'ingester-zone-a': pods }, ...more })));
}

/** The ordinals that go, those that are cured marked by an exclamation mark. */
const going = (given: Given) =>
  choose(given)
    .chosen.map(({ pod, because }) => `${pod.ordinal}${because === 'stuck' ? '!' : ''}`)
    .join(' ');

/** Unready for a minute, which is not long enough to be stuck. */
const unready: Partial<PodView> = { isReady: false, readyChangedMs: ago(minuteMs) };
const stuck: Partial<PodView> = { isReady: false, readyChangedMs: ago(5 * minuteMs) };

describe('a limit of zero', () => {
  const nothing: Given = { zone: { maxUnavailable: 0 } };
  const budgetOf = (amounts: object) => ({
    podBudgets: [{ namespace: 'mimir', name: 'pdb', selector: { matchLabels: { 'rollout-group': 'ingester' } }, ...amounts }],
  });
  const fromBudget = (amounts: object): Given => ({ zone: { maxUnavailable: 'fromBudget' }, more: budgetOf(amounts) });
  const answer = (given: Given) => {
    const { chosen, results } = choose(given);
    expect(chosen.filter(({ because }) => because === 'outdated')).toEqual([]);
    return results[0];
  };
  const no = (fact: string, source: unknown) => ({ rule: 'zone-budget', outcome: 'no', fact, limit: '0', source });

  it('is a no instead of a wait, at its location', () => {
    expect(answer(nothing)).toEqual(no('no pod of zone a may be replaced', line(1)));
    expect(answer({ ...nothing, rollout: { strategy: 'partition' } })).toMatchObject({ outcome: 'no' });
    const capped = policy({ name: 'safety', limits: { maxUnavailable: 0 }, limitSources: { maxUnavailable: line(40) } });
    expect(answer({ zone: { maxUnavailable: 2 }, more: { policies: [capped] } })).toEqual(no('no pod of zone a may be replaced', line(40)));
  });

  it('of a PodDisruptionBudget names the object and the field', () => {
    const object = 'PodDisruptionBudget mimir/pdb';
    const fact = (text: string) => `no pod of zone a may be replaced: PodDisruptionBudget pdb allows no disruption: ${text}`;
    const none = fromBudget({ maxUnavailable: 0 });
    expect(answer(none)).toEqual(no(fact('maxUnavailable is 0'), { object, field: 'spec.maxUnavailable' }));
    const all = fromBudget({ minAvailable: '100%' });
    expect(answer(all)).toEqual(no(fact('minAvailable is 100%'), { object, field: 'spec.minAvailable' }));
    expect(answer(fromBudget({}))).toEqual(no(fact('it has neither maxUnavailable nor minAvailable'), { object }));
  });

  it('is absent if the pods of all zones together allow one', () => {
    expect(choose(fromBudget({ minAvailable: 9 })).results[0]).toMatchObject({ outcome: 'ok', limit: '1' });
    expect(going(fromBudget({ minAvailable: 9 }))).toBe('4');
  });

  it('waits if the pods of a PodDisruptionBudget allow no disruption at the moment', () => {
    const none = (healthy: number, asked = 10) => ({
      rule: 'zone-budget',
      outcome: 'wait',
      fact: `no pod of zone a may be replaced: PodDisruptionBudget pdb requires ${asked} of 10 pods: ${healthy} healthy`,
      limit: `${asked} healthy`,
      source: { object: 'PodDisruptionBudget mimir/pdb' },
    });
    // Kubernetes counts what else the selector matches, of which nothing is known here.
    expect(answer(fromBudget({ minAvailable: 10 }))).toEqual(none(10));
    const others = { ...budgetOf({ minAvailable: 9 }), podChanges: { 'ingester-zone-b': { 1: { isReady: false } } } };
    const given: Given = { zone: { maxUnavailable: 'fromBudget' }, more: others };
    expect(answer(given)).toEqual(none(9, 9));
    const capped = policy({ name: 'safety', limits: { maxUnavailable: 0 }, limitSources: { maxUnavailable: line(40) } });
    expect(answer({ ...given, more: { ...others, policies: [capped] } })).toEqual(no('no pod of zone a may be replaced', line(40)));
    const both = [...others.podBudgets, ...budgetOf({ maxUnavailable: 0 }).podBudgets];
    expect(answer({ ...given, more: { ...others, podBudgets: both } })).toMatchObject({ outcome: 'no' });
    // A pod of the zone that is down has taken its part, and no second one goes.
    const spare = { ...given, more: budgetOf({ minAvailable: 9 }), pods: { 0: { revision: newRevision, isReady: false } } };
    expect(answer(spare)).toMatchObject({ outcome: 'wait', fact: '1 of at most 1 pod unavailable in zone a', limit: '1' });
  });

  it('waits if StatefulSets outside the group use the disruptions of a PodDisruptionBudget', () => {
    const statefulSets = [
      ...outdatedSets(['a'], { replicas: 3 }),
      statefulSet({ name: 'ingester-zone-b', replicas: 0 }),
      statefulSet({ name: 'store', replicas: 3 }),
    ];
    const asked = (isReady: boolean) =>
      ({
        zone: { maxUnavailable: 'fromBudget' },
        more: { ...budgetOf({ minAvailable: 5 }), statefulSets, podChanges: { store: { 0: { isReady } } } },
      }) satisfies Given;
    expect(going(asked(true))).toBe('2');
    expect(answer(asked(false))).toMatchObject({ outcome: 'wait', limit: '5 healthy' });
    expect(choose(asked(false)).chosen).toEqual([]);
  });

  it('waits for an exception that starts later, and for one of two to expire', () => {
    const tomorrowMs = kitNowMs + 24 * 60 * minuteMs;
    const later = { notBeforeMs: tomorrowMs, expiresMs: tomorrowMs + minuteMs, allow: { podsAtMost: 1 } };
    const asked = (...exceptions: readonly ReturnType<typeof exception>[]) => answer({ ...nothing, more: { exceptions } });
    const wait = {
      outcome: 'wait',
      fact: 'no pod of zone a may be replaced until an exception applies',
      limit: '0',
      source: line(1),
      earliestMs: tomorrowMs,
    };
    expect(asked(exception('zone-budget', later))).toMatchObject(wait);
    const more = { ...budgetOf({ maxUnavailable: 0 }), exceptions: [exception('zone-budget', later)] };
    expect(answer({ zone: { maxUnavailable: 'fromBudget' }, more })).toMatchObject({ outcome: 'wait', earliestMs: tomorrowMs });
    const both = [exception('zone-budget', { expiresMs: tomorrowMs }), exception('zone-budget', { name: 'x', expiresMs: tomorrowMs + 1 })];
    expect(asked(...both)).toMatchObject(wait);
    for (const other of [
      exception('zone-budget', { ...later, zone: 'b' }),
      exception('zone-budget', { ...later, group: 'other' }),
      exception('zone-budget', { ...later, allow: { replicasAtLeast: 1 } }),
      exception('window', later),
      exception('zone-budget', { expiresMs: kitNowMs }),
    ])
      expect(asked(other)).toMatchObject({ outcome: 'no' });
  });

  it('waits while a pod may become stuck, which needs no budget', () => {
    expect(answer({ ...nothing, pods: { 1: unready } })).toMatchObject({ outcome: 'wait', earliestMs: kitNowMs + 4 * minuteMs });
    expect(going({ ...nothing, pods: { 1: stuck } })).toBe('1!');
    const crashesAlone = { replaceUnready: { when: 'crashing' as const, afterMs: 0 } };
    expect(answer({ ...nothing, rollout: crashesAlone, pods: { 1: unready } })).toMatchObject({ outcome: 'wait' });
    expect(answer({ ...nothing, rollout: crashesAlone })).toMatchObject({ outcome: 'no' });
    // Below the partition a pod would come back as it is, however broken, so nothing is to be hoped of it.
    const more = { statefulSets: outdatedSets(['a', 'b'], { replicas: 5, partition: 5 }) };
    const held = { ...nothing, rollout: { strategy: 'partition' as const }, more };
    expect(answer({ ...held, pods: { 1: unready } })).toMatchObject({ outcome: 'no' });
    const never = { replaceUnready: { when: 'none' as const, afterMs: 0 } };
    expect(answer({ ...nothing, rollout: never, pods: { 1: unready } })).toMatchObject({ outcome: 'no' });
  });

  it('waits while all outdated pods are in flight', () => {
    const leaving = { isTerminating: true };
    const pods = { 0: leaving, 1: leaving, 2: leaving, 3: leaving, 4: leaving };
    expect(answer({ ...nothing, pods })).toMatchObject({ outcome: 'wait' });
    expect(answer({ ...nothing, pods: { ...pods, 4: {} } })).toMatchObject({ outcome: 'no' });
  });

  it('waits if a user keeps the zone as it is', () => {
    expect(answer({ zone: { maxUnavailable: 0, paused: true } })).toMatchObject({ outcome: 'wait' });
    const paused = { intents: [intent({ action: 'pause' })] };
    expect(answer({ ...nothing, more: paused })).toMatchObject({ outcome: 'wait' });
  });
});
