// Chooses the groups of a plan, those that refuse an apply, and groups whose StatefulSets exist only in another namespace.
import type { GroupDefinition } from '../../policies/definition.ts';
import { listed } from '../../policies/wording.ts';
import { isOfStop } from '../decide/stops.ts';
import type { RuleResult } from '../decision.ts';
import { fieldAt, objectKey } from '../observe/raw.ts';
import { isUntilPerson, result } from '../rule.ts';
import type { GroupPlan } from './document.ts';
import type { AbsentMembers } from './plan.ts';

/**
 * Returns the desired groups. A member of no desired group stays in its former group: the rules of that group apply to its removal. A
 * removed group keeps only these members.
 */
export function groupsToPlan(groups: readonly GroupDefinition[], before: readonly GroupDefinition[]): readonly GroupDefinition[] {
  const key = (namespace: string, name: string): string => `${namespace}/${name}`;
  const members = new Set(groups.flatMap((group) => group.zones.map((zone) => key(group.namespace, zone.statefulSet))));
  const leaving = before.flatMap((group) => {
    const zones = group.zones.filter((zone) => !members.has(key(group.namespace, zone.statefulSet)));
    return zones.length === 0 ? [] : [{ ...group, zones }];
  });
  const kept = groups.map((group) => {
    const left = leaving.find(({ namespace, name }) => namespace === group.namespace && name === group.name);
    if (left === undefined) return group;
    return { ...group, zones: [...group.zones, ...left.zones], sources: { ...left.sources, ...group.sources } };
  });
  const names = new Set(groups.map(({ namespace, name }) => key(namespace, name)));
  return [...kept, ...leaving.filter(({ namespace, name }) => !names.has(key(namespace, name)))];
}

/** Reports whether the change reaches the group: it changes an object of the group, or a part of it is denied. */
export function isTouched({ changes, refused }: GroupPlan): boolean {
  return changes.length + refused.length > 0;
}

/** Returns the groups that refuse the whole apply if they are blocked: touched groups, and groups that would have no member. */
export function refusingGroups(groups: readonly GroupPlan[], absent: readonly AbsentMembers[] = []): readonly GroupPlan[] {
  const hasNoMember = ({ namespace, group }: GroupPlan): boolean =>
    absent.some((one) => one.namespace === namespace && one.group === group);
  return groups.filter((group) => (isTouched(group) && !isBlockedElsewhere(group)) || hasNoMember(group));
}

/** Reports whether only rolled-back templates block the plan, and the change has no other template. It can create a missing StatefulSet. */
function isBlockedElsewhere({ changes, refused, waits, stops = [] }: GroupPlan): boolean {
  const isElsewhere = (wait: RuleResult): boolean => stops.find((one) => isOfStop(wait, one))?.rule === 'rolled-back';
  const keepsTemplates = refused.length === 0 && changes.every(({ kind }) => kind !== 'template');
  return keepsTemplates && waits.filter(isUntilPerson).every(isElsewhere);
}

interface ClusterObjects {
  readonly sets: readonly unknown[];
  readonly groups: readonly unknown[];
}

/** Returns a block for each group whose StatefulSets exist only in another namespace, where no group names them. */
export function absentElsewhere(groups: readonly GroupDefinition[], { sets, groups: others }: ClusterObjects): readonly AbsentMembers[] {
  return groups.flatMap((group): readonly AbsentMembers[] => {
    const { namespace, name, zones, sources } = group;
    const namespaces = namespacesWith(group, sets).filter((one) => !others.some((other) => isNamed(other, one, group)));
    if (namespaces.length === 0) return [];
    const members = listed(
      zones.map(({ statefulSet }) => statefulSet),
      'and',
    );
    const fact = `namespace ${namespace} has no StatefulSet of the group ${name}, but ${listed(namespaces, 'and')} has StatefulSets of these names without a group (${members}); set that namespace in the group, or apply the StatefulSets together with the group`;
    const source = sources[''];
    return [{ namespace, group: name, results: [result('view-complete', 'no', fact, source === undefined ? {} : { source })] }];
  });
}

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
