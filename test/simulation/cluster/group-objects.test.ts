// The groups that shapes describe, as the real readers of policies understand them.
import { describe, expect, it } from 'vitest';
import { resolveLive } from '../../../policies/live/sources.ts';
import { groupObjects } from '../../../scripts/soak/groups/group-objects.ts';
import { replicaSources } from '../../../simulation/cluster/replica-origins.ts';
import type { GroupShape } from '../../../simulation/scenario.ts';

const base: GroupShape = {
  kind: 'native',
  zones: 3,
  podsPerZone: 3,
  maxUnavailable: 2,
  minReadySeconds: 5,
  podManagementPolicy: 'Parallel',
  rotateBy: 'delete',
  replicas: 'own',
  delaySeconds: 0,
  betweenZonesSeconds: 0,
  drainMs: 3000,
  startMs: 4000,
};
const every: readonly GroupShape[] = (['native', 'adopted'] as const).flatMap((kind) =>
  (['own', 'leader', 'mirror', 'delayedMirror'] as const).flatMap((replicas) =>
    [1, 3, 5].map((zones) => ({
      ...base,
      kind,
      replicas,
      zones,
      betweenZonesSeconds: 45,
      delaySeconds: 90,
      maxUnavailable: zones === 5 ? ('34%' as const) : 1,
      rotateBy: kind === 'native' && zones === 3 ? ('evict' as const) : ('delete' as const),
    })),
  ),
);

function resolved(shape: GroupShape) {
  const { objects, namespace } = groupObjects(shape);
  return resolveLive({
    objects: objects.filter(({ kind }) => kind === 'RolloutGroup'),
    statefulSets: objects.filter(({ kind }) => kind === 'StatefulSet'),
    order: ['directory', 'objects', 'adopted'],
    agentNamespace: namespace,
  });
}

describe('the group of a shape', () => {
  it.each(every)('is understood without findings: $kind, $replicas, $zones zones', (shape) => {
    const { groups, findings } = resolved(shape);
    expect(findings).toEqual([]);
    const [group] = groups;
    const zones = group?.zones ?? [];
    expect({
      name: `${group?.namespace}/${group?.name}`,
      sets: zones.map((zone) => zone.statefulSet),
      maxUnavailable: [...new Set(zones.map((zone) => zone.maxUnavailable))],
      betweenZonesMs: [...new Set(zones.map((zone) => zone.betweenZonesMs))],
      follows: zones.filter((zone) => zone.follows !== undefined).length,
      delayedMs: [...new Set(zones.map((zone) => zone.delayed?.afterMs))],
      path: [...new Set(zones.map((zone) => zone.delayed?.endpoint.path))],
      replicas: [...new Set(zones.map((zone) => zone.replicas.kind))],
      rotateBy: group?.rollout.rotateBy,
      holds: zones.flatMap((zone) => [zone.scalingHold, zone.scaleDownHold]).filter((hold) => hold !== undefined),
    }).toEqual({
      name: 'mimir/ingester',
      sets: groupObjects(shape).statefulSets,
      maxUnavailable: [shape.maxUnavailable],
      betweenZonesMs: [shape.zones === 1 ? undefined : 45_000],
      follows: shape.replicas === 'leader' ? shape.zones - 1 : 0,
      delayedMs: [shape.replicas === 'delayedMirror' ? 90_000 : undefined],
      path: [shape.replicas === 'delayedMirror' ? '/ingester/prepare-delayed-downscale' : undefined],
      replicas: [shape.replicas === 'own' || shape.replicas === 'leader' ? 'leader' : 'mirror'],
      rotateBy: shape.rotateBy,
      holds: [],
    });
  });

  it('has a budget for each zone when pods are evicted', () => {
    const budgets = groupObjects({ ...base, rotateBy: 'evict' }).objects.filter(({ kind }) => kind === 'PodDisruptionBudget');
    expect(budgets.map(({ spec }) => spec)).toEqual([
      { maxUnavailable: 2, selector: { matchLabels: { name: 'ingester-zone-a' } } },
      { maxUnavailable: 2, selector: { matchLabels: { name: 'ingester-zone-b' } } },
      { maxUnavailable: 2, selector: { matchLabels: { name: 'ingester-zone-c' } } },
    ]);
  });

  it('takes its numbers from where its policies say', () => {
    const originsOf = (shape: Partial<GroupShape>) =>
      replicaSources(groupObjects({ ...base, zones: 2, ...shape })).map(({ origin }) => `${origin?.resource} ${origin?.name}`);
    const own = ['statefulsets.apps ingester-zone-a', 'statefulsets.apps ingester-zone-b'];
    const leader = ['statefulsets.apps ingester-zone-a', 'statefulsets.apps ingester-zone-a'];
    const mirror = ['replicatemplates.rollout-operator.grafana.com ingester', 'replicatemplates.rollout-operator.grafana.com ingester'];
    for (const kind of ['native', 'adopted'] as const) {
      expect(originsOf({ kind, replicas: 'own' })).toEqual(own);
      expect(originsOf({ kind, replicas: 'leader' })).toEqual(leader);
      expect(originsOf({ kind, replicas: 'mirror' })).toEqual(mirror);
    }
  });

  it('keeps the bounds and chains of given policies', () => {
    const group = (replicas: object) => ({
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'RolloutGroup',
      metadata: { name: 'kafka', namespace: 'kafka' },
      spec: {
        members: {
          zones: [
            { name: 'a', statefulSet: 'one' },
            { name: 'b', statefulSet: 'two', follows: 'a' },
          ],
        },
        replicas,
        rollout: { strategy: 'onDelete' },
      },
    });
    const given = { namespace: 'kafka', name: 'kafka', statefulSets: ['one', 'two', 'three'], policies: [] };
    const [one, two, three] = replicaSources({ ...given, objects: [group({ count: 4, bounds: { min: 3, max: 7, parity: 'odd' } })] });
    expect(one?.origin?.path).toEqual(['spec', 'replicas', 'count']);
    expect([one?.bounded(4), two?.bounded(1), three?.bounded(4)]).toEqual([5, 3, 4]);
    const file = { name: 'kafka.yaml', text: JSON.stringify(group({ count: 4, bounds: { parity: 'odd' } })) };
    const [written] = replicaSources({ ...given, objects: [], policies: [file] });
    expect([written?.origin, written?.bounded(9)]).toEqual([undefined, 5]);
  });
});
