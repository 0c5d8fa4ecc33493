// Chooses the groups of a plan when labels define the groups: the requested groups, and groups that lose a member by the same change.
import type { GroupDefinition } from '../../policies/definition.ts';

/**
 * The groups as they are asked for, with the members of before that no group has any more: a StatefulSet that loses its label, or is deleted,
 * leaves under the rules that bound it, or the label would be the way around them. A group that loses all its members is planned as it was.
 */
export function groupsToPlan(groups: readonly GroupDefinition[], before: readonly GroupDefinition[]): readonly GroupDefinition[] {
  const key = (namespace: string, name: string): string => `${namespace}/${name}`;
  const members = new Set(groups.flatMap((group) => group.zones.map((zone) => key(group.namespace, zone.statefulSet))));
  const leaving = before.flatMap((group) => {
    const zones = group.zones.filter((zone) => !members.has(key(group.namespace, zone.statefulSet)));
    return zones.length === 0 ? [] : [{ group, zones }];
  });
  const kept = groups.map((group) => {
    const left = leaving.find((one) => key(one.group.namespace, one.group.name) === key(group.namespace, group.name));
    return left === undefined ? group : withZones(group, left.group, left.zones);
  });
  const names = new Set(groups.map((group) => key(group.namespace, group.name)));
  return [...kept, ...leaving.filter(({ group }) => !names.has(key(group.namespace, group.name))).map(({ group }) => group)];
}

function withZones(group: GroupDefinition, before: GroupDefinition, zones: GroupDefinition['zones']): GroupDefinition {
  return { ...group, zones: [...group.zones, ...zones], sources: { ...before.sources, ...group.sources } };
}
