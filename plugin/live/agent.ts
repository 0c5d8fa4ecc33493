// Whether the agent that published a decision is still there: its Lease says it, a decision that nothing had to change does not.
import { isStatus } from '../../cluster/request/failure.ts';
import { listObjects } from '../../cluster/request/read.ts';
import { type KubernetesObject, resources } from '../../cluster/request/resource.ts';
import type { Cluster } from '../connection.ts';

/** `unseen`: nobody may look, or no Lease is named as usual. */
type AgentState =
  | { readonly kind: 'running' }
  /** The holder is empty when the Lease was given up. */
  | { readonly kind: 'stopped'; readonly holder: string; readonly renewedMs: number }
  | { readonly kind: 'unseen' };

/** The name that the agent's flag gives by default. */
export const agentLeaseName = 'rollout-group-agent';

/** A younger decision is taken for a sign of life. */
export const freshMs = 60_000;

/**
 * Looks for the Lease that this leader holds, or whoever took over from it: in every namespace, or in that of the group where nobody may list
 * all. A Lease of an agent that looks after other namespaces does not count, unless there is only one; one beside the group is its agent's.
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
  try {
    const where = namespace === undefined ? {} : { namespace };
    const options = { ...where, fieldSelector: `metadata.name=${agentLeaseName}`, site: 'live.leases', timeoutMs };
    return (await listObjects(env, resources.leases, options)).items;
  } catch (error) {
    if (isStatus(error, 403, 404)) return undefined;
    throw error;
  }
}

interface LeaseView {
  readonly namespace: string;
  readonly holder: string;
  readonly renewedMs: number;
  readonly durationMs: number;
}

function leaseView(object: KubernetesObject): readonly LeaseView[] {
  const spec = object['spec'];
  if (typeof spec !== 'object' || spec === null) return [];
  const { holderIdentity, renewTime, leaseDurationSeconds } = { holderIdentity: '', renewTime: '', leaseDurationSeconds: 15, ...spec };
  const renewedMs = Date.parse(String(renewTime));
  if (Number.isNaN(renewedMs) || typeof leaseDurationSeconds !== 'number') return [];
  return [
    {
      namespace: object.metadata.namespace ?? '',
      holder: String(holderIdentity ?? ''),
      renewedMs,
      durationMs: leaseDurationSeconds * 1000,
    },
  ];
}
