import { describe, expect, it } from 'vitest';
import { groupRemovalFacts, releaseFacts } from '../../../agent/published/event-facts.ts';
import type { ReleaseReport } from '../../../agent/report.ts';
import type { Ledger, ReleaseTerms } from '../../../engine/snapshot.ts';
import type { SetPartition } from '../../../engine/strategies/partition.ts';
import { kitNowMs, outdatedStatefulSet } from '../../kit/objects.ts';
import { snapshotOf } from '../../kit/snapshots.ts';

const terms: ReleaseTerms = {
  source: 'objects',
  zones: ['a', 'b'].map((zone) => ({ zone, statefulSet: `ingester-zone-${zone}` })),
  goneMs: kitNowMs,
  released: ['a'],
};
const ledger: Ledger = { namespace: 'mimir', group: 'ingester', claims: [], downscales: [], preparations: [], release: terms };
const action: SetPartition = {
  kind: 'setPartition',
  namespace: 'mimir',
  zone: 'b',
  statefulSet: 'ingester-zone-b',
  uid: 'u',
  resourceVersion: '1',
  from: 1_000_000,
  to: 0,
  because: 'released',
  pods: [{ pod: 'ingester-zone-b-1', ordinal: 1, uid: 'p' }],
};

const group = { namespace: 'mimir', name: 'ingester' };

function told(decision: ReleaseReport['decision'], more: Partial<ReleaseReport> = {}): readonly string[] {
  return releaseFacts({ group, snapshot: snapshotOf(), decision, isLasting: true, ...more }).map(
    ({ statefulSet, fact: { type, reason, note } }) => `${statefulSet} ${type} ${reason}: ${note.replace(/^group [^:]*: release\): /, '')}`,
  );
}

describe('Events of a release', () => {
  it('name every StatefulSet before its release, and the reason of its wait', () => {
    expect(told({ kind: 'wait', because: 'the definition may be created again', earliestMs: kitNowMs, ledger })).toEqual([
      'ingester-zone-b Normal ReleaseAnnounced: the partition of this StatefulSet becomes 0 at 2026-03-02T12:00:00.000Z or later, unless the group is defined again',
    ]);
    expect(told({ kind: 'wait', because: 'zone a has 2 of 3 pods available', ledger })).toEqual([
      'ingester-zone-b Normal ReleaseWaits: the partition of this StatefulSet is not 0 yet: zone a has 2 of 3 pods available',
    ]);
  });

  it('warn of a release that undoes something', () => {
    const statefulSets = [outdatedStatefulSet({ name: 'ingester-zone-b', updateStrategy: 'RollingUpdate', partition: 1_000_000 })];
    const decision = { kind: 'wait', because: 'the definition may be created again', earliestMs: kitNowMs, ledger } as const;
    expect(told(decision, { snapshot: snapshotOf({ statefulSets }) })).toEqual([
      expect.stringMatching(
        /^ingester-zone-b Warning ReleaseAnnounced: .*; its waves, soaks, .* no longer apply, and 3 pods will be replaced$/,
      ),
    ]);
  });

  it('name a wait that lasts longer than one turn, and no wait of a zone that was just released', () => {
    const decision = { kind: 'wait', because: 'zone b has 2 of 3 pods available', ledger } as const;
    expect(told(decision, { isLasting: false })).toEqual([]);
    const all = { ...decision, ledger: { ...ledger, release: { ...terms, released: ['a', 'b'] } } };
    expect(told(all)).toEqual([]);
  });

  it('report nothing while it is unknown whether the definition is gone', () => {
    const { goneMs: _goneMs, ...unsure } = terms;
    expect(told({ kind: 'wait', because: 'no answer', ledger: { ...ledger, release: unsure } })).toEqual([]);
    expect(told({ kind: 'over', ledger })).toEqual([]);
  });

  it('name the releases, the pods that they replace, and the failures', () => {
    const decision = { kind: 'release', action, ledger } as const;
    expect(told(decision, { performed: { action, result: 'done' } })).toEqual([
      'ingester-zone-b Normal Released: partition 1000000 is now 0; its StatefulSet controller replaces ingester-zone-b-1',
    ]);
    const still = { ...action, pods: [] };
    expect(told(decision, { performed: { action: still, result: 'done' } })).toEqual([
      'ingester-zone-b Normal Released: partition 1000000 is now 0; no pod is replaced',
    ]);
    expect(told(decision, { performed: { action, result: 'refused', message: 'forbidden' } })).toEqual([
      'ingester-zone-b Warning ReleaseFailed: partition 1000000 was not set to 0: forbidden',
    ]);
  });
});

describe('Events of a group that stays as it is', () => {
  it('are one for each StatefulSet and each removal', () => {
    const word = { zone: 'a', statefulSet: 'ingester-zone-a', note: 'gone' };
    const facts = (nowMs: number) =>
      groupRemovalFacts({
        group,
        snapshot: { ...snapshotOf(), nowMs },
        reports: [
          { ...word, isWarning: true },
          { ...word, isWarning: false },
        ],
      });
    expect(facts(1)).toEqual([
      { statefulSet: 'ingester-zone-a', fact: expect.objectContaining({ type: 'Warning', reason: 'GroupGone', note: 'gone', zone: 'a' }) },
      { statefulSet: 'ingester-zone-a', fact: expect.objectContaining({ type: 'Normal', reason: 'GroupGone' }) },
    ]);
    expect(facts(2)[0]?.fact.identity).not.toBe(facts(1)[0]?.fact.identity);
  });
});
