// Tells which agent decides about a namespace, and from its Lease whether it runs. The age of a decision alone does not tell.
import { onStatus } from '../../cluster/request/failure.ts';
import { listObjects } from '../../cluster/request/read.ts';
import { type KubernetesObject, resources } from '../../cluster/request/resource.ts';
import { reader } from '../../engine/observe/raw.ts';
import { isUnknown, type Known } from '../../engine/snapshot.ts';
import { defined } from '../../policies/values/defined.ts';
import { listCluster } from '../cluster-snapshot/listing.ts';
import { clusterState } from '../cluster-snapshot/snapshot.ts';
import type { Cluster } from '../connection.ts';

/** `unseen`: Leases may not be read, or none has the default name. */
type AgentState =
  | { readonly kind: 'running' }
  /** The holder is empty when the Lease was released. */
  | { readonly kind: 'stopped'; readonly holder: string; readonly renewedMs: number }
  | { readonly kind: 'unseen' };

/** The default of the agent's flag. */
export const agentLeaseName = 'rollout-group-agent';

/** A younger decision counts as proof that the agent runs. */
export const freshMs = 60_000;

/**
 * Returns the state of the agent by its Lease, from all namespaces, or from that of the group if not all may be listed. A Lease in the
 * namespace of the group belongs to its agent; that of an agent for other namespaces counts only if it is the only one.
 */
export async function agentState(
  cluster: Cluster,
  { namespace, leader }: { readonly namespace: string; readonly leader?: string },
): Promise<AgentState> {
  const leases = (await leasesIn(cluster, undefined)) ?? (await leasesIn(cluster, namespace)) ?? [];
  const views = leases.flatMap(leaseView);
  const lease =
    views.find(({ holder }) => holder === leader) ??
    views.find((view) => view.namespace === namespace) ??
    (views.length === 1 ? views[0] : undefined);
  if (lease === undefined) return { kind: 'unseen' };
  const isHeld = lease.holder !== '' && lease.renewedMs + lease.durationMs > cluster.env.clock.nowMs();
  return isHeld ? { kind: 'running' } : { kind: 'stopped', holder: lease.holder, renewedMs: lease.renewedMs };
}

async function leasesIn({ env, timeoutMs }: Cluster, namespace: string | undefined): Promise<readonly KubernetesObject[] | undefined> {
  const options = { namespace, fieldSelector: `metadata.name=${agentLeaseName}`, site: 'live.leases', timeoutMs };
  const list = await listObjects(env, resources.leases, options).catch(onStatus(undefined, 403, 404));
  return list?.items;
}

interface LeaseView {
  readonly namespace: string;
  readonly holder: string;
  readonly renewedMs: number;
  readonly durationMs: number;
}

function leaseView({ metadata, spec }: KubernetesObject): readonly LeaseView[] {
  const fields = reader(spec);
  const renewedMs = fields.instant('renewTime');
  if (renewedMs === undefined) return [];
  const durationMs = (fields.whole('leaseDurationSeconds') ?? 15) * 1000;
  return [{ namespace: metadata.namespace ?? '', holder: fields.text('holderIdentity') ?? '', renewedMs, durationMs }];
}

/** The latest published decision about a group. */
interface MadeDecision {
  readonly namespace: string;
  readonly group: string;
  readonly decidedMs: number;
  readonly leader?: string;
  /** StatefulSets of its zones. */
  readonly members?: readonly string[];
  /** Why the group is blocked until a person acts: pinned pods came back at another revision. */
  readonly misplaced?: string;
}

export interface HeldLease {
  readonly namespace: string;
  /** Empty without a holder. */
  readonly holder: string;
}

/** Reads the decisions published in these namespaces; undefined for all. Unknown when ConfigMaps may not be read. */
export async function readDecisions(cluster: Cluster, namespaces: readonly string[] | undefined): Promise<Known<readonly MadeDecision[]>> {
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
export function leaseOfNamespace<Lease extends HeldLease>(
  leases: readonly Lease[],
  decisions: Known<readonly MadeDecision[]>,
  namespace: string,
): Lease | undefined {
  const held = leases.filter(({ holder }) => holder !== '');
  const candidates = held.length === 0 ? leases : held;
  const [latest] = (isUnknown(decisions) ? [] : decisions)
    .filter((decision) => decision.namespace === namespace)
    .flatMap(({ leader, decidedMs }) => held.filter(({ holder }) => holder === leader).map((lease) => ({ lease, decidedMs })))
    .sort((a, b) => b.decidedMs - a.decidedMs);
  const ownNamespace = candidates.find((lease) => lease.namespace === namespace);
  return latest?.lease ?? ownNamespace ?? (candidates.length === 1 ? candidates[0] : undefined);
}
