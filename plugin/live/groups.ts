// The groups of a cluster with one decision each: what the agent published, or, where no agent has, what the engine decides from what can be read.

import type { KubernetesObject } from '../../cluster/request/resource.ts';
import { decideGroup } from '../../engine/decide/decide.ts';
import { publishedDecision, readPublished } from '../../engine/publish/decision.ts';
import type { PublishedDecision } from '../../engine/publish/published.ts';
import { isStatusMapName } from '../../engine/publish/status-map.ts';
import { isUnknown, type ReplicaSourceView, type Snapshot } from '../../engine/snapshot.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { type LivePolicies, resolveLive } from '../../policies/live/sources.ts';
import { usualAgentNamespace } from '../../policies/objects/agent-deployment.ts';
import type { Listing } from '../cluster-snapshot/listing.ts';
import { itemsOf, liveSnapshot, textIn, unreadParts } from '../cluster-snapshot/snapshot.ts';
import type { GroupName } from './target.ts';

/** One group as it is shown. */
export interface LiveGroup {
  readonly decision: PublishedDecision;
  /** `agent`: it published this. `here`: nobody has published; it was decided here. */
  readonly from: 'agent' | 'here';
  /** The agent that published it is not running, and nobody acts; absent while that is not known. */
  readonly isUnattended?: true;
  /** What could not be read, when it was decided here. */
  readonly unread: readonly string[];
}

/** What was listed, understood. */
export interface LiveWorld {
  readonly policies: LivePolicies;
  /** Policies there may name other namespaces. */
  readonly agentNamespace: string;
  /** By `namespace/group`. */
  readonly published: ReadonlyMap<string, PublishedDecision>;
  /** What is there and could not be used: each a sentence part. */
  readonly problems: readonly string[];
}

/** Who wins when a group is defined twice, where nobody says otherwise: as the agent's flag does by default. */
const order = ['directory', 'objects', 'adopted'] as const;

/** Which groups there are and what was published of them. */
export function readWorld(listing: Listing, agentNamespace = usualAgentNamespace): LiveWorld {
  const ours = [listing.groups, listing.policies, listing.agentPolicies, listing.exceptions, listing.intents].flatMap(itemsOf);
  const policies = resolveLive({
    objects: ours,
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
      problems.push(`what was published in ${object.kind} ${object.metadata.namespace}/${object.metadata.name}: ${decision.unknown}`);
    else published.set(keyOf(decision), decision);
  }
  return { policies, agentNamespace, published, problems };
}

/** The groups that no agent has published. */
export function unpublished({ policies, published }: LiveWorld, isWanted: (name: GroupName) => boolean): readonly GroupDefinition[] {
  return policies.groups.filter((group) => isWanted(named(group)) && !published.has(keyOf(named(group))));
}

/** One decision per group that is wanted, by namespace and name. */
export function liveGroups(
  world: LiveWorld,
  listing: Listing,
  { nowMs, isWanted, replicaSources = [] }: LiveQuestion,
): readonly LiveGroup[] {
  const fromAgent = [...world.published.values()].filter(isWanted).map((decision): LiveGroup => ({ decision, from: 'agent', unread: [] }));
  const missing = unpublished(world, isWanted);
  if (missing.length === 0) return fromAgent.sort(byName);
  const snapshot = liveSnapshot(world, listing, { nowMs, replicaSources });
  const unread = unreadParts(listing);
  const here = missing.map((group): LiveGroup => ({ decision: decidedHere(world, snapshot, group), from: 'here', unread }));
  return [...fromAgent, ...here].sort(byName);
}

interface LiveQuestion {
  readonly nowMs: number;
  readonly isWanted: (name: GroupName) => boolean;
  readonly replicaSources?: readonly ReplicaSourceView[];
}

function decidedHere({ policies }: LiveWorld, snapshot: Snapshot, group: GroupDefinition): PublishedDecision {
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

/** The decision inside of an object, if one was published there. */
function storedDecision(object: KubernetesObject): unknown {
  if (object.kind === 'ConfigMap') return isStatusMapName(object.metadata.name) ? jsonIn(object, 'decision') : undefined;
  const status = object['status'];
  return typeof status === 'object' && status !== null && 'decision' in status ? status.decision : undefined;
}

/** Text that is no JSON is told from nothing at all, so that it is named as a problem. */
function jsonIn(object: KubernetesObject, key: string): unknown {
  const text = textIn(object, key);
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
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
