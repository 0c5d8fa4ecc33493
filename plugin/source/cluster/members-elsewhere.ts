// Groups that are to be applied to a cluster that has none of their StatefulSets, while another namespace has those of exactly these names.
import { isStatus } from '../../../cluster/request/failure.ts';
import { type KubernetesObject, resources } from '../../../cluster/request/resource.ts';
import { fieldAt } from '../../../engine/observe/raw.ts';
import { absentElsewhere, objectKey } from '../../../engine/plan/absent.ts';
import type { AbsentMembers } from '../../../engine/plan/plan.ts';
import type { GroupDefinition } from '../../../policies/definition.ts';
import { rolloutGroups } from '../../cluster-snapshot/kinds.ts';
import type { Cluster } from '../../connection.ts';
import { listIn } from './cluster.ts';

interface LiveAbsence {
  /** Groups that are blocked: their members are in another namespace, where no group names them. */
  readonly absent: readonly AbsentMembers[];
  /** Groups without any StatefulSet, each as one sentence part. */
  readonly notes: readonly string[];
}

/**
 * Looks through all namespaces, where that is allowed, for the StatefulSets of groups that are asked for and have none. A group whose StatefulSets are
 * nowhere is only noted: it may be there before them.
 *
 * @param asked Groups among what is asked for, `namespace/name`.
 */
export async function liveAbsence(
  cluster: Cluster,
  groups: readonly GroupDefinition[],
  asked: ReadonlySet<string>,
  desired: readonly unknown[],
): Promise<LiveAbsence> {
  const there = new Set(desired.filter((object) => fieldAt(object, ['kind']) === 'StatefulSet').map(objectKey));
  const empty = groups.filter(
    ({ namespace, name, zones }) =>
      asked.has(`${namespace}/${name}`) && zones.every(({ statefulSet }) => !there.has(`${namespace}/${statefulSet}`)),
  );
  if (empty.length === 0) return { absent: [], notes: [] };
  const [sets, others] = await Promise.all([
    unlessForbidden(listIn(cluster, resources.statefulSets, undefined)),
    unlessForbidden(listIn(cluster, rolloutGroups, undefined)),
  ]);
  // Where either may not be listed nobody knows whether they are members of another group.
  const absent = sets === undefined || others === undefined ? [] : absentElsewhere(empty, { sets, groups: others });
  const notes = empty
    .filter(({ namespace, name }) => !absent.some((one) => one.namespace === namespace && one.group === name))
    .map(({ namespace, name }) => `the namespace ${namespace} has no StatefulSet of the group ${name} yet`);
  return { absent, notes };
}

/** None of a kind that is not served; undefined where they may not be listed. */
async function unlessForbidden(reading: Promise<readonly KubernetesObject[]>): Promise<readonly KubernetesObject[] | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (isStatus(error, 404)) return [];
    if (isStatus(error, 403)) return undefined;
    throw error;
  }
}
