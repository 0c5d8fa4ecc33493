// Protection that is being taken away: it holds on for a while, so that nobody gets around it in two steps.
import { annotationKeys, labelKeys } from '../policies/adopt/keys.ts';
import { policiesFor } from '../policies/join.ts';
import { groupOf, podNamed, setNamed } from './admission-claims.ts';
import type { AdmissionRequest, RuleResult } from './decision.ts';
import { longestDelayMs } from './ledger.ts';
import { result } from './rule.ts';
import { type Departure, isUnknown, type Snapshot, type StatefulSetView } from './snapshot.ts';
import { whyUnread } from './view.ts';

/** How long what protected an object holds on after it was taken away. */
export const departureMs = 600_000;

/** Labels of a StatefulSet that protect it by themselves, as grafana/rollout-operator reads them. */
export const protectiveLabels: readonly string[] = Object.values(labelKeys);

const rule = 'protection-kept';

/** What is asked of an object that has lost its protection, or loses it by this very request. */
export function protectionKept(snapshot: Snapshot, request: AdmissionRequest): readonly RuleResult[] {
  return [...departed(snapshot, request), ...leaving(snapshot, request)];
}

/** What was taken away lately still refuses what it could have refused. */
function departed(snapshot: Snapshot, request: AdmissionRequest): readonly RuleResult[] {
  const set = subjectOf(snapshot, request);
  const { departures = [], unprotected = [] } = snapshot;
  if (set === undefined) return [];
  const shrinks = isShrink(request) || request.kind === 'deleteStatefulSet';
  if (isUnknown(departures)) {
    // Nobody is kept from deleting a pod for want of an answer.
    if ((!shrinks && request.kind !== 'evictPod') || unprotected.includes(set.uid)) return [];
    return [result(rule, 'unknown', `nobody knows what ${set.name} was taken out of lately: ${departures.unknown}`)];
  }
  const lost = departures.filter(
    (departure) => departure.uid === set.uid && departure.untilMs > snapshot.nowMs && isStillLost(snapshot, set, departure),
  );
  const isPod = request.kind === 'evictPod' || request.kind === 'deletePod';
  const holding = lost.filter(({ group }) => shrinks || (isPod && group !== undefined));
  return holding.map(({ group, label, untilMs }) => {
    const what = group === undefined ? `lost the label ${label}` : `left the group ${group}`;
    return result(rule, 'wait', `${set.name} ${what} a short while ago`, { limit: 'ten minutes', earliestMs: untilMs });
  });
}

function isStillLost(snapshot: Snapshot, set: StatefulSetView, { group, label }: Departure): boolean {
  if (label !== undefined) return !isProtecting(label, set.labels[label]);
  const owner = snapshot.groups.filter((known) => known.namespace === set.namespace && known.name === group);
  return !owner.some(({ zones }) => zones.some(({ statefulSet }) => statefulSet === set.name));
}

/** Two of them count with exactly this value, and are off with any other. */
const flags: readonly string[] = [labelKeys.noDownscale, labelKeys.prepareDownscale];

function isProtecting(label: string, value: string | undefined): boolean {
  return flags.includes(label) ? value === 'true' : value !== undefined;
}

/** A write that takes protection away is judged by what is under way. */
function leaving(snapshot: Snapshot, request: AdmissionRequest): readonly RuleResult[] {
  if (request.kind !== 'update' || request.relabels === undefined || request.relabels.length === 0) return [];
  const changed = request.relabels.filter((label) => protectiveLabels.includes(label));
  if (isShrink(request) && changed.length > 0) {
    const fact = `it lowers replicas and changes the label ${changed[0]} in one write; change labels in a write of their own`;
    return [result(rule, 'no', fact)];
  }
  const group = groupOf(snapshot, request.namespace, request.statefulSet);
  if (group === undefined) return [];
  const delayMs = longestDelayMs(group, policiesFor(snapshot.policies, group, snapshot.agentNamespace));
  const takenBack = delayTakenBack(snapshot, request, request.relabels);
  const record = takenBack === undefined ? undefined : recordOf(snapshot, request);
  if (record !== undefined && group.compatibility.lastDownscale === 'annotation' && record + delayMs > snapshot.nowMs) {
    return [result(rule, 'wait', `${takenBack} while others wait for it`, { earliestMs: record + delayMs })];
  }
  if (!changed.includes(labelKeys.group)) return [];
  const zone = group.zones.find(({ statefulSet }) => statefulSet === request.statefulSet)?.name;
  if (whyUnread(snapshot, 'Ledger', group.namespace, group.name) !== undefined) {
    return [
      result('view-complete', 'unknown', `zone ${zone} leaves the group, whose ledger could not be read: nobody knows what is under way`),
    ];
  }
  const ledger = snapshot.ledgers.find((known) => known.namespace === group.namespace && known.group === group.name);
  if (ledger?.claims.some((claim) => claim.zone === zone) === true) {
    return [result(rule, 'wait', `zone ${zone} leaves the group while disruptions of it are under way`)];
  }
  if (ledger?.preparations.some((entry) => entry.zone === zone && entry.isWithdrawn !== true) === true) {
    return [result(rule, 'wait', `zone ${zone} leaves the group while pods of it are prepared to leave`)];
  }
  const untilMs = Math.max(0, ...(ledger?.downscales ?? []).map(({ atMs }) => atMs + delayMs));
  if (untilMs <= snapshot.nowMs) return [];
  const fact = `zone ${zone} leaves the group while the delay after a decrease is not over`;
  return [result(rule, 'wait', fact, { earliestMs: untilMs })];
}

/** What a write takes from those who wait until the StatefulSet has shrunk long enough ago: when that was, or how long is enough. */
function delayTakenBack(
  snapshot: Snapshot,
  { namespace, statefulSet }: { readonly namespace: string; readonly statefulSet: string },
  relabels: readonly string[],
): string | undefined {
  if (relabels.includes(annotationKeys.lastDownscale)) return 'the time of the last decrease is taken back';
  const { minTimeBetweenZones } = labelKeys;
  const isSet = setNamed(snapshot, namespace, statefulSet)?.labels[minTimeBetweenZones] !== undefined;
  return isSet && relabels.includes(minTimeBetweenZones) ? `the label ${minTimeBetweenZones} is changed` : undefined;
}

/** When the StatefulSet shrank, by its own annotation. */
function recordOf(snapshot: Snapshot, { namespace, statefulSet }: { readonly namespace: string; readonly statefulSet: string }) {
  const atMs = Date.parse(setNamed(snapshot, namespace, statefulSet)?.annotations[annotationKeys.lastDownscale] ?? '');
  return Number.isNaN(atMs) ? undefined : atMs;
}

/** What must be remembered before the write may pass: everything that it takes away from the StatefulSet. */
export function departuresOf(snapshot: Snapshot, request: AdmissionRequest): readonly Departure[] {
  if (request.kind !== 'update' || request.dryRun || request.relabels === undefined || request.relabels.length === 0) return [];
  const set = setNamed(snapshot, request.namespace, request.statefulSet);
  if (set === undefined) return [];
  const group = groupOf(snapshot, request.namespace, request.statefulSet);
  const common = { statefulSet: set.name, uid: set.uid, untilMs: snapshot.nowMs + departureMs };
  const labels = request.relabels.filter(
    (label) => label !== labelKeys.group && protectiveLabels.includes(label) && isProtecting(label, set.labels[label]),
  );
  return [...(group === undefined ? [] : [{ ...common, group: group.name }]), ...labels.map((label) => ({ ...common, label }))];
}

function isShrink(request: AdmissionRequest): boolean {
  return (request.kind === 'scale' || request.kind === 'update') && (request.to ?? 1) < (request.from ?? 1);
}

function subjectOf(snapshot: Snapshot, request: AdmissionRequest): StatefulSetView | undefined {
  if (request.kind === 'evictPod' || request.kind === 'deletePod') {
    const found = podNamed(snapshot, request.namespace, request.pod);
    return found?.pod.isTerminating === true ? undefined : found?.set;
  }
  return setNamed(snapshot, request.namespace, request.statefulSet);
}
