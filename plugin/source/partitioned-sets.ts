// StatefulSets that a partition of ours blocks, and that stay blocked after the agent is uninstalled.
import { isStatus } from '../../cluster/request/failure.ts';
import { getObject } from '../../cluster/request/read.ts';
import type { Resource } from '../../cluster/request/resource.ts';
import { observeStatefulSet } from '../../engine/observe/objects.ts';
import { fieldAt } from '../../engine/observe/raw.ts';
import { isUnknown, type Known } from '../../engine/snapshot.ts';
import type { HeldSet } from '../../install/held-partitions.ts';
import { agentName } from '../../install/object.ts';
import type { InstallScope } from '../../install/scope.ts';
import { holdingPartition, traitsOf } from '../../policies/strategies.ts';
import { itemsOf } from '../cluster-snapshot/listing.ts';
import type { Cluster } from '../connection.ts';
import { exitCodes, Failure } from '../failure.ts';
import { readPolicyFiles } from '../policy-files.ts';
import { namespacesFlagOf } from './agent-flags.ts';
import { comparedObjects, listForPlan } from './cluster/live-plan-inputs.ts';
import { asFile } from './cluster/plan-policies.ts';

/**
 * Returns the StatefulSets with the partition that blocks all pods, and members of groups with the strategies `partition` and `pinned`
 * whose partition blocks some pods. Sorted. Unknown if StatefulSets may not be read.
 */
export async function readHeldSets(
  cluster: Cluster,
  { scope, agentNamespace }: { readonly scope: InstallScope; readonly agentNamespace: string },
): Promise<Known<readonly HeldSet[]>> {
  try {
    const namespaces = scope.namespaces.length === 0 ? await watchedNamespaces(cluster, agentNamespace) : scope.namespaces;
    const { listing } = await listForPlan(cluster, namespaces, agentNamespace);
    const { groups } = readPolicyFiles(comparedObjects(listing).map(asFile), { agentNamespace }).resolution.bundle;
    const live = groups.filter((group) => traitsOf(group).holdsPartition);
    const members = new Set([
      ...live.flatMap(({ namespace, zones }) => zones.map(({ statefulSet }) => `${namespace}/${statefulSet}`)),
      ...[...scope.partition.members, ...scope.pinned.members].map(({ namespace, statefulSet }) => `${namespace}/${statefulSet}`),
    ]);
    return itemsOf(listing.statefulSets)
      .map(observeStatefulSet)
      .flatMap((set) => (isUnknown(set) || set.updateStrategy !== 'RollingUpdate' ? [] : [set]))
      .filter(
        ({ namespace, name, partition, firstOrdinal }) =>
          partition >= holdingPartition || (partition > firstOrdinal && members.has(`${namespace}/${name}`)),
      )
      .map(({ namespace, name }) => ({ namespace, name }))
      .sort((a, b) => (`${a.namespace}/${a.name}` < `${b.namespace}/${b.name}` ? -1 : 1));
  } catch (error) {
    if (!isStatus(error, 403) && !(error instanceof Failure && error.exitCode === exitCodes.notAllowed)) throw error;
    return { unknown: 'no permission to list statefulsets, or to get the Deployment of the agent' };
  }
}

const deployments: Resource = { group: 'apps', version: 'v1', plural: 'deployments', kind: 'Deployment', isNamespaced: true };

/** Returns the namespaces that the agent watches; undefined for all, or when unknown. */
async function watchedNamespaces({ env, timeoutMs }: Cluster, namespace: string): Promise<readonly string[] | undefined> {
  const agent = await getObject(env, deployments, { namespace, name: agentName }, { site: 'uninstall.agent', timeoutMs });
  const told = namespacesFlagOf(fieldAt(agent, ['spec', 'template', 'spec']));
  return told?.includes('*') === true ? undefined : told;
}
