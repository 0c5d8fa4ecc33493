import { describe, expect, it } from 'vitest';
import { snapshotFromManifests, templateRevision } from '../../../engine/observe/manifests.ts';
import type { GroupDefinition } from '../../../policies/definition.ts';
import { group } from '../../kit/groups.ts';
import { kitNowMs, knownPods } from '../../kit/objects.ts';

const template = { metadata: { labels: { name: 'ingester-zone-a' } }, spec: { containers: [{ name: 'mimir', image: 'mimir:1' }] } };

function manifest(name: string, spec: object = {}): object {
  return { apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name }, spec: { template, ...spec } };
}

function read(objects: readonly unknown[], groups: readonly GroupDefinition[] = []) {
  return snapshotFromManifests(objects, { nowMs: kitNowMs, namespace: 'mimir', groups });
}

/** Replicas by StatefulSet. */
function replicas(objects: readonly unknown[], groups: readonly GroupDefinition[] = []): Readonly<Record<string, number>> {
  return Object.fromEntries(read(objects, groups).snapshot.statefulSets.map((set) => [set.name, set.replicas]));
}

describe('a StatefulSet manifest', () => {
  it('describes a complete StatefulSet with consistent counters', () => {
    const [set] = read([manifest('ingester-zone-a', { replicas: 2 })]).snapshot.statefulSets;
    const revision = templateRevision(template);
    expect(set).toMatchObject({
      namespace: 'mimir',
      uid: 'statefulset-mimir-ingester-zone-a',
      generation: 1,
      replicas: 2,
      status: {
        observedGeneration: 1,
        replicas: 2,
        readyReplicas: 2,
        updatedReplicas: 2,
        currentRevision: revision,
        updateRevision: revision,
      },
    });
  });

  it('has all its pods, ready for a year, with the labels of the controller', () => {
    const { pods } = read([manifest('ingester-zone-a', { replicas: 2, ordinals: { start: 5 } })]).snapshot;
    const revision = templateRevision(template);
    expect(knownPods(pods[0]).map(({ name }) => name)).toEqual(['ingester-zone-a-5', 'ingester-zone-a-6']);
    expect(knownPods(pods[0])[0]).toEqual({
      name: 'ingester-zone-a-5',
      uid: 'pod-mimir-ingester-zone-a-5',
      resourceVersion: '1',
      ordinal: 5,
      revision,
      labels: {
        name: 'ingester-zone-a',
        'controller-revision-hash': revision,
        'statefulset.kubernetes.io/pod-name': 'ingester-zone-a-5',
        'apps.kubernetes.io/pod-index': '5',
      },
      phase: 'Running',
      isReady: true,
      containersReady: true,
      readyChangedMs: kitNowMs - 365 * 86_400_000,
      isTerminating: false,
      waitingReasons: [],
      node: '',
      nodeReady: true,
      readyTimeMs: kitNowMs - 365 * 86_400_000,
    });
  });

  it('has the pods of the same file unchanged', () => {
    const broken = {
      kind: 'Pod',
      metadata: { name: 'ingester-zone-a-1' },
      status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'False' }] },
    };
    const { snapshot } = read([{ kind: 'List', items: [manifest('ingester-zone-a', { replicas: 2 }), broken] }]);
    expect(knownPods(snapshot.pods[0]).map(({ isReady }) => isReady)).toEqual([true, false]);
    expect(snapshot.statefulSets[0]?.status).toMatchObject({ replicas: 2, readyReplicas: 1, updatedReplicas: 2 });
  });

  it('that cannot be read is a problem and no member', () => {
    const { snapshot, problems } = read([manifest('ingester-zone-a', { replicas: 'many' })]);
    expect([snapshot.statefulSets, problems]).toEqual([
      [],
      ['StatefulSet mimir/ingester-zone-a: spec.replicas is not a whole number of 32 bits'],
    ]);
  });
});

describe('the revision of a template', () => {
  it('does not depend on the order of keys or on null fields, but on every other field', () => {
    const shuffled = { spec: { containers: [{ image: 'mimir:1', name: 'mimir' }], volumes: null }, metadata: template.metadata };
    const changed = { ...template, spec: { containers: [{ name: 'mimir', image: 'mimir:2' }] } };
    expect(templateRevision(shuffled)).toBe(templateRevision(template));
    expect(templateRevision(changed)).not.toBe(templateRevision(template));
    expect(templateRevision(template)).toMatch(/^[0-9a-f]{10}$/);
  });

  it('is the revision of the status if the manifest was read from a cluster', () => {
    const status = { updateRevision: 'ingester-zone-a-7f9' };
    const { snapshot } = snapshotFromManifests([{ kind: 'StatefulSet', metadata: { name: 'a' }, spec: { template }, status }], {
      nowMs: 0,
    });
    expect(snapshot.statefulSets[0]?.status.updateRevision).toBe('ingester-zone-a-7f9');
  });
});

describe('replicas that a manifest omits', () => {
  const names = ['ingester-zone-a', 'ingester-zone-b', 'ingester-zone-c'];
  const chain = group({ zones: [{ name: 'c', follows: 'b' }, { name: 'b', follows: 'a' }, { name: 'a' }] });

  it('are the replicas of the leader, through the chain, in any order', () => {
    const objects = names.map((name, index) => manifest(name, index === 0 ? { replicas: 7 } : {}));
    expect(replicas(objects, [chain])).toEqual({ 'ingester-zone-a': 7, 'ingester-zone-b': 7, 'ingester-zone-c': 7 });
    expect(replicas(objects)).toEqual({ 'ingester-zone-a': 7, 'ingester-zone-b': 1, 'ingester-zone-c': 1 });
  });

  it('are the replicas in the manifest if it has them', () => {
    const objects = names.map((name, index) => manifest(name, index === 1 ? { replicas: 0 } : {}));
    expect(replicas(objects, [chain])).toEqual({ 'ingester-zone-a': 1, 'ingester-zone-b': 0, 'ingester-zone-c': 0 });
  });

  it('are the count of the group, or the number of its source', () => {
    const mirror = {
      kind: 'mirror',
      apiVersion: 'rollout-operator.grafana.com/v1',
      resourceKind: 'ReplicaTemplate',
      name: 'ingester',
      read: 'scale',
      writeBack: 'none',
      onMissing: 'hold',
    } as const;
    const mixed = group({
      zones: [
        { name: 'a', replicas: mirror },
        { name: 'b', replicas: { kind: 'count', count: 4 } },
        { name: 'c', follows: 'a' },
      ],
    });
    const source = { apiVersion: mirror.apiVersion, kind: 'ReplicaTemplate', metadata: { name: 'ingester' }, spec: { replicas: 6 } };
    expect(replicas([...names.map((name) => manifest(name)), source], [mixed])).toEqual({
      'ingester-zone-a': 6,
      'ingester-zone-b': 4,
      'ingester-zone-c': 6,
    });
    expect(
      replicas(
        names.map((name) => manifest(name)),
        [mixed],
      ),
    ).toMatchObject({ 'ingester-zone-a': 1, 'ingester-zone-c': 1 });
  });

  it('are 1 in a cycle of leaders', () => {
    const circle = group({
      zones: [
        { name: 'a', follows: 'b' },
        { name: 'b', follows: 'a' },
      ],
    });
    expect(replicas([manifest('ingester-zone-a'), manifest('ingester-zone-b')], [circle])).toEqual({
      'ingester-zone-a': 1,
      'ingester-zone-b': 1,
    });
  });
});

describe('other objects in the manifests', () => {
  it('budgets and replica sources are read, the rest is skipped', () => {
    const selector = { matchLabels: { 'rollout-group': 'ingester' } };
    const { snapshot, problems } = read([
      { kind: 'ZoneAwarePodDisruptionBudget', metadata: { name: 'zpdb' }, spec: { selector } },
      { kind: 'ZoneAwarePodDisruptionBudget', metadata: { name: 'bad' }, spec: { selector, maxUnavailable: -1 } },
      { kind: 'PodDisruptionBudget', metadata: { name: 'pdb', namespace: 'loki' }, spec: { selector, maxUnavailable: 1 } },
      { apiVersion: 'rollout-operator.grafana.com/v1', kind: 'ReplicaTemplate', metadata: { name: 'r' }, spec: {} },
      { apiVersion: 'autoscaling/v2', kind: 'HorizontalPodAutoscaler', metadata: { name: 'h' }, status: { desiredReplicas: 5 } },
      { kind: 'ConfigMap', metadata: { name: 'c' } },
      null,
      'text',
    ]);
    expect([snapshot.zoneBudgets, snapshot.podBudgets, snapshot.replicaSources, problems]).toMatchObject([
      [{ namespace: 'mimir', name: 'zpdb' }],
      [{ namespace: 'loki', name: 'pdb' }],
      [
        { kind: 'ReplicaTemplate', name: 'r', replicas: 1, statusReplicas: 0 },
        { kind: 'HorizontalPodAutoscaler', name: 'h', replicas: 5 },
      ],
      ['ZoneAwarePodDisruptionBudget mimir/bad: maxUnavailable is -1; it must be 0 or more'],
    ]);
  });

  it('an object of any kind is a source if a group reads it', () => {
    const replicasFrom = {
      kind: 'mirror',
      apiVersion: 'x/v1',
      resourceKind: 'Cluster',
      name: 'k',
      read: 'fieldPath',
      fieldPath: ['spec', 'brokers'],
      writeBack: 'none',
      onMissing: 'hold',
    } as const;
    const object = { apiVersion: 'x/v1', kind: 'Cluster', metadata: { name: 'k' }, spec: { brokers: 9 } };
    expect(read([object], [group({ zones: [{ name: 'a', replicas: replicasFrom }] })]).snapshot.replicaSources).toEqual([
      { namespace: 'mimir', apiVersion: 'x/v1', kind: 'Cluster', name: 'k', replicas: 9 },
    ]);
  });
});
