import { describe, expect, it } from 'vitest';
import type { Action } from '../../../engine/decision.ts';
import {
  claimsOf,
  ledgerOfEpoch,
  longestDelayMs,
  observeLedger,
  openClaimLimit,
  openClaims,
  revocationsOf,
  writingEpoch,
} from '../../../engine/ledger/ledger.ts';
import type { Claim, Ledger, Preparation } from '../../../engine/snapshot.ts';
import { adopted, group } from '../../kit/groups.ts';
import { kitNowMs, type PodChanges, type StatefulSetOverrides, statefulSet } from '../../kit/objects.ts';
import { type SnapshotOverrides, snapshotOf } from '../../kit/snapshots.ts';

const empty: Ledger = { namespace: 'mimir', group: 'ingester', claims: [], downscales: [], preparations: [] };
const pod: Claim = { verb: 'deletePod', zone: 'a', uid: 'uid-ingester-zone-a-1', ordinal: 1, atMs: kitNowMs - 60_000 };
const shrink: Claim = { verb: 'scaleDown', zone: 'a', uid: 'uid-ingester-zone-a', from: 3, to: 2, atMs: kitNowMs - 60_000 };
const keep = { keepDownscalesMs: 3_600_000 };

interface Seen {
  readonly set?: StatefulSetOverrides;
  readonly pods?: PodChanges;
  readonly snapshot?: SnapshotOverrides;
}

function look(ledger: Partial<Ledger>, { set, pods, snapshot }: Seen = {}): Ledger {
  const seen = snapshotOf({
    groups: [group({ zones: ['a'] })],
    statefulSets: [statefulSet(set)],
    podChanges: { 'ingester-zone-a': pods ?? {} },
    ...snapshot,
  });
  return observeLedger({ ...empty, ...ledger }, seen, keep);
}

const old = (claim: Claim): Claim => ({ ...claim, atMs: kitNowMs - 120_001 });

describe('a claim on a pod', () => {
  const successor = { uid: 'new' };

  it.each<[string, Claim, Seen, boolean]>([
    ['the pod is unchanged', pod, {}, true],
    ['the pod is unchanged for 120 s', { ...pod, atMs: kitNowMs - 120_000 }, {}, true],
    ['the pod is unchanged for longer', old(pod), {}, false],
    ['the pod terminates, however long', old(pod), { pods: { 1: { isTerminating: true } } }, true],
    ['the pod is gone, however long', old(pod), { pods: { 1: 'missing' } }, true],
    ['the successor is not ready', old(pod), { pods: { 1: { ...successor, isReady: false } } }, true],
    ['the successor terminates', old(pod), { pods: { 1: { ...successor, isTerminating: true } } }, true],
    [
      'the successor is not ready for minReadySeconds',
      old(pod),
      { set: { minReadySeconds: 10 }, pods: { 1: { ...successor, readyChangedMs: kitNowMs - 9_999 } } },
      true,
    ],
    [
      'the successor is available',
      pod,
      { set: { minReadySeconds: 10 }, pods: { 1: { ...successor, readyChangedMs: kitNowMs - 10_000 } } },
      false,
    ],
    ['the pod is gone and has no place any more', pod, { set: { replicas: 1 } }, false],
    ['the StatefulSet cannot be read', old(pod), { snapshot: { statefulSets: [statefulSet({ name: 'other' })], groups: [] } }, true],
    [
      'the pods cannot be read',
      old(pod),
      { snapshot: { pods: [{ namespace: 'mimir', statefulSet: 'ingester-zone-a', pods: { unknown: 'forbidden' } }] } },
      true,
    ],
  ])('when %s', (_case, claim, seen, isOpen) => {
    expect(look({ claims: [claim] }, seen).claims).toEqual(isOpen ? [claim] : []);
  });
});

describe('a claim on a pod of an adopted group', () => {
  it('ends when the containers of the successor run, with any state of its readiness gates', () => {
    const successor = { uid: 'new', isReady: false, containersReady: true };
    const adoptedGroup = { groups: [adopted({ zones: ['a'] })] };
    expect(look({ claims: [old(pod)] }, { pods: { 1: successor }, snapshot: adoptedGroup }).claims).toEqual([]);
  });
});

describe('a claim on replicas', () => {
  it.each<[string, Claim, Seen, boolean, boolean]>([
    ['they are unchanged', shrink, {}, true, false],
    ['they are unchanged for longer than 120 s', old(shrink), {}, false, false],
    ['they are lowered and a surplus pod is still there', shrink, { set: { replicas: 2 }, snapshot: withThreePods() }, true, true],
    ['they are lowered and no surplus pod is left', shrink, { set: { replicas: 2 } }, false, true],
    ['they are lowered further', shrink, { set: { replicas: 1 } }, false, true],
    ['the StatefulSet is another one', shrink, { set: { replicas: 2, uid: 'other' } }, false, false],
    ['the StatefulSet is another one with as many replicas as before', shrink, { set: { uid: 'other' } }, false, false],
  ])('when %s', (_case, claim, seen, isOpen, isDated) => {
    const after = look({ claims: [claim] }, seen);
    const downscale = { zone: 'a', atMs: kitNowMs, from: 3, to: 2 };
    expect([after.claims, after.downscales]).toEqual([isOpen ? [claim] : [], isDated ? [downscale] : []]);
  });

  it.each([
    ['an hour ago: no request lives longer than 120 s', 3_600_000, 3_480_000],
    ['a minute ago: it may have arrived just now', 60_000, 0],
    ['by a clock that is ahead', -5000, -5000],
  ])('is dated at the latest possible time if it was claimed %s', (_case, announcedAgoMs, datedAgoMs) => {
    const { downscales } = look({ claims: [{ ...shrink, atMs: kitNowMs - announcedAgoMs }] }, { set: { replicas: 2 } });
    expect(downscales).toEqual([{ zone: 'a', atMs: kitNowMs - datedAgoMs, from: 3, to: 2 }]);
  });

  it('counts from its last request', () => {
    const again = { ...shrink, atMs: kitNowMs };
    expect(openClaims({ ...empty, claims: [shrink] }, [again])?.claims).toEqual([again]);
    const older = { ...shrink, atMs: shrink.atMs - 1 };
    expect(openClaims({ ...empty, claims: [shrink] }, [older])?.claims).toEqual([shrink]);
  });

  it('is dated once, also after repeated reads', () => {
    const seen: Seen = { set: { replicas: 2 }, snapshot: withThreePods() };
    const once = look({ claims: [shrink] }, seen);
    expect(look(once, seen)).toEqual(once);
    const formerly = <Entry extends object>(entry: Entry) => ({ ...entry, zone: 'zone-a' });
    const former = { claims: once.claims.map(formerly), downscales: once.downscales.map(formerly) };
    expect(look(former, seen)).toEqual(once);
  });
});

/** Three pods of a StatefulSet that wants two. */
function withThreePods(): SnapshotOverrides {
  const { pods } = snapshotOf({ statefulSets: [statefulSet()] });
  return { pods };
}

describe('the rest of the ledger', () => {
  it('keeps dated downscales for the longest delay that applies', () => {
    const downscale = (ageMs: number) => ({ zone: 'a', atMs: kitNowMs - ageMs, from: 3, to: 2 });
    expect(look({ downscales: [downscale(3_600_001), downscale(3_600_000)] }).downscales).toEqual([downscale(3_600_000)]);
  });

  it('keeps preparations of missing pods, because their successors must be cancelled', () => {
    const gone: Preparation = { zone: 'a', ordinal: 1, podUid: 'gone', call: 'prepare', state: 'prepared', seenMs: 0 };
    expect(look({ preparations: [gone] }).preparations).toEqual([gone]);
  });

  it('keeps preparations of a zone with a new name under the new name', () => {
    const named = (zone: string): Preparation => ({ zone, ordinal: 1, podUid: 'p', call: 'prepare', state: 'prepared', seenMs: 0 });
    const preparations = ['ingester-zone-a', 'zone-a', 'a', 'b', 'zone'].map(named);
    expect(look({ preparations }).preparations.map(({ zone }) => zone)).toEqual(['a', 'a', 'a', 'b', 'zone']);
    expect(look({ preparations }, { snapshot: { groups: [] } }).preparations).toEqual(preparations);
  });

  it('is the same value if it has not changed', () => {
    const ledger: Ledger = { ...empty, claims: [pod] };
    expect(observeLedger(ledger, snapshotOf({ groups: [group()] }), keep)).toBe(ledger);
  });
});

describe('claims are opened', () => {
  const target = { namespace: 'mimir', zone: 'a', statefulSet: 'ingester-zone-a', uid: 'u' };
  const scale: Action = { kind: 'scaleStatefulSet', ...target, resourceVersion: '1', from: 3, to: 2 };

  it('only for actions that disrupt pods', () => {
    const actions: readonly Action[] = [
      { kind: 'deletePod', ...target, pod: 'p', ordinal: 1, resourceVersion: '1', because: 'stuck' },
      { kind: 'evictPod', ...target, uid: 'v', pod: 'p', ordinal: 2, because: 'outdated' },
      scale,
      { ...scale, to: 4 },
      { kind: 'advanceCurrentRevision', ...target, resourceVersion: '1', revision: 'r' },
    ];
    expect(claimsOf(actions, 7)).toEqual([
      { verb: 'deletePod', zone: 'a', uid: 'u', ordinal: 1, resourceVersion: '1', atMs: 7 },
      { verb: 'evictPod', zone: 'a', uid: 'v', ordinal: 2, atMs: 7 },
      { verb: 'scaleDown', zone: 'a', uid: 'u', from: 3, to: 2, resourceVersion: '1', atMs: 7 },
    ]);
  });

  it('once per verb and object', () => {
    const once = openClaims(empty, [pod, pod]);
    expect(once?.claims).toEqual([pod]);
    expect(once && openClaims(once, [{ ...pod, atMs: kitNowMs }])).toBe(once);
    expect(openClaims({ ...empty, claims: [shrink] }, [{ ...shrink, to: 1 }])?.claims).toHaveLength(2);
  });

  it('up to the limit', () => {
    const claims = Array.from({ length: openClaimLimit }, (_, index): Claim => ({ ...pod, uid: `${index}` }));
    expect(openClaims(empty, claims)?.claims).toHaveLength(100);
    expect(openClaims({ ...empty, claims: claims.slice(1) }, [pod, { ...pod, uid: 'y' }])).toBeUndefined();
  });

  it('again under a newer resource version, instead of the request that can no longer succeed', () => {
    const first = { ...pod, resourceVersion: '99', epoch: 1 };
    const next = { ...pod, resourceVersion: '100', epoch: 2, atMs: kitNowMs };
    expect(openClaims({ ...empty, claims: [first] }, [next])?.claims).toEqual([next]);
    expect(openClaims({ ...empty, claims: [next] }, [first])?.claims).toEqual([next]);
    expect(openClaims({ ...empty, claims: [first] }, [{ ...first, atMs: kitNowMs }])?.claims).toEqual([first]);
  });
});

describe('a claim that names a resource version', () => {
  const versioned = { ...pod, resourceVersion: '99', epoch: 4 };
  const seenAt = (resourceVersion: string, changes: object = {}) => ({ pods: { 1: { resourceVersion, ...changes } } });

  it.each<[string, Claim, Seen, boolean]>([
    ['the pod is as it was', versioned, seenAt('99'), true],
    ['the pod was written since and stands, so that the DELETE must fail', versioned, seenAt('100'), false],
    ['the pod was written since and terminates', versioned, seenAt('100', { isTerminating: true }), true],
    ['the cache is older than the claim', versioned, seenAt('98'), true],
    ['versions are no numbers and differ', { ...versioned, resourceVersion: 'x1' }, seenAt('x2'), false],
    ['it is an eviction, which names the UID alone', { ...pod, verb: 'evictPod' }, seenAt('100'), true],
    ['the eviction is older than 120 s', old({ ...pod, verb: 'evictPod' }), seenAt('100'), false],
    [
      'the StatefulSet was written since and kept its replicas',
      { ...shrink, resourceVersion: '5' },
      { set: { resourceVersion: '6' } },
      false,
    ],
    ['the StatefulSet is as it was', { ...shrink, resourceVersion: '6' }, { set: { resourceVersion: '6' } }, true],
  ])('when %s', (_case, claim, seen, isOpen) => {
    expect(look({ claims: [claim] }, seen).claims).toEqual(isOpen ? [claim] : []);
  });

  it('of a zone that left the group ends after 120 s', () => {
    const stray = { ...pod, zone: 'gone' };
    expect(look({ claims: [stray, old(stray)] }).claims).toEqual([stray]);
  });
});

describe('a new leader', () => {
  const versioned = { ...pod, resourceVersion: '99', epoch: 4 };
  const revoked = { namespace: 'mimir', pod: 'ingester-zone-a-1', uid: pod.uid, resourceVersion: '99' };

  it.each<[string, Claim, object, number, readonly object[]]>([
    ['an earlier leader claimed it and it stands untouched', versioned, { resourceVersion: '99' }, 5, [revoked]],
    ['somebody without a leadership claimed it', { ...pod, resourceVersion: '99' }, { resourceVersion: '99' }, 5, [revoked]],
    ['the claim is its own', versioned, { resourceVersion: '99' }, 4, []],
    ['the pod was touched already', versioned, { resourceVersion: '100' }, 5, []],
    ['the pod terminates', versioned, { resourceVersion: '99', isTerminating: true }, 5, []],
    ['the pod is another one', versioned, { resourceVersion: '99', uid: 'new' }, 5, []],
    ['it was an eviction', { ...pod, verb: 'evictPod', epoch: 4 }, { resourceVersion: '99' }, 5, []],
  ])('acts on a pod if %s', (_case, claim, changes, epoch, expected) => {
    const seen = snapshotOf({
      groups: [group({ zones: ['a'] })],
      statefulSets: [statefulSet()],
      podChanges: { 'ingester-zone-a': { 1: changes } },
    });
    expect(revocationsOf({ ...empty, claims: [claim] }, seen, epoch)).toEqual(expected);
  });

  it('writes under its epoch, and its predecessor writes no more', () => {
    const fifth = ledgerOfEpoch(empty, 5);
    expect(fifth).toEqual({ ...empty, epoch: 5 });
    expect(fifth && [ledgerOfEpoch(fifth, 5) === fifth, ledgerOfEpoch(fifth, 4), ledgerOfEpoch(fifth, 6)?.epoch]).toEqual([
      true,
      undefined,
      6,
    ]);
  });

  it.each([
    [undefined, 0, 0],
    [4, 5, 5],
    [4, 4, 5],
    [4, 1, 5],
  ])('with epoch %s is written with a later epoch by the holder of a Lease with epoch %i', (epoch, leaseEpoch, expected) => {
    expect(writingEpoch(epoch === undefined ? {} : { epoch }, leaseEpoch)).toBe(expected);
  });
});

describe('the longest delay', () => {
  it('is the maximum over all zones and policies', () => {
    const zones = [{ name: 'a', betweenZonesMs: 5 }, { name: 'b' }];
    const policy = { limits: { betweenZonesMs: 9 } } as Parameters<typeof longestDelayMs>[1][number];
    expect([longestDelayMs(group(), []), longestDelayMs(group({ zones }), []), longestDelayMs(group({ zones }), [policy])]).toEqual([
      0, 5, 9,
    ]);
  });
});
