// What becomes of the StatefulSets of a group that nothing defines any more, and when.
import { describe, expect, it } from 'vitest';
import { decodeLedger, encodeLedger } from '../../../engine/ledger/ledger-document.ts';
import { decideRelease, type ReleaseDecision, releaseGraceMs } from '../../../engine/release/release.ts';
import { type Definitions, termsOf, withTerms } from '../../../engine/release/terms.ts';
import type { Ledger, ReleaseTerms, Snapshot, StatefulSetView } from '../../../engine/snapshot.ts';
import { holdingPartition } from '../../../policies/strategies.ts';
import { group } from '../../kit/groups.ts';
import { kitNowMs, newRevision, outdatedStatefulSet, type PodChanges, type StatefulSetOverrides } from '../../kit/objects.ts';
import { snapshotOf } from '../../kit/snapshots.ts';

const released = group({ rollout: { strategy: 'pinned', onPolicyDeleted: 'release' } });
const terms = termsOf(released) as ReleaseTerms;
const longGone = kitNowMs - releaseGraceMs;
const whole: Definitions['sources'] = { directory: 'none', objects: 'complete', adopted: 'complete' };

const setOf = (zone: string): string => `ingester-zone-${zone}`;
const updated = { revision: newRevision };
const allUpdated: PodChanges = { 0: updated, 1: updated, 2: updated };

function ledgerOf(release: Partial<ReleaseTerms> | 'none' = {}, more: Partial<Ledger> = {}): Ledger {
  const own = release === 'none' ? {} : { release: { ...terms, ...release } };
  return { namespace: 'mimir', group: 'ingester', claims: [], downscales: [], preparations: [], ...own, ...more };
}

interface Cluster {
  /** What differs of the StatefulSet of each zone; `gone`: there is none. */
  readonly sets?: Readonly<Record<string, StatefulSetOverrides | 'gone'>>;
  /** What differs of the pods of each zone. */
  readonly pods?: Readonly<Record<string, PodChanges>>;
  readonly more?: Partial<Snapshot>;
}

/** Three zones in the middle of a rollout: every pod is outdated and held. */
function cluster({ sets = {}, pods = {}, more = {} }: Cluster = {}): Snapshot {
  const statefulSets = ['a', 'b', 'c'].flatMap((zone): readonly StatefulSetView[] => {
    const change = sets[zone] ?? {};
    if (change === 'gone') return [];
    return [outdatedStatefulSet({ name: setOf(zone), updateStrategy: 'RollingUpdate', partition: holdingPartition, ...change })];
  });
  const podChanges = Object.fromEntries(Object.entries(pods).map(([zone, change]) => [setOf(zone), change]));
  return snapshotOf({ groups: [], statefulSets, podChanges, ...more });
}

function decided(ledger: Ledger, snapshot = cluster(), sources = whole, goneForMs = releaseGraceMs): ReleaseDecision {
  return decideRelease({ snapshot, ledger, sources, goneForMs, epoch: 3 });
}

/** In a few words. */
function told(decision: ReleaseDecision): string {
  if (decision.kind === 'release') return `${decision.action.statefulSet} ${decision.action.from} to ${decision.action.to}`;
  return decision.kind === 'wait' ? `wait: ${decision.because}` : decision.kind;
}

/** After the grace. */
const now = (snapshot: Snapshot, release: Partial<ReleaseTerms> = {}): string =>
  told(decided(ledgerOf({ goneMs: longGone, ...release }), snapshot));

describe('the terms of a release', () => {
  it('are kept only for groups with a partition to release', () => {
    expect(terms).toEqual({ source: 'objects', zones: ['a', 'b', 'c'].map((zone) => ({ zone, statefulSet: setOf(zone) })) });
    const inFile = { ...released, sources: { '': { file: 'ingester.yaml', line: 1 } } };
    expect(termsOf(inFile)?.source).toBe('directory');
    expect(termsOf(group({ rollout: { strategy: 'partition', onPolicyDeleted: 'release' } }))).toEqual(terms);
    expect(termsOf(group({ rollout: { strategy: 'onDelete', onPolicyDeleted: 'release' } }))).toBeUndefined();
    expect(termsOf(group({ rollout: { strategy: 'pinned' } }))).toBeUndefined();
  });

  it('follow the current definition, without a started release', () => {
    const before = ledgerOf({ goneMs: longGone, released: ['a'] });
    expect(withTerms(before, termsOf(released)).release).toEqual(terms);
    expect(withTerms(before, termsOf(group()))).toEqual(ledgerOf('none'));
    const same = ledgerOf();
    expect(withTerms(same, termsOf(released))).toBe(same);
  });

  it('are in the ledger in a form that an older agent may drop, and in no other ledger', () => {
    const ledger = ledgerOf({ goneMs: longGone, released: ['a'] });
    const text = encodeLedger(ledger) as string;
    expect(JSON.parse(text)).toMatchObject({ format: '1.1' });
    expect(decodeLedger(text, ledger)).toEqual(ledger);
    expect(JSON.parse(encodeLedger(ledgerOf('none')) as string)).toMatchObject({ format: '1.0' });
    const pinned = ledgerOf({}, { pins: [{ zone: 'a', ordinal: 1, revision: newRevision, placements: 0 }] });
    expect(JSON.parse(encodeLedger(pinned) as string)).toMatchObject({ format: '2.1' });
  });
});

describe('a definition', () => {
  it('that is missing starts a wait, from the time in the ledger', () => {
    const first = decided(ledgerOf());
    expect(first).toEqual({
      kind: 'wait',
      because: 'the definition may be created again',
      earliestMs: kitNowMs + releaseGraceMs,
      ledger: ledgerOf({ goneMs: kitNowMs }),
    });
    const stored = first.ledger;
    expect(decided(stored).ledger).toBe(stored);
    expect(told(decided(ledgerOf({ goneMs: longGone + 1 })))).toBe('wait: the definition may be created again');
    expect(told(decided(ledgerOf({ goneMs: longGone })))).toBe('ingester-zone-a 1000000 to 0');
  });

  it('is missing for the time that the current leader has observed, also if another clock wrote an older time', () => {
    expect(decided(ledgerOf({ goneMs: longGone }), cluster(), whole, 20_000)).toMatchObject({
      kind: 'wait',
      earliestMs: kitNowMs + 40_000,
    });
  });

  it('that is missing since a future time is missing since now', () => {
    expect(decided(ledgerOf({ goneMs: kitNowMs + 31_000 }))).toMatchObject({ earliestMs: kitNowMs + releaseGraceMs });
  });

  it('that returns ends the release', () => {
    const ledger = ledgerOf({ goneMs: longGone, released: ['a'] });
    expect(decided(ledger, cluster({ more: { groups: [released] } }))).toEqual({ kind: 'none', ledger });
  });

  it('of another group that has a member ends the release of all members', () => {
    const other = group({ name: 'renamed', zones: [{ name: 'x', statefulSet: setOf('c') }] });
    expect(decided(ledgerOf({ goneMs: longGone }), cluster({ more: { groups: [other] } }))).toEqual({
      kind: 'none',
      ledger: ledgerOf('none'),
    });
    const elsewhere = { ...other, namespace: 'loki' };
    expect(now(cluster({ more: { groups: [elsewhere] } }))).toBe('ingester-zone-a 1000000 to 0');
  });

  it.each<[string, Partial<Definitions['sources']>, string]>([
    ['a directory that cannot be read', { directory: { unknown: 'the policy directory is empty' } }, 'the policy directory is empty'],
    ['objects that cannot be read', { objects: { unknown: 'no answer' } }, 'no answer'],
    ['StatefulSets that cannot be read', { adopted: { unknown: 'no answer' } }, 'no answer'],
    ['a source that is followed no more', { objects: 'none' }, 'the source of its definition (objects) is no longer read'],
  ])('that may exist in %s is not missing, and the wait starts again afterwards', (_name, sources, because) => {
    const ledger = ledgerOf({ goneMs: longGone, released: ['a'] });
    const expected = { kind: 'wait', because, ledger: ledgerOf({ released: ['a'] }) };
    expect(decided(ledger, cluster(), { ...whole, ...sources })).toEqual(expected);
  });
});

describe('a release', () => {
  const zeroA = { a: { partition: 0 } };

  it('releases one zone after the other in their order, the next one when the previous one is updated and available', () => {
    expect(now(cluster())).toBe('ingester-zone-a 1000000 to 0');
    expect(now(cluster({ sets: { a: { partition: 0, generation: 3, status: { observedGeneration: 2 } } } }))).toBe(
      'wait: the StatefulSet controller has not observed the last change of ingester-zone-a',
    );
    expect(now(cluster({ sets: zeroA, pods: { a: { 2: updated } } }))).toBe('wait: zone a still has 2 pods to replace');
    expect(now(cluster({ sets: zeroA, pods: { a: { ...allUpdated, 0: 'missing' } } }))).toBe('wait: zone a has 2 of 3 pods available');
    expect(now(cluster({ sets: zeroA, pods: { a: { ...allUpdated, 0: { ...updated, nodeReady: false } } } }))).toBe(
      'wait: zone a has 2 of 3 pods available',
    );
    expect(now(cluster({ sets: zeroA, pods: { a: allUpdated } }))).toBe('ingester-zone-b 1000000 to 0');
    const twoBack = { ...zeroA, b: { partition: 0 } };
    expect(now(cluster({ sets: twoBack, pods: { a: allUpdated, b: allUpdated } }))).toBe('ingester-zone-c 1000000 to 0');
    expect(now(cluster({ sets: { ...twoBack, c: { partition: 0 } }, pods: { a: allUpdated, b: allUpdated } }))).toBe('over');
  });

  it('names the pods that the StatefulSet controller replaces, and claims them in the ledger', () => {
    const decision = decided(ledgerOf({ goneMs: longGone }), cluster({ pods: { a: { 2: updated } } }));
    expect(decision).toMatchObject({
      action: { because: 'released', uid: 'uid-ingester-zone-a', resourceVersion: '100', pods: [{ ordinal: 1 }, { ordinal: 0 }] },
      ledger: { claims: [{ verb: 'setPartition', zone: 'a', to: 0, resourceVersion: '100', atMs: kitNowMs, epoch: 3 }] },
    });
  });

  it('starts with the unready zone, and does nothing while two are unready', () => {
    const broken: PodChanges = { 1: { isReady: false } };
    expect(now(cluster({ pods: { b: broken } }))).toBe('ingester-zone-b 1000000 to 0');
    expect(now(cluster({ pods: { b: broken, c: broken } }))).toBe('wait: zone b has 2 of 3 pods available');
    expect(now(cluster({ sets: zeroA, pods: { a: allUpdated, b: broken } }))).toBe('ingester-zone-b 1000000 to 0');
  });

  it('releases a zone once: a partition that a user raises again stays, and the next zones wait for its pods', () => {
    const noted = decided(ledgerOf({ goneMs: longGone }), cluster({ sets: zeroA }));
    expect(noted.ledger.release?.released).toEqual(['a']);
    expect(now(cluster(), { released: ['a'] })).toBe('wait: zone a still has 3 pods to replace');
    expect(now(cluster({ pods: { a: allUpdated } }), { released: ['a'] })).toBe('ingester-zone-b 1000000 to 0');
  });

  it('skips StatefulSets that are deleted or have another strategy now', () => {
    const sets = { a: 'gone', b: { updateStrategy: 'OnDelete', partition: 0 } } as const;
    expect(now(cluster({ sets }))).toBe('ingester-zone-c 1000000 to 0');
    expect(now(cluster({ sets: { ...sets, c: { isTerminating: true } } }))).toBe('over');
  });

  it('waits for unreadable objects', () => {
    const unread = [{ kind: 'StatefulSet' as const, unknown: 'no answer' }];
    expect(now(cluster({ more: { unread } }))).toBe('wait: no answer');
    const pods = [{ namespace: 'mimir', statefulSet: setOf('c'), pods: { unknown: 'a pod cannot be understood' } }];
    expect(now(cluster({ more: { pods } }))).toBe('wait: a pod cannot be understood');
  });

  it('drops run, pins and templates before the first write, and keeps the records that protect data', () => {
    const pins = [{ zone: 'b', ordinal: 1, revision: 'rev-0', placements: 0 }];
    const templates = [{ zone: 'b', revision: 'rev-0', template: {} }];
    const scaleDown = { verb: 'scaleDown' as const, zone: 'b', uid: 'uid-b', from: 4, to: 3, atMs: longGone };
    const claims = [scaleDown, { verb: 'evictPod' as const, zone: 'b', uid: 'uid-pod', ordinal: 2, atMs: longGone }];
    const downscales = [{ zone: 'c', atMs: longGone, from: 4, to: 3 }];
    const ledger = ledgerOf({ goneMs: longGone }, { pins, templates, claims, downscales, epoch: 2 });
    const begun = decided(ledger).ledger;
    expect(begun).toMatchObject({ claims: [scaleDown, { verb: 'setPartition', zone: 'a' }], downscales, epoch: 2 });
    expect([begun.pins, begun.templates]).toEqual([undefined, undefined]);
    const rest = { a: { partition: 0 }, b: { partition: 0 }, c: { partition: 0 } };
    expect(decided(ledger, cluster({ sets: rest }))).toEqual({
      kind: 'over',
      ledger: ledgerOf('none', { claims: [scaleDown], downscales, epoch: 2 }),
    });
  });
});
