// Adoption: StatefulSets that carry the labels and annotations of grafana/rollout-operator become the same RolloutGroup that people write.

import type { Source } from '../definition.ts';
import { type RolloutGroup, schemas } from '../schema/kinds.ts';
import { schemaProblems } from '../schema/schema-findings.ts';
import { type AdoptionFinding, adoptionFinding } from './findings.ts';
import { groupDocument } from './group.ts';
import { annotationKeys, labelKeys } from './keys.ts';
import { type AdoptedMember, readMembers } from './member.ts';
import { zoneNames } from './names.ts';
import { groupSources } from './sources.ts';
import { type AdoptedStatefulSet, readStatefulSet } from './statefulset.ts';

export type { AdoptionFinding } from './findings.ts';

export interface Adoption {
  /** Sorted by namespace, then by the value of the label. */
  readonly groups: readonly RolloutGroup[];
  readonly findings: readonly AdoptionFinding[];
  /** Source of each setting, by `namespace/name` of the group, then by path as in GroupDefinition.sources. */
  readonly sources: Readonly<Record<string, Readonly<Record<string, Source>>>>;
}

/**
 * The groups of raw `apps/v1` StatefulSets with the label `rollout-group`, one per namespace and value; an empty value is a group too.
 * Everything else in the list is passed over. The order of the list does not matter.
 *
 * What the original does differently from a native group is written into each document: zones in byte-wise order of their names, pods by
 * ascending ordinal, deletion instead of eviction, and the drop-in profile. A value that the original cannot read becomes a finding
 * and the same consequence: a default, a hold, or nothing.
 *
 * @param options.namespace stands for the namespace of objects that name none; `default` when left out.
 */
export function adoptGroups(statefulSets: readonly unknown[], options: { readonly namespace?: string } = {}): Adoption {
  const sets = statefulSets.map((raw) => readStatefulSet(raw, options.namespace ?? 'default')).filter((set) => set !== undefined);
  const groups: RolloutGroup[] = [];
  const findings: AdoptionFinding[] = [];
  const sources: Record<string, Readonly<Record<string, Source>>> = {};
  for (const group of membersByGroup(sets)) {
    const members = readMembers(group);
    const zones = zoneNames(group.map((set) => set.name));
    const written = groupDocument(members, zones);
    const document = schemas.RolloutGroup.safeParse(written);
    findings.push(...members.flatMap((member) => member.findings), ...groupFindings(members));
    const [first] = group;
    if (document.success) {
      groups.push(document.data);
      const { namespace = '', name } = document.data.metadata;
      sources[`${namespace}/${name}`] = groupSources(document.data, members, zones);
    } else if (first) {
      const problem = schemaProblems(schemas.RolloutGroup, written);
      findings.push(
        adoptionFinding(first, 'notAdoptable', labelKeys.group, `the group is omitted because its document is invalid: ${problem}`),
      );
    }
  }
  return { groups, findings, sources };
}

/** The members of each group, sorted; a StatefulSet that is listed twice counts once. */
function membersByGroup(sets: readonly AdoptedStatefulSet[]): readonly (readonly AdoptedStatefulSet[])[] {
  const groups = new Map<string, Map<string, AdoptedStatefulSet>>();
  const sorted = sets
    .map((set) => ({ set, key: [set.namespace, set.labels[labelKeys.group], set.name, JSON.stringify(set)] }))
    .filter(({ key }) => key[1] !== undefined)
    .sort((a, b) => compareKeys(a.key, b.key));
  for (const { set } of sorted) {
    const key = `${set.namespace}/${set.labels[labelKeys.group]}`;
    const members = groups.get(key) ?? new Map<string, AdoptedStatefulSet>();
    groups.set(key, members);
    if (!members.has(set.name)) members.set(set.name, set);
  }
  return [...groups.values()].map((members) => [...members.values()]);
}

/** By code units, which for names of objects is byte by byte: `zone-10` comes before `zone-2`, as in the original. */
function compareKeys(a: readonly (string | undefined)[], b: readonly (string | undefined)[]): number {
  const index = a.findIndex((text, position) => text !== b[position]);
  return index < 0 ? 0 : (a[index] ?? '') < (b[index] ?? '') ? -1 : 1;
}

function groupFindings(members: readonly AdoptedMember[]): readonly AdoptionFinding[] {
  const [first] = members;
  const single =
    first && members.length === 1
      ? [adoptionFinding(first.set, 'singleMember', labelKeys.group, 'the group has one member, so no rule compares zones')]
      : [];
  return [...single, ...cycleFindings(members)];
}

/** The original follows leaders in a circle without noticing; the group keeps them, and each circle is reported once. */
function cycleFindings(members: readonly AdoptedMember[]): readonly AdoptionFinding[] {
  const leaderOf = new Map(members.map((member) => [member.set.name, member.leader]));
  return members.flatMap((member) => {
    const circle = [member.set.name];
    let next = member.leader;
    while (next !== undefined && !circle.includes(next)) {
      circle.push(next);
      next = leaderOf.get(next);
    }
    const isFirstOfCircle = next === member.set.name && circle.every((name) => name >= member.set.name);
    if (!isFirstOfCircle) return [];
    const message = `${annotationKeys.leader} forms a cycle: ${[...circle, member.set.name].join(' follows ')}`;
    return [adoptionFinding(member.set, 'leadersFormCycle', annotationKeys.leader, message)];
  });
}
