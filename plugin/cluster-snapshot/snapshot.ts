// What was listed of a cluster as the engine takes it; what may not be read or is not understood is unknown.
import type { KubernetesObject } from '../../cluster/request/resource.ts';
import { decodeLedger, ledgerKey, ledgerName } from '../../engine/ledger/ledger-document.ts';
import { observePodBudget, observeZoneBudget } from '../../engine/observe/budget.ts';
import { snapshotOf } from '../../engine/observe/cluster.ts';
import { observeNode, observePod, observeStatefulSet } from '../../engine/observe/objects.ts';
import { boundInputs, metricsOf, newestMetrics } from '../../engine/publish/metrics.ts';
import type { PublishedDecision } from '../../engine/publish/published.ts';
import { isUnknown, type Known, type Ledger, type ReplicaSourceView, type Snapshot, type UnreadObject } from '../../engine/snapshot.ts';
import type { LivePolicies } from '../../policies/live/sources.ts';
import type { ListedName, Listing } from './listing.ts';

interface LiveSources {
  readonly policies: LivePolicies;
  readonly agentNamespace: string;
  /** What was published of groups, by `namespace/group`. */
  readonly published?: ReadonlyMap<string, PublishedDecision>;
}

/**
 * Gate readings are the agent's: here there are none, so that what needs them is unknown. Readings of metric inputs are those that the agent has
 * published, as long as they count.
 */
export function liveSnapshot(
  { policies, agentNamespace, published }: LiveSources,
  listing: Listing,
  { nowMs, replicaSources }: { readonly nowMs: number; readonly replicaSources: readonly ReplicaSourceView[] },
): Snapshot {
  const unread: UnreadObject[] = [];
  const understood = <View>(
    kind: UnreadObject['kind'],
    items: readonly KubernetesObject[],
    read: (item: KubernetesObject) => Known<View>,
  ): View[] =>
    items.flatMap((item) => {
      const view = read(item);
      if (!isUnknown(view)) return [view];
      unread.push({ kind, unknown: view.unknown, namespace: item.metadata.namespace ?? '', name: item.metadata.name });
      return [];
    });
  const ledgers = policies.groups.flatMap(({ namespace, name }) => {
    const ledger = ledgerOf(listing, namespace, name);
    if (!isUnknown(ledger)) return [ledger];
    unread.push({ kind: 'Ledger', unknown: ledger.unknown, namespace, name });
    return [];
  });
  return snapshotOf({
    nowMs,
    policyDigest: policies.digest,
    agentNamespace,
    groups: policies.groups,
    policies: policies.policies,
    exceptions: policies.exceptions,
    intents: known(listing.intents, () => policies.intents),
    statefulSets: known(listing.statefulSets, (items) => understood('StatefulSet', items, observeStatefulSet)),
    pods: known(listing.pods, (items) => understood('Pod', items, (item) => observePod(item))),
    nodes: known(listing.nodes, (items) => new Map(items.map(observeNode).map(({ name, isReady }) => [name, isReady]))),
    zoneBudgets: known(listing.zoneBudgets, (items) => allOf(items, observeZoneBudget)),
    podBudgets: known(listing.podBudgets, (items) => allOf(items, observePodBudget)),
    replicaSources,
    gateReadings: [],
    metrics: newestMetrics(
      policies.groups.flatMap((group) => {
        const decision = published?.get(`${group.namespace}/${group.name}`);
        return decision === undefined ? [] : metricsOf(decision, boundInputs(policies.policies, group, agentNamespace), nowMs);
      }),
    ),
    ledgers,
    unread,
  });
}

function ledgerOf({ documents }: Listing, namespace: string, group: string): Known<Ledger> {
  if (documents !== undefined && isUnknown(documents)) return documents;
  const object = itemsOf(documents).find(({ metadata }) => metadata.namespace === namespace && metadata.name === ledgerName(group));
  return decodeLedger(object === undefined ? undefined : textIn(object, ledgerKey), { namespace, group });
}

/** One that is not understood might be the one that counts. */
function allOf<View>(items: readonly KubernetesObject[], read: (item: KubernetesObject) => Known<View>): Known<readonly View[]> {
  const views: View[] = [];
  for (const item of items) {
    const view = read(item);
    if (isUnknown(view)) return view;
    views.push(view);
  }
  return views;
}

/** A value of `data` of a ConfigMap. */
export function textIn(object: KubernetesObject, key: string): string | undefined {
  const data = object['data'];
  const text = typeof data === 'object' && data !== null ? Object.entries(data).find(([name]) => name === key)?.[1] : undefined;
  return typeof text === 'string' ? text : undefined;
}

/** Nodes are not among them: without them every node counts as ready, as for an agent with a Role alone. */
const partWords: readonly (readonly [ListedName, string])[] = [
  ['groups', 'RolloutGroups'],
  ['documents', 'ledgers'],
  ['statefulSets', 'StatefulSets'],
  ['policies', 'RolloutPolicies'],
  ['agentPolicies', "RolloutPolicies of the agent's namespace"],
  ['exceptions', 'RolloutExceptions'],
  ['intents', 'RolloutIntents'],
  ['pods', 'pods'],
  ['podBudgets', 'PodDisruptionBudgets'],
  ['zoneBudgets', 'ZoneAwarePodDisruptionBudgets'],
];

/** The parts that may not be read, in words. */
export function unreadParts(listing: Listing): readonly string[] {
  return partWords.flatMap(([name, words]) => {
    const part = listing[name];
    return part !== undefined && isUnknown(part) ? [words] : [];
  });
}

function known<Value>(
  part: Known<readonly KubernetesObject[]> | undefined,
  read: (items: readonly KubernetesObject[]) => Known<Value>,
): Known<Value> {
  if (part === undefined) return { unknown: 'they were not read' };
  return isUnknown(part) ? part : read(part);
}

/** Empty also for what may not be read. */
export function itemsOf(part: Known<readonly KubernetesObject[]> | undefined): readonly KubernetesObject[] {
  return part === undefined || isUnknown(part) ? [] : part;
}
