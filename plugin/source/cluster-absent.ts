// Groups that are to be applied to a cluster that has none of their StatefulSets, while another namespace has those of exactly these names.
import { isStatus } from '../../cluster/request/failure.ts';
import { type KubernetesObject, resources } from '../../cluster/request/resource.ts';
import { fieldAt } from '../../engine/observe/raw.ts';
import type { AbsentMembers } from '../../engine/plan/plan.ts';
import { result } from '../../engine/rule.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { listed } from '../../policies/wording.ts';
import type { Cluster } from '../connection.ts';
import { rolloutGroups } from '../live/kinds.ts';
import { listIn } from './cluster.ts';

export interface LiveAbsence {
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
  const there = new Set(desired.filter((object) => fieldAt(object, ['kind']) === 'StatefulSet').map(keyOf));
  const empty = groups.filter(
    ({ namespace, name, zones }) =>
      asked.has(`${namespace}/${name}`) && zones.every(({ statefulSet }) => !there.has(`${namespace}/${statefulSet}`)),
  );
  if (empty.length === 0) return { absent: [], notes: [] };
  const [sets, others] = await Promise.all([
    unlessUnknown(listIn(cluster, resources.statefulSets, undefined)),
    unlessUnknown(listIn(cluster, rolloutGroups, undefined)),
  ]);
  const absent = empty.flatMap((group): readonly AbsentMembers[] => {
    const namespaces = namespacesWith(group, sets).filter((namespace) => !others.some((one) => names(one, namespace, group)));
    if (namespaces.length === 0) return [];
    const fact = `the namespace ${group.namespace} has no StatefulSet of the group ${group.name}, and ${listed(namespaces, 'and')} has those of exactly these names (${listed(
      group.zones.map(({ statefulSet }) => statefulSet),
      'and',
    )}), in no group; write that namespace into the group, or apply its StatefulSets first or with it`;
    const source = group.sources['members'] ?? group.sources[''];
    return [
      {
        namespace: group.namespace,
        group: group.name,
        results: [result('view-complete', 'no', fact, source === undefined ? {} : { source })],
      },
    ];
  });
  const notes = empty
    .filter(({ namespace, name }) => !absent.some((one) => one.namespace === namespace && one.group === name))
    .map(({ namespace, name }) => `the namespace ${namespace} has no StatefulSet of the group ${name} yet`);
  return { absent, notes };
}

/** Other namespaces that have every StatefulSet of the group. */
function namespacesWith({ namespace: own, zones }: GroupDefinition, sets: readonly KubernetesObject[]): readonly string[] {
  const keys = new Set(sets.map(keyOf));
  const candidates = [...new Set(sets.map(({ metadata }) => metadata.namespace ?? ''))].sort();
  return candidates.filter((namespace) => namespace !== own && zones.every(({ statefulSet }) => keys.has(`${namespace}/${statefulSet}`)));
}

/** Whether a group of that namespace names one of the StatefulSets, or finds its members by labels, which may be these. */
function names(object: KubernetesObject, namespace: string, { zones }: GroupDefinition): boolean {
  if (object.metadata.namespace !== namespace) return false;
  const named = fieldAt(object, ['spec', 'members', 'zones']);
  if (!Array.isArray(named)) return true;
  return named.some((zone) => zones.some(({ statefulSet }) => statefulSet === fieldAt(zone, ['statefulSet'])));
}

function keyOf(object: unknown): string {
  return `${String(fieldAt(object, ['metadata', 'namespace']) ?? 'default')}/${String(fieldAt(object, ['metadata', 'name']) ?? '')}`;
}

/** What may not be listed, or is not served, tells nothing. */
async function unlessUnknown(reading: Promise<readonly KubernetesObject[]>): Promise<readonly KubernetesObject[]> {
  try {
    return await reading;
  } catch (error) {
    if (isStatus(error, 403) || isStatus(error, 404)) return [];
    throw error;
  }
}
