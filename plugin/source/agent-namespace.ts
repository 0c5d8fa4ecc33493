// Where the agent lives that decides about the namespaces in question: policies there may name other namespaces.

import { isStatus } from '../../cluster/request/failure.ts';
import { listObjects } from '../../cluster/request/read.ts';
import { resources } from '../../cluster/request/resource.ts';
import { fieldAt } from '../../engine/observe/raw.ts';
import { isUnknown } from '../../engine/snapshot.ts';
import { usualAgentNamespace } from '../../policies/objects/agent-deployment.ts';
import type { Cluster } from '../connection.ts';
import { usageFailure } from '../failure.ts';
import { agentLeaseName } from '../live/agent.ts';
import { type HeldLease, leaseDeciding, readDecisions } from '../live/published-decisions.ts';

/**
 * Its Lease tells; where that may not be read, the usual place is taken.
 *
 * @throws Failure when there are several agents and it cannot be told which of them is meant, or more than one is.
 */
export async function agentNamespaceOf(cluster: Cluster, namespaces: readonly string[] | undefined): Promise<string> {
  const leases = await readLeases(cluster);
  const [first, second] = leases;
  if (first === undefined) return usualAgentNamespace;
  if (second === undefined) return first.namespace;
  const decisions = await readDecisions(cluster, namespaces);
  const decided = isUnknown(decisions) ? [] : decisions.map(({ namespace }) => namespace);
  const places = new Set((namespaces ?? decided).map((namespace) => leaseDeciding(leases, decisions, namespace)?.namespace));
  const [only] = places;
  if (places.size === 1 && only !== undefined) return only;
  const names = [...leases].map(({ namespace }) => namespace).sort();
  throw usageFailure(
    `agents live in the namespaces ${names.join(', ')}, and ${places.size > 1 ? 'not one of them alone decides here' : 'which of them decides here is not known'}`,
    `name one with --agent-namespace, such as --agent-namespace ${names[0] ?? ''}`,
  );
}

async function readLeases({ env, timeoutMs }: Cluster): Promise<readonly HeldLease[]> {
  try {
    const options = { fieldSelector: `metadata.name=${agentLeaseName}`, site: 'source.leases', timeoutMs };
    const { items } = await listObjects(env, resources.leases, options);
    return items.map((item) => ({
      namespace: item.metadata.namespace ?? '',
      holder: String(fieldAt(item, ['spec', 'holderIdentity']) ?? ''),
    }));
  } catch (error) {
    if (isStatus(error, 403, 404)) return [];
    throw error;
  }
}
