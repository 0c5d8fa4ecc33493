import { describe, expect, it } from 'vitest';
import { group, wave } from '../../kit/groups.ts';
import { kitNowMs, newRevision, oldRevision, type PodChanges, podsOf } from '../../kit/objects.ts';
import { hourMs, outdatedSets, type RunFields, runOf } from '../../kit/questions.ts';
import { podsIn, roll } from '../../kit/rolls.ts';
import type { SnapshotOverrides } from '../../kit/snapshots.ts';

const zones = [{ name: 'a' }, { name: 'b' }];
const waves = [wave('canary', ['a'], { amount: { pods: 1 }, after: { soakMs: hourMs, gates: [] } }), wave('rest', ['a', 'b'])];
const updated = { revision: newRevision };

/** Returns the warnings of a run in its first wave. */
function warnings(
  pods: Readonly<Record<string, PodChanges>>,
  fields: RunFields = {},
  overrides: SnapshotOverrides = {},
): readonly string[] {
  const run = runOf({ target: { a: newRevision, b: newRevision }, previous: { a: oldRevision, b: oldRevision }, ...fields });
  const statefulSets = outdatedSets(['a', 'b'], { replicas: 3, updateStrategy: 'OnDelete' });
  const one = group({ zones, rollout: { strategy: 'onDelete', waves } });
  return roll(one, run, { statefulSets, ...podsIn(pods), ...overrides }).warnings.flatMap(({ rule, fact }) =>
    rule === 'updated-by-restart' ? [fact] : [],
  );
}

describe('a pod that is created again under onDelete before its wave', () => {
  it('is a warning of its zone', () => {
    expect(warnings({ a: { 0: updated }, b: { 2: updated } })).toEqual([
      `zone b has 1 pod at revision ${newRevision}, but the waves so far include 0: under onDelete, a pod that is created again starts at the update revision`,
    ]);
    expect(warnings({ a: { 0: updated, 2: updated } })).toEqual([expect.stringContaining('zone a has 2 pods')]);
  });

  it('does not concern the pods of the wave and of earlier waves', () => {
    expect(warnings({ a: { 0: updated } })).toEqual([]);
    expect(warnings({ a: { 0: updated, 1: updated, 2: updated }, b: { 0: updated } }, { wave: 1 })).toEqual([]);
  });

  it('also concerns the pods of a wave while the change has replaced no pod', () => {
    const restarted = { ...updated, readyChangedMs: kitNowMs };
    const startedMs = kitNowMs - hourMs;
    const pods = { a: { 0: restarted } };
    const fact = `zone a has 1 pod at revision ${newRevision}, but the rollout has replaced no pod`;
    expect(warnings(pods, { startedMs })).toEqual([expect.stringContaining(fact)]);
    expect(warnings(pods, { startedMs, lastDisruptionMs: kitNowMs - 1000 })).toEqual([]);
    const joined = { id: 'earlier', startedMs };
    expect(warnings(pods, { startedMs: kitNowMs - 500, joined, lastDisruptionMs: kitNowMs - 1000 })).toEqual([]);
  });

  it('does not concern a pod above the replicas, which a scale-down deletes', () => {
    const sets = outdatedSets(['a', 'b'], { replicas: 4, updateStrategy: 'OnDelete' });
    const pods = sets.map((set) => podsOf(set, { 3: { ...updated, readyChangedMs: kitNowMs } }));
    expect(warnings({}, { startedMs: kitNowMs - hourMs }, { pods })).toEqual([]);
  });

  it('does not concern a run back to the revision from before, whose pods may never have left it', () => {
    expect(warnings({ a: { 0: updated }, b: { 2: updated } }, { previous: { a: newRevision, b: newRevision } })).toEqual([]);
  });
});
