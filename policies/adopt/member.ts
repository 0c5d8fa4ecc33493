// Reads all settings of the members of one adopted group, for adoption.
import type { CountOrPercent } from '../schema/scalars.ts';
import { defined } from '../values/defined.ts';
import { adoptedKeys, annotationKeys, labelKeys, podNameLabel } from './keys.ts';
import {
  type MirrorInput,
  type ReplicasReading,
  readBetweenZones,
  readDelayed,
  readFlag,
  readForceReplicas,
  readMaxUnavailable,
  readPrepare,
  readReplicas,
} from './settings.ts';
import {
  type AdoptedStatefulSet,
  type AdoptionFinding,
  adoptionFinding,
  objectText,
  off,
  type Reading,
  type ScalingBlock,
} from './statefulset.ts';

/** The settings of one StatefulSet. An absent setting is off. */
export interface AdoptedMember {
  readonly set: AdoptedStatefulSet;
  readonly leader?: string;
  readonly mirror?: MirrorInput;
  readonly maxUnavailable: CountOrPercent;
  readonly betweenZones?: string;
  readonly delayed?: NonNullable<ReturnType<typeof readDelayed>['value']>;
  readonly prepare?: NonNullable<ReturnType<typeof readPrepare>['value']>;
  readonly forceReplicas?: number;
  readonly waitsForLeader: boolean;
  readonly isPaused: boolean;
  readonly noDownscale: boolean;
  readonly holds: readonly ScalingBlock[];
  readonly downHolds: readonly ScalingBlock[];
  readonly findings: readonly AdoptionFinding[];
}

/** Reads every member of one group, in the order given. */
export function readMembers(sets: readonly AdoptedStatefulSet[]): readonly AdoptedMember[] {
  const names = new Set(sets.map((set) => set.name));
  const members = sets.map((set) => readMember(set, names));
  return members.map((member) => ({ ...member, downHolds: [...member.downHolds, ...unreadableTimeHolds(member, members)] }));
}

function readMember(set: AdoptedStatefulSet, groupMembers: ReadonlySet<string>): AdoptedMember {
  const replicas = readReplicas(set, groupMembers);
  const delayed = replicas.mirror ? readDelayed(set) : delayedWithoutMirror(set, replicas);
  const prepare = readPrepare(set);
  const maxUnavailable = readMaxUnavailable(set);
  const betweenZones = readBetweenZones(set);
  const holds = [replicas.hold, delayed.hold].filter((hold) => hold !== undefined);
  const forceReplicas = readForceReplicas(set, forceIgnoredBecause(replicas.isWritten, holds.length > 0));
  const waitsForLeader = readFlag(set, 'annotations', annotationKeys.upscaleOnlyWhenLeaderReady);
  const paused = readFlag(set, 'annotations', annotationKeys.paused);
  const noDownscale = readFlag(set, 'labels', labelKeys.noDownscale);
  const readings = [replicas, delayed, prepare, maxUnavailable, betweenZones, forceReplicas, waitsForLeader, paused, noDownscale];
  return {
    set,
    ...defined({ leader: replicas.leader, mirror: replicas.mirror, betweenZones: betweenZones.value }),
    ...defined({ delayed: delayed.value, prepare: prepare.value, forceReplicas: forceReplicas.value }),
    maxUnavailable: maxUnavailable.value ?? 1,
    waitsForLeader: waitsForLeader.value,
    isPaused: paused.value,
    noDownscale: noDownscale.value,
    holds,
    downHolds: [prepare.downHold, delayed.downHold].filter((hold) => hold !== undefined),
    findings: [...shapeFindings(set), ...readings.flatMap((reading) => reading.findings)],
  };
}

/** Reports the annotation for a delay if no object is mirrored: grafana/rollout-operator then ignores the annotation. */
function delayedWithoutMirror(set: AdoptedStatefulSet, replicas: ReplicasReading): Reading<never> {
  const field = annotationKeys.delay;
  if ((set.annotations[field] ?? '') === '' || replicas.hold) return off;
  const message = `${field} is ignored because the replicas are not mirrored; pods are deleted without delay`;
  return { findings: [adoptionFinding(set, 'RG4020', field, message)] };
}

function forceIgnoredBecause(isWritten: boolean, isScalingBlocked: boolean): string | undefined {
  if (isScalingBlocked) return 'cannot act on a StatefulSet that is not scaled';
  return isWritten ? undefined : 'acts only on a StatefulSet that follows a leader or mirrors another object';
}

/** Returns why the member must not scale down: a time between zones is unreadable, and grafana/rollout-operator would read this time. */
function unreadableTimeHolds(member: AdoptedMember, members: readonly AdoptedMember[]): readonly ScalingBlock[] {
  const field = labelKeys.minTimeBetweenZones;
  const others = members.filter((other) => other !== member);
  const own = isTimeUnreadable(member) && member.leader !== undefined && others.some(mayRecordDownscale);
  const culprit = isPrepared(member) ? others.find((other) => isTimeUnreadable(other) && mayRecordDownscale(other)) : undefined;
  return [
    ...(own ? [{ text: `${field} is no Go duration`, field }] : []),
    ...(culprit ? [{ text: `${field} of ${objectText(culprit.set)} is no Go duration`, field }] : []),
  ];
}

function isTimeUnreadable(member: AdoptedMember): boolean {
  return member.set.labels[labelKeys.minTimeBetweenZones] !== undefined && member.betweenZones === undefined;
}

function isPrepared({ set }: AdoptedMember): boolean {
  return set.labels[labelKeys.prepareDownscale] === 'true';
}

function mayRecordDownscale(member: AdoptedMember): boolean {
  return isPrepared(member) || member.set.annotations[annotationKeys.lastDownscale] !== undefined;
}

/** Returns findings about misplaced or malformed keys, the update strategy and the label of the pods. */
function shapeFindings(set: AdoptedStatefulSet): readonly AdoptionFinding[] {
  const labelsAsAnnotations = [labelKeys.noDownscale, labelKeys.prepareDownscale, labelKeys.minTimeBetweenZones].filter(
    (key) => set.annotations[key] !== undefined && set.labels[key] === undefined,
  );
  const strategyField = 'spec.updateStrategy.type';
  const strategy = `${strategyField} is ${set.updateStrategy}; no pod of the group is replaced until it is OnDelete`;
  const labelField = `spec.template.metadata.labels.${podNameLabel}`;
  return [
    ...set.notText
      .filter((key) => adoptedKeys.has(key))
      .sort()
      .map((key) => adoptionFinding(set, 'RG4017', key, `${key} is not text, so the API server rejects it; quote the value`)),
    ...labelsAsAnnotations.map((key) =>
      adoptionFinding(set, 'RG4011', key, `${key} is an annotation and has no effect; it counts only as a label`),
    ),
    ...(set.updateStrategy === 'OnDelete' ? [] : [adoptionFinding(set, 'RG4012', strategyField, strategy)]),
    ...(set.hasPodNameLabel
      ? []
      : [adoptionFinding(set, 'RG4013', labelField, `${labelField} is missing; the agent finds the pods by this label`)]),
  ];
}
