// The texts about a live group that every display shares: counts, revisions, pods in flight and waits.
import { noGoal } from '../../engine/decision.ts';
import type { PublishedDecision, PublishedMetric, PublishedPod, PublishedZone } from '../../engine/publish/published.ts';
import { formatDuration } from '../../policies/duration.ts';
import type { Style } from './colour.ts';
import type { ZoneProgress } from './live.ts';
import { ageText, factText } from './plan/plan-text.ts';
import { plural } from './plural.ts';

/** Returns the names of the zones whose StatefulSet or pods could not be read. Their counts are meaningless. */
export function unreadZones({
  zones,
  steps,
}: {
  readonly zones: readonly { readonly zone: string }[];
  readonly steps: readonly { readonly id: string }[];
}): readonly string[] {
  return zones.map(({ zone }) => zone).filter((zone) => steps.some(({ id }) => id === `view/${zone}`));
}

/** Returns the goal of the group. The goal of zones that could not be read is unknown. */
export function goalText({ goal }: { readonly goal: string }, unread: readonly string[]): string {
  if (unread.length === 0) return goal;
  const unknown = `unknown for ${unread.length === 1 ? 'zone' : 'zones'} ${unread.join(', ')}, which could not be read`;
  return goal === noGoal ? unknown : `${goal}; ${unknown}`;
}

interface PodTotals {
  readonly desired: number;
  readonly updated: number;
  readonly available: number;
  /** Every zone was read. Otherwise the sums are meaningless. */
  readonly areKnown: boolean;
}

export function podTotals(decision: Pick<PublishedDecision, 'zones' | 'steps'>): PodTotals {
  const { zones } = decision;
  const sum = (count: (zone: PublishedZone) => number): number => zones.reduce((total, zone) => total + count(zone), 0);
  return {
    desired: sum((zone) => zone.replicas),
    updated: sum((zone) => zone.updated),
    available: sum((zone) => zone.available),
    areKnown: unreadZones(decision).length === 0,
  };
}

/** Returns `27/60`, or `?` if not every zone was read. */
export function partText({ desired, areKnown }: PodTotals, part: number): string {
  return areKnown ? `${part}/${desired}` : '?';
}

/** Counts the done, in-flight and outdated pods of one zone. An unavailable pod of any revision is in flight. */
export function zoneProgress({ zone, replicas, updated, available }: PublishedZone, pods: readonly PublishedPod[]): ZoneProgress {
  const inFlight = Math.max(0, replicas - available);
  const startingCount = pods.filter((pod) => pod.zone === zone && pod.state === 'starting').length;
  const done = Math.min(Math.max(0, updated - startingCount), replicas - inFlight);
  return { zone, done, inFlight, toDo: Math.max(0, replicas - inFlight - done) };
}

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

export const phaseStyles: Readonly<Record<PublishedDecision['phase'], Style>> = {
  Done: 'green',
  Rolling: 'cyan',
  Scaling: 'cyan',
  Waiting: 'yellow',
  Paused: 'yellow',
  Blocked: 'red',
  Failed: 'red',
};

/** Returns the most important fact about a group: why it waits, or its pods in flight. */
export function infoText(decision: PublishedDecision, { isShort = false } = {}): string {
  if (decision.phase === 'Failed') return decision.run?.failure ?? firstWait(decision, isShort);
  const trouble = troubleText(decision, isShort);
  const unread = unreadZones(decision);
  const inFlight = decision.zones
    .filter(({ zone }) => !unread.includes(zone))
    .map((zone) => ({ zone: zone.zone, count: zoneProgress(zone, decision.pods).inFlight - troubledPods(decision, zone.zone).length }))
    .filter(({ count }) => count > 0)
    .map(({ zone, count }) => `${plural(count, 'pod')} of ${zone}`);
  const missing = decision.phase === 'Done' ? podsMissing(decision) : 0;
  if (missing > 0) return [trouble, missingText(missing)].filter((part) => part !== '').join('; ');
  // During a rollout an exhausted budget blocks the next pod all the time, so it is not worth a line.
  const isMoving = decision.phase === 'Rolling' || decision.phase === 'Scaling';
  if (isMoving || decision.outcome === 'act' || decision.waits.length === 0) {
    const moving = inFlight.length === 0 || isShort ? inFlight.join(', ') : `${inFlight.join(', ')} in flight`;
    return [trouble, moving].filter((part) => part !== '').join('; ');
  }
  return [trouble, firstWait(decision, isShort)].filter((part) => part !== '').join('; ');
}

/** Counts the unavailable pods of the zones that could be read. */
export function podsMissing(decision: Pick<PublishedDecision, 'zones'> & Parameters<typeof unreadZones>[0]): number {
  const unread = unreadZones(decision);
  return decision.zones
    .filter(({ zone }) => !unread.includes(zone))
    .reduce((sum, { replicas, available }) => sum + Math.max(0, replicas - available), 0);
}

/** Returns `9 pods are not available`. */
export function missingText(count: number): string {
  return `${plural(count, 'pod')} ${count === 1 ? 'is' : 'are'} not available`;
}

/** Returns the published pods that do not recover by waiting. */
export function troubledPods({ pods }: Pick<PublishedDecision, 'pods'>, zone?: string): readonly PublishedPod[] {
  return pods.filter((pod) => (pod.state === 'crashing' || pod.state === 'nodeDown') && (zone === undefined || pod.zone === zone));
}

/** Returns `ingester-zone-a-3 crashes (CrashLoopBackOff)`. */
export function podTrouble({ pod, state, reason, node }: PublishedPod): string {
  if (state === 'crashing') return `${pod} crashes${reason === undefined ? '' : ` (${reason})`}`;
  return `${pod} is on ${node === undefined ? 'a node' : `node ${node}`}, which is not ready`;
}

function troubleText(decision: PublishedDecision, isShort: boolean): string {
  const troubled = troubledPods(decision);
  const [first] = troubled;
  if (first === undefined) return '';
  if (isShort) return `${plural(troubled.length, 'pod')} failing`;
  return `${podTrouble(first)}${troubled.length === 1 ? '' : ` and ${troubled.length - 1} more`}`;
}

function firstWait({ waits }: PublishedDecision, isShort: boolean): string {
  const [wait] = waits;
  if (wait === undefined) return '';
  return isShort ? wait.rule : `${wait.rule}: ${factText(wait)}`;
}
