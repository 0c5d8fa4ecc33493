// Finds desired groups whose StatefulSets are missing, while another namespace has StatefulSets of exactly these names.
import { resources } from '../../../cluster/request/resource.ts';
import { fieldAt } from '../../../engine/observe/raw.ts';
import { absentElsewhere, objectKey } from '../../../engine/plan/absent.ts';
import type { AbsentMembers } from '../../../engine/plan/plan.ts';
import { isUnknown } from '../../../engine/snapshot.ts';
import type { GroupDefinition } from '../../../policies/definition.ts';
import { rolloutGroups } from '../../cluster-snapshot/kinds.ts';
import { listKnown } from '../../cluster-snapshot/listing.ts';
import type { Cluster } from '../../connection.ts';

interface LiveAbsence {
  /** Blocked groups: their members are in another namespace, where no group names them. */
  readonly absent: readonly AbsentMembers[];
  /** Groups without any StatefulSet, each as one sentence part. */
  readonly notes: readonly string[];
}

/**
 * Searches all readable namespaces for the StatefulSets of desired groups without any. A group whose StatefulSets exist nowhere gets a
 * note: it may exist before them.
 *
 * @param asked Names of desired groups, `namespace/name`.
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
    listKnown(cluster, resources.statefulSets, undefined),
    listKnown(cluster, rolloutGroups, undefined),
  ]);
  // Without both lists it is unknown whether the StatefulSets belong to another group.
  const absent = isUnknown(sets) || isUnknown(others) ? [] : absentElsewhere(empty, { sets, groups: others });
  const notes = empty
    .filter(({ namespace, name }) => !absent.some((one) => one.namespace === namespace && one.group === name))
    .map(({ namespace, name }) => `the namespace ${namespace} has no StatefulSet of the group ${name} yet`);
  return { absent, notes };
}
