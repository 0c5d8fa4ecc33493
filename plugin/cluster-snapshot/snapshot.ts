// Builds the state of a cluster for the verbs from listed objects: policies in force, published decisions and the snapshot.
import { onStatus } from '../../cluster/request/failure.ts';
import { getObject } from '../../cluster/request/read.ts';
import { dataText, type KubernetesObject, type Resource } from '../../cluster/request/resource.ts';
import { withObservedLedgers } from '../../engine/ledger/ledger.ts';
import { decodeLedger, ledgerKey, ledgerName } from '../../engine/ledger/ledger-document.ts';
import { observePodBudget, observeZoneBudget } from '../../engine/observe/budget.ts';
import { type Observed, orphanedPods, snapshotOf } from '../../engine/observe/cluster.ts';
import { observeNode, observePod, observeStatefulSet } from '../../engine/observe/objects.ts';
import { fieldAt } from '../../engine/observe/raw.ts';
import { observeReplicaSource, type ReplicaSourceReference } from '../../engine/observe/source.ts';
import { publishedReadings } from '../../engine/publish/decision.ts';
import { boundInputs, metricsOf, newestMetrics } from '../../engine/publish/metrics.ts';
import type { PublishedDecision } from '../../engine/publish/published.ts';
import { isStatusMapName } from '../../engine/publish/published.ts';
import { readPublished } from '../../engine/publish/read.ts';
import {
  allKnown,
  isUnknown,
  type Known,
  type Ledger,
  type ReplicaSourceView,
  type Snapshot,
  type UnreadObject,
} from '../../engine/snapshot.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { type LivePolicies, resolveLive } from '../../policies/live/sources.ts';
import { usualAgentNamespace } from '../../policies/objects/agent-deployment.ts';
import { tryParseJson } from '../../policies/values/try-parse-json.ts';
import type { Cluster } from '../connection.ts';
import { resourcesOf } from './kinds.ts';
import { itemsOf, type Listing, unreadPolicies } from './listing.ts';

interface SnapshotSources extends Pick<Snapshot, 'nowMs' | 'replicaSources'> {
  readonly agentNamespace: string;
  /** The policies in force. In a plan, an object in its files replaces the cluster object of the same name. */
  readonly policies: Pick<LivePolicies, 'groups' | 'policies' | 'exceptions' | 'intents' | 'digest'>;
  /** The published decisions by `namespace/group`, which contain readings of metrics. */
  readonly published: ReadonlyMap<string, PublishedDecision>;
  readonly agents?: Required<Pick<Snapshot, 'missingAccess'>>;
}

/**
 * Returns the snapshot of a listing, with ledgers as the agent reads them. Unreadable objects are unknown; the readings of
 * gates and metrics are as the agent last published them.
 */
export function clusterSnapshot(
  listing: Listing,
  { policies, agentNamespace, published, nowMs, replicaSources, agents }: SnapshotSources,
): Snapshot {
  const unread: UnreadObject[] = [...unreadPolicies(listing, agentNamespace)];
  const readable = <View>(kind: UnreadObject['kind'], { namespace, name }: Named, view: Known<View>): readonly View[] => {
    if (!isUnknown(view)) return [view];
    unread.push({ kind, unknown: view.unknown, namespace: namespace ?? '', name });
    return [];
  };
  const ledgers = policies.groups.flatMap((group) => readable('Ledger', group, ledgerOf(listing.documents, group.namespace, group.name)));
  const publishedOf = ({ namespace, name }: GroupDefinition): PublishedDecision | undefined => published.get(`${namespace}/${name}`);
  const observed: Observed = {
    nowMs,
    policyDigest: policies.digest,
    agentNamespace,
    groups: policies.groups,
    policies: policies.policies,
    exceptions: policies.exceptions,
    intents: known(listing.intents, () => policies.intents),
    statefulSets: known(listing.statefulSets, (items) =>
      items.flatMap((item) => readable('StatefulSet', item.metadata, observeStatefulSet(item))),
    ),
    pods: known(listing.pods, (items) => items.flatMap((item) => readable('Pod', item.metadata, observePod(item)))),
    nodes: known(listing.nodes, (items) => new Map(items.map(observeNode).map(({ name, isReady }) => [name, isReady]))),
    // If one budget is unreadable, all are unknown, because that budget may be the smallest limit.
    zoneBudgets: known(listing.zoneBudgets, (items) => allKnown(items.map(observeZoneBudget))),
    podBudgets: known(listing.podBudgets, (items) => allKnown(items.map(observePodBudget))),
    replicaSources,
    gateReadings: policies.groups.flatMap((group) => {
      const decision = publishedOf(group);
      return decision === undefined ? [] : publishedReadings(group, decision);
    }),
    metrics: newestMetrics(
      policies.groups.flatMap((group) => {
        const decision = publishedOf(group);
        return decision === undefined ? [] : metricsOf(decision, boundInputs(policies.policies, group, agentNamespace), nowMs);
      }),
    ),
    ledgers,
    unread,
    ...(agents && { missingAccess: agents.missingAccess }),
  };
  const snapshot = snapshotOf(observed);
  return withObservedLedgers({ ...snapshot, pods: [...snapshot.pods, ...orphanedPods(observed)] });
}

type Named = { readonly namespace?: string; readonly name: string };

export function ledgerOf(documents: Listing['documents'], namespace: string, group: string): Known<Ledger> {
  if (documents !== undefined && isUnknown(documents)) return { unknown: documents.unknown };
  const object = itemsOf(documents).find(({ metadata }) => metadata.namespace === namespace && metadata.name === ledgerName(group));
  return decodeLedger(dataText(object, ledgerKey), { namespace, group });
}

function known<Value>(
  list: Known<readonly KubernetesObject[]> | undefined,
  read: (items: readonly KubernetesObject[]) => Known<Value>,
): Known<Value> {
  if (list === undefined) return { unknown: 'they were not read' };
  return isUnknown(list) ? { unknown: list.unknown } : read(list);
}

export interface ClusterState {
  readonly policies: LivePolicies;
  /** The namespace of the agent. Policies in it may apply to other namespaces. */
  readonly agentNamespace: string;
  /** The published decisions by `namespace/group`. */
  readonly published: ReadonlyMap<string, PublishedDecision>;
  /** The published decisions that could not be read, each as a part of a sentence. */
  readonly problems: readonly string[];
}

/** The precedence of the definitions of a group, as in the default of the agent's flag `-policy-sources`. */
const order = ['directory', 'objects', 'adopted'] as const;

/** Resolves the policies of a listing, as the agent does, and reads the published decisions. */
export function clusterState(listing: Listing, agentNamespace = usualAgentNamespace): ClusterState {
  const policies = resolveLive({
    objects: [listing.groups, listing.policies, listing.agentPolicies, listing.exceptions, listing.intents].flatMap(itemsOf),
    statefulSets: itemsOf(listing.statefulSets),
    order,
    agentNamespace,
    areIntentsStamped: true,
  });
  const published = new Map<string, PublishedDecision>();
  const problems: string[] = [];
  for (const object of [...itemsOf(listing.documents), ...itemsOf(listing.groups)]) {
    const stored = storedDecision(object);
    if (stored === undefined) continue;
    const decision = readPublished(stored);
    if (isUnknown(decision))
      problems.push(`the decision in ${object.kind} ${object.metadata.namespace}/${object.metadata.name}: ${decision.unknown}`);
    else published.set(`${decision.namespace}/${decision.group}`, decision);
  }
  return { policies, agentNamespace, published, problems };
}

/** Returns the decision that the agent published in an object, if any. Invalid JSON stays text, so that the caller reports a problem. */
function storedDecision(object: KubernetesObject): unknown {
  if (object.kind !== 'ConfigMap') return fieldAt(object, ['status', 'decision']);
  const text = isStatusMapName(object.metadata.name) ? dataText(object, 'decision') : undefined;
  return tryParseJson(text) ?? text;
}

export async function readReplicaSources(cluster: Cluster, groups: readonly GroupDefinition[]): Promise<readonly ReplicaSourceView[]> {
  return (await readReplicaSourceObjects(cluster, groups)).map(({ view }) => view);
}

/** Reads the replica sources of the groups, if any, with their objects. The replicas of a source that the user may not read are unknown. */
export async function readReplicaSourceObjects(
  cluster: Cluster,
  groups: readonly GroupDefinition[],
): Promise<readonly { readonly view: ReplicaSourceView; readonly object: KubernetesObject | undefined }[]> {
  const references = new Map<string, ReplicaSourceReference>();
  for (const { namespace, zones } of groups) {
    for (const { replicas } of zones) {
      if (replicas.kind !== 'mirror') continue;
      const { apiVersion, resourceKind: kind, name, read, fieldPath } = replicas;
      references.set(`${namespace}/${apiVersion}/${kind}/${name}`, { namespace, apiVersion, kind, name, read, fieldPath });
    }
  }
  const find = await resourcesOf(cluster, [...references.values()]);
  return Promise.all(
    [...references.values()].map(async (reference) => {
      const { namespace, apiVersion, kind, name } = reference;
      const object = await readSource(cluster, reference, find(apiVersion, kind));
      if (isUnknown(object)) return { view: { namespace, apiVersion, kind, name, replicas: object }, object: undefined };
      return { view: observeReplicaSource(reference, object), object };
    }),
  );
}

async function readSource(
  { env, timeoutMs }: Cluster,
  { apiVersion, kind, namespace, name, read }: ReplicaSourceReference,
  resource: Resource | undefined,
): Promise<Known<KubernetesObject | undefined>> {
  if (resource === undefined) return { unknown: `the kind ${kind} of ${apiVersion} is not installed` };
  const subresource = read === 'scale' ? { subresource: 'scale' } : {};
  return getObject(env, resource, { namespace, name }, { site: 'live.replicaSource', timeoutMs, ...subresource })
    .catch(onStatus({ unknown: `no permission to get ${resource.plural}${read === 'scale' ? '/scale' : ''}` }, 403))
    .catch(onStatus({ unknown: `${kind} ${namespace}/${name} has no scale subresource` }, 404));
}
