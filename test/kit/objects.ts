// Builds StatefulSets and pods as the engine sees them. Default: healthy, updated and idle.
import { isUnknown, type PodsView, type PodView, type StatefulSetView } from '../../engine/snapshot.ts';

/** The default time of tests. */
export const kitNowMs: number = Date.parse('2026-03-02T12:00:00Z');

/** A time so long before `kitNowMs` that no wait counts from it. */
export const longAgoMs: number = kitNowMs - 7 * 24 * 3_600_000;

export const oldRevision = 'rev-1';
export const newRevision = 'rev-2';

export type StatefulSetOverrides = Partial<Omit<StatefulSetView, 'status'>> & { readonly status?: Partial<StatefulSetView['status']> };

/** Builds a StatefulSet of three ready pods at `rev-1`. Its counters follow `replicas`. */
export function statefulSet(overrides: StatefulSetOverrides = {}): StatefulSetView {
  const { status, ...rest } = overrides;
  const name = rest.name ?? 'ingester-zone-a';
  const replicas = rest.replicas ?? 3;
  return {
    namespace: 'mimir',
    name,
    uid: `uid-${name}`,
    resourceVersion: '100',
    generation: 1,
    labels: { 'rollout-group': 'ingester' },
    annotations: {},
    replicas,
    firstOrdinal: 0,
    updateStrategy: 'OnDelete',
    partition: 0,
    podManagementPolicy: 'Parallel',
    minReadySeconds: 0,
    serviceName: name,
    podLabels: { name, 'rollout-group': 'ingester' },
    isTerminating: false,
    ...rest,
    status: {
      observedGeneration: rest.generation ?? 1,
      replicas,
      readyReplicas: replicas,
      updatedReplicas: replicas,
      currentRevision: oldRevision,
      updateRevision: oldRevision,
      ...status,
    },
  };
}

/** Builds a StatefulSet whose template has just changed to `rev-2`, with all pods still at `rev-1`. */
export function outdatedStatefulSet(overrides: StatefulSetOverrides = {}): StatefulSetView {
  const generation = overrides.generation ?? 2;
  return statefulSet({ ...overrides, generation, status: { updateRevision: newRevision, updatedReplicas: 0, ...overrides.status } });
}

/** Builds a running, ready pod of the StatefulSet at its current revision. */
export function pod(owner: StatefulSetView, ordinal: number, overrides: Partial<PodView> = {}): PodView {
  const name = `${owner.name}-${ordinal}`;
  const isReady = overrides.isReady ?? true;
  return {
    name,
    uid: `uid-${name}`,
    resourceVersion: '100',
    ordinal,
    revision: owner.status.currentRevision,
    labels: owner.podLabels,
    phase: 'Running',
    isReady,
    containersReady: isReady,
    readyChangedMs: longAgoMs,
    isTerminating: false,
    waitingReasons: [],
    node: `node-${ordinal}`,
    nodeReady: true,
    ...overrides,
  };
}

/** Changes of single pods, by ordinal. `'missing'` omits the pod. */
export type PodChanges = Readonly<Record<number, Partial<PodView> | 'missing'>>;

/** Returns all pods of the StatefulSet, in order of their ordinals. */
export function podsOf(owner: StatefulSetView, changes: PodChanges = {}): PodsView {
  const pods: PodView[] = [];
  for (let ordinal = owner.firstOrdinal; ordinal < owner.firstOrdinal + owner.replicas; ordinal += 1) {
    const change = changes[ordinal];
    if (change !== 'missing') pods.push(pod(owner, ordinal, change));
  }
  return { namespace: owner.namespace, statefulSet: owner.name, pods };
}

/** Returns the pods of a view. Throws if the view could not be read, because then the test is wrong. */
export function knownPods(view: PodsView | undefined): readonly PodView[] {
  if (view === undefined || isUnknown(view.pods)) throw new Error('the test expected pods that are known');
  return view.pods;
}
