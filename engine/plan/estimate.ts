// Estimates when a running rollout ends, and which zones change their replicas. Runs the model of plans forward from the present state.
import type { GroupDefinition } from '../../policies/definition.ts';
import { contextOf, minIntervalOf } from '../context.ts';
import { desiredReplicas } from '../decide/replicas.ts';
import type { RuleResult, Step, ZoneDecision } from '../decision.ts';
import { blocks, leadingResult } from '../rule.ts';
import { missingApprovals } from '../rules/approval.ts';
import { isUnknown, type Known, type Snapshot } from '../snapshot.ts';
import type { World } from '../world/model.ts';
import { createWorld, type Quantile } from '../world/world.ts';
import { type Assumptions, defaultAssumptions, type PodTimes, podTimesOf, type Quantiles } from './document.ts';
import { type ForwardRun, runForward, type Turn } from './forward.ts';
import { approvableWait, newPodsTrace } from './steps.ts';
import { groupPart } from './world.ts';

/** The likely end in milliseconds since 1970: median and 90th percentile. `p90Ms` is absent if p90 durations lead to no end. */
export interface LikelyEnd {
  readonly p50Ms: number;
  readonly p90Ms?: number;
}

export interface Estimate {
  readonly end: LikelyEnd;
  /** Only for zones that are not done. */
  readonly zones: Readonly<Record<string, LikelyEnd>>;
  /** Number of missing approvals, one for each person. The instants contain no time for people. */
  readonly approvals: number;
  /** The time from the creation of a pod until it is ready, as this estimate uses it. */
  readonly start: Quantiles;
  /** Number of pods of this run from which `start` was measured; 0 if `start` is the assumption of plans. */
  readonly measuredPods: number;
  /** The time from the request to delete a pod until the pod is gone. */
  readonly stop: Quantiles;
  /** Number of pods of this run from which `stop` was measured; 0 if `stop` is the assumption of plans. */
  readonly measuredStops: number;
}

/** A successor pod of this run. Times are in milliseconds since 1970. */
export interface SuccessorPod {
  readonly zone: string;
  readonly createdMs: number;
  /** Absent while the pod is not ready. */
  readonly readyMs?: number;
}

export interface EstimateInput {
  readonly snapshot: Snapshot;
  readonly group: GroupDefinition;
  /** The successor pods of this run so far, in any order. */
  readonly pods: readonly SuccessorPod[];
  readonly assumptions?: Assumptions;
}

/** The limit in milliseconds beyond which an estimate would not be credible. */
const furthestMs = 60 * 24 * 3_600_000;

const manyPods = 10;

/**
 * Estimates the end of the rollout; undefined without a rollout. Unknown, with the reason, if the simulated rollout does not end within 60
 * days. Assumes that gates pass and approvals come at once.
 */
export function estimateEnd(input: EstimateInput): Known<Estimate> | undefined {
  const { assumptions = defaultAssumptions } = input;
  const startSeconds = input.pods.flatMap(({ createdMs, readyMs }) => (readyMs === undefined ? [] : [(readyMs - createdMs) / 1000]));
  const stopSeconds = minIntervalOf(contextOf(input.snapshot, input.group)) > 0 ? [] : stopsOf(input.pods);
  const start = quantilesOf(startSeconds);
  const stop = stopSeconds.length < fewStops ? undefined : quantilesOf(stopSeconds);
  const times: PodTimes = {
    ...podTimesOf(assumptions, input.group),
    ...(start === undefined ? {} : { start }),
    ...(stop === undefined ? {} : { drain: stop }),
  };
  const likely = forward(input, times, 'p50');
  if (likely.isIdle) return undefined;
  if (likely.run.end !== 'done') return { unknown: unfinishedReason(likely) };
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

/** The minimum number of measured stops. A single gap may contain other waits, so fewer stops do not count. */
const fewStops = 3;

/** Returns the seconds that pods took to stop: from a ready pod to the creation of the next pod. Skips pods that were replaced together. */
function stopsOf(pods: readonly SuccessorPod[]): readonly number[] {
  const inTurn = [...pods].sort((a, b) => a.createdMs - b.createdMs);
  return inTurn.flatMap((pod, index) => {
    const before = inTurn.slice(0, index);
    const last = before.at(-1);
    const isAlone = before.every(({ readyMs }) => readyMs !== undefined && readyMs <= pod.createdMs);
    if (last?.readyMs === undefined || last.zone !== pod.zone || !isAlone) return [];
    return [(pod.createdMs - last.readyMs) / 1000];
  });
}

/** Returns the quantiles of samples. With few samples, the 90th percentile is the slowest pod, or twice the median if that is longer. */
function quantilesOf(seconds: readonly number[]): Quantiles | undefined {
  const sorted = [...seconds].sort((a, b) => a - b);
  const at = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
  if (sorted.length === 0) return undefined;
  const p50Seconds = at(0.5);
  return { p50Seconds, p90Seconds: sorted.length < manyPods ? Math.max(at(1), 2 * p50Seconds) : at(0.9) };
}

interface Forward {
  readonly run: ForwardRun;
  /** True if nothing was left to do at the first decision. */
  readonly isIdle: boolean;
  /** The instant from which each zone is updated and available, only for zones with work left at the first decision. */
  readonly zones: ReadonlyMap<string, number>;
  readonly approvals: number;
  readonly permitted: ReadonlyMap<string, RuleResult>;
}

function forward({ snapshot, group, assumptions = defaultAssumptions }: EstimateInput, times: PodTimes, quantile: Quantile): Forward {
  const { nowMs } = snapshot;
  const part = groupPart(snapshot, group);
  const settings: Assumptions = { ...assumptions, pods: times, groups: {}, gates: 'pass', approvals: 'given' };
  const zones = new Map<string, number>();
  const permitted = new Map<string, RuleResult>();
  let first: Turn | undefined;
  let approvals = 0;
  const onTurn = (turn: Turn): void => {
    // The model gives these approvals after the turn.
    const wait = approvableWait(turn.decision);
    if (wait !== undefined) approvals += missingApprovals(wait);
    for (const zone of turn.decision.zones) {
      if (hasWork(zone)) zones.delete(zone.zone);
      else if (first !== undefined && !zones.has(zone.zone)) zones.set(zone.zone, turn.nowMs);
    }
    for (const result of turn.decision.permitted ?? []) permitted.set(result.rule, result);
    first ??= turn;
  };
  const run = runForward(createWorld(part, settings, quantile), group, { onTurn, untilMs: nowMs + furthestMs });
  const begun = new Set(first?.decision.zones.filter(hasWork).map(({ zone }) => zone));
  return {
    run,
    isIdle: run.turns === 1 && run.end === 'done',
    zones: new Map([...zones].filter(([zone]) => begun.has(zone))),
    approvals,
    permitted,
  };
}

function hasWork({ replicas, updated, available }: ZoneDecision): boolean {
  return updated < replicas || available < replicas;
}

/** Returns the waves and rules whose approvals the model assumed, such as `wave rest`. */
function approvalsGiven({ intents }: Snapshot, { snapshot }: World): readonly string[] {
  const after = snapshot.intents;
  if (isUnknown(intents) || isUnknown(after)) return [];
  const given = new Set(intents);
  const assumed = after.filter((intent) => !given.has(intent));
  return [...new Set(assumed.map(({ wave, rule }) => (wave === undefined ? `rule ${rule}` : `wave ${wave}`)))];
}

function unfinishedReason({ run: { end, last }, permitted }: Forward): string {
  const { decision } = last;
  if (end === 'limit') return 'it does not end within 60 days';
  const [wait] = decision.waits;
  if (decision.run?.outcome === 'failed') return decision.run.failure;
  if (wait === undefined) return 'some pods stay unavailable until a person acts';
  const exception = permitted.get(wait.rule)?.exception;
  return exception === undefined ? wait.fact : `exception ${exception} ends before the rollout; then ${wait.fact}`;
}

/** A change of the replicas of a zone that the model expects. */
interface ReplicaChange {
  readonly zone: string;
  readonly from: number;
  readonly to: number;
  /** Milliseconds from the request to the change. */
  readonly afterMs: number;
  /** The rules for which the change waits, in the order of the first wait. */
  readonly waitsFor: readonly string[];
}

export interface ScaleForecast {
  readonly changes: readonly ReplicaChange[];
  /** Why zones get another number than the requested one (bounds, and cancelled decreases), and new pods that start at a stopped template. */
  readonly facts: readonly string[];
  /** The waves and rules whose approvals the last change waits for, such as `wave rest`. The instants contain no time for people. */
  readonly approvals: readonly string[];
  /** The result that stops the change of a zone without end; absent if each zone gets its number. */
  readonly stop?: RuleResult;
}

/**
 * Returns what the group does with its replicas after a request for `replicas` on the object that sets the replicas of `zoneName`. Assumes
 * that gates pass, and that approvals and the preparations of pods succeed at once.
 */
export function forecastScale(snapshot: Snapshot, group: GroupDefinition, zoneName: string, replicas: number): ScaleForecast {
  const { nowMs } = snapshot;
  const requested = withRequestedReplicas(snapshot, group, zoneName, replicas);
  const part = groupPart(requested.snapshot, requested.group);
  const settings: Assumptions = { ...defaultAssumptions, gates: 'pass', approvals: 'given' };
  const changes = [...requested.changes];
  const waits = new Map<string, Set<string>>();
  let approvals: readonly string[] = [];
  let first: Turn | undefined;
  const traceNewPods = newPodsTrace(requested.group, requested.changes);
  let newPods: readonly string[] = [];
  const onTurn = (turn: Turn, world: World): void => {
    first ??= turn;
    newPods = traceNewPods(turn, world.snapshot);
    for (const { zone, kind, results } of scaleSteps(turn)) {
      const key = `${kind} ${zone}`;
      for (const { rule } of results.filter(blocks)) waits.set(key, (waits.get(key) ?? new Set()).add(rule));
    }
    for (const action of turn.decision.actions) {
      if (action.kind !== 'scaleStatefulSet') continue;
      const { zone, from, to } = action;
      // A zone may first wait for a decrease that the request ends.
      const key = `${to > from ? 'scaleUp' : 'scaleDown'} ${zone}`;
      changes.push({ zone, from, to, afterMs: turn.nowMs - nowMs, waitsFor: [...(waits.get(key) ?? [])] });
      waits.delete(key);
      approvals = approvalsGiven(part, world);
    }
  };
  const run = runForward(createWorld(part, settings, 'p50'), requested.group, { onTurn, untilMs: nowMs + furthestMs });
  const stuck = scaleSteps(run.last).flatMap(({ results }) => results);
  const stop = run.end === 'done' ? undefined : leadingResult(stuck.filter(blocks));
  const facts = [...boundedFacts(part, requested.group), ...cancelledFacts(first), ...newPods];
  return { changes, facts: [...new Set(facts)], approvals, ...(stop === undefined ? {} : { stop }) };
}

function scaleSteps({ decision }: Turn): readonly Step[] {
  return decision.steps.filter(({ kind }) => kind === 'scaleUp' || kind === 'scaleDown');
}

interface Requested extends Pick<EstimateInput, 'snapshot' | 'group'> {
  readonly changes: readonly ReplicaChange[];
}

/** Returns the state after the request. A zone whose StatefulSet sets its replicas changes at once. */
function withRequestedReplicas(snapshot: Snapshot, group: GroupDefinition, zoneName: string, replicas: number): Requested {
  const target = group.zones.find(({ name }) => name === zoneName);
  const spec = target?.replicas;
  if (target === undefined || spec === undefined) return { snapshot, group, changes: [] };
  if (spec.kind === 'count') {
    const zones = group.zones.map((zone) => (zone.replicas.kind === 'count' ? { ...zone, replicas: { ...spec, count: replicas } } : zone));
    return { snapshot, group: { ...group, zones }, changes: [] };
  }
  if (spec.kind === 'mirror') {
    const replicaSources = snapshot.replicaSources.map((source) =>
      source.namespace === group.namespace && source.kind === spec.resourceKind && source.name === spec.name
        ? { ...source, replicas }
        : source,
    );
    return { snapshot: { ...snapshot, replicaSources }, group, changes: [] };
  }
  const isTarget = (set: { readonly namespace: string; readonly name: string }): boolean =>
    set.namespace === group.namespace && set.name === target.statefulSet;
  const from = snapshot.statefulSets.find(isTarget)?.replicas ?? replicas;
  const statefulSets = snapshot.statefulSets.map((set) => (isTarget(set) ? { ...set, replicas } : set));
  const changes = from === replicas ? [] : [{ zone: zoneName, from, to: replicas, afterMs: 0, waitsFor: [] }];
  return { snapshot: { ...snapshot, statefulSets }, group, changes };
}

/** Returns the facts about zones whose bounds change the requested number. Only such an answer has a limit. */
function boundedFacts(snapshot: Snapshot, group: GroupDefinition): readonly string[] {
  const context = contextOf(snapshot, group);
  return context.view.zones.flatMap((zone) => {
    const answer = desiredReplicas(context, zone)?.answer;
    return answer?.limit === undefined ? [] : [`${answer.fact} (${answer.limit})`];
  });
}

function cancelledFacts(first: Turn | undefined): readonly string[] {
  const warnings = first?.decision.warnings ?? [];
  return warnings.filter(({ rule }) => rule === 'replica-source').map(({ fact }) => fact);
}
