// Finds the agent that decides about a namespace, and reads from its Lease whether it runs. The age of a decision does not show this.
import { onStatus } from '../../cluster/request/failure.ts';
import { getObject } from '../../cluster/request/read.ts';
import { type KubernetesObject, resources } from '../../cluster/request/resource.ts';
import { reader } from '../../engine/observe/raw.ts';
import { isUnknown, type Known } from '../../engine/snapshot.ts';
import { defined } from '../../policies/values/defined.ts';
import { itemsOf, listCluster, listKnown, type Namespaces } from '../cluster-snapshot/listing.ts';
import { clusterState } from '../cluster-snapshot/snapshot.ts';
import type { Cluster } from '../connection.ts';
import { ageText } from '../output/plan/plan-text.ts';

/** The default of the agent's flag. */
const agentLeaseName = 'rollout-group-agent';

/** A younger decision counts as proof that the agent runs. */
export const freshMs = 60_000;

/** The Lease of an agent. */
export interface AgentLease {
  readonly namespace: string;
  readonly name: string;
  /** Empty without a holder. */
  readonly holder: string;
  readonly renewedMs: number | undefined;
  /** When the holder acquired it. */
  readonly acquiredMs: number | undefined;
  readonly durationMs: number;
}

/** `sinceMs`: when the holder acquired or released the Lease, or when the Lease expired; undefined if the Lease does not show it. */
interface LeaseState {
  readonly kind: 'held' | 'released' | 'expired';
  readonly sinceMs: number | undefined;
}

/** Returns the state of the Lease at an instant of the clock that stamps Leases, or of the closest known one. */
export function leaseState({ holder, renewedMs, acquiredMs, durationMs }: AgentLease, nowMs: number): LeaseState {
  if (holder === '') return { kind: 'released', sinceMs: renewedMs };
  if (renewedMs === undefined) return { kind: 'expired', sinceMs: undefined };
  return nowMs - renewedMs > durationMs ? { kind: 'expired', sinceMs: renewedMs + durationMs } : { kind: 'held', sinceMs: acquiredMs };
}

/** `unknown`: Leases may not be read, or none of them is known to be that of the agent. */
type AgentState =
  | { readonly kind: 'running' }
  /** `why` is a sentence without a full stop. */
  | { readonly kind: 'stopped'; readonly why: string }
  | { readonly kind: 'unknown' };

/**
 * Returns the state of the agent of a group by its Lease. A Lease in the namespace of the group belongs to its agent; that of an agent for
 * other namespaces counts only if it is the only one.
 */
export function agentState(
  known: Known<readonly AgentLease[]>,
  { namespace, leader }: { readonly namespace: string; readonly leader?: string },
  nowMs: number,
): AgentState {
  const leases = itemsOf(known);
  const lease =
    leases.find(({ holder }) => holder === leader) ??
    leases.find((one) => one.namespace === namespace) ??
    (leases.length === 1 ? leases[0] : undefined);
  if (lease === undefined) return { kind: 'unknown' };
  const { kind } = leaseState(lease, nowMs);
  if (kind === 'held') return { kind: 'running' };
  const ago = renewedAgo(lease, nowMs);
  return { kind: 'stopped', why: kind === 'released' ? `its Lease was released ${ago}` : `${lease.holder} renewed its Lease ${ago}` };
}

/** Returns the age of the last renewal: `5m ago` or `never`. */
export function renewedAgo({ renewedMs }: AgentLease, nowMs: number): string {
  return renewedMs === undefined ? 'never' : `${ageText(renewedMs, nowMs)} ago`;
}

/** Returns the Leases of agents: from all namespaces, or from these if not all may be listed. Unknown if none of them may be read. */
export async function readAgentLeases(cluster: Cluster, namespaces: readonly string[]): Promise<Known<readonly AgentLease[]>> {
  const everywhere = await listLeases(cluster, undefined);
  if (!isUnknown(everywhere)) return everywhere.map(agentLease);
  const found = await Promise.all(namespaces.map((namespace) => leasesIn(cluster, namespace)));
  if (found.every(isUnknown)) return { unknown: `no permission to get leases in ${namespaces.join(', ')}` };
  return found.flatMap(itemsOf).map(agentLease);
}

/** Filters by name: every node has a Lease too. */
async function listLeases(cluster: Cluster, namespaces: Namespaces): Promise<Known<readonly KubernetesObject[]>> {
  return listKnown(cluster, resources.leases, namespaces, { fieldSelector: `metadata.name=${agentLeaseName}`, site: 'live.leases' });
}

/** Lists or gets the Lease: a role can have one right without the other. */
async function leasesIn(cluster: Cluster, namespace: string): Promise<Known<readonly KubernetesObject[]>> {
  const listed = await listLeases(cluster, [namespace]);
  if (!isUnknown(listed)) return listed;
  const { env, timeoutMs } = cluster;
  const read = getObject(env, resources.leases, { namespace, name: agentLeaseName }, { site: 'live.lease', timeoutMs });
  const lease = await read.catch(onStatus(listed, 403));
  if (lease === undefined) return [];
  return 'metadata' in lease ? [lease] : lease;
}

function agentLease({ metadata: { namespace = '', name }, spec }: KubernetesObject): AgentLease {
  const fields = reader(spec);
  return {
    namespace,
    name,
    holder: fields.text('holderIdentity') ?? '',
    renewedMs: fields.instant('renewTime'),
    acquiredMs: fields.instant('acquireTime'),
    durationMs: (fields.whole('leaseDurationSeconds') ?? 15) * 1000,
  };
}

/** The latest published decision about a group. */
export interface LatestDecision {
  readonly namespace: string;
  readonly group: string;
  readonly decidedMs: number;
  readonly leader?: string;
  /** StatefulSets of its zones. */
  readonly members?: readonly string[];
  /** Why the group is blocked until a person acts: pinned pods came back at another revision. */
  readonly misplaced?: string;
}

/** Reads the decisions published in these namespaces; undefined for all. Unknown when ConfigMaps may not be read. */
export async function readDecisions(
  cluster: Cluster,
  namespaces: readonly string[] | undefined,
): Promise<Known<readonly LatestDecision[]>> {
  const listing = await listCluster(cluster, ['documents', 'groups'], namespaces);
  if (listing.documents !== undefined && isUnknown(listing.documents)) return listing.documents;
  return [...clusterState(listing).published.values()].map(({ namespace, group, decidedMs, leader, waits, zones }) =>
    defined({
      namespace,
      group,
      decidedMs,
      leader,
      members: zones.map(({ statefulSet }) => statefulSet),
      // A wait with an end ends by itself.
      misplaced: waits.find(({ rule, earliestMs }) => rule === 'pin-applied' && earliestMs === undefined)?.fact,
    }),
  );
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
