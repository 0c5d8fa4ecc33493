// Adopts StatefulSets with the labels and annotations of grafana/rollout-operator as RolloutGroups.
import type { Source } from '../definition.ts';
import { apiVersion, type RolloutGroup, schemas } from '../schema/kinds.ts';
import { schemaProblems } from '../schema/schema-findings.ts';
import { annotationKeys, labelKeys } from './keys.ts';
import { type AdoptedMember, readMembers } from './member.ts';
import { groupName, zoneNames } from './names.ts';
import { type AdoptedStatefulSet, type AdoptionFinding, adoptionFinding, type Hold, objectText, readStatefulSet } from './statefulset.ts';

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

const longestHold = 1024;

/** The RolloutGroup of members that share namespace and label, for the schema to complete. `zones` maps StatefulSets to zone names. */
function groupDocument(members: readonly AdoptedMember[], zones: ReadonlyMap<string, string>): unknown {
  const [first] = members;
  const label = first?.set.labels[labelKeys.group] ?? '';
  const name = groupName(label);
  const common = commonSettings(members);
  return compact({
    apiVersion,
    kind: 'RolloutGroup',
    metadata: { name, namespace: first?.set.namespace },
    spec: {
      members: { zones: members.map((member) => zoneInput(member, zones, common)) },
      profile: 'rolloutOperator',
      groupLabel: name === label ? undefined : label,
      replicas: common.mirror ? { mirror: common.mirror } : { leader: true },
      scaling: {
        duringRollout: 'allow',
        up: { followersWaitFor: common.waitsForLeader ? 'leaderReady' : 'nothing' },
        down: { betweenZones: common.betweenZones, delayed: common.delayed, prepare: common.prepare },
      },
      rollout: {
        strategy: 'onDelete',
        order: 'ascending',
        rotateBy: 'delete',
        maxUnavailable: common.maxUnavailable,
        replaceUnready: { when: 'crashing', after: '0s' },
      },
      protect: protectedBy(common.noDownscale),
    },
  });
}

type Common = ReturnType<typeof commonSettings>;

/** The settings on which all members agree. Followers mirror nothing and only they wait for a leader, so the others have no say in that. */
function commonSettings(members: readonly AdoptedMember[]) {
  const followers = members.filter((member) => member.leader !== undefined);
  const leaders = members.filter((member) => member.leader === undefined);
  return {
    mirror: agreed(leaders.map((member) => member.mirror)),
    maxUnavailable: agreed(members.map((member) => member.maxUnavailable)),
    betweenZones: agreed(members.map((member) => member.betweenZones)),
    delayed: agreed(members.map((member) => member.delayed)),
    prepare: agreed(members.map((member) => member.prepare)),
    waitsForLeader: agreed(followers.map((member) => member.waitsForLeader)),
    noDownscale: agreed(members.map((member) => member.noDownscale)),
  };
}

function zoneInput(member: AdoptedMember, zones: ReadonlyMap<string, string>, common: Common): unknown {
  const { set, leader } = member;
  const waits = member.waitsForLeader && leader !== undefined;
  return {
    name: zones.get(set.name),
    statefulSet: set.name,
    follows: leader === undefined ? undefined : zones.get(leader),
    replicas: { mirror: unlessSaid(common.mirror, member.mirror) },
    scaling: {
      hold: holdText(member.holds),
      up: { followersWaitFor: unlessSaid(common.waitsForLeader, waits || undefined) && 'leaderReady' },
      down: {
        hold: holdText(member.downHolds),
        betweenZones: unlessSaid(common.betweenZones, member.betweenZones),
        delayed: unlessSaid(common.delayed, member.delayed),
        prepare: unlessSaid(common.prepare, member.prepare),
      },
    },
    maxUnavailable: unlessSaid(common.maxUnavailable, member.maxUnavailable === 1 ? undefined : member.maxUnavailable),
    protect: protectedBy(unlessSaid(common.noDownscale, member.noDownscale)),
    paused: member.isPaused || undefined,
    forceReplicas: member.forceReplicas,
  };
}

/** A StatefulSet that must not shrink must not be deleted either. The original does not check deletions. */
function protectedBy(noDownscale: boolean | undefined): { readonly noDownscale?: true; readonly noDelete?: true } {
  return noDownscale === true ? { noDownscale, noDelete: true } : {};
}

function unlessSaid<Value>(common: Value | undefined, own: Value | undefined): Value | undefined {
  return common === undefined ? own : undefined;
}

function holdText(holds: readonly Hold[]): string | undefined {
  const text = holds.map((hold) => hold.text).join('; ');
  return text === '' ? undefined : text.slice(0, longestHold);
}

/** Returns the common value; undefined if the values differ or the list is empty. */
function agreed<Value>(values: readonly Value[]): Value | undefined {
  const [first] = values;
  return values.every((value) => JSON.stringify(value) === JSON.stringify(first)) ? first : undefined;
}

/** The same data without members that are undefined and without maps that are then empty. */
function compact(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(compact);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value)
    .map(([key, member]) => [key, compact(member)] as const)
    .filter(([, member]) => member !== undefined);
  return members.length > 0 ? Object.fromEntries(members) : undefined;
}

/** The settings of one zone, each with the key that it is read from; absent when the setting is off. */
function settingFields(member: AdoptedMember): Readonly<Record<string, string | undefined>> {
  const { set } = member;
  const when = (isOn: boolean, field: string) => (isOn ? field : undefined);
  return {
    follows: when(member.leader !== undefined, annotationKeys.leader),
    'replicas.mirror': when(member.mirror !== undefined, annotationKeys.mirrorName),
    'scaling.hold': member.holds[0]?.field,
    'scaling.up.followersWaitFor': when(member.waitsForLeader && member.leader !== undefined, annotationKeys.upscaleOnlyWhenLeaderReady),
    'scaling.down.hold': member.downHolds[0]?.field,
    'scaling.down.betweenZones': when(member.betweenZones !== undefined, labelKeys.minTimeBetweenZones),
    'scaling.down.delayed': when(member.delayed !== undefined, annotationKeys.delay),
    'scaling.down.delayed.endpoint': when(member.delayed !== undefined, annotationKeys.delayedUrl),
    'scaling.down.prepare': when(member.prepare !== undefined, labelKeys.prepareDownscale),
    'scaling.down.prepare.endpoint': when(member.prepare !== undefined, annotationKeys.preparePath),
    maxUnavailable: when(set.annotations[annotationKeys.maxUnavailable] !== undefined, annotationKeys.maxUnavailable),
    'protect.noDownscale': when(member.noDownscale, labelKeys.noDownscale),
    'protect.noDelete': when(member.noDownscale, labelKeys.noDownscale),
    paused: when(member.isPaused, annotationKeys.paused),
    forceReplicas: when(member.forceReplicas !== undefined, annotationKeys.forceReplicas),
  };
}

/**
 * The sources by path: `zones.<zone>.<setting>` for every setting of every zone, also for what the document says once for all; that one
 * has its own path too (`rollout.maxUnavailable`, `scaling.down.betweenZones`) and stands for the first zone that carries it.
 */
function groupSources(
  document: RolloutGroup,
  members: readonly AdoptedMember[],
  zones: ReadonlyMap<string, string>,
): Readonly<Record<string, Source>> {
  const sources: Record<string, Source> = {};
  const written = new Map(document.spec.members.zones?.map((zone) => [zone.statefulSet, zone]));
  for (const member of members) {
    const object = objectText(member.set);
    const zone = `zones.${zones.get(member.set.name)}`;
    sources[''] ??= { object, field: labelKeys.group };
    sources[zone] = { object, field: labelKeys.group };
    for (const [path, field] of Object.entries(settingFields(member))) {
      if (field === undefined) continue;
      sources[`${zone}.${path}`] = { object, field };
      const shared = path === 'maxUnavailable' ? 'rollout.maxUnavailable' : path;
      const isShared = isWritten(document.spec, shared) && !isWritten(written.get(member.set.name), path);
      if (isShared) sources[shared] ??= { object, field };
    }
  }
  return sources;
}

function isWritten(spec: unknown, path: string): boolean {
  let value = spec;
  for (const key of path.split('.')) value = typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
  return value !== undefined;
}
