// Finds the namespace of the agent that decides about given namespaces, and the namespaces that an agent watches.
import { isStatus } from '../../cluster/request/failure.ts';
import { listObjects } from '../../cluster/request/read.ts';
import { resources } from '../../cluster/request/resource.ts';
import { fieldAt } from '../../engine/observe/raw.ts';
import { isUnknown } from '../../engine/snapshot.ts';
import { usualAgentNamespace } from '../../policies/objects/agent-deployment.ts';
import type { Cluster } from '../connection.ts';
import { usageFailure } from '../failure.ts';
import { agentLeaseName, type HeldLease, leaseOfNamespace, readDecisions } from '../live/agent.ts';

/**
 * Returns the namespace of the agent's Lease; the default one if Leases may not be read.
 *
 * @throws Failure when several agents decide about the namespaces, or it is unknown which one does.
 */
export async function agentNamespaceOf(cluster: Cluster, namespaces: readonly string[] | undefined): Promise<string> {
  const leases = await readLeases(cluster);
  const [first, second] = leases;
  if (first === undefined) return usualAgentNamespace;
  if (second === undefined) return first.namespace;
  const decisions = await readDecisions(cluster, namespaces);
  const decided = isUnknown(decisions) ? [] : decisions.map(({ namespace }) => namespace);
  const places = new Set((namespaces ?? decided).map((namespace) => leaseOfNamespace(leases, decisions, namespace)?.namespace));
  const [only] = places;
  if (places.size === 1 && only !== undefined) return only;
  const names = [...leases].map(({ namespace }) => namespace).sort();
  throw usageFailure(
    `agents run in the namespaces ${names.join(', ')}, and ${places.size > 1 ? 'several of them decide here' : 'which of them decides here is unknown'}`,
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

/** Returns the namespaces in `-namespaces` of a pod spec, with `*` for all; undefined without the argument. */
export function namespacesFlagOf(podSpec: unknown): readonly string[] | undefined {
  const containers = fieldAt(podSpec, ['containers']);
  const words = (Array.isArray(containers) ? containers : []).flatMap((container): readonly unknown[] =>
    ['command', 'args'].flatMap((field) => fieldAt(container, [field]) ?? []),
  );
  const named = words.flatMap((word) => (typeof word === 'string' ? (/^--?namespaces=(.+)$/.exec(word)?.[1]?.split(',') ?? []) : []));
  return named.length === 0 ? undefined : named.map((one) => one.trim());
}
