// Published decisions, and which of several agents decides about a namespace.
import { isUnknown, type Known } from '../../engine/snapshot.ts';
import { defined } from '../../policies/values/defined.ts';
import { listCluster } from '../cluster-snapshot/listing.ts';
import { clusterState } from '../cluster-snapshot/snapshot.ts';
import type { Cluster } from '../connection.ts';

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
