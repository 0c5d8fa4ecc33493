// Builds the texts about a live group that every display shares: counts, revisions, pods in flight, waits, images and estimated end.
import { isOfStop } from '../../engine/decide/stops.ts';
import {
  type GroupDecision,
  isAtRest,
  isMoving,
  noGoal,
  type RuleOutcome,
  type RuleResult,
  type Stop,
  type ZoneDecision,
} from '../../engine/decision.ts';
import type { Estimate, LikelyEnd } from '../../engine/plan/estimate.ts';
import type { PublishedDecision, PublishedMetric, PublishedPod, PublishedReading, PublishedStep } from '../../engine/publish/published.ts';
import {
  endsText,
  isTroubled,
  missingSetsText,
  noWaveTexts,
  openExceptions,
  type PersonNeeded,
  repeatsInVain,
  rolledBackRule,
  stopFact,
  stopTitle,
  waitsForAllowed,
} from '../../engine/publish/status.ts';
import { leadingResult } from '../../engine/rule.ts';
import { requestOf } from '../../engine/run/requests.ts';
import { isUnknown, type Known } from '../../engine/snapshot.ts';
import { formatDuration } from '../../policies/duration.ts';
import { minuteText } from '../../policies/instant.ts';
import type { Phase } from '../../policies/rollout/phases.ts';
import { counted, firstOf } from '../../policies/wording.ts';
import type { LiveGroup } from '../live/groups.ts';
import { ageText, exceptionText, factText, spanText } from './plan/plan-text.ts';
import { podText } from './pod-text.ts';
import type { Style } from './terminal.ts';
import { zoneProgress } from './zone-progress.ts';

/** Returns the names of the zones whose StatefulSet does not exist or was not read completely. Their counts are meaningless. */
export function unreadZones({
  zones,
  steps,
}: {
  readonly zones: readonly Pick<ZoneDecision, 'zone' | 'unread'>[];
  readonly steps: readonly { readonly id: string }[];
}): readonly string[] {
  const isUnread = ({ zone, unread }: Pick<ZoneDecision, 'zone' | 'unread'>): boolean =>
    unread !== undefined || steps.some(({ id }) => id === `view/${zone}`);
  return zones.filter(isUnread).map(({ zone }) => zone);
}

export function goalText({ goal }: { readonly goal: string }, unread: readonly string[]): string {
  if (unread.length === 0) return goal;
  const unknown = `unknown for ${unread.length === 1 ? 'zone' : 'zones'} ${unread.join(', ')}`;
  return goal === noGoal ? unknown : `${goal}; ${unknown}`;
}

type PodTotals = Readonly<Record<'desired' | 'updated' | 'available', number>> & { readonly areKnown: boolean };

/** Returns the sums over all zones. `areKnown` is false if a zone was not read; then the sums are meaningless. */
export function podTotals(decision: Pick<PublishedDecision, 'zones' | 'steps'>): PodTotals {
  const sum = (count: 'replicas' | 'updated' | 'available'): number => decision.zones.reduce((total, zone) => total + zone[count], 0);
  const areKnown = unreadZones(decision).length === 0;
  return { desired: sum('replicas'), updated: sum('updated'), available: sum('available'), areKnown };
}

/** Returns `27/60`, or `?` if not every zone was read. */
export function partText(decision: Pick<PublishedDecision, 'zones' | 'steps'>, part: 'updated' | 'available'): string {
  const totals = podTotals(decision);
  return totals.areKnown ? `${totals[part]}/${totals.desired}` : '?';
}

/** Returns the rule that blocks the roll of the zone, or the zone or wave that goes first; undefined if its pods may be replaced now. */
export function zoneWaitText({ steps, waits, wave }: RollSteps, zone: string): string | undefined {
  const own = steps.findLast((step) => step.kind === 'roll' && step.zone === zone);
  if (own !== undefined) {
    const blocking = leadingResult(own.results ?? waits);
    return blocking && `blocked by ${blocking.rule}`;
  }
  const current = currentRoll({ steps });
  if (current === undefined) return undefined;
  return current.id.startsWith('after/') && wave !== undefined ? `waits for wave ${wave.name}` : `waits for zone ${current.zone}`;
}

/** Returns the step of the zone that rolls now or next, or of the wave that is not over. The steps before it are those of paused zones. */
export function currentRoll<Item extends Pick<PublishedStep, 'kind'>>({ steps }: { readonly steps: readonly Item[] }): Item | undefined {
  return steps.findLast(({ kind }) => kind === 'roll');
}

export type RollSteps = Pick<GroupDecision, 'waits' | 'wave'> & {
  readonly steps: readonly Pick<PublishedStep, 'id' | 'kind' | 'zone' | 'results'>[];
};

/** Returns a revision without the name of its StatefulSet, at most 10 characters long. */
export function shortRevision(revision: string, statefulSet: string): string {
  const own = revision.startsWith(`${statefulSet}-`) ? revision.slice(statefulSet.length + 1) : revision;
  return own.slice(0, 10);
}

/** Returns `2/3 rest`, or `2/3` in the short form. */
export function waveText({ wave }: Pick<PublishedDecision, 'wave'>, { isShort = false } = {}): string {
  if (wave === undefined) return '';
  const number = `${Math.min(wave.index + 1, wave.count)}/${wave.count}`;
  return isShort ? number : `${number} ${wave.name}`;
}

/** Returns `stateful-safety/queue: 12, 20s ago, from prod`. Adds the age limit if exceeded, and the latest error. */
export function metricText({ policy, input, source, value, unknown, atMs, problem, maxAgeMs }: PublishedMetric, nowMs: number): string {
  const from = `from ${source}`;
  if (atMs === undefined) return `${policy}/${input}: no reading yet, ${from}`;
  const reading = value === undefined ? (unknown ?? 'unknown') : String(value);
  const isOld = nowMs - atMs > maxAgeMs;
  const parts = [
    `${reading}, ${ageText(atMs, nowMs)} ago, ${from}`,
    ...(isOld ? [`older than ${formatDuration(maxAgeMs)}, counts as unknown`] : []),
    ...(problem === undefined ? [] : [`latest error: ${problem}`]),
  ];
  return `${policy}/${input}: ${parts.join('; ')}`;
}

export const marks: Readonly<Record<RuleOutcome, string>> = { ok: '[ok]', wait: '[WAIT]', no: '[NO]', skip: '[SKIP]', unknown: '[?]' };

export const phaseStyles: Readonly<Record<Phase, Style>> = {
  Done: 'green',
  RolledBack: 'red',
  Rolling: 'cyan',
  Scaling: 'cyan',
  Waiting: 'yellow',
  Paused: 'yellow',
  Blocked: 'red',
  Failed: 'red',
};

/** Returns the phase for a headline, such as `ROLLED BACK`. */
export function phaseTitle(phase: Phase): string {
  return phase.replace(/(?<=[a-z])(?=[A-Z])/g, ' ').toUpperCase();
}

/** Returns the most important facts about a group: a stopped agent, the wait or the pods in flight, the stops, and the open exceptions. */
export function summaryText(live: Pick<LiveGroup, 'decision' | 'from' | 'unattended' | 'starting'>, look: InfoLook): string {
  const { decision, unattended = '', starting = '' } = live;
  const { isShort = false, nowMs } = look;
  const shown = [stopPart(decision, isShort), leftPart(decision, isShort), exceptionPart(decision, look)];
  const parts = [unattended, starting, ...decisionParts(decision, isShort, factMsOf(live, nowMs)), ...shown];
  return parts.filter((part) => part !== '').join('; ');
}

/** Returns the leading fact about a group: a pod that does not recover, the wait, or the pods in flight; empty without any. */
export function leadingText(decision: PublishedDecision, nowMs: number): string {
  return decisionParts(decision, false, nowMs).find((part) => part !== '') ?? '';
}

/** Returns the time up to which ages are counted: now, or the last decision of a stopped agent, because later states are unknown. */
export function seenAtMs({ decision, unattended }: Pick<LiveGroup, 'decision' | 'unattended'>, nowMs: number): number {
  return unattended === undefined ? nowMs : decision.decidedMs;
}

/** Returns the time up to which facts count ages; undefined for a stopped agent: facts then name the start, such as that of a soak. */
export function factMsOf({ unattended, from }: Pick<LiveGroup, 'unattended' | 'from'>, nowMs: number | undefined): number | undefined {
  return unattended === undefined || from === 'here' ? nowMs : undefined;
}

export function asOfText({ decidedMs }: PublishedDecision, nowMs: number): string {
  return `as of ${ageText(decidedMs, nowMs)} ago, when the agent decided last`;
}

interface InfoLook {
  readonly isShort?: boolean;
  /** The time up to which ages are counted; if absent, the time of the decision. */
  readonly nowMs?: number;
}

function decisionParts(decision: PublishedDecision, isShort: boolean, nowMs: number | undefined): readonly string[] {
  if (decision.phase === 'Failed') {
    const ended = decision.stops?.find(({ rule }) => rule === 'run-failed')?.fact;
    return [ended ?? decision.run?.failure ?? firstWait(decision, isShort, nowMs)];
  }
  const trouble = troubleText(decision, isShort);
  const inFlight = podsInFlight(decision).map(({ zone, count }) => `${counted(count, 'pod')} of ${zone}`);
  const missing = isAtRest(decision) ? podsMissing(decision) : 0;
  if (missing > 0) return [trouble, missingText(missing)];
  const unfit = isAtRest(decision) ? unfitMember(decision) : undefined;
  if (unfit !== undefined) return [trouble, isShort ? unfit.rule : unfit.fact];
  if (isAtRest(decision) && !isShort) return [trouble, ...noWaveTexts(decision.zones)];
  if (namedRule(decision) !== undefined) return [trouble, firstWait(decision, isShort, nowMs)];
  return [trouble, inFlight.length === 0 || isShort ? inFlight.join(', ') : `${inFlight.join(', ')} in flight`];
}

/** Returns the warning about a member that blocks the next rollout; undefined if every member fits the strategy of the group. */
export function unfitMember({ warnings }: Pick<PublishedDecision, 'warnings'>): RuleResult | undefined {
  return warnings.find(({ rule }) => rule === 'update-strategy');
}

/** Returns the zones with pods in flight, without zones that were not read. */
export function podsInFlight(decision: PublishedDecision): readonly { readonly zone: string; readonly count: number }[] {
  const unread = unreadZones(decision);
  return decision.zones
    .filter(({ zone }) => !unread.includes(zone))
    .map((zone) => ({ zone: zone.zone, count: zoneProgress(zone, decision.pods).inFlight }))
    .filter(({ count }) => count > 0);
}

function namedRule(decision: PublishedDecision): string | undefined {
  const { phase, outcome, waits } = decision;
  if (phase === 'Failed') return 'run-failed';
  // During a rollout, the budget blocks the next pod most of the time, so a line about the budget would not help.
  const isUnderWay = (isMoving({ phase }) && !waitsForAllowed(decision)) || outcome === 'act';
  return isUnderWay && !repeatsInVain(decision) ? undefined : waits[0]?.rule;
}

/** Returns the first stop that the text about the decision does not name, and the number of the other stops. */
function stopPart(decision: PublishedDecision, isShort: boolean): string {
  const named = namedStop(decision);
  const [first, ...more] = shownStops(decision).filter((stop) => stop !== named);
  if (first === undefined) return '';
  if (isShort && named !== undefined) return `+${counted(more.length + 1, 'stop')}`;
  const text = isShort ? shortStop(first) : `${stopTitle(first)}: ${first.fact}`;
  return `${text}${more.length === 0 ? '' : ` and ${counted(more.length, 'other stop')}`}`;
}

interface ShownDecision extends Pick<PublishedDecision, 'stops'> {
  readonly steps: readonly Pick<PublishedStep, 'kind'>[];
  readonly waits: readonly RuleResult[];
}

/**
 * Returns the stops for output. Several requests for undone revisions that no zone has now are one stop. A window that a change of replicas
 * waits for is no stop while no pod waits to be replaced, because the wait names it.
 */
export function shownStops({ stops: all = [], steps, waits }: ShownDecision): readonly Stop[] {
  const isRolling = steps.some(({ kind }) => kind === 'roll');
  const stops = all.filter((stop) => stop.rule !== 'window' || isRolling || !waits.some((wait) => isOfStop(wait, stop)));
  const earlier = stops.filter((stop) => stop.rule === 'undone' && !stop.isBlocking && stop.untilMs === undefined);
  const [first, ...others] = earlier;
  if (first === undefined || others.length === 0) return stops;
  const requests = earlier.flatMap((stop) => requestOf(stop) ?? []);
  const summary: Stop = {
    rule: first.rule,
    fact: `${earlier.length} requests block revisions that were undone: ${firstOf(requests, 3)}`,
    zones: [...new Set(earlier.flatMap(({ zones }) => zones))].sort(),
    isBlocking: false,
    endsWith: first.endsWith.replace(/\S+$/, 'REQUEST'),
  };
  return stops.flatMap((stop) => (stop === first ? [summary] : others.includes(stop) ? [] : [stop]));
}

function namedStop(decision: PublishedDecision): Stop | undefined {
  const [wait] = decision.waits;
  const named = namedRule(decision);
  return decision.stops?.find((stop) => stop.rule === named && (wait?.rule !== named || isOfStop(wait, stop)));
}

function shortStop(stop: Pick<Stop, 'rule' | 'source' | 'by'>): string {
  return stop.by === undefined ? stopTitle(stop) : `${stopTitle(stop)} by ${stop.by}`;
}

/** Returns the first StatefulSet that left the group and keeps a partition; in the short form, only the number. */
function leftPart({ left = [] }: PublishedDecision, isShort: boolean): string {
  const [first] = left;
  if (first === undefined) return '';
  return isShort ? `${left.length} left` : first.fact;
}

/** Returns the warnings that no stop repeats, each with its rule. */
export function warningTexts({ warnings, stops = [] }: PublishedDecision, nowMs: number): readonly string[] {
  const others = warnings.filter((warning) => !stops.some(({ rule }) => rule === warning.rule));
  return others.map((warning) => `${warning.rule}: ${factText(warning, nowMs)}`);
}

/** Returns the first open exception and the number of the other exceptions; in the short form, only the total number. */
function exceptionPart(decision: PublishedDecision, { isShort, nowMs }: InfoLook): string {
  const [first, ...more] = openExceptions(decision, nowMs ?? decision.decidedMs);
  if (first === undefined) return '';
  if (isShort === true) return counted(more.length + 1, 'exception');
  return `${exceptionText(first, nowMs)}${more.length === 0 ? '' : ` and ${counted(more.length, 'other exception')}`}`;
}

export function podsMissing(decision: Pick<PublishedDecision, 'zones'> & Parameters<typeof unreadZones>[0]): number {
  const unread = unreadZones(decision);
  return decision.zones
    .filter(({ zone }) => !unread.includes(zone))
    .reduce((sum, { replicas, available }) => sum + Math.max(0, replicas - available), 0);
}

export function missingText(count: number): string {
  return `${counted(count, 'pod')} ${count === 1 ? 'is' : 'are'} not available`;
}

export function troubledPods({ pods }: Pick<PublishedDecision, 'pods'>): readonly PublishedPod[] {
  return pods.filter(isTroubled);
}

/** Returns `a-3 crashes (CrashLoopBackOff)`. */
function podTrouble({ zone, pod, state, reason, node }: PublishedPod): string {
  if (state === 'crashing') return `${podText(zone, pod)} crashes${reason === undefined ? '' : ` (${reason})`}`;
  return `${podText(zone, pod)} is on ${node === undefined ? 'a node' : `node ${node}`}, which is not ready`;
}

/** The maximum number of troubled pods that are shown. Further pods usually have the same cause, and `get` shows all of them. */
const troubleLimit = 3;

/** Returns the trouble of the first pods, each with the command that shows its cause. */
export function troubleOf(namespace: string, pods: readonly PublishedPod[]): readonly { readonly what: string; readonly todo: string }[] {
  return pods.slice(0, troubleLimit).map((pod) => {
    const command =
      pod.state === 'crashing' ? `logs ${pod.pod} -n ${namespace} --all-containers --previous` : `describe node ${pod.node ?? ''}`;
    return { what: podTrouble(pod), todo: `kubectl ${command.trim()}` };
  });
}

/** Returns the first pod that does not recover by itself, and the number of the others; empty without any. */
export function troubleText(decision: PublishedDecision, isShort = false): string {
  const troubled = troubledPods(decision);
  const [first] = troubled;
  if (first === undefined) return '';
  if (isShort) return `${counted(troubled.length, 'pod')} failing`;
  return `${podTrouble(first)}${troubled.length === 1 ? '' : `, and ${counted(troubled.length - 1, 'more pod')}`}`;
}

function firstWait(decision: PublishedDecision, isShort: boolean, nowMs: number | undefined): string {
  const [wait] = decision.waits;
  if (wait === undefined) return '';
  const stop = namedStop(decision);
  if (isShort && stop !== undefined) return shortStop(stop);
  const title = stop === undefined ? wait.rule : stopTitle(stop);
  return isShort ? title : `${title}: ${factText(wait, nowMs)}`;
}

/** Returns `0.21`, `no data`, or the error. */
export function readingText(reading: PublishedReading): string {
  if (reading.result === 'value') return String(reading.value);
  return reading.result === 'noData' ? 'no data' : reading.message;
}

/** Returns `in about 21m to 46m, plus 1 approval; pods took 1m3s to start (measured on 7) and 25s to stop`, or why the end is unknown. */
export function endText(estimate: Known<Estimate>, nowMs: number): string {
  if (isUnknown(estimate)) return `unknown: ${estimate.unknown}`;
  const { end, approvals } = estimate;
  const people = approvals === 0 ? '' : `, plus ${counted(approvals, 'approval')}`;
  return `${rangeText(end, nowMs)}${people}; ${timesText(estimate)}`;
}

function timesText({ start, measuredPods, stop, measuredStops }: Estimate): string {
  const [starts, stops] = [spanText(start.p50Seconds), spanText(stop.p50Seconds)];
  if (measuredPods === 0) return `pods are assumed to stop in ${stops} and to start in ${starts}`;
  const started = `pods took ${starts} to start (measured on ${measuredPods})`;
  return measuredStops === 0 ? `${started} and are assumed to stop in ${stops}` : `${started} and ${stops} to stop`;
}

function rangeText({ p50Ms, p90Ms }: LikelyEnd, nowMs: number): string {
  const [soon, late] = [spanOf(p50Ms, nowMs), p90Ms === undefined ? undefined : spanOf(p90Ms, nowMs)];
  if (late === undefined) return `in about ${soon} or much later`;
  return soon === late ? `in about ${soon}` : `in about ${soon} to ${late}`;
}

/** Returns the estimated end of one zone, such as `about 16m`. */
export function zoneEndText(estimate: Known<Estimate> | undefined, zone: string, nowMs: number): string | undefined {
  const end = estimate === undefined || isUnknown(estimate) ? undefined : estimate.zones[zone];
  return end === undefined ? undefined : `about ${spanOf(end.p50Ms, nowMs)}`;
}

/** Rounds up to whole minutes, because seconds would suggest a precision that an estimate does not have. */
function spanOf(atMs: number, nowMs: number): string {
  const seconds = Math.max(0, atMs - nowMs) / 1000;
  return seconds < 60 ? '1m' : spanText(Math.ceil(seconds / 60) * 60);
}

/** Returns `b-12 has been starting for 2m2s (usually 3m10s)` for the oldest starting pod; undefined without an estimate or starting pod. */
export function startingText({ pods }: PublishedDecision, estimate: Known<Estimate> | undefined, nowMs: number): string | undefined {
  if (estimate === undefined || isUnknown(estimate)) return undefined;
  const starting = pods.flatMap(({ zone, pod, state, sinceMs }) =>
    state === 'starting' && sinceMs !== undefined ? [{ pod: podText(zone, pod), sinceMs }] : [],
  );
  const [oldest] = starting.sort((a, b) => a.sinceMs - b.sinceMs);
  if (oldest === undefined) return undefined;
  const { p50Seconds, p90Seconds } = estimate.start;
  const isSlow = nowMs - oldest.sinceMs > p90Seconds * 1000;
  const usual = isSlow ? `slower than usual; 90% start within ${spanText(p90Seconds)}` : `usually ${spanText(p50Seconds)}`;
  return `${oldest.pod} has been starting for ${ageText(oldest.sinceMs, nowMs)} (${usual})`;
}

/** Returns the estimate for programs: seconds from now, times, and the waits that it excludes. */
export function etaDocument(estimate: Known<Estimate> | undefined, nowMs: number): Readonly<Record<string, unknown>> {
  if (estimate === undefined) return {};
  if (isUnknown(estimate)) return { eta: { unknown: estimate.unknown } };
  const { end, zones, approvals, start, measuredPods, stop, measuredStops } = estimate;
  return {
    eta: {
      ...estimatedTimes(end, nowMs),
      excludes: approvals === 0 ? [] : ['human'],
      approvals,
      podStart: { ...start, measuredPods },
      podStop: { ...stop, measuredPods: measuredStops },
      zones: Object.fromEntries(Object.entries(zones).map(([zone, one]) => [zone, estimatedTimes(one, nowMs)])),
    },
  };
}

function estimatedTimes({ p50Ms, p90Ms }: LikelyEnd, nowMs: number): Readonly<Record<string, unknown>> {
  const seconds = (atMs: number): number => Math.max(0, Math.round((atMs - nowMs) / 1000));
  return {
    p50Seconds: seconds(p50Ms),
    p50At: new Date(p50Ms).toISOString(),
    ...(p90Ms === undefined ? {} : { p90Seconds: seconds(p90Ms), p90At: new Date(p90Ms).toISOString() }),
  };
}

/** Returns a text such as `mimir/ingester is paused. To end it: kubectl rollout-group resume mimir/ingester`. */
export function personNeededText(why: PersonNeeded, decision: PublishedDecision, nowMs: number): string {
  const { namespace, group, waits, stops = [] } = decision;
  const name = `${namespace}/${group}`;
  const untilMs = waits.find(({ rule }) => rule === 'paused')?.earliestMs;
  const stop = stops.find((one) => one.endsBy === 'person' || (one.isBlocking && waits.some(({ rule }) => rule === one.rule)));
  const end = stop === undefined ? '' : `. To end it: ${endsText(stop)}`;
  const failed = stops.find(({ rule }) => rule === rolledBackRule);
  const texts: Readonly<Record<PersonNeeded, string>> = {
    failed: `the run of ${name} failed`,
    rolledBack: `${name} keeps its earlier revision${failed === undefined ? '' : `: ${failed.fact}. To end it: ${endsText(failed)}`}`,
    missing: `${name} waits: ${missingSetsText(decision) ?? ''}. Create it, or remove its zone from the group`,
    blocked: `${name} is blocked: ${leadingText(decision, nowMs)}${end}`,
    misplaced: `${name} is blocked: pods restarted with the wrong revision`,
    approval: `${name} waits for an approval`,
    undone: `${name} is blocked: its update revision was undone${end}`,
    stopped: `${name} is stopped until a person acts${stop === undefined ? '' : `: ${stopFact(stop)}`}${end}`,
    paused: `${name} is paused${untilMs === undefined ? '' : ` until ${minuteText(untilMs)}`}${end}`,
  };
  return texts[why];
}
