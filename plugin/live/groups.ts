// The groups of a cluster with one decision each: published by the agent, or decided here if no agent published one.

import { decideGroup } from '../../engine/decide/decide.ts';
import { publishedDecision } from '../../engine/publish/decision.ts';
import type { PublishedDecision } from '../../engine/publish/published.ts';
import type { ReplicaSourceView, Snapshot } from '../../engine/snapshot.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { type Listing, unreadLists } from '../cluster-snapshot/listing.ts';
import { type ClusterState, clusterSnapshot } from '../cluster-snapshot/snapshot.ts';
import type { GroupName } from './target.ts';

/** One group with its decision. */
export interface LiveGroup {
  readonly decision: PublishedDecision;
  /** `agent`: the agent published the decision. `here`: no agent published, so that it was decided here. */
  readonly from: 'agent' | 'here';
  /** The agent that published it stopped; absent while that is unknown. */
  readonly isUnattended?: true;
  /** Lists that could not be read for a decision made here. */
  readonly unread: readonly string[];
}

/** Returns the groups without a published decision. */
export function unpublished({ policies, published }: ClusterState, isWanted: (name: GroupName) => boolean): readonly GroupDefinition[] {
  return policies.groups.filter((group) => isWanted(named(group)) && !published.has(keyOf(named(group))));
}

/** Returns one decision per wanted group, sorted by namespace and name. */
export function liveGroups(
  world: ClusterState,
  listing: Listing,
  { nowMs, isWanted, replicaSources = [] }: LiveQuestion,
): readonly LiveGroup[] {
  const fromAgent = [...world.published.values()].filter(isWanted).map((decision): LiveGroup => ({ decision, from: 'agent', unread: [] }));
  const missing = unpublished(world, isWanted);
  if (missing.length === 0) return fromAgent.sort(byName);
  const snapshot = clusterSnapshot(listing, { ...world, nowMs, replicaSources });
  const unread = unreadLists(listing);
  const here = missing.map((group): LiveGroup => ({ decision: decideHere(world, snapshot, group), from: 'here', unread }));
  return [...fromAgent, ...here].sort(byName);
}

interface LiveQuestion {
  readonly nowMs: number;
  readonly isWanted: (name: GroupName) => boolean;
  readonly replicaSources?: readonly ReplicaSourceView[];
}

function decideHere({ policies }: ClusterState, snapshot: Snapshot, group: GroupDefinition): PublishedDecision {
  const ledger = snapshot.ledgers.find((one) => one.namespace === group.namespace && one.group === group.name);
  const origin = policies.origin(group);
  return publishedDecision({
    group,
    decision: decideGroup(snapshot, group),
    snapshot,
    atMs: snapshot.nowMs,
    ...(ledger === undefined ? {} : { ledger }),
    ...(origin === undefined ? {} : { origin }),
  });
}

function named({ namespace, name }: GroupDefinition): GroupName {
  return { namespace, group: name };
}

function keyOf({ namespace, group }: GroupName): string {
  return `${namespace}/${group}`;
}

function byName(a: LiveGroup, b: LiveGroup): number {
  return keyOf(a.decision) < keyOf(b.decision) ? -1 : 1;
}
