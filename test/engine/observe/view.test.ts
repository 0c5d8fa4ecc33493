import { describe, expect, it } from 'vitest';
import { podsAvailable, updatedPods } from '../../../engine/observe/readings.ts';
import { claimNote, describeReadiness, isAvailable, isCrashing, viewGroup, type ZoneView } from '../../../engine/observe/view.ts';
import { type Claim, claimEndMs, type PodView, type Snapshot, type StatefulSetView } from '../../../engine/snapshot.ts';
import { adopted, group, wave } from '../../kit/groups.ts';
import { kitNowMs, newRevision, oldRevision, outdatedStatefulSet, type PodChanges, pod, statefulSet } from '../../kit/objects.ts';
import { ago, ledgerOf, secondMs } from '../../kit/questions.ts';
import { type SnapshotOverrides, snapshotOf } from '../../kit/snapshots.ts';

const native = group({ zones: ['a'] });
const asAdopted = adopted({ zones: ['a'] });

/** The ordinals of a view if it counts any pod as unavailable. */
function unavailableIn({ set, replicas, unavailable }: ZoneView): readonly number[] {
  return unavailable === 0 ? [] : Array.from({ length: replicas }, (_, index) => (set?.firstOrdinal ?? 0) + index);
}

/** What a view counts, as plain data. */
function counts(view: ZoneView | undefined) {
  if (view === undefined) return undefined;
  const { replicas, pods, surplus, outdated, updated, available, unavailableCount, inFlight, isReady, availableAtMs, unknown } = view;
  const ordinals = (list: readonly PodView[]) => list.map(({ ordinal }) => ordinal);
  return {
    replicas,
    pods: ordinals(pods),
    surplus: ordinals(surplus),
    outdated: ordinals(outdated),
    updated,
    unavailable: unavailableIn(view).filter((ordinal) => !available.has(ordinal)),
    unavailableCount,
    inFlight,
    isReady,
    ...(availableAtMs === undefined ? {} : { availableAtMs }),
    ...(unknown === undefined ? {} : { unknown }),
  };
}

const whole = {
  replicas: 3,
  pods: [0, 1, 2],
  surplus: [],
  outdated: [],
  updated: 3,
  unavailable: [],
  unavailableCount: 0,
  inFlight: 0,
  isReady: true,
};

function seen(set: StatefulSetView, changes: PodChanges = {}, overrides: SnapshotOverrides = {}, definition = native) {
  return counts(
    viewGroup(snapshotOf({ groups: [definition], statefulSets: [set], podChanges: { [set.name]: changes }, ...overrides }), definition)
      .zones[0],
  );
}

describe('a pod is available', () => {
  const owner = statefulSet();
  it.each<[string, Partial<PodView>, boolean, boolean]>([
    ['when it is ready', {}, true, true],
    ['never when it terminates', { isTerminating: true }, false, false],
    ['never when it is pending', { phase: 'Pending' }, false, false],
    ['never when it failed', { phase: 'Failed' }, false, false],
    ['never when it succeeded', { phase: 'Succeeded' }, false, false],
    ['never when its phase is unknown', { phase: 'Unknown' }, false, false],
    ['by its condition in native groups, by its containers in adopted ones', { isReady: false, containersReady: true }, false, true],
    ['the other way round', { isReady: true, containersReady: false }, true, false],
    ['not on a node that is down, which adopted groups do not look at', { nodeReady: false }, false, true],
    ['not before minReadySeconds have passed, which adopted groups do not count', { readyChangedMs: ago(10 * secondMs - 1) }, false, true],
    ['as soon as minReadySeconds have passed', { readyChangedMs: ago(10 * secondMs) }, true, true],
    ['not when it became ready in the future', { readyChangedMs: kitNowMs + 1 }, false, true],
  ])('%s', (_name, changes, isNative, isAdoptedOne) => {
    const one = pod(owner, 0, changes);
    expect([isAvailable(one, native, 10, kitNowMs), isAvailable(one, asAdopted, 10, kitNowMs)]).toEqual([isNative, isAdoptedOne]);
  });

  it('at once without minReadySeconds, with any clock of the kubelet', () => {
    expect(isAvailable(pod(owner, 0, { readyChangedMs: kitNowMs + 1_000_000 }), native, 0, kitNowMs)).toBe(true);
    expect(isAvailable(pod(owner, 0, { readyChangedMs: kitNowMs + 1_000_000, isReady: false }), native, 0, kitNowMs)).toBe(false);
  });
});

describe('a pod crashes', () => {
  it.each([
    ['CrashLoopBackOff', true],
    ['ImagePullBackOff', true],
    ['ErrImagePull', true],
    ['InvalidImageName', true],
    ['CreateContainerConfigError', true],
    ['CreateContainerError', true],
    ['ContainerCreating', false],
    ['PodInitializing', false],
  ])('if a container waits for %s: %s', (reason, expected) => {
    expect(isCrashing(pod(statefulSet(), 0, { waitingReasons: ['PodInitializing', reason] }))).toBe(expected);
  });

  it('not if no container waits', () => {
    expect(isCrashing(pod(statefulSet(), 0))).toBe(false);
  });
});

describe('a zone', () => {
  it('is complete if every pod exists, is ready and at the update revision', () => {
    expect(seen(statefulSet())).toEqual(whole);
  });

  it('lists outdated pods by ordinal, and these can be available', () => {
    expect(seen(outdatedStatefulSet(), { 1: { revision: newRevision } })).toEqual({ ...whole, outdated: [0, 2], updated: 1 });
  });

  it('counts a pod without a revision as outdated', () => {
    expect(seen(statefulSet(), { 1: { revision: '' } })).toEqual({ ...whole, outdated: [1], updated: 2 });
  });

  it('has an unready pod at an old revision as unavailable and not in flight', () => {
    expect(seen(outdatedStatefulSet(), { 2: { isReady: false } })).toEqual({
      ...whole,
      outdated: [0, 1, 2],
      updated: 0,
      unavailable: [2],
      unavailableCount: 1,
      isReady: false,
    });
  });

  it.each<[string, PodChanges, Partial<typeof whole>]>([
    ['that starts at the update revision', { 2: { isReady: false } }, {}],
    ['that terminates', { 2: { isTerminating: true } }, {}],
    ['that is missing', { 2: 'missing' }, { pods: [0, 1], updated: 2 }],
  ])('has a pod %s as unavailable and in flight', (_name, changes, differs) => {
    expect(seen(statefulSet(), changes)).toEqual({
      ...whole,
      unavailable: [2],
      unavailableCount: 1,
      inFlight: 1,
      isReady: false,
      ...differs,
    });
  });

  it('lists surplus pods separately: they are not unavailable, and the zone is not ready until they are gone', () => {
    const set = statefulSet({ replicas: 4 });
    const shrunk = { ...set, replicas: 2 };
    const snapshot = snapshotOf({ groups: [native], statefulSets: [set] });
    const view = viewGroup({ ...snapshot, statefulSets: [shrunk] }, native).zones[0];
    expect(counts(view)).toEqual({ ...whole, replicas: 2, pods: [0, 1, 2, 3], surplus: [2, 3], updated: 2, isReady: false });
  });

  it('counts ordinals from the first one, and lower ones as surplus', () => {
    const set = statefulSet({ firstOrdinal: 5 });
    const strays = [pod(set, 4), pod(set, 7), pod(set, 6), pod(set, 5)];
    const pods = [{ namespace: 'mimir', statefulSet: set.name, pods: strays }];
    expect(seen(set, {}, { pods })).toEqual({ ...whole, pods: [4, 5, 6, 7], surplus: [4], isReady: false });
  });

  it('with no replicas is complete', () => {
    expect(seen(statefulSet({ replicas: 0 }))).toEqual({ ...whole, replicas: 0, pods: [], updated: 0 });
  });
});

describe('a claim', () => {
  const claim = { verb: 'evictPod', zone: 'a', uid: 'uid-ingester-zone-a-1', ordinal: 1, atMs: kitNowMs } as const;

  it('makes a healthy pod count as unavailable and in flight', () => {
    expect(seen(statefulSet(), {}, { ledgers: [ledgerOf({ claims: [claim] })] })).toEqual({
      ...whole,
      unavailable: [1],
      unavailableCount: 1,
      inFlight: 1,
      isReady: false,
      availableAtMs: claimEndMs(claim),
    });
  });

  const ready = (ordinal: number, change: Partial<Claim> = {}): Claim => ({
    ...claim,
    ordinal,
    uid: `uid-ingester-zone-a-${ordinal}`,
    ...change,
  });
  const down: PodChanges = { 0: { isReady: false } };
  const eviction = 'the eviction of ingester-zone-a-1';
  const earlier = ago(100 * secondMs);
  it.each<[string, readonly Claim[], PodChanges, string, number | undefined]>([
    ['one ready pod', [ready(1)], {}, `2 of 3 pods available: ${eviction} was allowed and may still be carried out`, kitNowMs],
    [
      'two ready pods',
      [ready(1, { atMs: earlier }), ready(2, { verb: 'deletePod' })],
      {},
      `1 of 3 pods available: ${eviction} and the deletion of ingester-zone-a-2 were allowed and may still be carried out`,
      earlier,
    ],
    [
      'three ready pods',
      [ready(0), ready(1), ready(2)],
      {},
      `0 of 3 pods available: the eviction of ingester-zone-a-0, ${eviction} and 1 more were allowed and may still be carried out`,
      kitNowMs,
    ],
    [
      'a ready pod next to a failed pod',
      [ready(1)],
      down,
      `1 of 3 pods available; ${eviction} was allowed and may still be carried out`,
      kitNowMs,
    ],
    [
      'one ready pod twice',
      [ready(1, { verb: 'deletePod' }), ready(1, { atMs: earlier })],
      {},
      `2 of 3 pods available: ${eviction} was allowed and may still be carried out`,
      kitNowMs,
    ],
    ['a pod that is down anyway', [ready(0)], down, '2 of 3 pods available', undefined],
    ['a pod that terminates', [ready(0)], { 0: { isTerminating: true } }, '2 of 3 pods available', undefined],
    ['a surplus pod', [ready(3)], {}, '3 of 3 pods available', undefined],
  ])(
    'on %s is named, with the time at which it ends, only if it alone makes the pod unavailable',
    (_name, claims, changes, text, fromMs) => {
      const snapshot = snapshotOf({
        groups: [native],
        statefulSets: [statefulSet()],
        podChanges: { 'ingester-zone-a': changes },
        ledgers: [ledgerOf({ claims })],
      });
      for (const definition of [native, asAdopted]) {
        const [view] = viewGroup(snapshot, definition).zones;
        expect(view && describeReadiness(view)).toBe(`zone a has ${text}`);
        expect(view?.availableAtMs).toBe(fromMs === undefined ? undefined : claimEndMs({ atMs: fromMs }));
      }
    },
  );

  it('that should have ended names no past time, because its reader may see it later', () => {
    const [view] = viewGroup(
      snapshotOf({ groups: [native], ledgers: [ledgerOf({ claims: [ready(1, { atMs: ago(121 * secondMs) })] })] }),
      native,
    ).zones;
    expect(view?.availableAtMs).toBeUndefined();
    expect(view && claimNote(view)).toBe(`: ${eviction} was allowed and may still be carried out`);
  });

  it.each([
    ['another zone', { ...claim, zone: 'b' }, ledgerOf()],
    ['another pod', { ...claim, uid: 'uid-gone' }, ledgerOf()],
    ['another group', claim, ledgerOf({ group: 'store-gateway' })],
    ['another namespace', claim, ledgerOf({ namespace: 'loki' })],
  ])('of %s has no effect', (_name, other, ledger) => {
    expect(seen(statefulSet(), {}, { ledgers: [{ ...ledger, claims: [other] }] })).toEqual(whole);
  });

  it('is only in the view of its zone', () => {
    const both = group({ zones: ['a', 'b'] });
    const view = viewGroup(snapshotOf({ groups: [both], ledgers: [ledgerOf({ claims: [claim] })] }), both);
    expect(view.zones.map(({ claims }) => claims)).toEqual([[claim], []]);
  });
});

describe('the counters of the status', () => {
  const behind = statefulSet({ status: { readyReplicas: 1 } });

  it('count in adopted groups if they show more unavailable pods', () => {
    expect(seen(behind, {}, {}, asAdopted)).toEqual({ ...whole, unavailableCount: 2, isReady: false });
  });

  it('do not count in native groups', () => {
    expect(seen(behind)).toEqual(whole);
  });

  it('count pods that the status has and the list does not have', () => {
    expect(seen(statefulSet({ status: { replicas: 5, readyReplicas: 5 } }), {}, {}, asAdopted)).toEqual({
      ...whole,
      unavailableCount: 2,
      isReady: false,
    });
  });

  it('never reduce the number of unavailable pods', () => {
    const down = { 1: { isReady: false }, 2: { isReady: false } };
    expect(seen(statefulSet({ status: { readyReplicas: 2 } }), down, {}, asAdopted)).toEqual({
      ...whole,
      unavailable: [1, 2],
      unavailableCount: 2,
      inFlight: 2,
      isReady: false,
    });
  });
});

describe('unreadable parts', () => {
  const nothing = { ...whole, pods: [], updated: 0, isReady: false };

  it('is marked when the StatefulSet does not exist', () => {
    const view = viewGroup(snapshotOf(), native).zones[0];
    expect(counts(view)).toEqual({ ...nothing, replicas: 0, unknown: 'StatefulSet ingester-zone-a does not exist' });
  });

  it('is marked when its pods are unknown, with the reason', () => {
    const pods = [{ namespace: 'mimir', statefulSet: 'ingester-zone-a', pods: { unknown: 'forbidden' } }];
    expect(seen(statefulSet(), {}, { pods })).toEqual({
      ...nothing,
      unknown: 'the pods of ingester-zone-a could not be read: forbidden',
    });
  });

  it('is marked when its pods were not listed', () => {
    const view = viewGroup({ ...snapshotOf({ statefulSets: [statefulSet()] }), pods: [] }, native).zones[0];
    expect(counts(view)).toEqual({ ...nothing, unknown: 'the pods of ingester-zone-a could not be read' });
  });
});

describe('the members of an adopted zone', () => {
  const mixed = [pod(statefulSet(), 0), pod(statefulSet(), 1, { labels: { name: 'other' } })];
  const pods = [{ namespace: 'mimir', statefulSet: 'ingester-zone-a', pods: mixed }];

  it('are found by their name label', () => {
    expect(seen(statefulSet({ replicas: 1 }), {}, { pods }, asAdopted)?.pods).toEqual([0]);
  });

  it('are found by their owner in a native group', () => {
    expect(seen(statefulSet({ replicas: 2 }), {}, { pods })?.pods).toEqual([0, 1]);
  });
});

describe('the cached views', () => {
  /** The same state in lists of its own, of which nothing is remembered. */
  const fresh = (snapshot: Snapshot): Snapshot => ({ ...snapshot, pods: structuredClone(snapshot.pods) });
  const ask = (snapshot: Snapshot, definition = native) => counts(viewGroup(snapshot, definition).zones[0]);
  const waiting = statefulSet({ minReadySeconds: 30 });
  const starting = { 1: { readyChangedMs: ago(10 * secondMs) } };
  const base = snapshotOf({ groups: [native], statefulSets: [waiting], podChanges: { [waiting.name]: starting } });
  const notYet = {
    ...whole,
    unavailable: [1],
    unavailableCount: 1,
    inFlight: 1,
    isReady: false,
    availableAtMs: kitNowMs + 20 * secondMs,
  };

  it('are the same objects without a change', () => {
    expect(viewGroup(base, native).zones[0]).toBe(viewGroup({ ...base }, native).zones[0]);
  });

  it.each<[string, (snapshot: Snapshot) => Snapshot, unknown]>([
    ['a moment passes', (one) => ({ ...one, nowMs: kitNowMs + secondMs }), notYet],
    ['minReadySeconds pass', (one) => ({ ...one, nowMs: kitNowMs + 20 * secondMs }), whole],
    ['the clock goes back before the instant of the view', (one) => ({ ...one, nowMs: ago(15 * secondMs) }), { ...notYet }],
    ['the StatefulSet changes', (one) => ({ ...one, statefulSets: [{ ...waiting, minReadySeconds: 0 }] }), whole],
    [
      'a claim is opened',
      (one) => ({
        ...one,
        ledgers: [ledgerOf({ claims: [{ verb: 'evictPod', zone: 'a', uid: 'uid-ingester-zone-a-0', atMs: kitNowMs }] })],
      }),
      { ...notYet, unavailable: [0, 1], unavailableCount: 2, inFlight: 2 },
    ],
  ])('are equal to new views if %s', (_name, change, expected) => {
    ask(base);
    const changed = change(base);
    expect(ask(changed)).toEqual(expected);
    expect(ask(fresh(changed))).toEqual(expected);
    expect(ask(base)).toEqual(notYet);
  });

  it('differ for another group over the same pods', () => {
    ask(base);
    expect(ask(base, asAdopted)).toEqual(whole);
    expect(ask(base)).toEqual(notYet);
  });
});

describe('the order of a list of pods', () => {
  it('has no effect', () => {
    const set = outdatedStatefulSet({ replicas: 4 });
    const snapshot = snapshotOf({ statefulSets: [set], podChanges: { [set.name]: { 2: { isReady: false }, 3: 'missing' } } });
    const reversed = snapshot.pods.map((view) => ({ ...view, pods: Array.isArray(view.pods) ? view.pods.toReversed() : view.pods }));
    expect(counts(viewGroup({ ...snapshot, pods: reversed }, native).zones[0])).toEqual(counts(viewGroup(snapshot, native).zones[0]));
  });
});

const waves = [wave('canary', ['a'], { amount: { pods: 1 } }), wave('rest', ['b', 'c'])];
const ingester = group({ rollout: { waves } });
const target = { a: newRevision, b: newRevision, c: newRevision };
const previous = { a: oldRevision, b: oldRevision, c: oldRevision };
const updated = { revision: newRevision } as const;
const justReady = { ...updated, readyChangedMs: kitNowMs - 30_000 };

type Zones = Readonly<Record<string, PodChanges>>;

function viewOf(changes: Zones, more: { readonly set?: Partial<StatefulSetView>; readonly unreadZone?: string } = {}) {
  const sets = ['a', 'b', 'c'].map((zone) => outdatedStatefulSet({ name: `ingester-zone-${zone}`, ...more.set }));
  const podChanges = Object.fromEntries(Object.entries(changes).map(([zone, pods]) => [`ingester-zone-${zone}`, pods]));
  const unread = more.unreadZone === undefined ? [] : [{ ...unreadPods, statefulSet: `ingester-zone-${more.unreadZone}` }];
  return viewGroup(snapshotOf({ groups: [ingester], statefulSets: sets, podChanges, pods: unread }), ingester);
}

const unreadPods = { namespace: 'mimir', pods: { unknown: 'forbidden' } };

const after = { wave: 0, waveAvailableMs: kitNowMs - 60_000, target };
const before = { wave: 0, target };
const asked = { atMs: kitNowMs, minReadySeconds: 0 };
const value = (number: number) => ({ atMs: kitNowMs, result: 'value', value: number });

describe('the pods of the wave that are not available', () => {
  it('are its updated pods after its last replacement', () => {
    expect(podsAvailable(viewOf({ a: { 2: updated } }), after, asked)).toEqual(value(0));
    expect(podsAvailable(viewOf({ a: { 2: { ...updated, isReady: false } } }), after, asked)).toEqual(value(1));
    // It is what the next wave cures.
    expect(podsAvailable(viewOf({ a: { 1: { isReady: false }, 2: updated } }), after, asked)).toEqual(value(0));
  });

  it('are the pods of its zones before its first replacement, and no pods of other zones', () => {
    expect(podsAvailable(viewOf({ a: { 1: { isReady: false } }, b: { 0: { isReady: false } } }), before, asked)).toEqual(value(1));
    const rest = { ...before, wave: 1 };
    expect(podsAvailable(viewOf({ a: { 1: { isReady: false } }, b: { 0: { isReady: false } }, c: { 1: 'missing' } }), rest, asked)).toEqual(
      value(2),
    );
  });

  it('include missing pods at any revision', () => {
    expect(podsAvailable(viewOf({ a: { 0: 'missing', 2: updated } }), after, asked)).toEqual(value(1));
  });

  it('include pods that are ready for less than the time of the gate or the StatefulSet', () => {
    const view = viewOf({ a: { 2: justReady } });
    expect(podsAvailable(view, after, { ...asked, minReadySeconds: 30 })).toEqual(value(0));
    expect(podsAvailable(view, after, { ...asked, minReadySeconds: 31 })).toEqual(value(1));
    expect(podsAvailable(viewOf({ a: { 2: justReady } }, { set: { minReadySeconds: 60 } }), after, asked)).toEqual(value(1));
  });

  it('include terminating pods, and pods on a lost node', () => {
    expect(podsAvailable(viewOf({ a: { 2: { ...updated, isTerminating: true } } }), after, asked)).toEqual(value(1));
    expect(podsAvailable(viewOf({ a: { 2: { ...updated, nodeReady: false } } }), after, asked)).toEqual(value(1));
  });

  it('are unknown without the pods, and without a wave', () => {
    const error = (message: string) => ({ atMs: kitNowMs, result: 'error', message });
    expect(podsAvailable(viewOf({}, { unreadZone: 'a' }), after, asked)).toEqual(
      error('the pods of ingester-zone-a could not be read: forbidden'),
    );
    expect(podsAvailable(viewOf({}), { ...after, wave: 2 }, asked)).toEqual(error('no wave is under way'));
  });
});

describe('the updated pods', () => {
  it('are the pods of every zone at the revision of the run, with the Service of their StatefulSet', () => {
    const view = viewOf({ a: { 1: updated, 2: { ...updated, isTerminating: true } }, c: { 0: updated } });
    const found = updatedPods(view, { target, previous });
    expect(typeof found === 'string' ? found : found.map(({ pod, serviceName }) => `${pod.name} ${serviceName}`)).toEqual([
      'ingester-zone-a-1 ingester-zone-a',
      'ingester-zone-a-2 ingester-zone-a',
      'ingester-zone-c-0 ingester-zone-c',
    ]);
    // Of zone a the run changes nothing.
    expect(updatedPods(view, { target, previous: { ...previous, a: newRevision } })).toHaveLength(1);
  });

  it('are unknown while the pods of a zone are unknown', () => {
    expect(updatedPods(viewOf({}, { unreadZone: 'a' }), { target, previous })).toBe(
      'the pods of ingester-zone-a could not be read: forbidden',
    );
  });
});
