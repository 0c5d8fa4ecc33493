import { describe, expect, it } from 'vitest';
import { decideGroup } from '../../../engine/decide/decide.ts';
import { publishedDecision } from '../../../engine/publish/decision.ts';
import { readPublished } from '../../../engine/publish/read.ts';
import type { Ledger } from '../../../engine/snapshot.ts';
import type { RolloutDefinition } from '../../../policies/definition.ts';
import { holdingPartition } from '../../../policies/strategies.ts';
import { group } from '../../kit/groups.ts';
import { kitNowMs } from '../../kit/objects.ts';
import { ledgerOf, outdatedSets } from '../../kit/questions.ts';
import { snapshotOf } from '../../kit/snapshots.ts';

/** What is published of zones a and b, as a reader finds it. */
function zonesUnder(strategy: RolloutDefinition['strategy'], partitions: readonly [number, number], ledger: Partial<Ledger> = {}) {
  const one = group({ zones: ['a', 'b'], rollout: { strategy } });
  const sets = outdatedSets(['a', 'b'], { updateStrategy: strategy === 'onDelete' ? 'OnDelete' : 'RollingUpdate' });
  const statefulSets = sets.map((set, index) => ({ ...set, partition: partitions[index] ?? 0 }));
  const snapshot = snapshotOf({ groups: [one], statefulSets, ledgers: [ledgerOf(ledger)] });
  const published = publishedDecision({ group: one, decision: decideGroup(snapshot, one), snapshot, atMs: kitNowMs });
  const read = readPublished(JSON.stringify(published));
  if ('unknown' in read) throw new Error(read.unknown);
  return [read.strategy, ...read.zones.map(({ partition, pinned }) => partition ?? pinned)];
}

describe('a published decision says how far its strategy has let each zone go', () => {
  const pins = [3, 1, 2].map((ordinal) => ({ zone: 'b', ordinal, revision: 'rev-2', placements: 1 }));

  it('by the partition while it is lowered, by the pinned pods, and by nothing under onDelete', () => {
    expect(zonesUnder('partition', [2, holdingPartition])).toEqual(['partition', 2, undefined]);
    expect(zonesUnder('pinned', [holdingPartition, holdingPartition], { pins })).toEqual(['pinned', undefined, '1-3']);
    expect(zonesUnder('onDelete', [0, 0], { pins })).toEqual(['onDelete', undefined, undefined]);
  });
});
