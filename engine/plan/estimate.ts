// When a rollout that is under way is likely to end: the model behind every plan, run forward from what is there now.
import type { GroupDefinition } from '../../policies/definition.ts';
import { isUnknown, type Known, type PodView, type Snapshot } from '../snapshot.ts';
import { createWorld, type Quantile } from '../world/world.ts';
import { type Assumptions, defaultAssumptions, type PodTimes, type Quantiles } from './document.ts';
import { type ForwardRun, runForward, type Turn } from './forward.ts';
import { groupPart } from './world.ts';

/** Instants in milliseconds since 1970: met in half of all cases, and in nine of ten. The later one is absent where the slow case does not end. */
export interface LikelyEnd {
  readonly p50Ms: number;
  readonly p90Ms?: number;
}

export interface Estimate {
  readonly end: LikelyEnd;
  /** By zone, of zones that are not done yet. */
  readonly zones: Readonly<Record<string, LikelyEnd>>;
  /** Approvals that are still to be given. How long people take is in none of the instants. */
  readonly approvals: number;
  /** From the creation of a pod until it is ready, as it was reckoned with. */
  readonly start: Quantiles;
  /** On how many pods of this run `start` was measured; 0 when it is what plans assume. */
  readonly measuredPods: number;
  /** From the request to delete a pod until it is gone. */
  readonly stop: Quantiles;
  /** On how many pods `stop` was measured; 0 when it is what plans assume. */
  readonly measuredStops: number;
}

/** A pod that a run has brought back. Milliseconds since 1970. */
export interface BroughtBack {
  readonly zone: string;
  readonly createdMs: number;
  /** Absent while it is not ready. */
  readonly readyMs?: number;
}

export interface EstimateInput {
  readonly snapshot: Snapshot;
  readonly group: GroupDefinition;
  /** The pods that this run has brought back so far, in any order. */
  readonly pods: readonly BroughtBack[];
  readonly assumptions?: Assumptions;
}

/** Estimates beyond this limit are not shown: they would not be credible. */
const furthestMs = 60 * 24 * 3_600_000;

/** Readings of metrics are taken to stay what they are. */
const everMs = 400 * 24 * 3_600_000;

/** From this many pods on their own 90th percentile is worth something. */
const manyPods = 10;

/**
 * Estimates the end of the rollout; undefined without a rollout. Unknown, with the reason, if the end of a block is unknown. Assumes that
 * gates pass and approvals come at once.
 */
export function estimateEnd(input: EstimateInput): Known<Estimate> | undefined {
  const { assumptions = defaultAssumptions } = input;
  const startSeconds = input.pods.flatMap(({ createdMs, readyMs }) => (readyMs === undefined ? [] : [(readyMs - createdMs) / 1000]));
  const stopSeconds = input.group.rollout.minIntervalMs > 0 ? [] : stopsOf(input.pods);
  const start = quantilesOf(startSeconds);
  const stop = stopSeconds.length < fewStops ? undefined : quantilesOf(stopSeconds);
  const times: PodTimes = {
    ...assumptions.pods,
    ...assumptions.groups[input.group.name],
    ...(start === undefined ? {} : { start }),
    ...(stop === undefined ? {} : { drain: stop }),
  };
  const likely = forward(input, times, 'p50');
  if (likely.isIdle) return undefined;
  if (likely.run.end !== 'done') return { unknown: unfinishedReason(likely.run) };
  const slow = forward(input, times, 'p90');
  const later = slow.run.end === 'done' ? slow : undefined;
  const zones = [...likely.zones].map(([zone, atMs]): [string, LikelyEnd] => [zone, likelyEnd(atMs, later?.zones.get(zone))]);
  return {
    end: likelyEnd(likely.run.last.nowMs, later?.run.last.nowMs),
    zones: Object.fromEntries(zones),
    approvals: likely.approvals,
    start: times.start,
    measuredPods: startSeconds.length,
    stop: times.drain,
    measuredStops: stop === undefined ? 0 : stopSeconds.length,
  };
}

function likelyEnd(p50Ms: number, p90Ms: number | undefined): LikelyEnd {
  return p90Ms === undefined ? { p50Ms } : { p50Ms, p90Ms: Math.max(p50Ms, p90Ms) };
}

/** Fewer gaps between pods may as well be something else that was waited for. */
const fewStops = 3;

/** Returns how long pods took to stop, in seconds: the gap between pods that were replaced one by one. Kubernetes does not store it. */
function stopsOf(pods: readonly BroughtBack[]): readonly number[] {
  const inTurn = [...pods].sort((a, b) => a.createdMs - b.createdMs);
  return inTurn.flatMap((pod, index) => {
    const before = inTurn.slice(0, index);
    const last = before.at(-1);
    const isAlone = before.every(({ readyMs }) => readyMs !== undefined && readyMs <= pod.createdMs);
    if (last?.readyMs === undefined || last.zone !== pod.zone || !isAlone) return [];
    return [(pod.createdMs - last.readyMs) / 1000];
  });
}

/** With few samples the slowest pod is a poor estimate, so twice the median applies if it is longer. */
function quantilesOf(seconds: readonly number[]): Quantiles | undefined {
  const sorted = [...seconds].sort((a, b) => a - b);
  const at = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
  if (sorted.length === 0) return undefined;
  const p50Seconds = at(0.5);
  return { p50Seconds, p90Seconds: sorted.length < manyPods ? Math.max(at(1), 2 * p50Seconds) : at(0.9) };
}

interface Forward {
  readonly run: ForwardRun;
  /** Nothing was left to do at the first look. */
  readonly isIdle: boolean;
  /** Since when each zone is whole that was not at the first look. */
  readonly zones: ReadonlyMap<string, number>;
  readonly approvals: number;
}

function forward({ snapshot, group, assumptions = defaultAssumptions }: EstimateInput, times: PodTimes, quantile: Quantile): Forward {
  const { nowMs } = snapshot;
  const part = groupPart(snapshot, group);
  const metrics = part.metrics.map((metric) => ({ ...metric, atMs: nowMs + everMs }));
  const pods = part.pods.map((view) =>
    isUnknown(view.pods) ? view : { ...view, pods: view.pods.map((pod) => patient(pod, times, quantile, nowMs)) },
  );
  const settings: Assumptions = { ...assumptions, pods: times, groups: {}, gates: 'pass', approvals: 'given' };
  const zones = new Map<string, number>();
  let first: Turn | undefined;
  const onTurn = (turn: Turn): void => {
    for (const { zone, replicas, updated, available } of turn.decision.zones) {
      if (updated < replicas || available < replicas) zones.delete(zone);
      else if (first !== undefined && !zones.has(zone)) zones.set(zone, turn.nowMs);
    }
    first ??= turn;
  };
  const run = runForward(createWorld({ ...part, metrics, pods }, settings, quantile), group, { onTurn, untilMs: nowMs + furthestMs });
  const begun = new Set(
    first?.decision.zones.filter(({ updated, available, replicas }) => updated < replicas || available < replicas).map(({ zone }) => zone),
  );
  return {
    run,
    isIdle: run.turns === 1 && run.end === 'done',
    zones: new Map([...zones].filter(([zone]) => begun.has(zone))),
    approvals: approvalsGiven(snapshot, run),
  };
}

/** Returns the assumptions of the model that no person has confirmed yet, each wave and rule once. */
function approvalsGiven({ intents }: Snapshot, { world }: ForwardRun): number {
  const after = world.snapshot.intents;
  if (isUnknown(intents) || isUnknown(after)) return 0;
  const said = new Set(intents);
  return new Set(after.filter((intent) => !said.has(intent)).map(({ wave, rule }) => `${wave}/${rule}`)).size;
}

/** As many times its usual time may a pod take before it is taken for one that does not come back. */
const patience = 3;

/** Returns a late pod with a later start, up to three times the slow start time; the model would otherwise treat it as broken. */
function patient(pod: PodView, { start }: PodTimes, quantile: Quantile, nowMs: number): PodView {
  const usualMs = 1000 * (quantile === 'p50' ? start.p50Seconds : start.p90Seconds);
  const takenMs = nowMs - pod.readyChangedMs;
  const isLate = !pod.isReady && !pod.isTerminating && pod.waitingReasons.length === 0 && takenMs >= usualMs;
  if (!isLate || takenMs > patience * 1000 * start.p90Seconds) return pod;
  return { ...pod, readyChangedMs: nowMs - usualMs + Math.max(1000, usualMs / 4) };
}

function unfinishedReason({ end, last: { decision } }: ForwardRun): string {
  if (end === 'limit') return 'it does not end within 60 days';
  const [wait] = decision.waits;
  if (decision.run?.outcome === 'failed') return decision.run.failure;
  return wait === undefined ? 'some pods do not become available without help' : `${wait.rule}: ${wait.fact}`;
}
