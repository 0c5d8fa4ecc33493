// Adopts StatefulSets with the labels and annotations of grafana/rollout-operator as RolloutGroups.
import type { Source } from '../definition.ts';
import { apiVersion, type RolloutGroup, schemas } from '../schema/kinds.ts';
import { schemaProblems } from '../schema/schema-findings.ts';
import { valueAt } from '../schema/schema-walk.ts';
import { compareText } from '../values/compare-text.ts';
import { firstByKey, groupBy } from '../values/group-by.ts';
import { annotationKeys, labelKeys } from './keys.ts';
import { type AdoptedMember, readMembers } from './member.ts';
import { groupName, zoneNames } from './names.ts';
import {
  type AdoptedStatefulSet,
  type AdoptionFinding,
  adoptionFinding,
  objectText,
  readStatefulSet,
  type ScalingBlock,
} from './statefulset.ts';

export interface Adoption {
  /** The groups, sorted by namespace, then by the value of the label. */
  readonly groups: readonly RolloutGroup[];
  readonly findings: readonly AdoptionFinding[];
  /** The source of each setting, by `namespace/name` of the group, then by path as in GroupDefinition.sources. */
  readonly sources: Readonly<Record<string, Readonly<Record<string, Source>>>>;
}

/**
 * Returns one group for each namespace and value of the label `rollout-group` on raw `apps/v1` StatefulSets. An empty value is a group too.
 * Ignores other objects and the order of the list.
 *
 * Each document has the behaviour of grafana/rollout-operator: zones in byte-wise order of their names, pods by ascending ordinal, deletion
 * instead of eviction, and the drop-in profile. An invalid value becomes a finding, which names its effect in grafana/rollout-operator.
 *
 * @param options.namespace is the namespace of objects without one; `default` if absent.
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
      findings.push(adoptionFinding(first, 'RG4019', labelKeys.group, `the group is omitted because its document is invalid: ${problem}`));
    }
  }
  return { groups, findings, sources };
}

/**
 * Returns the members of each group, sorted by name in byte-wise order as in grafana/rollout-operator: `zone-10` comes before `zone-2`. A
 * StatefulSet that is listed twice counts once.
 */
function membersByGroup(sets: readonly AdoptedStatefulSet[]): readonly (readonly AdoptedStatefulSet[])[] {
  const groupKey = ({ namespace, labels }: AdoptedStatefulSet): string => `${namespace}\0${labels[labelKeys.group]}`;
  const labelled = sets
    .filter(({ labels }) => labels[labelKeys.group] !== undefined)
    .sort((a, b) => compareText(JSON.stringify(a), JSON.stringify(b)));
  return [
    ...groupBy(
      firstByKey(labelled, (set) => `${groupKey(set)}\0${set.name}`),
      groupKey,
    ).values(),
  ];
}

function groupFindings(members: readonly AdoptedMember[]): readonly AdoptionFinding[] {
  const [first] = members;
  const single =
    first && members.length === 1
      ? [adoptionFinding(first.set, 'RG4014', labelKeys.group, 'the group has one member, so no rule compares zones')]
      : [];
  return [...single, ...cycleFindings(members)];
}

/** Reports each cycle of leaders once. The group keeps the leaders: grafana/rollout-operator does not detect cycles. */
function cycleFindings(members: readonly AdoptedMember[]): readonly AdoptionFinding[] {
  const leaderOf = new Map(members.map((member) => [member.set.name, member.leader]));
  return members.flatMap((member) => {
    const cycle = [member.set.name];
    let next = member.leader;
    while (next !== undefined && !cycle.includes(next)) {
      cycle.push(next);
      next = leaderOf.get(next);
    }
    const isFirstOfCycle = next === member.set.name && cycle.every((name) => name >= member.set.name);
    if (!isFirstOfCycle) return [];
    const message = `${annotationKeys.leader} forms a cycle: ${[...cycle, member.set.name].join(' follows ')}`;
    return [adoptionFinding(member.set, 'RG4018', annotationKeys.leader, message)];
  });
}

const longestHold = 1024;

/** Returns the RolloutGroup of members with one namespace and label, without defaults. `zones` maps StatefulSets to zone names. */
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

/** Returns the settings that all members share. Only leaders can mirror, and only followers can wait for a leader. */
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
    replicas: { mirror: unlessCommon(common.mirror, member.mirror) },
    scaling: {
      hold: holdText(member.holds),
      up: { followersWaitFor: unlessCommon(common.waitsForLeader, waits || undefined) && 'leaderReady' },
      down: {
        hold: holdText(member.downHolds),
        betweenZones: unlessCommon(common.betweenZones, member.betweenZones),
        delayed: unlessCommon(common.delayed, member.delayed),
        prepare: unlessCommon(common.prepare, member.prepare),
      },
    },
    maxUnavailable: unlessCommon(common.maxUnavailable, member.maxUnavailable === 1 ? undefined : member.maxUnavailable),
    protect: protectedBy(unlessCommon(common.noDownscale, member.noDownscale)),
    paused: member.isPaused || undefined,
    forceReplicas: member.forceReplicas,
  };
}

/** Returns the protection. A StatefulSet that must not shrink must not be deleted either; grafana/rollout-operator allows deletes. */
function protectedBy(noDownscale: boolean | undefined): { readonly noDownscale?: true; readonly noDelete?: true } {
  return noDownscale === true ? { noDownscale, noDelete: true } : {};
}

function unlessCommon<Value>(common: Value | undefined, own: Value | undefined): Value | undefined {
  return common === undefined ? own : undefined;
}

function holdText(holds: readonly ScalingBlock[]): string | undefined {
  const text = holds.map((hold) => hold.text).join('; ');
  return text === '' ? undefined : text.slice(0, longestHold);
}

/** Returns the common value; undefined if the values differ or the list is empty. */
function agreed<Value>(values: readonly Value[]): Value | undefined {
  const [first] = values;
  return values.every((value) => JSON.stringify(value) === JSON.stringify(first)) ? first : undefined;
}

/** Returns the data without undefined fields and without empty maps. */
function compact(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(compact);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value)
    .map(([key, member]) => [key, compact(member)] as const)
    .filter(([, member]) => member !== undefined);
  return members.length > 0 ? Object.fromEntries(members) : undefined;
}

/** Returns the label or annotation of each setting of one zone; undefined if the setting is off. */
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

/** Returns the sources by path: `zones.<zone>.<setting>`, and for a setting that all zones share also its path in the group. */
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
  return valueAt(spec, path.split('.')) !== undefined;
}
