import { describe, expect, it } from 'vitest';
import { decideGroup } from '../../engine/decide.ts';
import type { Action, GroupDecision } from '../../engine/decision.ts';
import { violationsOf } from '../../engine/invariants.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { adopted, group, type ZoneOverrides } from '../kit/groups.ts';
import { kitNowMs, type PodChanges } from '../kit/objects.ts';
import { ago, hourMs, ledgerOf, minuteMs, outdatedSets, runOf } from '../kit/questions.ts';
import { type SnapshotOverrides, snapshotOf } from '../kit/snapshots.ts';

const native = group();

/** What a hand-made decision violates. */
function violated(
  actions: readonly Action[],
  overrides: SnapshotOverrides = {},
  definition: GroupDefinition = native,
  more: Partial<GroupDecision> = {},
) {
  const snapshot = snapshotOf({ groups: [definition], statefulSets: outdatedSets(), ...overrides });
  const decision: GroupDecision = { ...decideGroup(snapshot, definition), outcome: 'act', waits: [], actions, ...more };
  return violationsOf({ snapshot, group: definition, decision });
}

const replace = (zone: string, ordinal: number, because: 'outdated' | 'stuck' = 'outdated', more: object = {}): Action => ({
  kind: 'deletePod',
  namespace: 'mimir',
  zone,
  statefulSet: `ingester-zone-${zone}`,
  pod: `ingester-zone-${zone}-${ordinal}`,
  ordinal,
  uid: `uid-ingester-zone-${zone}-${ordinal}`,
  resourceVersion: '100',
  because,
  ...more,
});
const podsIn = (zones: Readonly<Record<string, PodChanges>>): SnapshotOverrides => ({
  podChanges: Object.fromEntries(Object.entries(zones).map(([zone, pods]) => [`ingester-zone-${zone}`, pods])),
});
const down = { isReady: false, readyChangedMs: ago(hourMs) };
const zones = (a: Omit<ZoneOverrides, 'name'>, b: Omit<ZoneOverrides, 'name'> = {}) =>
  group({ zones: [{ name: 'a', ...a }, { name: 'b', ...b }, 'c'] });

describe('a cure beside other zones', () => {
  const two = podsIn({ a: { 2: down }, b: { 1: down } });

  it('violates neither S1 nor S8', () => {
    expect(violated([replace('a', 2, 'stuck')], two)).toEqual([]);
    expect(violated([replace('a', 2, 'stuck')], { ...two, ledgers: [ledgerOf({ run: runOf({ openZone: 'b' }) })] })).toEqual([]);
  });

  it('is of one pod, that is down, while nothing is announced elsewhere, and never in adopted groups', () => {
    const s1 = 'S1: zone a is disturbed while zone b is not whole';
    expect(violated([replace('a', 1, 'stuck')], two)).toContain(s1);
    expect(violated([replace('a', 2)], two)).toContain(s1);
    expect(violated([replace('a', 1, 'stuck'), replace('a', 2, 'stuck')], podsIn({ a: { 1: down, 2: down }, b: { 1: down } }))).toContain(
      s1,
    );
    const claims = [{ verb: 'deletePod', zone: 'b', uid: 'uid-ingester-zone-b-1', ordinal: 1, atMs: kitNowMs }] as const;
    expect(violated([replace('a', 2, 'stuck')], { ...two, ledgers: [ledgerOf({ claims })] })).toContain(s1);
    const broken = podsIn({ a: { 2: { containersReady: false } }, b: { 1: { containersReady: false } } });
    expect(violated([replace('a', 2, 'stuck')], broken, adopted())).toContain(s1);
  });
});

describe('S9, the cure of stuck pods', () => {
  it('is violated by more pods in flight than the limit', () => {
    expect(violated([replace('a', 1, 'stuck'), replace('a', 2, 'stuck')], podsIn({ a: { 1: down, 2: down } }))).toEqual([
      'S9: 2 pods of zone a in flight at once',
    ]);
    expect(violated([replace('a', 1, 'stuck')], podsIn({ a: { 1: down, 2: 'missing' } }))).toEqual([
      'S9: 2 pods of zone a in flight at once',
    ]);
  });

  it('is not violated under OrderedReady by what is missing above the pod that is cured', () => {
    const cure = (ordinal: number) => [replace('a', ordinal, 'stuck')];
    const more = (changes: PodChanges) => ({
      ...podsIn({ a: changes }),
      statefulSets: outdatedSets(undefined, { podManagementPolicy: 'OrderedReady' }),
    });
    expect(violated(cure(1), more({ 1: down, 2: 'missing' }))).toEqual([]);
    expect(violated(cure(1), more({ 0: 'missing', 1: down }))).toEqual(['S9: 2 pods of zone a in flight at once']);
  });

  it('is violated by the cure of a pod that is well, or not stuck yet', () => {
    const none = zones({ maxUnavailable: 2 });
    expect(violated([replace('a', 2, 'stuck')], {}, none)).toEqual(['S9: ingester-zone-a-2 is not down']);
    const young = { 2: { isReady: false, readyChangedMs: ago(5 * minuteMs) + 1 } };
    expect(violated([replace('a', 2, 'stuck')], podsIn({ a: young }))).toEqual(['S9: ingester-zone-a-2 was replaced before it was stuck']);
    const crashing = { 2: { ...young[2], waitingReasons: ['CrashLoopBackOff'] } };
    expect(violated([replace('a', 2, 'stuck')], podsIn({ a: crashing }))).toEqual([]);
  });
});
