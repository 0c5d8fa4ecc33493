// Makes a snapshot from manifests as if they ran: every pod exists, and is ready and updated unless its Pod manifest says otherwise.

import type { GroupDefinition, ZoneDefinition } from '../../policies/definition.ts';
import { canonicalJson } from '../../policies/values/canonical-json.ts';
import { extended } from '../../policies/values/defined.ts';
import { hashText } from '../../policies/values/hash.ts';
import { isRecord } from '../../policies/values/is-record.ts';
import { keptByObject } from '../../policies/values/map.ts';
import { counted } from '../../policies/wording.ts';
import { emptySnapshot, isUnknown, type Known, type PodView, type Snapshot, type StatefulSetView, setNamed } from '../snapshot.ts';
import { observePodBudget, observeZoneBudget } from './budget.ts';
import { observePod, observeStatefulSet } from './objects.ts';
import { fieldAt, objectKey, reader } from './raw.ts';
import { observeReplicaSource, type ReplicaSourceReference } from './source.ts';

/** The time for which the pods of manifests have been ready: longer than the usual delays of policies. */
const settledMs = 365 * 24 * 3_600_000;

/**
 * The maximum number of pods of a StatefulSet in plans, policy tests and simulations. Kubernetes supports clusters of 5,000 nodes, so a
 * larger number is a mistake. No pod of a larger StatefulSet is modelled.
 */
export const modelledPodLimit = 5_000;

/** Returns why the model lacks pods of the StatefulSet, and what to change; undefined up to the limit. */
export function unmodelledPods(name: string, replicas: number): string | undefined {
  if (replicas <= modelledPodLimit) return undefined;
  return `StatefulSet ${name} would have ${counted(replicas, 'replica')}, but at most ${modelledPodLimit} pods of a StatefulSet can be modelled; reduce the replicas`;
}

interface ManifestOptions {
  readonly nowMs: number;
  /** Namespace of objects without a namespace; absent: `default`. */
  readonly namespace?: string;
  /** Groups, which define the leaders and the mirrored objects. */
  readonly groups?: readonly GroupDefinition[];
  /** Replicas that override the manifests of single StatefulSets, by `namespace/name`. Zones that follow them keep their replicas. */
  readonly replicas?: ReadonlyMap<string, number>;
  /** `none`: the manifests do not run yet, so the snapshot has no pods. */
  readonly pods?: 'running' | 'none';
}

interface ManifestSnapshot {
  readonly snapshot: Snapshot;
  /** One clause for each StatefulSet or budget that could not be read. The snapshot does not contain these objects. */
  readonly problems: readonly string[];
}

/**
 * Returns a snapshot of manifests: the StatefulSets, their pods, the budgets and the replica sources. The group determines replicas that
 * a manifest omits. Opens lists (`kind: List`) and skips other kinds.
 */
export function snapshotFromManifests(objects: readonly unknown[], options: ManifestOptions): ManifestSnapshot {
  const namespaced = objects.flatMap(openList).map((object) => inNamespace(object, options.namespace ?? 'default'));
  const ofKind = (kind: string): readonly object[] => namespaced.filter(isRecord).filter((object) => object['kind'] === kind);
  const sets = ofKind('StatefulSet').map(readSet);
  const zoneBudgets = ofKind('ZoneAwarePodDisruptionBudget').map(observeZoneBudget);
  const podBudgets = ofKind('PodDisruptionBudget').map(readBudget);
  const groups = options.groups ?? [];
  const unnamed = ofKind('StatefulSet')
    .filter((object) => fieldAt(object, ['spec', 'replicas']) === undefined)
    .map(objectKey);
  const snapshot = fillUnnamedReplicas(
    {
      ...emptySnapshot(options.nowMs),
      groups,
      statefulSets: readable(sets),
      zoneBudgets: readable(zoneBudgets),
      podBudgets: readable(podBudgets),
      replicaSources: replicaSources(namespaced, groups),
    },
    new Set(unnamed),
  );
  const withReplicas = (set: StatefulSetView): StatefulSetView =>
    settled(set, options.replicas?.get(`${set.namespace}/${set.name}`) ?? set.replicas);
  const replicated: Snapshot = { ...snapshot, statefulSets: snapshot.statefulSets.map(withReplicas) };
  return {
    snapshot: withReportedReplicas(options.pods === 'none' ? replicated : withPods(replicated, ofKind('Pod'))),
    problems: [...sets, ...zoneBudgets, ...podBudgets].flatMap((view) => (isUnknown(view) ? [view.unknown] : [])),
  };
}

/** A review reads the same manifests for each of its questions. */
const readSet = keptByObject(runningSet);
const readBudget = keptByObject(observePodBudget);

/** Returns ten hexadecimal digits of the template's hash as its revision. A `null` counts as absent. No cluster uses this revision. */
export function templateRevision(template: unknown): string {
  return isRecord(template) ? revisionOf(template) : hashOf(template);
}

/** A plan needs the revision of one template several times. */
const revisionOf: (template: object) => string = keptByObject(hashOf);

function hashOf(template: unknown): string {
  return hashText(canonicalJson(withoutNulls(template))).slice(0, 10);
}

/** Fills in replicas that manifests omit: those of the leader, of the group or of the mirrored object; else the API server's default of 1. */
function fillUnnamedReplicas(snapshot: Snapshot, unnamed: ReadonlySet<string>): Snapshot {
  const replicas = new Map(snapshot.statefulSets.map((set) => [`${set.namespace}/${set.name}`, set.replicas]));
  for (const group of snapshot.groups) {
    for (const zone of group.zones) {
      const key = `${group.namespace}/${zone.statefulSet}`;
      if (unnamed.has(key)) replicas.set(key, replicasOf(snapshot, group, zone, unnamed));
    }
  }
  const statefulSets = snapshot.statefulSets.map((set) => {
    const count = replicas.get(`${set.namespace}/${set.name}`) ?? set.replicas;
    return count === set.replicas ? set : settled(set, count);
  });
  return { ...snapshot, statefulSets };
}

function replicasOf(snapshot: Snapshot, group: GroupDefinition, zone: ZoneDefinition, unnamed: ReadonlySet<string>): number {
  let leader = zone;
  for (let hops = 0; hops < group.zones.length; hops += 1) {
    if (!unnamed.has(`${group.namespace}/${leader.statefulSet}`)) {
      return setNamed(snapshot, group.namespace, leader.statefulSet)?.replicas ?? 1;
    }
    const next = group.zones.find((candidate) => candidate.name === leader.follows);
    if (next === undefined) return ownReplicas(snapshot, group, leader) ?? 1;
    leader = next;
  }
  return 1;
}

function ownReplicas(snapshot: Snapshot, group: GroupDefinition, zone: ZoneDefinition): number | undefined {
  const wanted = zone.replicas;
  if (wanted.kind === 'count') return wanted.count;
  if (wanted.kind === 'leader') return undefined;
  const source = snapshot.replicaSources.find(
    (candidate) => candidate.namespace === group.namespace && candidate.kind === wanted.resourceKind && candidate.name === wanted.name,
  );
  return source === undefined || isUnknown(source.replicas) ? undefined : source.replicas;
}

function readable<View>(views: readonly Known<View>[]): readonly View[] {
  return views.flatMap((view) => (isUnknown(view) ? [] : [view]));
}

function openList(object: unknown): readonly unknown[] {
  const items = fieldAt(object, ['items']);
  return typeof fieldAt(object, ['kind']) === 'string' && Array.isArray(items) ? items.flatMap(openList) : [object];
}

function inNamespace(object: unknown, namespace: string): unknown {
  if (typeof object !== 'object' || object === null || fieldAt(object, ['metadata', 'namespace']) !== undefined) return object;
  const metadata = fieldAt(object, ['metadata']);
  return { ...object, metadata: { ...(typeof metadata === 'object' ? metadata : {}), namespace } };
}

function runningSet(object: unknown): ReturnType<typeof observeStatefulSet> {
  const set = observeStatefulSet(object);
  if (isUnknown(set)) return set;
  // The status names the revision if the manifest was exported from a cluster.
  const revision = reader(object).text('status.updateRevision') ?? templateRevision(fieldAt(object, ['spec', 'template']));
  const generation = Math.max(set.generation, 1);
  const status = { ...set.status, observedGeneration: generation, currentRevision: revision, updateRevision: revision };
  const identity = { uid: set.uid || `statefulset-${set.namespace}-${set.name}`, resourceVersion: set.resourceVersion || '1', generation };
  return settled({ ...set, ...identity, status }, set.replicas);
}

function settled(set: StatefulSetView, replicas: number): StatefulSetView {
  return { ...set, replicas, status: { ...set.status, replicas, readyReplicas: replicas, updatedReplicas: replicas } };
}

function withPods(snapshot: Snapshot, podObjects: readonly unknown[]): Snapshot {
  const given = new Map<string, PodView>();
  for (const object of podObjects) {
    const pod = observePod(object);
    if (!isUnknown(pod)) given.set(`${pod.namespace}/${pod.name}`, pod);
  }
  const filled = snapshot.statefulSets.map((set) => podsOf(set, snapshot.nowMs - settledMs, given));
  return { ...snapshot, statefulSets: filled.map(({ set }) => set), pods: filled.map(({ pods }) => pods) };
}

function podsOf(set: StatefulSetView, sinceMs: number, given: ReadonlyMap<string, PodView>) {
  const pods: PodView[] = [];
  const count = set.replicas <= modelledPodLimit ? set.replicas : 0;
  for (let ordinal = set.firstOrdinal; ordinal < set.firstOrdinal + count; ordinal += 1) {
    const seen = given.get(`${set.namespace}/${set.name}-${ordinal}`);
    pods.push(seen === undefined ? readyPod(set, ordinal, sinceMs) : { ...seen, revision: seen.revision || set.status.updateRevision });
  }
  const readyReplicas = pods.filter((pod) => pod.isReady).length;
  const updatedReplicas = pods.filter((pod) => pod.revision === set.status.updateRevision && !pod.isTerminating).length;
  const status = { ...set.status, replicas: pods.length, readyReplicas, updatedReplicas };
  return { set: { ...set, status }, pods: { namespace: set.namespace, statefulSet: set.name, pods } };
}

function readyPod(set: StatefulSetView, ordinal: number, sinceMs: number): PodView {
  return {
    name: `${set.name}-${ordinal}`,
    uid: `pod-${set.namespace}-${set.name}-${ordinal}`,
    resourceVersion: '1',
    ordinal,
    revision: set.status.updateRevision,
    labels: controllerLabels(set, ordinal, set.status.updateRevision),
    phase: 'Running',
    isReady: true,
    containersReady: true,
    readyChangedMs: sinceMs,
    isTerminating: false,
    waitingReasons: [],
    node: '',
    nodeReady: true,
    readyTimeMs: sinceMs,
  };
}

/** Returns the labels of a pod: those of its template, and those that the StatefulSet controller adds. */
export function controllerLabels(set: StatefulSetView, ordinal: number, revision: string): Readonly<Record<string, string>> {
  return extended(set.podLabels, {
    'controller-revision-hash': revision,
    'statefulset.kubernetes.io/pod-name': `${set.name}-${ordinal}`,
    'apps.kubernetes.io/pod-index': String(ordinal),
  });
}

function replicaSources(objects: readonly unknown[], groups: readonly GroupDefinition[]): Snapshot['replicaSources'] {
  return objects.flatMap((object) => {
    const fields = reader(object);
    const namespace = fields.text('metadata.namespace') ?? '';
    const name = fields.text('metadata.name') ?? '';
    const apiVersion = fields.text('apiVersion') ?? '';
    const kind = fields.text('kind') ?? '';
    const read = mirrorOf(groups, { namespace, kind, name }) ?? readOfKind(kind);
    return read === undefined ? [] : [observeReplicaSource({ namespace, apiVersion, kind, name, ...read }, object)];
  });
}

/** Sets absent or zero status replicas of a mirrored object to the replicas of a zone that mirrors it, as if the zone were not scaling. */
export function withReportedReplicas(snapshot: Snapshot): Snapshot {
  const inForce = new Map<string, number>();
  for (const group of snapshot.groups) {
    for (const { replicas, statefulSet } of group.zones) {
      const set = setNamed(snapshot, group.namespace, statefulSet);
      if (replicas.kind === 'mirror' && set !== undefined)
        inForce.set(`${group.namespace}/${replicas.resourceKind}/${replicas.name}`, set.replicas);
    }
  }
  const replicaSources = snapshot.replicaSources.map((source) => {
    const replicas = inForce.get(`${source.namespace}/${source.kind}/${source.name}`);
    return replicas === undefined || (source.statusReplicas ?? 0) > 0 ? source : { ...source, statusReplicas: replicas };
  });
  return { ...snapshot, replicaSources };
}

type Read = Pick<ReplicaSourceReference, 'read' | 'fieldPath'>;

function mirrorOf(groups: readonly GroupDefinition[], object: { namespace: string; kind: string; name: string }): Read | undefined {
  for (const group of groups) {
    if (group.namespace !== object.namespace) continue;
    for (const { replicas } of group.zones) {
      if (replicas.kind === 'mirror' && replicas.resourceKind === object.kind && replicas.name === object.name) {
        return { read: replicas.read, fieldPath: replicas.fieldPath };
      }
    }
  }
  return undefined;
}

function readOfKind(kind: string): Read | undefined {
  if (kind === 'ReplicaTemplate') return { read: 'scale' };
  return kind === 'HorizontalPodAutoscaler' ? { read: 'desiredReplicas' } : undefined;
}

function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, member]) => member !== null)
      .map(([key, member]) => [key, withoutNulls(member)]),
  );
}
