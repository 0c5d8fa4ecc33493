// What runs in a cluster, for the verbs that plan: objects as they are, and the snapshot that the engine decides on. What is missing is said.
import { isStatus } from '../../../cluster/request/failure.ts';
import { getObject, listObjects } from '../../../cluster/request/read.ts';
import { type KubernetesObject, type Resource, resources } from '../../../cluster/request/resource.ts';
import type { ObjectContent } from '../../../engine/diff/field-diff.ts';
import { decodeLedger, ledgerKey, ledgerLabel, ledgerName } from '../../../engine/ledger/ledger-document.ts';
import { observePodBudget, observeZoneBudget } from '../../../engine/observe/budget.ts';
import { snapshotOf } from '../../../engine/observe/cluster.ts';
import { observeIntent, observeNode, observePod, observeStatefulSet } from '../../../engine/observe/objects.ts';
import { fieldAt } from '../../../engine/observe/raw.ts';
import { observeReplicaSource, type ReplicaSourceReference } from '../../../engine/observe/source.ts';
import {
  type IntentView,
  isUnknown,
  type Known,
  type Ledger,
  type Snapshot,
  type Unknown,
  type UnreadObject,
} from '../../../engine/snapshot.ts';
import type { GroupDefinition } from '../../../policies/definition.ts';
import { rolloutExceptions, rolloutGroups, rolloutIntents, rolloutPolicies, zoneBudgets } from '../../cluster-snapshot/kinds.ts';
import type { Cluster } from '../../connection.ts';
import { agentNamespaceOf } from '../agent-namespace.ts';

/** Lists of one or several namespaces, or of all. A list that may not be read is unknown; one of a kind that is not installed is empty. */
export interface ClusterObjects {
  readonly agentNamespace: string;
  /** undefined: every namespace. */
  readonly namespaces: readonly string[] | undefined;
  readonly statefulSets: readonly KubernetesObject[];
  readonly revisions: readonly KubernetesObject[];
  readonly pods: Known<readonly KubernetesObject[]>;
  readonly nodes: Known<readonly KubernetesObject[]>;
  readonly podBudgets: Known<readonly KubernetesObject[]>;
  readonly zoneBudgets: Known<readonly KubernetesObject[]>;
  /** RolloutGroups, RolloutPolicies and RolloutExceptions. */
  readonly policies: Known<readonly KubernetesObject[]>;
  readonly intents: Known<readonly KubernetesObject[]>;
  readonly ledgers: Known<readonly KubernetesObject[]>;
}

/**
 * Reads what plans depend on. The namespace of the agent is looked for when it is not given.
 *
 * @throws ApiFailure when StatefulSets may not be read: without them there is nothing to plan.
 */
export async function readObjects(
  cluster: Cluster,
  namespaces: readonly string[] | undefined,
  givenAgentNamespace?: string,
): Promise<ClusterObjects> {
  const list = (resource: Resource, labelSelector?: string) => listIn(cluster, resource, namespaces, labelSelector);
  const known = (resource: Resource, labelSelector?: string) => orUnknown(resource, list(resource, labelSelector));
  const ledgers = `${ledgerLabel.key}=${ledgerLabel.value}`;
  const agentNamespace = givenAgentNamespace ?? (await agentNamespaceOf(cluster, namespaces));
  const agentPolicies = namespaces === undefined || namespaces.includes(agentNamespace) ? [] : [agentNamespace];
  const [statefulSets, revisions, pods, nodes, podBudgets, zoned, groups, policies, exceptions, intents, configMaps, foreign] =
    await Promise.all([
      list(resources.statefulSets),
      known(resources.controllerRevisions),
      known(resources.pods),
      orUnknown(resources.nodes, listIn(cluster, resources.nodes, undefined)),
      known(resources.podDisruptionBudgets),
      known(zoneBudgets),
      known(rolloutGroups),
      known(rolloutPolicies),
      known(rolloutExceptions),
      known(rolloutIntents),
      known(resources.configMaps, ledgers),
      // Policies beside the agent may name other namespaces; who may not read them there plans without, as without the agent.
      orUnknown(rolloutPolicies, listIn(cluster, rolloutPolicies, agentPolicies)),
    ]);
  return {
    agentNamespace,
    namespaces,
    statefulSets,
    revisions: isUnknown(revisions) ? [] : revisions,
    pods,
    nodes,
    podBudgets,
    zoneBudgets: zoned,
    policies: together([groups, policies, exceptions, isUnknown(foreign) ? [] : foreign]),
    intents,
    ledgers: configMaps,
  };
}

/** Several lists as one, which is unknown when one of them is. */
function together(lists: readonly Known<readonly KubernetesObject[]>[]): Known<readonly KubernetesObject[]> {
  return lists.find(isUnknown) ?? lists.flatMap((list) => (isUnknown(list) ? [] : list));
}

/** Of every namespace that is named, in their order; of all when none is. */
export async function listIn(
  { env, timeoutMs }: Cluster,
  resource: Resource,
  namespaces: readonly string[] | undefined,
  labelSelector?: string,
): Promise<readonly KubernetesObject[]> {
  const options = { site: 'source.list', timeoutMs, ...(labelSelector === undefined ? {} : { labelSelector }) };
  if (namespaces === undefined) return (await listObjects(env, resource, options)).items;
  const lists = await Promise.all(namespaces.map((namespace) => listObjects(env, resource, { ...options, namespace })));
  return lists.flatMap(({ items }) => items);
}

/** A kind that is not served has no objects; one that may not be read is unknown. Every other failure is one. */
export async function orUnknown<Value>(resource: Resource, reading: Promise<readonly Value[]>): Promise<Known<readonly Value[]>> {
  try {
    return await reading;
  } catch (error) {
    if (isStatus(error, 404)) return [];
    if (isStatus(error, 403)) return forbidden(resource);
    throw error;
  }
}

function forbidden({ plural, group }: Resource): Unknown {
  return { unknown: `no permission to list ${group === '' ? plural : `${plural}.${group}`}` };
}

/** The objects that replicas of these groups are mirrored from; undefined for one that does not exist. */
export async function readSources(
  cluster: Cluster,
  groups: readonly GroupDefinition[],
  resourceOf: (apiVersion: string, kind: string) => Resource | undefined,
): Promise<readonly { readonly reference: ReplicaSourceReference; readonly object: Known<KubernetesObject | undefined> }[]> {
  const references = new Map<string, ReplicaSourceReference>();
  for (const { namespace, zones } of groups) {
    for (const { replicas } of zones) {
      if (replicas.kind !== 'mirror') continue;
      const { apiVersion, resourceKind: kind, name, read, fieldPath } = replicas;
      references.set(`${namespace}/${kind}/${name}`, { namespace, apiVersion, kind, name, read, fieldPath });
    }
  }
  return Promise.all(
    [...references.values()].map(async (reference) => ({ reference, object: await readSource(cluster, reference, resourceOf) })),
  );
}

async function readSource(
  { env, timeoutMs }: Cluster,
  { apiVersion, kind, namespace, name, read }: ReplicaSourceReference,
  resourceOf: (apiVersion: string, kind: string) => Resource | undefined,
): Promise<Known<KubernetesObject | undefined>> {
  const resource = resourceOf(apiVersion, kind);
  if (resource === undefined) return { unknown: `the kind ${kind} of ${apiVersion} is not installed` };
  try {
    const subresource = read === 'scale' ? { subresource: 'scale' } : {};
    return await getObject(env, resource, { namespace, name }, { site: 'source.get', timeoutMs, ...subresource });
  } catch (error) {
    if (isStatus(error, 403)) return { unknown: `no permission to get ${resource.plural}${read === 'scale' ? '/scale' : ''}` };
    if (isStatus(error, 404)) return { unknown: `${kind} ${namespace}/${name} has no scale subresource` };
    throw error;
  }
}

export interface SeenInput {
  readonly nowMs: number;
  readonly policyDigest: string;
  readonly groups: readonly GroupDefinition[];
  readonly policies: Snapshot['policies'];
  readonly exceptions: Snapshot['exceptions'];
  readonly sources: Awaited<ReturnType<typeof readSources>>;
}

/** The snapshot of what was read. */
export function seenSnapshot(objects: ClusterObjects, { sources, ...policies }: SeenInput): Snapshot {
  const sets = split(objects.statefulSets.map(observeStatefulSet), 'StatefulSet', objects.statefulSets);
  const pods = isUnknown(objects.pods)
    ? objects.pods
    : split(
        objects.pods.map((pod) => observePod(pod)),
        'Pod',
        objects.pods,
      );
  const ledgers = readLedgers(objects.ledgers, policies.groups);
  const unread = [...sets.unread, ...(isUnknown(pods) ? [] : pods.unread), ...ledgers.unread];
  return snapshotOf({
    ...policies,
    agentNamespace: objects.agentNamespace,
    intents: readIntents(objects.intents),
    statefulSets: sets.seen,
    pods: isUnknown(pods) ? pods : pods.seen,
    nodes: isUnknown(objects.nodes) ? objects.nodes : new Map(objects.nodes.map(observeNode).map(({ name, isReady }) => [name, isReady])),
    zoneBudgets: allKnown(objects.zoneBudgets, observeZoneBudget),
    podBudgets: allKnown(objects.podBudgets, observePodBudget),
    replicaSources: sources.map(({ reference, object }) =>
      isUnknown(object)
        ? { namespace: reference.namespace, apiVersion: reference.apiVersion, kind: reference.kind, name: reference.name, replicas: object }
        : observeReplicaSource(reference, object),
    ),
    gateReadings: [],
    metrics: [],
    ledgers: ledgers.seen,
    ...(unread.length === 0 ? {} : { unread }),
  });
}

/** What could not be read, each as one sentence part. */
export function unreadParts(objects: ClusterObjects): readonly string[] {
  const { pods, nodes, podBudgets, zoneBudgets: zoned, policies, intents, ledgers } = objects;
  return [
    ...[pods, podBudgets, zoned, policies, intents, ledgers].flatMap((part) => (isUnknown(part) ? [part.unknown] : [])),
    ...(isUnknown(nodes) ? [`${nodes.unknown}; every node counts as ready`] : []),
  ];
}

/** Live objects that diff and plan compare, in the order of their kinds. */
export function comparedObjects(objects: ClusterObjects): readonly ObjectContent[] {
  const lists = [objects.statefulSets, objects.podBudgets, objects.zoneBudgets, objects.policies];
  return lists.flatMap((list) => (isUnknown(list) ? [] : list));
}

function split<View>(views: readonly Known<View>[], kind: 'StatefulSet' | 'Pod', objects: readonly KubernetesObject[]) {
  const unread = views.flatMap((view, index): readonly UnreadObject[] => {
    const { namespace, name = '' } = objects[index]?.metadata ?? {};
    return isUnknown(view) ? [{ kind, name, unknown: view.unknown, ...(namespace === undefined ? {} : { namespace }) }] : [];
  });
  return { seen: views.flatMap((view) => (isUnknown(view) ? [] : [view])), unread };
}

/** One budget that cannot be understood leaves all of them unknown: it may be the one that counts. */
function allKnown<View>(list: Known<readonly KubernetesObject[]>, observe: (raw: unknown) => Known<View>): Known<readonly View[]> {
  if (isUnknown(list)) return list;
  const views = list.map(observe);
  return views.find(isUnknown) ?? views.flatMap((view) => (isUnknown(view) ? [] : [view]));
}

/** Who asked is left out: whether the stamp was made by a webhook cannot be seen from here, and a plan assumes approvals or asks for them. */
function readIntents(list: Known<readonly KubernetesObject[]>): Known<readonly IntentView[]> {
  const views = allKnown(list, observeIntent);
  return isUnknown(views) ? views : views.map(({ requestedBy: _stamp, ...rest }) => rest);
}

function readLedgers(list: Known<readonly KubernetesObject[]>, groups: readonly GroupDefinition[]) {
  if (isUnknown(list)) return { seen: [], unread: [{ kind: 'Ledger' as const, unknown: list.unknown }] };
  const seen: Ledger[] = [];
  const unread: UnreadObject[] = [];
  for (const { namespace, name: group } of groups) {
    const object = list.find(({ metadata }) => metadata.namespace === namespace && metadata.name === ledgerName(group));
    if (object === undefined) continue;
    const text = fieldAt(object, ['data', ledgerKey]);
    const ledger = decodeLedger(typeof text === 'string' ? text : undefined, { namespace, group });
    if (isUnknown(ledger)) unread.push({ kind: 'Ledger', namespace, name: group, unknown: ledger.unknown });
    else seen.push(ledger);
  }
  return { seen, unread };
}
