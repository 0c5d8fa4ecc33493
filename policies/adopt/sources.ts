// Sources of an adopted group: the label or annotation of a StatefulSet for each path of the document.

import type { Source } from '../definition.ts';
import type { RolloutGroup } from '../schema/kinds.ts';
import { objectText } from './findings.ts';
import { annotationKeys, labelKeys } from './keys.ts';
import type { AdoptedMember } from './member.ts';

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
export function groupSources(
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
