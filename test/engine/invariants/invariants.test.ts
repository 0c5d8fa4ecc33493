import { describe, expect, it } from 'vitest';
import type { Action } from '../../../engine/decision.ts';
import { decisionInvariants } from '../../../engine/invariants/invariants.ts';
import { profileOf } from '../../../engine/profiles.ts';
import type { Claim } from '../../../engine/snapshot.ts';
import { adopted, group, type ZoneOverrides } from '../../kit/groups.ts';
import { podsIn, replace, violated } from '../../kit/hand-made.ts';
import { kitNowMs, newRevision, type PodChanges, pod, statefulSet } from '../../kit/objects.ts';
import { ago, exception, hourMs, ledgerOf, minuteMs, outdatedSets, policy, preparation, runOf, withFields } from '../../kit/questions.ts';
import type { SnapshotOverrides } from '../../kit/snapshots.ts';

const native = group();

const resize = (zone: string, from: number, to: number): Action => ({
  kind: 'scaleStatefulSet',
  namespace: 'mimir',
  zone,
  statefulSet: `ingester-zone-${zone}`,
  uid: `uid-ingester-zone-${zone}`,
  resourceVersion: '100',
  from,
  to,
});
const down = { isReady: false, readyChangedMs: ago(hourMs) };
const settled = (replicas: number): SnapshotOverrides => ({
  statefulSets: ['a', 'b', 'c'].map((name) => statefulSet({ name: `ingester-zone-${name}`, replicas })),
});
const zones = (a: Omit<ZoneOverrides, 'name'>, b: Omit<ZoneOverrides, 'name'> = {}) =>
  group({ zones: [{ name: 'a', ...a }, { name: 'b', ...b }, 'c'] });

describe('a valid decision has no violation', () => {
  it.each<[string, readonly Action[], SnapshotOverrides]>([
    ['that replaces a pod', [replace('a', 2)], {}],
    ['that cures a pod', [replace('a', 2, 'stuck')], podsIn({ a: { 2: down } })],
    ['that grows a zone', [resize('a', 3, 5)], settled(3)],
    ['that shrinks a zone', [resize('a', 3, 2)], settled(3)],
    ['that does nothing', [], {}],
  ])('%s', (_name, actions, overrides) => {
    expect(violated(actions, overrides)).toEqual([]);
  });
});

describe('S1, only while every other zone is ready', () => {
  it('is violated by two zones at once', () => {
    expect(violated([replace('a', 2), replace('b', 2)])).toEqual(['S1: zones a and b are disrupted at the same time']);
  });

  it('is violated by a replacement or a downscale while another zone is not ready', () => {
    expect(violated([replace('a', 2)], podsIn({ b: { 1: down } }))).toEqual(['S1: zone a is disrupted while zone b is not ready']);
    expect(violated([resize('a', 3, 2)], { ...settled(3), ...podsIn({ b: { 1: down } }) })).toEqual([
      'S1: zone a is disrupted while zone b is not ready',
    ]);
    expect(violated([resize('a', 3, 5)], { ...settled(3), ...podsIn({ b: { 1: down } }) })).toEqual([]);
  });

  it('does not apply to forced downscales and to adopted groups', () => {
    const broken = { ...settled(3), ...podsIn({ b: { 1: { ...down, containersReady: false } } }) };
    expect(violated([resize('a', 3, 2)], broken, zones({ forceReplicas: 2 }))).toEqual([]);
    expect(violated([resize('a', 3, 2)], broken, adopted())).toEqual([]);
  });

  it('ignores a paused zone of adopted groups if only this zone is not ready', () => {
    const paused = adopted({ zones: ['a', { name: 'b', paused: true }, 'c'] });
    const broken = { b: { 1: { containersReady: false } } };
    expect(violated([replace('a', 0)], podsIn(broken), paused)).toEqual([]);
    expect(violated([replace('a', 0)], podsIn({ ...broken, c: broken.b }), paused)).toContain(
      'S1: zone a is disrupted while zone b is not ready',
    );
    expect(violated([replace('a', 0)], podsIn(broken), group({ zones: ['a', { name: 'b', paused: true }, 'c'] }))).toEqual([]);
  });
});

describe('S2, the budget of the zone', () => {
  it('is violated by more unavailable pods than allowed, also if another client deleted some', () => {
    expect(violated([replace('a', 2), replace('a', 1)])).toEqual([
      'S2: zone a would have 2 unavailable pods with a limit of 1',
      'S9: 2 pods of zone a would be in flight',
    ]);
    expect(violated([replace('a', 2)], podsIn({ a: { 0: { revision: newRevision, isReady: false } } }))).toContain(
      'S2: zone a would have 2 unavailable pods with a limit of 1',
    );
  });

  it('is lowered by policies, and is not checked if only the eviction API can check it', () => {
    const two = [replace('a', 2), replace('a', 1)];
    expect(violated(two, {}, zones({ maxUnavailable: 2 }))).toEqual([]);
    expect(violated(two, { policies: [policy({ limits: { maxUnavailable: 1 } })] }, zones({ maxUnavailable: 2 }))).toContain(
      'S2: zone a would have 2 unavailable pods with a limit of 1',
    );
    const mixed = [policy({ limits: { maxUnavailable: 2 } }), policy({ name: 'strict', limits: { maxUnavailable: '10%' } })];
    expect(violated(two, { policies: mixed }, zones({ maxUnavailable: 2 }))).toContain(
      'S2: zone a would have 2 unavailable pods with a limit of 1',
    );
    expect(violated(two, {}, zones({ maxUnavailable: 'fromBudget' }))).toEqual([]);
  });

  it('does not apply to pods that are unavailable themselves', () => {
    expect(violated([replace('a', 2, 'stuck')], podsIn({ a: { 2: down, 1: { ...down, nodeReady: false } } }))).toEqual([]);
  });
});

describe('S4, no action on unknown state', () => {
  const unread = { pods: [{ namespace: 'mimir', statefulSet: 'ingester-zone-c', pods: { unknown: 'forbidden' } }] };
  const fact = 'S4: the pods of ingester-zone-c could not be read: forbidden';

  it('is violated while a zone could not be read', () => {
    expect(violated([replace('a', 2)], unread)).toContain(fact);
    expect(violated([resize('a', 3, 2)], { ...settled(3), ...unread })).toContain(fact);
    expect(violated([resize('a', 3, 4)], { ...settled(3), ...unread })).toEqual([]);
    expect(violated([replace('a', 0)], unread, adopted())).toContain(fact);
    expect(violated([resize('a', 3, 2)], { ...settled(3), ...unread }, adopted())).toEqual([]);
  });

  it('is violated by a replacement if the status is older than its spec', () => {
    const stale = { statefulSets: outdatedSets(['a', 'b', 'c'], { generation: 3, status: { observedGeneration: 2 } }) };
    const old = ['a', 'b', 'c'].map((zone) => `S4: the status of ingester-zone-${zone} is older than its spec`);
    expect(violated([replace('a', 2)], stale)).toEqual(old);
    expect(violated([replace('a', 0)], stale, adopted())).toEqual([]);
    expect(violated([resize('a', 3, 2)], stale)).toEqual([]);
  });
});

describe('S6 and S7, the right pod and only once', () => {
  it('are violated by a pod at the update revision, an unknown pod or another pod of the same name', () => {
    expect(violated([replace('a', 2)], podsIn({ a: { 2: { revision: newRevision } } }))).toEqual([
      'S6: ingester-zone-a-2 is at the update revision',
    ]);
    expect(violated([replace('a', 7)])).toContain('S6: ingester-zone-a-7 does not exist');
    expect(violated([replace('a', 2, 'outdated', { uid: 'uid-old' })])).toEqual(['S6: ingester-zone-a-2 has another UID']);
  });

  it('are violated by a pod that is replaced twice or already terminates', () => {
    expect(violated([replace('a', 2), replace('a', 2)], {}, zones({ maxUnavailable: 2 }))).toEqual([
      'S7: uid-ingester-zone-a-2 is replaced twice',
    ]);
    expect(violated([replace('a', 2)], podsIn({ a: { 2: { isTerminating: true } } }), zones({ maxUnavailable: 2 }))).toEqual([
      'S7: ingester-zone-a-2 is already terminating',
    ]);
  });
});

describe('S8, the open zone first', () => {
  const open = { ledgers: [ledgerOf({ run: runOf({ openZone: 'b' }) })] };

  it('is violated by another zone while the open zone is not ready', () => {
    expect(violated([replace('a', 2)], { ...open, ...podsIn({ b: { 1: down } }) })).toContain('S8: zone a starts before zone b is ready');
    expect(violated([replace('a', 2)], open)).toEqual([]);
    expect(violated([replace('b', 1, 'stuck')], { ...open, ...podsIn({ b: { 1: down } }) })).toEqual([]);
  });

  it('does not apply to adopted groups', () => {
    const broken = { ...open, ...podsIn({ b: { 1: { containersReady: false } } }) };
    expect(violated([replace('a', 0)], broken, adopted()).filter((what) => what.startsWith('S8'))).toEqual([]);
  });
});

describe('S11, the full delay', () => {
  const endpoint = { scheme: 'http', port: 80, path: '/prepare', timeout: '5s' } as const;
  const delaying = { delayed: { afterMs: 2 * hourMs, endpoint, onUnreachable: 'hold' } } as const;
  const leaves = (ordinal: number) => `S11: ingester-zone-a-${ordinal} is removed before it has been prepared for the whole delay`;
  const ask = (entries: readonly ReturnType<typeof preparation>[], definition = zones(delaying)) =>
    violated([resize('a', 5, 3)], { ...settled(5), ledgers: [ledgerOf({ preparations: entries })] }, definition);
  const at = (ordinal: number, instant: number) => preparation(ordinal, { seenMs: instant, reportedMs: instant });

  it('is violated by every pod that is removed too early', () => {
    expect(ask([])).toEqual([leaves(3), leaves(4)]);
    expect(ask([at(3, ago(2 * hourMs)), at(4, ago(2 * hourMs) + 1)])).toEqual([leaves(4)]);
    expect(ask([at(3, ago(2 * hourMs)), at(4, ago(2 * hourMs))])).toEqual([]);
  });

  it('is violated by a pod that was not called again within the last minute', () => {
    const asked = (ageMs: number) => ask([preparation(3), preparation(4, { answeredMs: ago(ageMs) })]);
    expect(asked(minuteMs)).toEqual([]);
    expect(asked(minuteMs + 1)).toEqual(['S11: ingester-zone-a-4 is removed without a recent confirmation']);
    expect(asked(-1)).toEqual(['S11: ingester-zone-a-4 is removed without a recent confirmation']);
  });

  it('is violated by a pod that was lost', () => {
    const pods = { podChanges: { 'ingester-zone-a': { 4: 'missing' } } } as const;
    const entries = { ledgers: [ledgerOf({ preparations: [preparation(3), preparation(4)] })] };
    expect(violated([resize('a', 5, 3)], { ...settled(5), ...pods, ...entries }, zones(delaying))).toEqual([
      'S11: ordinal 4 of zone a is removed while it has no pod that could prepare',
    ]);
  });

  it('is not violated by an ordinal without a pod ever', () => {
    const pods = { podChanges: { 'ingester-zone-a': { 4: 'missing' } } } as const;
    const never = { statefulSets: [statefulSet({ replicas: 5, status: { replicas: 4 } })] };
    expect(violated([resize('a', 5, 4)], { ...never, ...pods }, zones(delaying))).toEqual([]);
  });

  it('is violated by the answer of another pod, the answer to another call, or a failure', () => {
    const fine = preparation(3);
    expect(ask([fine, preparation(4, { podUid: 'uid-old' })])).toEqual([leaves(4)]);
    expect(ask([fine, preparation(4, { call: 'prepare' })])).toEqual([leaves(4)]);
    expect(ask([fine, preparation(4, { state: 'failed' })])).toEqual([leaves(4)]);
  });

  it('counts from the later of both times, except in adopted groups', () => {
    const early = preparation(4, { seenMs: ago(minuteMs) });
    expect(ask([preparation(3), early])).toEqual([leaves(4)]);
    expect(ask([preparation(3), preparation(4, { reportedMs: kitNowMs })])).toEqual([leaves(4)]);
    const mirrored = adopted({ zones: [{ name: 'a', ...delaying, replicas: { kind: 'mirror' } as never }, 'b', 'c'] });
    expect(ask([preparation(3), early], mirrored)).toEqual([]);
    expect(ask([preparation(3)], mirrored)).toEqual([leaves(4)]);
  });

  it('does not apply to forced replicas, and to adopted zones without a mirror', () => {
    expect(ask([], zones({ ...delaying, forceReplicas: 3 }))).toEqual([]);
    expect(ask([], adopted({ zones: [{ name: 'a', ...delaying }, 'b', 'c'] }))).toEqual([]);
  });
});

describe('S12, the interval between downscales', () => {
  const gap = { betweenZonesMs: 2 * hourMs };
  const shrank = (zone: string, atMs: number) => ({ ledgers: [ledgerOf({ downscales: [{ zone, atMs, from: 4, to: 3 }] })] });
  const ask = (overrides: SnapshotOverrides, definition = zones(gap)) =>
    violated([resize('a', 3, 2)], { ...settled(3), ...overrides }, definition);
  const soon = ['S12: zone a shrinks too soon after zone b'];

  it('is violated by a downscale too soon after another zone', () => {
    expect(ask(shrank('b', ago(2 * hourMs) + 1))).toEqual(soon);
    expect(ask(shrank('b', ago(2 * hourMs)))).toEqual([]);
    expect(ask(shrank('a', ago(minuteMs)))).toEqual([]);
  });

  it('includes claims and the intervals of policies', () => {
    const claim: Claim = { verb: 'scaleDown', zone: 'b', uid: 'uid-ingester-zone-b', from: 4, to: 3, atMs: ago(minuteMs) };
    expect(ask({ ledgers: [ledgerOf({ claims: [claim] })] })).toEqual(soon);
    expect(ask({ ...shrank('b', ago(3 * hourMs)), policies: [policy({ limits: { betweenZonesMs: 4 * hourMs } })] })).toEqual(soon);
    expect(ask(shrank('b', ago(minuteMs)), zones({ ...gap, forceReplicas: 2 }))).toEqual([]);
  });
});

describe('S13 and S14, leaders and bounds', () => {
  const sizes = (a: number, b: number, podChanges: SnapshotOverrides['podChanges'] = {}): SnapshotOverrides => ({
    statefulSets: [
      statefulSet({ replicas: a }),
      statefulSet({ name: 'ingester-zone-b', replicas: b }),
      statefulSet({ name: 'ingester-zone-c' }),
    ],
    podChanges: podChanges ?? {},
  });
  const bounded = { bounds: { min: 2, max: 6, multipleOf: 1, parity: 'any' } } as const;

  it('are violated by a follower below its leader', () => {
    expect(violated([resize('b', 5, 3)], sizes(4, 5), zones({}, { follows: 'a' }))).toEqual(['S13: zone b shrinks below its leader']);
    expect(violated([resize('b', 5, 4)], sizes(4, 5), zones({}, { follows: 'a' }))).toEqual([]);
    expect(violated([resize('b', 5, 3)], sizes(4, 5), zones({}, { follows: 'a', forceReplicas: 3 }))).toEqual([]);
  });

  it('are violated by a follower that grows before its leader is ready', () => {
    const waiting = zones({}, { follows: 'a', followersWaitFor: 'leaderReady' });
    const starting = sizes(5, 3, { 'ingester-zone-a': { 4: { isReady: false } } });
    expect(violated([resize('b', 3, 5)], starting, waiting)).toEqual(['S13: zone b grows before its leader is ready']);
    expect(violated([resize('b', 3, 5)], sizes(5, 3), waiting)).toEqual([]);
    expect(violated([resize('b', 3, 5)], starting, zones({}, { follows: 'a' }))).toEqual([]);
  });

  it('are violated by zero replicas, and by more replicas than the bounds allow', () => {
    expect(violated([resize('a', 3, 0)], settled(3))).toEqual(['S14: zone a is scaled to zero']);
    expect(violated([resize('a', 3, 7)], settled(3), zones(bounded))).toEqual(['S14: zone a grows outside its bounds']);
    expect(violated([resize('a', 3, 6)], settled(3), zones(bounded))).toEqual([]);
    expect(violated([resize('a', 3, 7)], settled(3), zones({ ...bounded, forceReplicas: 7 }))).toEqual([]);
    expect(violated([resize('a', 3, 0)], settled(3), adopted())).toEqual([]);
  });
});

describe('S15, one kind of change at a time', () => {
  it('is violated by pods and replicas in one turn', () => {
    expect(violated([replace('a', 2), resize('a', 3, 4)])).toEqual(['S15: pods are replaced and replicas are written in one turn']);
  });

  it('is violated by a replacement while a zone shrinks', () => {
    const sets = outdatedSets();
    const owner = sets[1] ?? statefulSet();
    const pods = [{ namespace: 'mimir', statefulSet: owner.name, pods: [0, 1, 2, 3].map((ordinal) => pod(owner, ordinal)) }];
    expect(violated([replace('a', 2)], { statefulSets: sets, pods })).toContain('S15: pods are replaced while zone b shrinks');
  });

  it('is violated by a downscale during a replacement in another zone', () => {
    const run = runOf({ openZone: 'b' });
    const rolling = (more: object = {}) => violated([resize('a', 3, 2)], settled(3), zones(more), { run });
    expect(rolling()).toEqual(['S15: zone a shrinks during the rollout of zone b']);
    expect(rolling({ forceReplicas: 2 })).toEqual([]);
    expect(violated([resize('b', 3, 2)], settled(3), native, { run })).toEqual([]);
    expect(violated([resize('a', 3, 2)], settled(3), native, { run: withFields(run, { outcome: 'failed' }) })).toEqual([]);
  });
});

describe('L9, a reason', () => {
  it('is violated by a group that waits without one', () => {
    expect(violated([], {}, native, { outcome: 'wait' })).toEqual(['L9: the group waits without a reason']);
    expect(violated([], {}, native, { outcome: 'blocked' })).toEqual(['L9: the group waits without a reason']);
    expect(violated([], {}, native, { outcome: 'done' })).toEqual([]);
    const reason = { rule: 'window', outcome: 'wait', fact: 'it is closed' } as const;
    expect(violated([], {}, native, { outcome: 'wait', waits: [reason] })).toEqual([]);
  });

  it('is violated by a wait until a time that has passed', () => {
    const reason = { rule: 'window', outcome: 'wait', fact: 'it is closed', earliestMs: kitNowMs } as const;
    expect(violated([], {}, native, { outcome: 'wait', waits: [reason] })).toEqual([
      'L9: window waits for 2026-03-02T12:00:00.000Z, which has passed',
    ]);
    expect(violated([], {}, native, { outcome: 'wait', waits: [{ ...reason, earliestMs: kitNowMs + 1 }] })).toEqual([]);
  });
});

describe('an exception in force', () => {
  const broken = podsIn({ b: { 1: down } });
  const two = [replace('a', 2), replace('a', 1)];

  it('permits an action that its rule would block, in its zone', () => {
    expect(violated([replace('a', 2)], { ...broken, exceptions: [exception('other-zones-ready', { zone: 'a' })] })).toEqual([]);
    expect(violated(two, { exceptions: [exception('zone-budget')] })).toEqual([]);
    expect(violated([resize('a', 3, 0)], { ...settled(3), exceptions: [exception('scale-floor')] })).toEqual([]);
  });

  it.each([
    ['another rule', exception('zone-gap')],
    ['another zone', exception('other-zones-ready', { zone: 'c' })],
    ['another time', exception('other-zones-ready', { expiresMs: kitNowMs })],
  ])('of %s permits no action', (_name, given) => {
    expect(violated([replace('a', 2)], { ...broken, exceptions: [given] })).toEqual(['S1: zone a is disrupted while zone b is not ready']);
  });
});

describe('the list of invariants', () => {
  it('has each once, with its statement and its scope', () => {
    expect(decisionInvariants.map(({ id, scope }) => `${id} ${scope}`)).toEqual([
      'S1 all',
      'S2 all',
      'S4 all',
      'S6 all',
      'S6p native',
      'S7 all',
      'S8 native',
      'S9 native',
      'S11 all',
      'S12 native',
      'S13 native',
      'S14 native',
      'S15 native',
      'L9 all',
    ]);
    expect([native, adopted()].map((group) => profileOf(group).checksNativeInvariants)).toEqual([true, false]);
  });
});

describe('a repair while other zones are not ready', () => {
  const two = podsIn({ a: { 2: down }, b: { 1: down } });

  it('violates neither S1 nor S8', () => {
    expect(violated([replace('a', 2, 'stuck')], two)).toEqual([]);
    expect(violated([replace('a', 2, 'stuck')], { ...two, ledgers: [ledgerOf({ run: runOf({ openZone: 'b' }) })] })).toEqual([]);
  });

  it('is of one unavailable pod, without a claim elsewhere, and never in adopted groups', () => {
    const s1 = 'S1: zone a is disrupted while zone b is not ready';
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

describe('S15, a repair while a zone shrinks', () => {
  it('is not violated by the stuck pod that surplus pods wait for under OrderedReady', () => {
    const sets = outdatedSets(['a'], { podManagementPolicy: 'OrderedReady' });
    const [owner = statefulSet()] = sets;
    const pods = [0, 1, 2, 3].map((ordinal) => pod(owner, ordinal, ordinal === 0 ? down : {}));
    const shrinking = { statefulSets: sets, pods: [{ namespace: 'mimir', statefulSet: owner.name, pods }] };
    const alone = group({ zones: [{ name: 'a', maxUnavailable: 2 }] });
    expect(violated([replace('a', 0, 'stuck')], shrinking, alone)).toEqual([]);
    expect(violated([replace('a', 1)], shrinking, alone)).toEqual(['S15: pods are replaced while zone a shrinks']);
    const parallel = { ...shrinking, statefulSets: outdatedSets(['a']) };
    expect(violated([replace('a', 0, 'stuck')], parallel, alone)).toEqual(['S15: pods are replaced while zone a shrinks']);
  });
});

describe('S9, the repair of stuck pods', () => {
  it('is violated by more pods in flight than the limit', () => {
    expect(violated([replace('a', 1, 'stuck'), replace('a', 2, 'stuck')], podsIn({ a: { 1: down, 2: down } }))).toEqual([
      'S9: 2 pods of zone a would be in flight',
    ]);
    expect(violated([replace('a', 1, 'stuck')], podsIn({ a: { 1: down, 2: 'missing' } }))).toEqual([
      'S9: 2 pods of zone a would be in flight',
    ]);
  });

  it('is not violated under OrderedReady by missing pods above the repaired pod', () => {
    const cure = (ordinal: number) => [replace('a', ordinal, 'stuck')];
    const more = (changes: PodChanges) => ({
      ...podsIn({ a: changes }),
      statefulSets: outdatedSets(undefined, { podManagementPolicy: 'OrderedReady' }),
    });
    expect(violated(cure(1), more({ 1: down, 2: 'missing' }))).toEqual([]);
    expect(violated(cure(1), more({ 0: 'missing', 1: down }))).toEqual(['S9: 2 pods of zone a would be in flight']);
  });

  it('is violated by the repair of a pod that is ready or not stuck yet', () => {
    const none = zones({ maxUnavailable: 2 });
    expect(violated([replace('a', 2, 'stuck')], {}, none)).toEqual(['S9: ingester-zone-a-2 is available, not stuck']);
    const young = { 2: { isReady: false, readyChangedMs: ago(5 * minuteMs) + 1 } };
    expect(violated([replace('a', 2, 'stuck')], podsIn({ a: young }))).toEqual([
      'S9: ingester-zone-a-2 is replaced before it counts as stuck',
    ]);
    const crashing = { 2: { ...young[2], waitingReasons: ['CrashLoopBackOff'] } };
    expect(violated([replace('a', 2, 'stuck')], podsIn({ a: crashing }))).toEqual([]);
  });
});
