// The one snapshot of a cluster that every verb decides on: listed objects as the engine reads them.
import type { KubernetesObject } from '../../cluster/request/resource.ts';
import { decodeLedger, ledgerKey, ledgerName } from '../../engine/ledger/ledger-document.ts';
import { observePodBudget, observeZoneBudget } from '../../engine/observe/budget.ts';
import { snapshotOf } from '../../engine/observe/cluster.ts';
import { observeNode, observePod, observeStatefulSet } from '../../engine/observe/objects.ts';
import { boundInputs, metricsOf, newestMetrics } from '../../engine/publish/metrics.ts';
import type { PublishedDecision } from '../../engine/publish/published.ts';
import { isUnknown, type Known, type Ledger, type Snapshot, type UnreadObject } from '../../engine/snapshot.ts';
import type { LivePolicies } from '../../policies/live/sources.ts';
import { itemsOf, type Listing, textIn } from './listing.ts';

interface SnapshotSources extends Pick<Snapshot, 'nowMs' | 'replicaSources'> {
  readonly agentNamespace: string;
  /** The policies in force; for a plan, those of its files over those of the cluster. */
  readonly policies: Pick<LivePolicies, 'groups' | 'policies' | 'exceptions' | 'intents' | 'digest'>;
  /** Published decisions by `namespace/group`, from which readings of metrics are taken. */
  readonly published?: ReadonlyMap<string, PublishedDecision>;
}

/**
 * Returns the snapshot of a listing. An object that may not be read or is not understood is unknown. Readings of gates are unknown too: only the
 * agent has them. Readings of metric inputs are those that the agent published and that are not too old.
 */
export function clusterSnapshot(
  listing: Listing,
  { policies, agentNamespace, published, nowMs, replicaSources }: SnapshotSources,
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
  if (documents !== undefined && isUnknown(documents)) return { unknown: documents.unknown };
  const object = itemsOf(documents).find(({ metadata }) => metadata.namespace === namespace && metadata.name === ledgerName(group));
  return decodeLedger(object === undefined ? undefined : textIn(object, ledgerKey), { namespace, group });
}

/** Reads all budgets. A budget that is not understood leaves all of them unknown: it may be the one that counts. */
function allOf<View>(items: readonly KubernetesObject[], read: (item: KubernetesObject) => Known<View>): Known<readonly View[]> {
  const views: View[] = [];
  for (const item of items) {
    const view = read(item);
    if (isUnknown(view)) return view;
    views.push(view);
  }
  return views;
}

function known<Value>(
  list: Known<readonly KubernetesObject[]> | undefined,
  read: (items: readonly KubernetesObject[]) => Known<Value>,
): Known<Value> {
  if (list === undefined) return { unknown: 'they were not read' };
  return isUnknown(list) ? { unknown: list.unknown } : read(list);
}
