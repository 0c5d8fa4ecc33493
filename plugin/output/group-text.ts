// How a live group is put into words: counts, revisions, what moves and what holds it, the same in every display.
import type { PublishedDecision, PublishedMetric, PublishedPod, PublishedZone } from '../../engine/publish/published.ts';
import { formatDuration } from '../../policies/duration.ts';
import { ageText } from '../live/when.ts';
import type { Style } from './colour.ts';
import type { ZoneProgress } from './live.ts';
import { factText } from './plan/plan-text.ts';
import { plural } from './plural.ts';

/** Names of the zones whose StatefulSet or pods could not be read: nothing that is counted of them counts. */
export function unreadZones({
  zones,
  steps,
}: {
  readonly zones: readonly { readonly zone: string }[];
  readonly steps: readonly { readonly id: string }[];
}): readonly string[] {
  return zones.map(({ zone }) => zone).filter((zone) => steps.some(({ id }) => id === `view/${zone}`));
}

/** What the group is to become. Whether anything is left to do cannot be said of zones that could not be read. */
export function goalText({ goal }: { readonly goal: string }, unread: readonly string[]): string {
  if (unread.length === 0) return goal;
  const unknown = `not known of ${unread.length === 1 ? 'zone' : 'zones'} ${unread.join(', ')}, which could not be read`;
  return goal === nothingToDo ? unknown : `${goal}; ${unknown}`;
}

/** As the engine says it when no zone that it knows is behind. */
const nothingToDo = 'nothing to do';

interface PodTotals {
  readonly desired: number;
  readonly updated: number;
  readonly available: number;
  /** Whether every zone was read; otherwise the sums mean nothing. */
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

/** `27/60`, or `?` where not every zone was read. */
export function partText({ desired, areKnown }: PodTotals, part: number): string {
  return areKnown ? `${part}/${desired}` : '?';
}

/** Done, in flight and to do of one zone: an unavailable pod is in flight, whichever revision it has. */
export function zoneProgress({ zone, replicas, updated, available }: PublishedZone, pods: readonly PublishedPod[]): ZoneProgress {
  const inFlight = Math.max(0, replicas - available);
  const coming = pods.filter((pod) => pod.zone === zone && pod.state === 'starting').length;
  const done = Math.min(Math.max(0, updated - coming), replicas - inFlight);
  return { zone, done, inFlight, toDo: Math.max(0, replicas - inFlight - done) };
}

/** A revision as far as people compare it: without the name of its StatefulSet. */
export function shortRevision(revision: string, statefulSet: string): string {
  const own = revision.startsWith(`${statefulSet}-`) ? revision.slice(statefulSet.length + 1) : revision;
  return own.slice(0, 10);
}

/** `2/3 rest`, or `2/3`. */
export function waveText({ wave }: Pick<PublishedDecision, 'wave'>, { isShort = false } = {}): string {
  if (wave === undefined) return '';
  const number = `${Math.min(wave.index + 1, wave.count)}/${wave.count}`;
  return isShort ? number : `${number} ${wave.name}`;
}

/** `stateful-safety/queue: 12, 20s ago, from prod`; with why there is nothing newer, and whether it is too old to count. */
export function metricText({ policy, input, source, value, unknown, atMs, problem, maxAgeMs }: PublishedMetric, nowMs: number): string {
  const from = `from ${source}`;
  if (atMs === undefined) return `${policy}/${input}: no reading yet, ${from}`;
  const reading = value === undefined ? (unknown ?? 'unknown') : String(value);
  const isOld = nowMs - atMs > maxAgeMs;
  const parts = [
    `${reading}, ${ageText(atMs, nowMs)} ago, ${from}`,
    ...(isOld ? [`older than ${formatDuration(maxAgeMs)}, so it is unknown`] : []),
    ...(problem === undefined ? [] : [`since then ${problem}`]),
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

/** What matters most about a group, in a line: why it does not move, or what is on the way. */
export function infoText(decision: PublishedDecision, { isShort = false } = {}): string {
  if (decision.phase === 'Failed') return decision.run?.failure ?? firstWait(decision, isShort);
  const trouble = troubleText(decision, isShort);
  const unread = unreadZones(decision);
  const flying = decision.zones
    .filter(({ zone }) => !unread.includes(zone))
    .map((zone) => ({ zone: zone.zone, count: zoneProgress(zone, decision.pods).inFlight - troubledPods(decision, zone.zone).length }))
    .filter(({ count }) => count > 0)
    .map(({ zone, count }) => `${plural(count, 'pod')} of ${zone}`);
  const missing = decision.phase === 'Done' ? podsMissing(decision) : 0;
  if (missing > 0) return [trouble, missingText(missing)].filter((part) => part !== '').join('; ');
  // While it moves, a budget that is used up holds the next pod, and is no news.
  const isMoving = decision.phase === 'Rolling' || decision.phase === 'Scaling';
  if (isMoving || decision.outcome === 'act' || decision.waits.length === 0) {
    const moving = flying.length === 0 || isShort ? flying.join(', ') : `${flying.join(', ')} on the way`;
    return [trouble, moving].filter((part) => part !== '').join('; ');
  }
  return [trouble, firstWait(decision, isShort)].filter((part) => part !== '').join('; ');
}

/** How many pods of the zones that could be read are not available. */
export function podsMissing(decision: Pick<PublishedDecision, 'zones'> & Parameters<typeof unreadZones>[0]): number {
  const unread = unreadZones(decision);
  return decision.zones
    .filter(({ zone }) => !unread.includes(zone))
    .reduce((sum, { replicas, available }) => sum + Math.max(0, replicas - available), 0);
}

/** `9 pods are not available`. */
export function missingText(count: number): string {
  return `${plural(count, 'pod')} ${count === 1 ? 'is' : 'are'} not available`;
}

/** Pods that waiting does not bring back, as far as they are named. */
export function troubledPods({ pods }: Pick<PublishedDecision, 'pods'>, zone?: string): readonly PublishedPod[] {
  return pods.filter((pod) => (pod.state === 'crashing' || pod.state === 'nodeDown') && (zone === undefined || pod.zone === zone));
}

/** `ingester-zone-a-3 crashes (CrashLoopBackOff)`. */
export function podTrouble({ pod, state, reason, node }: PublishedPod): string {
  if (state === 'crashing') return `${pod} crashes${reason === undefined ? '' : ` (${reason})`}`;
  return `${pod} is on ${node === undefined ? 'a node' : `node ${node}`}, which is not ready`;
}

function troubleText(decision: PublishedDecision, isShort: boolean): string {
  const troubled = troubledPods(decision);
  const [first] = troubled;
  if (first === undefined) return '';
  if (isShort) return `${plural(troubled.length, 'pod')} in trouble`;
  return `${podTrouble(first)}${troubled.length === 1 ? '' : ` and ${troubled.length - 1} more`}`;
}

function firstWait({ waits }: PublishedDecision, isShort: boolean): string {
  const [wait] = waits;
  if (wait === undefined) return '';
  return isShort ? wait.rule : `${wait.rule}: ${factText(wait)}`;
}
