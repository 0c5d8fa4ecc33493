import { describe, expect, it } from 'vitest';
import { defaultAssumptions } from '../../../engine/plan/document.ts';
import { runForward } from '../../../engine/plan/forward.ts';
import { planGroups } from '../../../engine/plan/plan.ts';
import { createWorld, step } from '../../../engine/world/world.ts';
import { holdingPartition } from '../../../policies/strategies.ts';
import { group, wave } from '../../kit/groups.ts';
import { manifests, planInput } from '../../kit/manifests.ts';
import { knownPods, newRevision, oldRevision, type StatefulSetOverrides, statefulSet } from '../../kit/objects.ts';
import { snapshotOf } from '../../kit/snapshots.ts';

const rolling = { updateStrategy: { type: 'RollingUpdate' } };
const waves = [wave('canary', ['a'], { amount: { pods: 1 }, after: { soakMs: 1_800_000, gates: [] } }), wave('rest', ['a', 'b', 'c'])];
const partitioned = group({ rollout: { strategy: 'partition', waves } });

describe('a plan of the strategy partition', () => {
  const planned = planGroups(
    planInput({
      groups: [partitioned],
      current: manifests({ spec: rolling }),
      desired: manifests({ spec: rolling, image: 'grafana/mimir:2.17.1' }),
    }),
  );

  it('shows waves, pods from the highest ordinal and times, although no manifest names a partition', () => {
    const [one] = planned.groups;
    expect(one?.outcome).toBe('complete');
    expect(
      one?.waves.flatMap(({ name, steps }) =>
        steps.map(({ kind, zone, pods }) => `${name} ${kind} ${zone ?? ''} ${pods.join(' ')}`.trim()),
      ),
    ).toEqual([
      'canary roll a ingester-zone-a-2',
      'canary soak',
      'rest roll a ingester-zone-a-1 ingester-zone-a-0',
      'rest roll b ingester-zone-b-2 ingester-zone-b-1 ingester-zone-b-0',
      'rest roll c ingester-zone-c-2 ingester-zone-c-1 ingester-zone-c-0',
    ]);
    expect(one?.changes.map(({ field }) => field)).toEqual(['spec.template.spec.containers[ingester].image']);
    expect(one?.totals).toMatchObject({ restarts: 9, waves: 2 });
  });

  it('takes as long as a plan of the strategy onDelete', () => {
    const same = planInput({
      groups: [group({ rollout: { waves } })],
      current: manifests(),
      desired: manifests({ image: 'grafana/mimir:2.17.1' }),
    });
    expect(planned.groups[0]?.totals.p50Seconds).toBe(planGroups(same).groups[0]?.totals.p50Seconds);
  });

  it('of a blocked cluster shows no change of the partition', () => {
    const current = manifests({ spec: { updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: holdingPartition } } } });
    const [one] = planGroups(planInput({ groups: [partitioned], current, desired: manifests({ spec: rolling }) })).groups;
    expect([one?.outcome, one?.changes]).toEqual(['unchanged', []]);
  });
});

/** Runs one zone forward from a state, and tells its partition and the revisions of its pods at the end. */
function atTheEnd(set: StatefulSetOverrides, revisions: readonly string[], events: Parameters<typeof runForward>[2] = {}) {
  const of = group({ zones: ['a'], rollout: { strategy: 'partition' } });
  const one = statefulSet({ updateStrategy: 'RollingUpdate', replicas: revisions.length, ...set });
  const podChanges = { [one.name]: Object.fromEntries(revisions.map((revision, index) => [index + one.firstOrdinal, { revision }])) };
  const snapshot = snapshotOf({ groups: [of], statefulSets: [one], podChanges });
  const run = runForward(createWorld(snapshot, defaultAssumptions, 'p50'), of, events);
  const [end] = run.world.snapshot.statefulSets;
  const pods = knownPods(run.world.snapshot.pods[0]).map(({ revision }) => revision);
  return { end: run.end, partition: end?.partition, current: end?.status.currentRevision, pods: [...new Set(pods)] };
}

describe('a run forward under the strategy partition', () => {
  const outdated = { partition: holdingPartition, status: { updateRevision: newRevision } };
  const done = { end: 'done', partition: holdingPartition, current: newRevision, pods: [newRevision] };
  const three = [oldRevision, oldRevision, oldRevision];

  it.each([
    ['from the top under Parallel', outdated, three],
    ['from the top under OrderedReady', { ...outdated, podManagementPolicy: 'OrderedReady' as const }, three],
    ['with minReadySeconds', { ...outdated, minReadySeconds: 30 }, three],
    ['counting from the first ordinal', { ...outdated, firstOrdinal: 5 }, three],
    ['that begins in the middle', { ...outdated, partition: 1 }, [oldRevision, newRevision, newRevision]],
    ['that begins with nothing held', { ...outdated, partition: 0 }, three],
    ['that begins with a pod that has got ahead', outdated, [oldRevision, newRevision, oldRevision]],
    ['of a StatefulSet without pods', { ...outdated, partition: 0 }, []],
  ])('ends complete and blocked: %s', (_, set, revisions) => {
    const expected = revisions.length === 0 ? { ...done, pods: [] } : done;
    expect(atTheEnd(set, revisions)).toEqual(expected);
  });

  it('continues to a third revision, and returns', () => {
    const target = { namespace: 'mimir', statefulSet: 'ingester-zone-a' };
    const forward = { events: [{ atMs: 0, input: { kind: 'setTemplate', ...target, revision: 'rev-3' } as const }] };
    const state = { ...outdated, partition: 1 };
    expect(atTheEnd(state, [oldRevision, newRevision, newRevision], forward)).toEqual({ ...done, current: 'rev-3', pods: ['rev-3'] });
    const back = { events: [{ atMs: 0, input: { kind: 'setTemplate', ...target, revision: oldRevision } as const }] };
    expect(atTheEnd(state, [oldRevision, newRevision, newRevision], back)).toEqual({ ...done, current: oldRevision, pods: [oldRevision] });
  });

  it('keeps the revision of a pod that dies on either side of the partition, and a pod that a scale-up adds has the new one', () => {
    const one = statefulSet({ updateStrategy: 'RollingUpdate', replicas: 4, partition: 2, status: { updateRevision: newRevision } });
    const podChanges = { [one.name]: { 2: { revision: newRevision }, 3: { revision: newRevision } } };
    let world = createWorld(snapshotOf({ statefulSets: [one], podChanges }), defaultAssumptions, 'p50');
    const target = { namespace: 'mimir', statefulSet: one.name };
    for (const ordinal of [0, 1, 2, 3, 0, 3]) world = step(world, { kind: 'podDies', namespace: 'mimir', pod: `${one.name}-${ordinal}` });
    world = step(world, { kind: 'setReplicas', ...target, replicas: 5 });
    expect(knownPods(world.snapshot.pods[0]).map(({ revision }) => revision)).toEqual([
      oldRevision,
      oldRevision,
      newRevision,
      newRevision,
      newRevision,
    ]);
  });
});

describe('a plan that changes the strategy of the group', () => {
  const before = { groups: [partitioned], groupsBefore: [group({ rollout: { waves } })] };

  it.each(['partition', 'pinned'] as const)(
    'to %s reports that the members do not fit, and names the change that makes them fit',
    (strategy) => {
      const [one] = planGroups(planInput({ ...before, groups: [group({ rollout: { strategy, waves } })] })).groups;
      const risks = one?.risks.filter(({ code }) => code === 'RG5018') ?? [];
      expect(risks.map(({ source }) => source?.object)).toEqual(['a', 'b', 'c'].map((zone) => `StatefulSet mimir/ingester-zone-${zone}`));
      expect(risks[0]?.message).toBe(
        `ingester-zone-a has the update strategy OnDelete: the strategy ${strategy} needs RollingUpdate, so the agent replaces no pod of it. After this change: kubectl patch statefulset ingester-zone-a -n mimir --type=merge -p '{"spec":{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":${holdingPartition}}}}}', and write type: RollingUpdate into its manifest`,
      );
    },
  );

  it('and waits for the first member also names the other members', () => {
    const desired = manifests({ image: 'grafana/mimir:2.17.1' });
    const [one] = planGroups(planInput({ groups: [partitioned], desired })).groups;
    expect(one?.waits.map(({ rule, source }) => [rule, source?.object])).toEqual([
      ['update-strategy', 'StatefulSet mimir/ingester-zone-a'],
    ]);
    const named = one?.risks.filter(({ code }) => code === 'RG5018').map(({ source }) => source?.object);
    expect(named).toEqual(['b', 'c'].map((zone) => `StatefulSet mimir/ingester-zone-${zone}`));
  });

  it('and the members in one step reports no mismatch', () => {
    const [one] = planGroups(planInput({ ...before, desired: manifests({ spec: rolling }) })).groups;
    expect([one?.outcome, one?.refused, one?.risks.map(({ code }) => code)]).toEqual(['complete', [], []]);
  });

  it('and the members together with a template names the order of the writes', () => {
    const desired = manifests({ spec: rolling, image: 'grafana/mimir:2.17.1' });
    const [one] = planGroups(planInput({ ...before, desired })).groups;
    expect(one?.outcome).toBe('blocked');
    expect(one?.refused[0]?.results[0]?.endsWith).toMatch(/^kubectl patch .*; then apply the new template$/);
  });
});
