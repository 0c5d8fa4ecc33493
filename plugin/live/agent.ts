// Finds the agent of a namespace, and reads from its Lease whether the agent runs, because a recent decision does not prove that.
import { holderVersionAnnotation } from '../../cluster/lease/lease.ts';
import { onStatus } from '../../cluster/request/failure.ts';
import { getObject } from '../../cluster/request/read.ts';
import { type KubernetesObject, resources } from '../../cluster/request/resource.ts';
import type { RuleResult } from '../../engine/decision.ts';
import { reader } from '../../engine/observe/raw.ts';
import type { PublishedDecision } from '../../engine/publish/published.ts';
import { isUnknown, type Known, type Unknown } from '../../engine/snapshot.ts';
import { agentName, usualAgentNamespace } from '../../policies/objects/agent-deployment.ts';
import { defined } from '../../policies/values/defined.ts';
import { itemsOf, listCluster, listKnown, type Namespaces } from '../cluster-snapshot/listing.ts';
import { clusterState } from '../cluster-snapshot/snapshot.ts';
import type { Cluster } from '../connection.ts';
import { isOwnWebhook } from '../connection-failure.ts';
import type { UncalledWebhook } from '../failure.ts';
import { ageText } from '../output/plan/plan-text.ts';

/** The default duration of a Lease. An agent that released its Lease counts as lost if no agent acquires the Lease within this time. */
const usualDurationMs = 15_000;

export interface AgentLease {
  readonly namespace: string;
  readonly name: string;
  /** Empty without a holder. */
  readonly holder: string;
  readonly renewedMs: number | undefined;
  readonly acquiredMs: number | undefined;
  readonly durationMs: number;
  /** The version of the holder; absent if the Lease names none. */
  readonly version?: string;
}

/** `sinceMs`: when the holder acquired or released the Lease, or when the Lease expired; undefined if the Lease does not show it. */
interface LeaseState {
  readonly kind: 'held' | 'released' | 'expired';
  readonly sinceMs: number | undefined;
}

/** Returns the state of the Lease at `nowMs`, the time of the API server; if unknown, the time of this machine. */
export function leaseState({ holder, renewedMs, acquiredMs, durationMs }: AgentLease, nowMs: number): LeaseState {
  if (holder === '') return { kind: 'released', sinceMs: renewedMs };
  if (renewedMs === undefined) return { kind: 'expired', sinceMs: undefined };
  return nowMs - renewedMs > durationMs ? { kind: 'expired', sinceMs: renewedMs + durationMs } : { kind: 'held', sinceMs: acquiredMs };
}

/** `unknown`: the user may not read Leases, or no Lease is known to be the agent's. `why` is a clause. */
export type AgentState =
  | { readonly kind: 'running' }
  /** The agent runs, and an earlier leader made the decision. `sinceMs`: when this agent acquired the Lease. */
  | { readonly kind: 'starting'; readonly sinceMs: number | undefined }
  | ({ readonly kind: 'stopped' } & Lapse)
  | { readonly kind: 'unknown' };

export interface AgentLeases {
  readonly leases: Known<readonly AgentLease[]>;
  /** Present if the user may not read Leases in a namespace that can contain the Lease. */
  readonly unread?: Unknown;
  /** True if every namespace that can contain the Lease was read. */
  readonly isComplete: boolean;
  /**
   * The time of the API server at the read; if unknown, the time of this machine. Leases contain times of the agent's clock. The clock of
   * the API server is usually closer to that clock than the clock of a user's machine.
   */
  readonly nowMs: number;
}

/** Returns the namespace of the agent that decides about the group. */
export function agentNamespaceFor({ agentNamespace }: Cluster, { lease }: Pick<PublishedDecision, 'lease'>): string {
  return lease?.namespace ?? agentNamespace ?? usualAgentNamespace;
}

interface AgentReference extends Pick<PublishedDecision, 'namespace'>, Partial<Pick<PublishedDecision, 'leader' | 'lease'>> {}

/**
 * Returns the state of a group's agent from its Lease: the Lease of the decision's leader, else the Lease that the decision names. If the
 * decision names no Lease: the Lease in the namespace of the group, else the only Lease.
 */
export function agentState(
  { leases: known, isComplete, nowMs }: AgentLeases,
  { namespace, leader, lease: named }: AgentReference,
): AgentState {
  const leases = itemsOf(known);
  const lease =
    leases.find(({ holder }) => holder === leader) ??
    leases.find((one) =>
      named === undefined ? one.namespace === namespace : one.namespace === named.namespace && one.name === named.name,
    ) ??
    (leases.length === 1 && named === undefined ? leases[0] : undefined);
  // An agent without leader election has no Lease, so its decisions name no Lease.
  const isGone = isComplete && (named !== undefined || (leader === undefined && leases.length === 0));
  if (lease === undefined) return isGone ? { kind: 'stopped', why: 'no Lease', isLost: true } : { kind: 'unknown' };
  const lapsed = lapseOf(lease, nowMs);
  // A leader publishes a decision about each of its groups, also if only the name of the leader differs.
  const isEarlier = named !== undefined && leader !== undefined && leader !== lease.holder;
  if (lapsed === undefined) return isEarlier ? { kind: 'starting', sinceMs: lease.acquiredMs } : { kind: 'running' };
  return { kind: 'stopped', ...lapsed };
}

/** `why` is `Lease expired 12s ago` or `Lease released 12s ago`. `isLost`: no agent acquired the Lease within the duration of a Lease. */
interface Lapse {
  readonly why: string;
  readonly isLost: boolean;
}

/** Returns undefined for a Lease that is held. */
export function lapseOf(lease: AgentLease, nowMs: number): Lapse | undefined {
  const { kind, sinceMs } = leaseState(lease, nowMs);
  if (kind === 'held') return undefined;
  const since = sinceMs === undefined ? 'at an unknown time' : `${ageText(sinceMs, nowMs)} ago`;
  return { why: `Lease ${kind} ${since}`, isLost: kind === 'expired' || sinceMs === undefined || nowMs - sinceMs > usualDurationMs };
}

/** Returns the text about an agent that does not run, the same in every output. */
export function notRunningText(why: string): string {
  return `agent not running: ${why}`;
}

/** Returns the sentence that the agent behind one of our webhooks does not run; undefined if the agent runs or its state is unknown. */
export async function stoppedAgentOf(cluster: Cluster, webhook: UncalledWebhook): Promise<string | undefined> {
  if (!isOwnWebhook(webhook)) return undefined;
  const { namespace = cluster.namespace } = webhook;
  const agents = await readAgentLeases(cluster, [{ namespace }]).catch(() => undefined);
  const state = agents === undefined ? undefined : agentState(agents, { namespace });
  return state?.kind === 'stopped' ? notRunningText(state.why) : undefined;
}

/** Returns the age of the last renewal: `5m ago` or `never`. */
export function renewedAgo({ renewedMs }: AgentLease, nowMs: number): string {
  return renewedMs === undefined ? 'never' : `${ageText(renewedMs, nowMs)} ago`;
}

/**
 * Reads the Leases of agents, with the default name and with the names in the decisions of these groups. Lists all namespaces; if that is
 * forbidden, reads the namespaces of the groups and of the named Leases. Unknown if the user may read no Lease.
 */
export async function readAgentLeases(
  cluster: Cluster,
  groups: readonly Pick<AgentReference, 'namespace' | 'lease'>[],
): Promise<AgentLeases> {
  let serverMs = Number.NaN;
  const { kubernetes } = cluster.env;
  const request: typeof kubernetes.request = async (call) => {
    const answer = await kubernetes.request(call);
    // The header has whole seconds, so on average half a second is missing.
    serverMs = Date.parse(answer.headers['date'] ?? '') + 500;
    return answer;
  };
  const timed = { ...cluster, env: { ...cluster.env, kubernetes: { ...kubernetes, request } } };
  const named = groups.flatMap(({ lease }) => lease ?? []);
  const names = [...new Set([agentName, ...named.map(({ name }) => name)])];
  const places = [...new Set([...groups, ...named].map(({ namespace }) => namespace))];
  const everywhere = await Promise.all(names.map((name) => listLeases(timed, name, undefined)));
  const isEverywhere = !everywhere.some(isUnknown);
  const ofPlaces = names.flatMap((name) => places.map((namespace) => [name, namespace] as const));
  const lists = isEverywhere ? everywhere : await Promise.all(ofPlaces.map(([name, namespace]) => leasesIn(timed, name, namespace)));
  // A Lease that no decision names can be in any namespace.
  const isComplete = !lists.some(isUnknown) && (isEverywhere || groups.every(({ lease }) => lease !== undefined));
  const denied = new Set(isEverywhere ? [] : ofPlaces.flatMap(([, place], index) => (isUnknown(lists[index]) ? [place] : [])));
  const unread = denied.size === 0 ? {} : { unread: { unknown: `no permission to get leases in ${[...denied].join(', ')}` } };
  const leases = lists.every(isUnknown) && unread.unread !== undefined ? unread.unread : lists.flatMap(itemsOf).map(agentLease);
  return { leases, ...unread, isComplete, nowMs: Number.isNaN(serverMs) ? cluster.env.clock.nowMs() : serverMs };
}

async function listLeases(cluster: Cluster, name: string, namespaces: Namespaces): Promise<Known<readonly KubernetesObject[]>> {
  return listKnown(cluster, resources.leases, namespaces, { fieldSelector: `metadata.name=${name}`, site: 'live.leases' });
}

/** Lists the Lease, or gets it, because a role can grant one right without the other. */
async function leasesIn(cluster: Cluster, name: string, namespace: string): Promise<Known<readonly KubernetesObject[]>> {
  const listed = await listLeases(cluster, name, [namespace]);
  if (!isUnknown(listed)) return listed;
  const { env, timeoutMs } = cluster;
  const read = getObject(env, resources.leases, { namespace, name }, { site: 'live.lease', timeoutMs });
  const lease = await read.catch(onStatus(listed, 403));
  if (lease === undefined) return [];
  return 'metadata' in lease ? [lease] : lease;
}

function agentLease({ metadata: { namespace = '', name, annotations }, spec }: KubernetesObject): AgentLease {
  const fields = reader(spec);
  const holder = fields.text('holderIdentity') ?? '';
  const [version, ofHolder] = annotations?.[holderVersionAnnotation]?.split(' ') ?? [];
  return {
    namespace,
    name,
    holder,
    ...(ofHolder === holder ? defined({ version }) : {}),
    renewedMs: fields.instant('renewTime'),
    acquiredMs: fields.instant('acquireTime'),
    durationMs: (fields.whole('leaseDurationSeconds') ?? usualDurationMs / 1000) * 1000,
  };
}

/** The parts of a published decision that show which agent decides, and what the agent cannot do. */
export interface LatestDecision extends Pick<PublishedDecision, 'namespace' | 'group' | 'decidedMs' | 'leader' | 'unenforced'> {
  readonly zones?: readonly { readonly statefulSet: string }[];
  readonly waits?: readonly RuleResult[];
  readonly warnings?: readonly RuleResult[];
}

/** Reads the decisions published in these namespaces; in all if `namespaces` is undefined. Unknown if the user may not read ConfigMaps. */
export async function readDecisions(cluster: Cluster, namespaces: Namespaces): Promise<Known<readonly LatestDecision[]>> {
  const listing = await listCluster(cluster, ['documents', 'groups'], namespaces);
  if (listing.documents !== undefined && isUnknown(listing.documents)) return listing.documents;
  return [...clusterState(listing).published.values()];
}

/** Returns the Lease of the agent that decides in the namespace; undefined without a Lease, or if several agents are possible. */
export function leaseOfNamespace(
  leases: readonly AgentLease[],
  decisions: Known<readonly LatestDecision[]>,
  namespace: string,
): AgentLease | undefined {
  const held = leases.filter(({ holder }) => holder !== '');
  const candidates = held.length === 0 ? leases : held;
  const [latest] = itemsOf(decisions)
    .filter((decision) => decision.namespace === namespace)
    .flatMap(({ leader, decidedMs }) => held.filter(({ holder }) => holder === leader).map((lease) => ({ lease, decidedMs })))
    .sort((a, b) => b.decidedMs - a.decidedMs);
  const ownNamespace = candidates.find((lease) => lease.namespace === namespace);
  return latest?.lease ?? ownNamespace ?? (candidates.length === 1 ? candidates[0] : undefined);
}
