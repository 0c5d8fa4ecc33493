// Watches the objects that decisions and policies read, and keeps only the needed fields of each.

import type { ClusterEnv } from '../../cluster/env.ts';
import { asJsonObject, isSameJson } from '../../cluster/request/json.ts';
import { type KubernetesObject, lastAppliedAnnotation, type Resource, resources } from '../../cluster/request/resource.ts';
import type { Change } from '../../cluster/watch/reflector.ts';
import type { InvalidObject } from '../../cluster/watch/store.ts';
import { observePodBudget, observeZoneBudgetVersion, type ZoneBudgetVersion } from '../../engine/observe/budget.ts';
import type { Observed } from '../../engine/observe/cluster.ts';
import { type ObservedPod, observeNode, observePod, observeStatefulSet } from '../../engine/observe/objects.ts';
import { allKnown, type Known, orThrow, type PodBudgetView, type StatefulSetView, type UnreadObject } from '../../engine/snapshot.ts';
import { zoneBudgetResource } from '../../policies/adopt/keys.ts';
import { adoptionDigest } from '../../policies/adopt/statefulset.ts';
import { type Kind, resourceOfKind } from '../../policies/schema/kinds.ts';
import type { AgentConfig } from '../config.ts';
import type { AgentEnv } from '../env.ts';
import type { Degradation } from '../report.ts';
import type { CacheView } from './freshness.ts';
import { type FollowedWatch, ServedKinds, Watched } from './watched.ts';

/** A StatefulSet with the part of its manifest from which groups are adopted. */
export interface CachedStatefulSet {
  readonly view: StatefulSetView;
  readonly manifest: KubernetesObject;
}

type WatchedKind = Pick<Watched<unknown>, keyof Watched<unknown>>;

type NodeView = ReturnType<typeof observeNode>;

/** A PodDisruptionBudget, with the number of evictions that its controller permits. */
interface CachedPodBudget {
  readonly budget: Known<PodBudgetView>;
  readonly allowed: unknown;
}

/** The kinds of change that other parts react to. */
export type CacheChange =
  | { readonly kind: 'statefulSet'; readonly change: Change<CachedStatefulSet> }
  | { readonly kind: 'pod'; readonly change: Change<ObservedPod> }
  | { readonly kind: 'budget'; readonly namespace: string }
  | { readonly kind: 'node' }
  /** An object of the project's kinds. */
  | { readonly kind: 'policy' }
  /** A kind that became readable or unreadable. */
  | { readonly kind: 'state' };

/** Returns whether the change may change policies. The status of a StatefulSet and most of its spec have no effect on policies. */
export function concernsPolicies(change: CacheChange): boolean {
  if (change.kind !== 'statefulSet') return change.kind === 'policy' || change.kind === 'state';
  const { view, before } = change.change;
  return !isSameJson(view?.manifest, before?.manifest);
}

/** Objects that were read past the caches. They replace the cached objects of the same StatefulSets. */
export interface FreshObjects {
  readonly statefulSets: ReadonlyMap<string, CachedStatefulSet | undefined>;
  readonly pods: readonly ObservedPod[];
  /** The readiness of nodes that are not ready in the cache. */
  readonly nodes?: ReadonlyMap<string, boolean>;
}

export type ReadKind = 'statefulSet' | 'pod' | 'node';

type NamespaceView = Pick<Observed, 'statefulSets' | 'pods' | 'nodes' | 'zoneBudgets' | 'podBudgets' | 'unread'>;

export interface SharedWatches {
  readonly pods: FollowedWatch<ObservedPod>;
  readonly zoneBudgets: FollowedWatch<ZoneBudgetVersion>;
}

export interface Caches extends CacheView {
  /** Returns the known objects of a namespace, and the known nodes. */
  readonly observe: (namespace: string, fresh?: FreshObjects) => NamespaceView;
  /** Returns the maximum age of the cached StatefulSets and pods of the namespace in milliseconds. */
  readonly ageMs: (namespace: string) => number;
  readonly statefulSet: (namespace: string, name: string) => CachedStatefulSet | undefined;
  /** Returns the manifests from which groups may be adopted. While StatefulSets cannot be read, it returns the last known manifests. */
  readonly manifests: () => readonly KubernetesObject[];
  readonly statefulSets: () => readonly StatefulSetView[];
  readonly policyObjects: () => { readonly objects: readonly KubernetesObject[]; readonly unread: readonly Kind[] };
  /** Returns the cached objects that people write and that concern the groups of a namespace, as one entry per kind and namespace. */
  readonly written: (places: WrittenPlaces) => readonly WrittenObjects[];
  /** Lists a kind again at once, because a direct read contradicts its cache. */
  readonly relist: (kind: ReadKind, namespace: string) => void;
  /** The watches that other parts of the process use. */
  readonly shared: SharedWatches;
  readonly isSettled: () => boolean;
  readonly degradations: () => readonly Degradation[];
  readonly stop: () => void;
}

/** The kinds that people write and the agent reads. */
const policyKinds = ['RolloutGroup', 'RolloutPolicy', 'RolloutException', 'RolloutIntent'] as const satisfies readonly Kind[];

/** If a watch on few objects ends and the list is older than this, a new list follows: no later event would replace a lost event. */
const fewObjectsRelistMs = 300_000;

/** Starts every watch. A kind that is missing or forbidden counts as settled. */
export function startCaches(
  env: AgentEnv,
  { namespaces, agentNamespace }: Pick<AgentConfig, 'namespaces' | 'agentNamespace'>,
  onChange: (change: CacheChange) => void,
): Caches {
  const all: WatchedKind[] = [];
  const served = new ServedKinds(env, () => onChange({ kind: 'state' }));
  const onState = (): void => {
    if (all.some((watched) => watched.degradation()?.reason === 'forbidden')) served.learn();
    onChange({ kind: 'state' });
  };
  const common: WatchParts = { env, namespaces, onState, onChange, served };
  // Policies in the namespace of the agent may apply to other namespaces.
  const policyNamespaces = namespaces === undefined ? undefined : [...new Set([...namespaces, agentNamespace])];

  const { statefulSets, pods, nodes } = watchMembers(common);
  const { podBudgets, zoneBudgets } = watchBudgets(common);
  const policies = watchPolicies({ ...common, namespaces: policyNamespaces });
  const read: Readonly<Record<ReadKind, WatchedKind>> = { statefulSet: statefulSets, pod: pods, node: nodes };
  const written = writtenObjects(env, [
    {
      resource: resources.statefulSets,
      watched: statefulSets,
      isLocal: true,
      known: (namespace) => statefulSets.list(namespace).map(membership),
      read: (objects) => objects.flatMap(memberships),
    },
    ...policies.map(({ kind, watched }) => ({
      resource: resourceOfKind(kind),
      watched,
      isLocal: false,
      known: (namespace: string) => watched.list(namespace).map(named),
      read: (objects: readonly KubernetesObject[]) => objects.map(asWritten).map(named),
    })),
  ]);
  all.push(statefulSets, pods, nodes, podBudgets, zoneBudgets, ...policies.map(({ watched }) => watched));

  return {
    observe: (namespace, fresh) => {
      const sets = membersOf(statefulSets, namespace, fresh);
      const replaced = new Set(fresh === undefined ? [] : ownersOf(sets, fresh));
      const others = fresh === undefined ? pods.list(namespace) : pods.list(namespace).filter((pod) => !replaced.has(pod.owner?.uid ?? ''));
      return {
        statefulSets: statefulSets.problem(namespace) ?? sets.map(({ view }) => view),
        pods: pods.problem(namespace) ?? (fresh === undefined ? others : [...others, ...fresh.pods]),
        nodes: nodes.problem() ?? new Map([...nodes.list().map(({ name, isReady }) => [name, isReady] as const), ...(fresh?.nodes ?? [])]),
        // If one budget is unknown, all are, because it may be the strictest.
        zoneBudgets: zoneBudgets.problem(namespace) ?? allKnown(zoneBudgets.list(namespace).map(({ view }) => view)),
        podBudgets: podBudgets.problem(namespace) ?? allKnown(podBudgets.list(namespace).map(({ budget }) => budget)),
        unread: unreadObjects(statefulSets, pods),
      };
    },
    ageMs: (namespace) => Math.max(statefulSets.ageMs(namespace), pods.ageMs(namespace)),
    statefulSet: (namespace, name) => statefulSets.get(namespace, name),
    manifests: () => statefulSets.list().map(({ manifest }) => manifest),
    statefulSets: () => statefulSets.list().map(({ view }) => view),
    policyObjects: () => ({
      objects: policies.flatMap(({ watched }) => watched.list()),
      unread: policies.filter(({ watched }) => watched.problem() !== undefined).map(({ kind }) => kind),
    }),
    written,
    lookUp: (kind, namespace, name) => (kind === 'pod' ? pods.get(namespace, name) : statefulSets.get(namespace, name)?.view),
    hasSeen: (kind, namespace, resourceVersion) => read[kind].hasSeen(namespace, resourceVersion),
    relist: (kind, namespace) => read[kind].relist(namespace),
    shared: { pods, zoneBudgets },
    isSettled: () => all.every((watched) => watched.isSettled()),
    degradations: () => all.map((watched) => watched.degradation()).filter((degradation) => degradation !== undefined),
    stop: () => {
      for (const watched of all) watched.stop();
    },
  };
}

interface WatchParts {
  readonly env: AgentEnv;
  readonly namespaces: readonly string[] | undefined;
  readonly onState: () => void;
  readonly onChange: (change: CacheChange) => void;
  readonly served: ServedKinds;
}

function watchMembers({ onChange, served: _served, ...common }: WatchParts) {
  const statefulSets = new Watched<CachedStatefulSet>({
    ...common,
    resource: resources.statefulSets,
    project: cachedStatefulSet,
    onChange: (change) => onChange({ kind: 'statefulSet', change }),
    relistMs: fewObjectsRelistMs,
    withoutIt: 'no group can be rolled out',
  });
  const pods = new Watched<ObservedPod>({
    ...common,
    resource: resources.pods,
    project: cachedPod,
    onChange: (change) => onChange({ kind: 'pod', change }),
    withoutIt: 'no group can be rolled out',
  });
  const nodes = new Watched<NodeView>({
    ...common,
    resource: resources.nodes,
    project: observeNode,
    onChange: ({ view, before }) => {
      if (view?.isReady !== before?.isReady) onChange({ kind: 'node' });
    },
    withoutIt: 'every node counts as ready',
    outlivesContact: true,
  });
  return { statefulSets, pods, nodes };
}

function watchBudgets({ onChange, served, ...common }: WatchParts) {
  const podBudgets = new Watched<CachedPodBudget>({
    ...common,
    resource: resources.podDisruptionBudgets,
    project: (object) => ({ budget: observePodBudget(object), allowed: asJsonObject(object['status'])['disruptionsAllowed'] }),
    onChange: ({ namespace, view, before }) => {
      if (!isSameJson(view, before)) onChange({ kind: 'budget', namespace });
    },
    withoutIt: 'no pod is evicted, because its budgets are unknown',
    outlivesContact: true,
  });
  const zoneBudgets = new Watched<ZoneBudgetVersion>({
    ...common,
    resource: zoneBudgetResource,
    project: observeZoneBudgetVersion,
    relistMs: fewObjectsRelistMs,
    onChange: ({ namespace, view, before }) => {
      if (!isSameJson(view?.view, before?.view)) onChange({ kind: 'budget', namespace });
    },
    withoutIt: 'no pod is replaced, because its budgets are unknown',
    mayBeMissing: true,
    isNotServed: () => served.isMissing(zoneBudgetResource),
    outlivesContact: true,
  });
  return { podBudgets, zoneBudgets };
}

function watchPolicies({ onChange, served, ...common }: WatchParts) {
  return policyKinds.map((kind) => ({
    kind,
    watched: new Watched<KubernetesObject>({
      ...common,
      resource: resourceOfKind(kind),
      project: asWritten,
      onChange: ({ view, before }) => {
        if (!isSameJson(view, before)) onChange({ kind: 'policy' });
      },
      withoutIt: `${kind} objects are unknown`,
      relistMs: fewObjectsRelistMs,
      mayBeMissing: true,
      isNotServed: () => served.isMissing(resourceOfKind(kind)),
      outlivesContact: true,
    }),
  }));
}

/** Returns the cached part of a pod. Throws if the pod cannot be parsed; the cache then lists the pod as invalid. */
export function cachedPod(object: KubernetesObject): ObservedPod {
  return orThrow(observePod(object));
}

/** Returns the cached part of a StatefulSet. Drops the pod template except its labels, because the template is most of a manifest. */
export function cachedStatefulSet(object: KubernetesObject): CachedStatefulSet {
  const { apiVersion: version = 'apps/v1', kind = 'StatefulSet', metadata, spec } = object;
  const { name, namespace, labels, annotations } = metadata;
  const { serviceName, updateStrategy, selector, template } = asJsonObject(spec);
  const podLabels = asJsonObject(asJsonObject(template)['metadata'])['labels'];
  // The partition stays out: otherwise each step of a rollout would resolve the policies again.
  const { type } = asJsonObject(updateStrategy);
  const manifest = {
    apiVersion: version,
    kind,
    metadata: { name, namespace, labels, annotations: withoutLastApplied(annotations) },
    spec: { serviceName, updateStrategy: { type }, selector, template: { metadata: { labels: podLabels } } },
  };
  const view = orThrow(observeStatefulSet(object));
  return { view: { ...view, annotations: withoutLastApplied(view.annotations) }, manifest: JSON.parse(JSON.stringify(manifest)) };
}

function withoutLastApplied(annotations: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  const { [lastAppliedAnnotation]: _lastApplied, ...rest } = annotations;
  return rest;
}

/** Returns the object without status, so that status writes of the agent count as no change. */
function asWritten(object: KubernetesObject): KubernetesObject {
  const { status: _status, metadata, ...rest } = object;
  const { managedFields: _managedFields, resourceVersion: _resourceVersion, annotations, ...kept } = metadata;
  return { ...rest, metadata: { ...kept, ...(annotations === undefined ? {} : { annotations: withoutLastApplied(annotations) }) } };
}

function named(object: KubernetesObject): NamedContent {
  return [object.metadata.name, object];
}

/** Returns the parts of a StatefulSet that decide to which groups it belongs. */
function membership({ view, manifest }: CachedStatefulSet): NamedContent {
  return [view.name, [view.uid, manifest.metadata.labels, adoptionDigest(manifest)]];
}

/** Returns no membership for an object that cannot be parsed, because the cache does not contain it either. */
function memberships(object: KubernetesObject): readonly NamedContent[] {
  try {
    return [membership(cachedStatefulSet(object))];
  } catch {
    return [];
  }
}

function membersOf(watched: Watched<CachedStatefulSet>, namespace: string, fresh: FreshObjects | undefined): readonly CachedStatefulSet[] {
  const cached = watched.list(namespace);
  if (fresh === undefined) return cached;
  const others = cached.filter(({ view }) => !fresh.statefulSets.has(view.name));
  return [...others, ...[...fresh.statefulSets.values()].filter((set) => set !== undefined)];
}

/** Returns the UIDs of the StatefulSets that were read directly. Their pods were read directly too. */
function ownersOf(sets: readonly CachedStatefulSet[], fresh: FreshObjects): readonly string[] {
  return sets.filter(({ view }) => fresh.statefulSets.has(view.name)).map(({ view }) => view.uid);
}

function unreadObjects(statefulSets: WatchedKind, pods: WatchedKind): readonly UnreadObject[] {
  const named =
    (kind: UnreadObject['kind']) =>
    ({ namespace, name, message }: InvalidObject): UnreadObject => ({ kind, namespace, name, unknown: message });
  return [...statefulSets.invalid().map(named('StatefulSet')), ...pods.invalid().map(named('Pod'))];
}

/** The cached objects of one kind and namespace that people write. */
interface WrittenObjects {
  readonly resource: Resource;
  readonly namespace: string;
  /** The maximum age of the cached objects in milliseconds: by the watch, or the time since an equal direct list if that is shorter. */
  readonly ageMs: number;
  /** Records that a direct list, sent at this time (monotonic), returned the same objects. */
  readonly confirm: (askedMs: number) => void;
  /** Returns whether the cache has the same objects as a direct list. */
  readonly isSame: (objects: readonly KubernetesObject[]) => boolean;
  /** Fills the cache from a new list at once, because a direct list differs. */
  readonly relist: () => void;
}

interface WrittenPlaces {
  readonly namespace: string;
  /** The namespace whose policies may apply to other namespaces. */
  readonly agentNamespace: string;
}

interface WrittenKind {
  readonly resource: Resource;
  readonly watched: Pick<WatchedKind, 'problem' | 'ageMs' | 'degradation' | 'relist'>;
  /** True if objects of this kind concern only their own namespace. */
  readonly isLocal: boolean;
  /** Returns the parts that people write, by name: `known` from the cache, `read` from the given objects. */
  readonly known: (namespace: string) => readonly NamedContent[];
  readonly read: (objects: readonly KubernetesObject[]) => readonly NamedContent[];
}

type NamedContent = readonly [name: string, content: unknown];

/** Returns a function that lists the objects that people write. Leaves out kinds that cannot be read. */
function writtenObjects({ clock }: ClusterEnv, kinds: readonly WrittenKind[]): (places: WrittenPlaces) => readonly WrittenObjects[] {
  /** The time of the last equal direct list by kind and namespace, for all groups of the namespace (monotonic). */
  const confirmedMs = new Map<string, number>();
  return ({ namespace: own, agentNamespace }) =>
    kinds.flatMap(({ resource, watched, isLocal, known, read }) => {
      if (watched.degradation()?.reason === 'missing') return [];
      const namespaces = isLocal ? [own] : [...new Set([own, agentNamespace])];
      const readable = namespaces.filter((one) => watched.problem(one) === undefined && watched.ageMs(one) < Number.POSITIVE_INFINITY);
      return readable.map((namespace): WrittenObjects => {
        const key = `${resource.kind} ${namespace}`;
        return {
          resource,
          namespace,
          ageMs: Math.min(watched.ageMs(namespace), clock.monotonicMs() - (confirmedMs.get(key) ?? Number.NEGATIVE_INFINITY)),
          confirm: (askedMs) => void confirmedMs.set(key, askedMs),
          isSame: (objects) => isSameJson(byName(known(namespace)), byName(read(objects))),
          relist: () => watched.relist(namespace),
        };
      });
    });
}

/** Sorts by name, because lists are compared regardless of their order. */
function byName(contents: readonly NamedContent[]): readonly NamedContent[] {
  return [...contents].sort(([a], [b]) => (a < b ? -1 : 1));
}
