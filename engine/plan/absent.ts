// Groups of a cluster that have none of their StatefulSets while another namespace has those of exactly these names: what a plan answers to them.
import type { GroupDefinition } from '../../policies/definition.ts';
import { listed } from '../../policies/wording.ts';
import { fieldAt } from '../observe/raw.ts';
import { result } from '../rule.ts';
import type { AbsentMembers } from './plan.ts';

/** RolloutGroups of all namespaces, as stored. */
interface Elsewhere {
  readonly sets: readonly unknown[];
  /** RolloutGroups. */
  readonly groups: readonly unknown[];
}

/**
 * Returns the groups without any StatefulSet that are blocked: another namespace has all of their names, and no group there uses one of
 * them. Other groups may exist before their StatefulSets.
 */
export function absentElsewhere(groups: readonly GroupDefinition[], { sets, groups: others }: Elsewhere): readonly AbsentMembers[] {
  return groups.flatMap((group): readonly AbsentMembers[] => {
    const { namespace, name, zones, sources } = group;
    const namespaces = namespacesWith(group, sets).filter((one) => !others.some((other) => isNamed(other, one, group)));
    if (namespaces.length === 0) return [];
    const members = listed(
      zones.map(({ statefulSet }) => statefulSet),
      'and',
    );
    const fact = `namespace ${namespace} has no StatefulSet of the group ${name}, but ${listed(namespaces, 'and')} has StatefulSets of these names without a group (${members}); set that namespace in the group, or apply its StatefulSets with it`;
    const source = sources['members'] ?? sources[''];
    return [{ namespace, group: name, results: [result('view-complete', 'no', fact, source === undefined ? {} : { source })] }];
  });
}

/** Other namespaces that have every StatefulSet of the group. */
function namespacesWith({ namespace: own, zones }: GroupDefinition, sets: readonly unknown[]): readonly string[] {
  const keys = new Set(sets.map(objectKey));
  const candidates = [...new Set(sets.map((set) => String(fieldAt(set, ['metadata', 'namespace']) ?? '')))].sort();
  return candidates.filter((namespace) => namespace !== own && zones.every(({ statefulSet }) => keys.has(`${namespace}/${statefulSet}`)));
}

/** Reports whether a group of that namespace names one of the StatefulSets, or selects members by labels. */
function isNamed(object: unknown, namespace: string, { zones }: GroupDefinition): boolean {
  if ((fieldAt(object, ['metadata', 'namespace']) ?? '') !== namespace) return false;
  const named = fieldAt(object, ['spec', 'members', 'zones']);
  if (!Array.isArray(named)) return true;
  return named.some((zone) => zones.some(({ statefulSet }) => statefulSet === fieldAt(zone, ['statefulSet'])));
}

/** `namespace/name`. */
export function objectKey(object: unknown): string {
  return `${String(fieldAt(object, ['metadata', 'namespace']) ?? 'default')}/${String(fieldAt(object, ['metadata', 'name']) ?? '')}`;
}
