// Builders of StatefulSets and pods as the engine sees them: healthy, up to date and idle unless a test says otherwise.
import { isUnknown, type PodsView, type PodView, type StatefulSetView } from '../../engine/snapshot.ts';

/** The instant at which tests happen unless they say otherwise. */
export const kitNowMs: number = Date.parse('2026-03-02T12:00:00Z');

/** An instant long enough before `kitNowMs` that nothing waits for it any more. */
export const longAgoMs: number = kitNowMs - 7 * 24 * 3_600_000;

export const oldRevision = 'rev-1';
export const newRevision = 'rev-2';

export type StatefulSetOverrides = Partial<Omit<StatefulSetView, 'status'>> & { readonly status?: Partial<StatefulSetView['status']> };

/** A StatefulSet of three ready pods at `rev-1`; its counters follow `replicas`. */
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

/** A StatefulSet whose template has just been changed to `rev-2`, with all pods still at `rev-1`. */
export function outdatedStatefulSet(overrides: StatefulSetOverrides = {}): StatefulSetView {
  const generation = overrides.generation ?? 2;
  return statefulSet({ ...overrides, generation, status: { updateRevision: newRevision, updatedReplicas: 0, ...overrides.status } });
}

/** A running, ready pod of the StatefulSet, at the revision that its pods had before any change. */
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

/** What a test changes of single pods, by ordinal; `'missing'` leaves the pod out. */
export type PodChanges = Readonly<Record<number, Partial<PodView> | 'missing'>>;

/** All pods of the StatefulSet, in order of ordinal. */
export function podsOf(owner: StatefulSetView, changes: PodChanges = {}): PodsView {
  const pods: PodView[] = [];
  for (let ordinal = owner.firstOrdinal; ordinal < owner.firstOrdinal + owner.replicas; ordinal += 1) {
    const change = changes[ordinal];
    if (change !== 'missing') pods.push(pod(owner, ordinal, change));
  }
  return { namespace: owner.namespace, statefulSet: owner.name, pods };
}

/** The pods that a view holds; a view that could not be read is a fault of the test. */
export function knownPods(view: PodsView | undefined): readonly PodView[] {
  if (view === undefined || isUnknown(view.pods)) throw new Error('the test expected pods that are known');
  return view.pods;
}
