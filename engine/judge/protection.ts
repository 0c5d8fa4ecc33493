// Keeps a removed protection in force for ten minutes, so that no user can remove it and then disrupt pods. A departure records the removal.
import { annotationKeys, labelKeys, preparationKeys } from '../../policies/adopt/keys.ts';
import { withinGoDuration } from '../../policies/adopt/settings.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { goDurationMs } from '../../policies/duration.ts';
import { policiesFor } from '../../policies/join.ts';
import type { AdmissionRequest, RuleResult } from '../decision.ts';
import { longestDelayMs } from '../ledger/ledger.ts';
import { statefulSetInName } from '../observe/cluster.ts';
import { unreadReasonOf } from '../observe/view.ts';
import { profileOf } from '../profiles.ts';
import { result } from '../rule.ts';
import { type Departure, isUnknown, ledgerOf, type Snapshot, type StatefulSetView, setNamed } from '../snapshot.ts';
import { groupOf, podNamed } from './admission-claims.ts';

/** The time for which removed protection stays in force, in milliseconds. */
export const departureMs = 600_000;

/** The labels that protect a StatefulSet, as in grafana/rollout-operator. Some labels protect it even without a group. */
export const protectiveLabels: readonly string[] = Object.values(labelKeys);

/**
 * Returns the protection of a StatefulSet by its group or by a protective label, which protects it even without a group. The protection is
 * unknown if the StatefulSet may have a group that could not be read.
 */
export function protectionOf(
  snapshot: Pick<Snapshot, 'groups' | 'statefulSets' | 'unread'>,
  namespace: string,
  name: string,
): 'protected' | 'unprotected' | 'unknown' {
  const { labels = {} } = setNamed(snapshot, namespace, name) ?? {};
  if (groupOf(snapshot, namespace, name) !== undefined || protectiveLabels.some((label) => labels[label] !== undefined)) return 'protected';
  return unreadReasonOf(snapshot, 'Group', namespace, name) === undefined ? 'unprotected' : 'unknown';
}

const rule = 'protection-kept';

/** Returns the results that block because the object recently lost protection, or because this request would remove protection. */
export function protectionKept(snapshot: Snapshot, request: AdmissionRequest): readonly RuleResult[] {
  return [...departed(snapshot, request), ...leaving(snapshot, request)];
}

function departed(snapshot: Snapshot, request: AdmissionRequest): readonly RuleResult[] {
  const set = subjectOf(snapshot, request);
  const { departures = [], unprotected = [] } = snapshot;
  if (set === undefined) return [];
  const shrinks = isShrink(request) || request.kind === 'deleteStatefulSet';
  if (isUnknown(departures)) {
    // Unknown departures do not block the deletion of a pod.
    if ((!shrinks && request.kind !== 'evictPod') || unprotected.includes(set.uid)) return [];
    return [result(rule, 'unknown', `the protection that ${set.name} lost recently is unknown: ${departures.unknown}`)];
  }
  const lost = departures.filter(
    (departure) => departure.uid === set.uid && departure.untilMs > snapshot.nowMs && isStillLost(snapshot, set, departure),
  );
  const isPod = request.kind === 'evictPod' || request.kind === 'deletePod';
  const blocking = lost.filter(({ group }) => shrinks || (isPod && group !== undefined));
  return blocking.map((departure) => {
    const fact = `${set.name} ${whatWasLost(set, departure)} less than ten minutes ago`;
    return result(rule, 'wait', fact, { limit: 'ten minutes', earliestMs: departure.untilMs });
  });
}

function whatWasLost({ labels }: StatefulSetView, { group, label = '', value }: Departure): string {
  if (group !== undefined) return `left the group ${group}`;
  if (preparationKeys.includes(label)) return `had another value in the annotation ${label}`;
  return value === undefined || labels[label] === undefined ? `lost the label ${label}` : `had ${value} in the label ${label}`;
}

function isStillLost(snapshot: Snapshot, set: StatefulSetView, { group, label, value }: Departure): boolean {
  if (label === labelKeys.minTimeBetweenZones && value !== undefined) return isLowered(value, set.labels[label]);
  if (label !== undefined && preparationKeys.includes(label)) return storedPart(set.annotations[label] ?? '') !== value;
  if (label !== undefined) return !isProtecting(label, set.labels[label]);
  const owner = snapshot.groups.filter((known) => known.namespace === set.namespace && known.name === group);
  return !owner.some(({ zones }) => zones.some(({ statefulSet }) => statefulSet === set.name));
}

/** The labels that protect only with the value `true`. */
const flags: readonly string[] = [labelKeys.noDownscale, labelKeys.prepareDownscale];

function isProtecting(label: string, value: string | undefined): boolean {
  return flags.includes(label) ? value === 'true' : value !== undefined;
}

/** Reports whether a label value makes other zones wait for less time. An unreadable `before` is infinite, an unreadable `now` is 0. */
function isLowered(before: string | undefined, now: string | undefined): boolean {
  return waitMs(now, 0) < waitMs(before, Number.POSITIVE_INFINITY);
}

function waitMs(text: string | undefined, unreadable: number): number {
  return text === undefined ? 0 : Math.max(0, withinGoDuration(text, goDurationMs) ?? unreadable);
}

function leaving(snapshot: Snapshot, request: AdmissionRequest): readonly RuleResult[] {
  if (request.kind !== 'update' || request.relabels === undefined || request.relabels.length === 0) return [];
  const set = setNamed(snapshot, request.namespace, request.statefulSet);
  const annotations = set === undefined ? [] : lossesOf(set, request).filter(({ label }) => preparationKeys.includes(label));
  const changed = request.relabels.filter((label) => protectiveLabels.includes(label));
  const [first] = [...changed.map((label) => `label ${label}`), ...annotations.map(({ label }) => `annotation ${label}`)];
  if (isShrink(request) && first !== undefined) {
    const fact = `one write lowers replicas and changes the ${first}; change ${first.split(' ')[0]}s in a separate write`;
    return [result(rule, 'no', fact)];
  }
  const group = groupOf(snapshot, request.namespace, request.statefulSet);
  if (group === undefined) return [];
  const delayMs = longestDelayMs(group, policiesFor(snapshot.policies, group, snapshot.agentNamespace));
  const shortened = set === undefined ? undefined : delayKept({ snapshot, group, set, delayMs }, request);
  if (shortened !== undefined) return [shortened];
  if (!changed.includes(labelKeys.group)) return [];
  const zone = group.zones.find(({ statefulSet }) => statefulSet === request.statefulSet)?.name;
  if (unreadReasonOf(snapshot, 'Ledger', group.namespace, group.name) !== undefined) {
    return [result('view-complete', 'unknown', `zone ${zone} leaves the group, and the ledger of the group could not be read`)];
  }
  const { claims, preparations, downscales } = ledgerOf(snapshot, group);
  if (claims.some((claim) => claim.zone === zone)) {
    return [result(rule, 'wait', `zone ${zone} leaves the group while it has open claims`)];
  }
  if (preparations.some((entry) => entry.zone === zone && entry.isWithdrawn !== true)) {
    return [result(rule, 'wait', `zone ${zone} leaves the group while its pods are prepared for a downscale`)];
  }
  const untilMs = Math.max(0, ...downscales.map(({ atMs }) => atMs + delayMs));
  if (untilMs <= snapshot.nowMs) return [];
  const fact = `zone ${zone} leaves the group before the delay after a downscale ends`;
  return [result(rule, 'wait', fact, { earliestMs: untilMs })];
}

interface DelayQuestion {
  readonly snapshot: Snapshot;
  readonly group: GroupDefinition;
  readonly set: StatefulSetView;
  /** The longest time for which other zones wait after a downscale, in milliseconds. */
  readonly delayMs: number;
}

/** Blocks a write that removes or moves back the time of the last downscale, or shortens the time between zones, while other zones wait. */
function delayKept({ snapshot, group, set, delayMs }: DelayQuestion, request: UpdateRequest): RuleResult | undefined {
  const { relabels = [], betweenZones } = request;
  const { minTimeBetweenZones } = labelKeys;
  const removesTime = relabels.includes(annotationKeys.lastDownscale);
  const shortensGap = relabels.includes(minTimeBetweenZones) && isLowered(set.labels[minTimeBetweenZones], betweenZones);
  if ((!removesTime && !shortensGap) || profileOf(group).downscaleTime !== 'annotation') return undefined;
  const annotatedMs = Date.parse(set.annotations[annotationKeys.lastDownscale] ?? '');
  const recordedMs = Math.max(Number.isNaN(annotatedMs) ? 0 : annotatedMs, shortensGap ? lastDownscaleMs(snapshot, group, set) : 0);
  if (recordedMs + delayMs > snapshot.nowMs) {
    const what = removesTime ? 'the write resets the time of the last downscale' : `the write lowers the label ${minTimeBetweenZones}`;
    return result(rule, 'wait', `${what} while other zones wait after a downscale`, { earliestMs: recordedMs + delayMs });
  }
  const unread = shortensGap && isPrepared(set) ? unreadReasonOf(snapshot, 'Ledger', group.namespace, group.name) : undefined;
  if (unread === undefined) return undefined;
  const fact = `the write lowers the label ${minTimeBetweenZones}, and it is unknown whether other zones wait: ${unread}`;
  return result('view-complete', 'unknown', fact);
}

/** Returns the instant of the zone's last downscale in the ledger, or 0. With `-use-zone-tracker` no annotation has this instant. */
function lastDownscaleMs(snapshot: Snapshot, group: GroupDefinition, set: StatefulSetView): number {
  const zone = group.zones.find(({ statefulSet }) => statefulSet === set.name)?.name;
  if (!isPrepared(set)) return 0;
  const ledger = ledgerOf(snapshot, group);
  const announced = ledger.claims.filter(({ verb }) => verb === 'scaleDown');
  return Math.max(0, ...[...announced, ...ledger.downscales].filter((record) => record.zone === zone).map(({ atMs }) => atMs));
}

/** Returns the part of an annotation value that a departure stores, because annotations may be long. */
function storedPart(text: string): string {
  return text.slice(0, 253);
}

function isPrepared({ labels }: StatefulSetView): boolean {
  return labels[labelKeys.prepareDownscale] === 'true';
}

type UpdateRequest = Extract<AdmissionRequest, { kind: 'update' }>;

/** Returns the departures to record before the write may pass: the group, and each protection that the write removes. */
export function departuresOf(snapshot: Snapshot, request: AdmissionRequest): readonly Departure[] {
  if (request.kind !== 'update' || request.dryRun || request.relabels === undefined || request.relabels.length === 0) return [];
  const set = setNamed(snapshot, request.namespace, request.statefulSet);
  if (set === undefined) return [];
  const group = groupOf(snapshot, request.namespace, request.statefulSet);
  const common = { statefulSet: set.name, uid: set.uid, untilMs: snapshot.nowMs + departureMs };
  const losses = lossesOf(set, request).map((loss) => ({ ...common, ...loss }));
  return [...(group === undefined ? [] : [{ ...common, group: group.name }]), ...losses];
}

function lossesOf(set: StatefulSetView, { relabels = [], betweenZones }: UpdateRequest) {
  return relabels.flatMap((label): readonly { readonly label: string; readonly value?: string }[] => {
    const before = set.labels[label];
    const annotation = set.annotations[label];
    if (preparationKeys.includes(label))
      return annotation !== undefined && isPrepared(set) ? [{ label, value: storedPart(annotation) }] : [];
    if (label === labelKeys.minTimeBetweenZones) {
      return before !== undefined && isLowered(before, betweenZones) ? [{ label, value: before }] : [];
    }
    return label !== labelKeys.group && protectiveLabels.includes(label) && isProtecting(label, before) ? [{ label }] : [];
  });
}

/** Joins two departures of one StatefulSet: the state before both, the later end, and the longer time between zones. */
export function joinedDepartures(earlier: Departure, later: Departure): Departure {
  const untilMs = Math.max(earlier.untilMs, later.untilMs);
  const isLonger = later.label === labelKeys.minTimeBetweenZones && isLowered(later.value, earlier.value);
  const { value } = isLonger || earlier.value === undefined ? later : earlier;
  return { ...later, untilMs, ...(value === undefined ? {} : { value }) };
}

function isShrink(request: AdmissionRequest): boolean {
  return (request.kind === 'scale' || request.kind === 'update') && (request.to ?? 1) < (request.from ?? 1);
}

function subjectOf(snapshot: Snapshot, request: AdmissionRequest): StatefulSetView | undefined {
  if (request.kind === 'evictPod' || request.kind === 'deletePod') {
    const found = podNamed(snapshot, request.namespace, request.pod);
    if (found !== undefined) return found.pod.isTerminating ? undefined : found.set;
    // An unread pod may be terminating, and the kubelet removes such a pod by a deletion.
    return request.kind === 'deletePod' ? undefined : setNamed(snapshot, request.namespace, statefulSetInName(request.pod) ?? '');
  }
  return setNamed(snapshot, request.namespace, request.statefulSet);
}
