// What a partition keeps by itself: with ordinals that begin elsewhere, and when nobody decides any more.
import { describe, expect, it } from 'vitest';
import { decide } from '../../../engine/decide/decide.ts';
import { defaultAssumptions } from '../../../engine/plan/document.ts';
import type { World } from '../../../engine/world/model.ts';
import { createWorld, step } from '../../../engine/world/world.ts';
import { holdingPartition } from '../../../policies/strategies.ts';
import { group } from '../../kit/groups.ts';
import { knownPods, newRevision, oldRevision, statefulSet } from '../../kit/objects.ts';
import { snapshotOf } from '../../kit/snapshots.ts';

const partitioned = group({ zones: ['a'], rollout: { strategy: 'partition' } });
const dayMs = 86_400_000;

function setWith(partition: number, firstOrdinal = 0) {
  return statefulSet({ updateStrategy: 'RollingUpdate', replicas: 4, partition, firstOrdinal, status: { updateRevision: newRevision } });
}

/** The world a day later. */
const later = (world: World): World => step(world, { kind: 'elapse', toMs: world.snapshot.nowMs + dayMs });
const revisionsOf = ({ snapshot }: World) => knownPods(snapshot.pods[0]).map(({ revision }) => revision);

describe('the strategy partition with ordinals that start at 5', () => {
  it('rolls pods by the first ordinal, with partitions counted from it', () => {
    const writes = [4, 3, 2, 1].map((partition) => {
      const set = setWith(partition === 4 ? holdingPartition : partition, 5);
      const updated = Array.from({ length: 4 - partition }, (_, index) => [8 - index, { revision: newRevision }] as const);
      const snapshot = snapshotOf({ groups: [partitioned], statefulSets: [set], podChanges: { [set.name]: Object.fromEntries(updated) } });
      return decide(snapshot).groups.flatMap(({ actions }) =>
        actions.map((action) =>
          action.kind === 'setPartition' ? `${action.to}: ${action.pods.map(({ pod }) => pod).join(' ')}` : action.kind,
        ),
      );
    });
    expect(writes).toEqual([['3: ingester-zone-a-8'], ['2: ingester-zone-a-7'], ['1: ingester-zone-a-6'], ['0: ingester-zone-a-5']]);
  });
});

describe('a partition', () => {
  it('keeps its value if its group is deleted during a run, until a user changes it', () => {
    const set = setWith(3);
    const snapshot = snapshotOf({ groups: [], statefulSets: [set], podChanges: { [set.name]: { 3: { revision: newRevision } } } });
    expect(decide(snapshot).groups).toEqual([]);
    const half = [oldRevision, oldRevision, oldRevision, newRevision];
    let world = later(createWorld(snapshot, defaultAssumptions, 'p50'));
    expect(revisionsOf(world)).toEqual(half);
    for (const ordinal of [0, 3, 0, 3]) {
      world = later(step(world, { kind: 'podDies', namespace: 'mimir', pod: `${set.name}-${ordinal}` }));
    }
    expect(revisionsOf(world)).toEqual(half);
    const moved = { ...world.snapshot, statefulSets: world.snapshot.statefulSets.map((one) => ({ ...one, partition: 0 })) };
    expect(revisionsOf(later(createWorld(moved, defaultAssumptions, 'p50')))).toEqual([newRevision, newRevision, newRevision, newRevision]);
  });
});
