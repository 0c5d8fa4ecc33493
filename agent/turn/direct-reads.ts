// Reads directly from the API server, for turns and webhooks: the objects of a group, and the definitions and requests that people wrote.

import type { ClusterEnv } from '../../cluster/env.ts';
import { isSameJson } from '../../cluster/request/json.ts';
import { getObject, listObjects, listProjected } from '../../cluster/request/read.ts';
import { compareResourceVersions, resources } from '../../cluster/request/resource.ts';
import type { Observed } from '../../engine/observe/cluster.ts';
import { type ObservedPod, observeNode } from '../../engine/observe/objects.ts';
import { isUnknown } from '../../engine/snapshot.ts';
import type { ZoneDefinition } from '../../policies/definition.ts';
import type { AgentConfig } from '../config.ts';
import { type CachedStatefulSet, type Caches, cachedPod, cachedStatefulSet, type FreshObjects, type ReadKind } from '../watched/caches.ts';
import type { ChangedObject } from '../watched/freshness.ts';

export interface FreshRead extends FreshObjects {
  /** The read objects with their versions. Before the caches are used again, they must contain these versions. */
  readonly read: readonly ChangedObject[];
  readonly readyNodes: readonly { readonly name: string; readonly resourceVersion: string }[];
  /** The version of the list of pods, by UID of the StatefulSet. */
  readonly podsAsOf: ReadonlyMap<string, string>;
}

interface Member {
  readonly name: string;
  readonly set: CachedStatefulSet | undefined;
  readonly pods: readonly ObservedPod[];
  readonly podsAsOf: string;
}

/** The maximum number of nodes to read. If more nodes are not ready, a lost watch event is not the cause. */
const maxReadNodes = 10;

/** Reads the StatefulSets of the group, their pods, and nodes that are not ready in the cache, with quorum reads. Rejects on failure. */
export async function readFresh(
  env: Pick<ClusterEnv, 'kubernetes'>,
  group: { readonly namespace: string; readonly zones: readonly Pick<ZoneDefinition, 'statefulSet'>[] },
  { timeoutMs, nodes: known }: { readonly timeoutMs: number; readonly nodes: Observed['nodes'] },
): Promise<FreshRead> {
  const { namespace } = group;
  const objects = await Promise.all(
    group.zones.map(async ({ statefulSet: name }) => {
      const object = await getObject(env, resources.statefulSets, { namespace, name }, { site: 'fresh.statefulSet', timeoutMs });
      return { name, object };
    }),
  );
  const members: Member[] = [];
  // The lists are read one after the other, so that the pages of only one list are in memory.
  for (const { name, object } of objects) {
    if (object === undefined) members.push({ name, set: undefined, pods: [], podsAsOf: '' });
    else {
      const set = cachedStatefulSet(object);
      const { items, resourceVersion } = await listProjected(env, resources.pods, {
        namespace,
        labelSelector: set.view.selector,
        project: cachedPod,
        site: 'fresh.pods',
        timeoutMs,
      });
      members.push({ name, set, pods: items, podsAsOf: resourceVersion });
    }
  }
  const statefulSets = new Map(members.map(({ name, set }) => [name, set]));
  const pods = distinct(members.flatMap((member) => member.pods));
  const notReady = isUnknown(known)
    ? []
    : [...new Set(pods.map(({ node }) => node))].filter((name) => name !== '' && known.get(name) !== true);
  const nodes = await Promise.all(notReady.slice(0, maxReadNodes).map((name) => readNode(env, name, timeoutMs)));
  return {
    statefulSets,
    pods,
    nodes: new Map(nodes.map(({ name, isReady }) => [name, isReady])),
    read: [...[...statefulSets.values()].flatMap(readSet), ...pods.map(readPod)],
    readyNodes: nodes.filter(({ isReady }) => isReady),
    podsAsOf: new Map(members.flatMap(({ set, podsAsOf }) => (set === undefined ? [] : [[set.view.uid, podsAsOf]]))),
  };
}

/** Reads a node as a list of one, because the agent may list and watch nodes but not get them. */
async function readNode(env: Pick<ClusterEnv, 'kubernetes'>, name: string, timeoutMs: number) {
  const { items } = await listProjected(env, resources.nodes, {
    fieldSelector: `metadata.name=${name}`,
    project: (object) => ({ ...observeNode(object), resourceVersion: object.metadata.resourceVersion ?? '' }),
    site: 'fresh.node',
    timeoutMs,
  });
  return items.find((node) => node.name === name) ?? { name, isReady: false, resourceVersion: '' };
}

/**
 * Returns each kind whose cache has reached the version of a read object and differs from the object. Then the watch has missed a change.
 * The result may also contain a kind whose event is only late; the cost is one extra list.
 */
export function contradicted(
  fresh: FreshRead,
  namespace: string,
  caches: Pick<Caches, 'lookUp' | 'hasSeen' | 'shared'>,
): ReadonlySet<ReadKind> {
  const { read, readyNodes } = fresh;
  const kinds = new Set<ReadKind>();
  for (const object of read) {
    if (object.deletion === undefined && missesChange(caches, object.kind, object)) kinds.add(object.kind);
  }
  for (const { kind } of deletedObjects(fresh, namespace, caches)) kinds.add(kind);
  if (readyNodes.some(({ resourceVersion }) => caches.hasSeen('node', '', resourceVersion))) kinds.add('node');
  return kinds;
}

/**
 * Returns the cached StatefulSets and pods that the read did not find. A StatefulSet that was created after the read is one of them, until
 * the next direct read.
 */
export function deletedObjects(
  { statefulSets, pods, podsAsOf }: FreshRead,
  namespace: string,
  caches: Pick<Caches, 'lookUp' | 'shared'>,
): readonly ChangedObject[] {
  const absent = [...statefulSets].flatMap(([name, set]): readonly ChangedObject[] => {
    const cached = set === undefined ? caches.lookUp('statefulSet', namespace, name) : undefined;
    return cached === undefined ? [] : [{ kind: 'statefulSet', namespace, name, uid: cached.uid, deletion: 'completed' }];
  });
  const present = new Set(pods.map(({ uid }) => uid));
  const isAbsent = ({ uid, owner, resourceVersion }: ObservedPod): boolean => {
    const asOf = podsAsOf.get(owner?.uid ?? '');
    return asOf !== undefined && !present.has(uid) && (compareResourceVersions(resourceVersion, asOf) ?? 1) <= 0;
  };
  // The cache may contain such pods also while it cannot be used.
  const absentPods = caches.shared.pods.list(namespace).filter(isAbsent);
  return [...absent, ...absentPods.map(({ name, uid }): ChangedObject => ({ kind: 'pod', namespace, name, uid, deletion: 'completed' }))];
}

/** Returns whether the cache covers the version of a read object, but lacks the object or has an older version. */
export function missesChange(
  caches: Pick<Caches, 'lookUp' | 'hasSeen'>,
  kind: ChangedObject['kind'],
  { namespace, name, resourceVersion }: Readonly<Record<'namespace' | 'name' | 'resourceVersion', string>>,
): boolean {
  if (!caches.hasSeen(kind, namespace, resourceVersion)) return false;
  const cached = caches.lookUp(kind, namespace, name);
  return cached === undefined || (compareResourceVersions(cached.resourceVersion, resourceVersion) ?? 0) < 0;
}

function readSet(set: CachedStatefulSet | undefined): readonly ChangedObject[] {
  if (set === undefined) return [];
  const { namespace, name, uid, resourceVersion } = set.view;
  return [{ kind: 'statefulSet', namespace, name, uid, resourceVersion }];
}

function readPod({ namespace, name, uid, resourceVersion }: ObservedPod): ChangedObject {
  return { kind: 'pod', namespace, name, uid, resourceVersion };
}

/** Removes repeated pods: several StatefulSets may select the same pods. */
export function distinct(pods: readonly ObservedPod[]): readonly ObservedPod[] {
  return [...new Map(pods.map((pod) => [pod.uid, pod])).values()];
}

interface CurrentParts {
  readonly env: Pick<ClusterEnv, 'kubernetes' | 'clock'>;
  readonly config: Pick<AgentConfig, 'agentNamespace'>;
  readonly caches: Pick<Caches, 'written' | 'statefulSet'>;
}

interface CurrentCheck {
  /** The StatefulSets that were read from the API server; undefined if all come from the caches. */
  readonly fresh: FreshObjects | undefined;
  /** The age in milliseconds above which a cache is compared with a list from the API server. */
  readonly longestAgeMs: number;
  readonly timeoutMs: number;
}

/**
 * Compares old caches with quorum reads. Returns whether the caches contain the current StatefulSets, definitions and requests of people. A
 * watch may have missed a recreated StatefulSet or a pause (invariant S28). Rejects if a read fails.
 */
export async function areCachesCurrent(
  { env, config, caches }: CurrentParts,
  namespace: string,
  { fresh, longestAgeMs, timeoutMs }: CurrentCheck,
): Promise<boolean> {
  for (const [name, set] of fresh?.statefulSets ?? []) {
    if (!isSameJson(set?.manifest, caches.statefulSet(namespace, name)?.manifest)) return false;
  }
  const tooOld = () => caches.written({ namespace, agentNamespace: config.agentNamespace }).filter(({ ageMs }) => ageMs > longestAgeMs);
  const answers = await Promise.all(
    tooOld().map(async (written) => {
      const askedMs = env.clock.monotonicMs();
      const { items } = await listObjects(env, written.resource, { namespace: written.namespace, site: 'written.list', timeoutMs });
      const isSame = written.isSame(items);
      if (isSame) written.confirm(askedMs);
      else written.relist();
      return isSame;
    }),
  );
  // An answer may have taken so long that its cache is too old again.
  return answers.every((isSame) => isSame) && tooOld().length === 0;
}
