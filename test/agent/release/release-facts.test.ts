import { describe, expect, it } from 'vitest';
import { releaseFactsOf } from '../../../agent/published/release-facts.ts';
import type { ReleaseReport } from '../../../agent/report.ts';
import type { SetPartition } from '../../../engine/release/release.ts';
import type { Ledger, ReleaseTerms } from '../../../engine/snapshot.ts';
import { kitNowMs } from '../../kit/objects.ts';
import { snapshotOf } from '../../kit/snapshots.ts';

const terms: ReleaseTerms = {
  source: 'objects',
  zones: ['a', 'b'].map((zone) => ({ zone, statefulSet: `ingester-zone-${zone}` })),
  goneMs: kitNowMs,
  released: ['a'],
};
const ledger: Ledger = { namespace: 'mimir', group: 'ingester', claims: [], downscales: [], preparations: [], release: terms };
const action: SetPartition = {
  ...{ kind: 'setPartition', namespace: 'mimir', zone: 'b', statefulSet: 'ingester-zone-b', uid: 'u', resourceVersion: '1' },
  ...{ from: 1_000_000, to: 0, because: 'released', pods: [{ pod: 'ingester-zone-b-1', ordinal: 1, uid: 'p' }] },
};

function told(decision: ReleaseReport['decision'], performed?: ReleaseReport['performed']): readonly string[] {
  const report = { group: { namespace: 'mimir', name: 'ingester' }, snapshot: snapshotOf(), decision, terms };
  return releaseFactsOf({ ...report, ...(performed === undefined ? {} : { performed }) }).map(
    ({ statefulSet, fact: { type, reason, note } }) =>
      `${statefulSet} ${type} ${reason}: ${note.replace(/^nothing defines [^:]*: release: /, '')}`,
  );
}

describe('Events of a release', () => {
  it('tell of every StatefulSet that is not handed back yet when that follows, and why it waits', () => {
    expect(told({ kind: 'wait', because: 'its definition may come back', earliestMs: kitNowMs, ledger })).toEqual([
      'ingester-zone-b Normal ReleaseAnnounced: partition 0 of this StatefulSet follows at 2026-03-02T12:00:00.000Z, unless a definition comes back',
    ]);
    expect(told({ kind: 'wait', because: 'zone a has 2 of 3 pods available', ledger })).toEqual([
      'ingester-zone-b Normal ReleaseWaits: partition 0 of this StatefulSet waits: zone a has 2 of 3 pods available',
    ]);
  });

  it('say nothing while nobody knows whether the definition is gone', () => {
    const { goneMs: _goneMs, ...unsure } = terms;
    expect(told({ kind: 'wait', because: 'no answer', ledger: { ...ledger, release: unsure } })).toEqual([]);
    expect(told({ kind: 'over', ledger })).toEqual([]);
  });

  it('say what was done, which pods that moves, and what went wrong', () => {
    const decision = { kind: 'release', action, ledger } as const;
    expect(told(decision, { action, result: 'done' })).toEqual([
      'ingester-zone-b Normal Released: partition 1000000 became 0; its StatefulSet controller replaces ingester-zone-b-1',
    ]);
    const still = { ...action, pods: [] };
    expect(told(decision, { action: still, result: 'done' })).toEqual([
      'ingester-zone-b Normal Released: partition 1000000 became 0; no pod goes by that',
    ]);
    expect(told(decision, { action, result: 'refused', message: 'forbidden' })).toEqual([
      'ingester-zone-b Warning ReleaseFailed: partition 1000000 could not become 0: forbidden',
    ]);
  });
});
