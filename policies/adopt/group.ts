// The document of an adopted group: what all zones have in common is said once, the rest zone by zone.

import { apiVersion } from '../schema/kinds.ts';
import { labelKeys } from './keys.ts';
import type { AdoptedMember } from './member.ts';
import { groupName } from './names.ts';
import type { Hold } from './reading.ts';

const longestHold = 1024;

/** The RolloutGroup of members that share namespace and label, for the schema to complete. `zones` maps StatefulSets to zone names. */
export function groupDocument(members: readonly AdoptedMember[], zones: ReadonlyMap<string, string>): unknown {
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
