// Defines the state of the model, which `step` advances, and the readings that a plan assumes for a gate.
import { evaluateCondition } from '../../policies/condition/condition.ts';
import type { GateDefinition } from '../../policies/definition.ts';
import type { Action } from '../decision.ts';
import type { Assumptions } from '../plan/document.ts';
import type { GateReading, PodView, Snapshot, StatefulSetView } from '../snapshot.ts';

/** Durations of the pods of one StatefulSet, in milliseconds. */
export interface PodDurations {
  readonly drainMs: number;
  readonly startMs: number;
  /** The time after which a pod that does not become ready counts as broken. */
  readonly longestStartMs: number;
}

export type Quantile = 'p50' | 'p90';

/** Positions in `snapshot.statefulSets` and `snapshot.pods`. */
export interface Place {
  readonly set: number;
  readonly pods: number;
}

/** The next change of a pod by time alone: a terminating pod is gone, or a starting pod is ready. */
export interface PodTimer {
  readonly change: 'gone' | 'ready';
  readonly atMs: number;
}

export interface ModelPod {
  readonly view: PodView;
  readonly timer: PodTimer | undefined;
}

/** The pods of one StatefulSet. */
export interface ModelPods {
  /** Sorted by ordinal. */
  readonly pods: readonly PodView[];
  /** The timers of the pods that have one, by ordinal. */
  readonly timers: ReadonlyMap<number, PodTimer>;
}

/** The state of the model: the observable objects, and the changes that time alone will bring. */
export interface World {
  /** The observable state. `step` keeps `snapshot.pods` and `snapshot.statefulSets` current. */
  readonly snapshot: Snapshot;
  /** Pods by `namespace/statefulSet`. */
  readonly pods: ReadonlyMap<string, ModelPods>;
  readonly durations: ReadonlyMap<string, PodDurations>;
  /** Positions of each StatefulSet and its pods in the lists of the snapshot, whose order never changes. */
  readonly places: ReadonlyMap<string, Place>;
  /** The instant of the next change by time alone, for StatefulSets with such a change. */
  readonly pending: ReadonlyMap<string, number>;
  /** The timestamps that pods report when they are asked to prepare for a delayed downscale, by `namespace/pod`. */
  readonly reported: ReadonlyMap<string, number>;
  readonly assumptions: Assumptions;
  /** The zones whose preparations fail, if the assumptions let preparations succeed. */
  readonly failingZones?: ReadonlySet<string>;
  readonly quantile: Quantile;
  /** Serial number for UIDs and resource versions, so that the model needs no randomness. */
  readonly serial: number;
}

/** An input of the world: an action of the agent, a write of another client, a failure of a pod, or time. */
export type WorldInput =
  | { readonly kind: 'action'; readonly action: Action }
  /** Deletions at one instant. They check no budget, so their order does not matter. */
  | { readonly kind: 'deletePods'; readonly deletions: readonly Extract<Action, { kind: 'deletePod' }>[] }
  | { readonly kind: 'elapse'; readonly toMs: number }
  /** A StatefulSet that does not exist yet. */
  | { readonly kind: 'createStatefulSet'; readonly set: StatefulSetView }
  | { readonly kind: 'setTemplate'; readonly namespace: string; readonly statefulSet: string; readonly revision: string }
  | { readonly kind: 'setReplicas'; readonly namespace: string; readonly statefulSet: string; readonly replicas: number }
  | { readonly kind: 'podFails'; readonly namespace: string; readonly pod: string; readonly reason?: string }
  | { readonly kind: 'podDies'; readonly namespace: string; readonly pod: string };

/** Values that are tried before the numbers in the condition. */
const plainValues: readonly number[] = [0, 1, 0.5, 100, 1e9, -1, -1e9];

/** Returns the readings that a gate counts between `fromMs` and `nowMs`. Their value makes the condition answer as assumed. */
export function modelReadings(
  gate: GateDefinition,
  fromMs: number,
  nowMs: number,
  assumption: Assumptions['gates'],
): readonly GateReading[] {
  if (nowMs < fromMs) return [];
  const periods = gate.everyMs > 0 ? Math.floor((nowMs - fromMs) / gate.everyMs) : 0;
  const counted = Math.max(gate.consecutive, gate.failureLimit);
  const value = assumedValue(gate, assumption, nowMs);
  const readings: GateReading[] = [];
  for (let period = Math.max(0, periods - counted); period <= periods; period += 1) {
    const atMs = fromMs + period * gate.everyMs;
    if (value !== undefined) readings.push({ atMs, result: 'value', value });
    else readings.push({ atMs, result: 'error', message: `no value was found for which gate ${gate.name} would ${assumption}` });
  }
  return readings;
}

function assumedValue(gate: GateDefinition, assumption: Assumptions['gates'], nowMs: number): number | undefined {
  const candidates = [...plainValues, ...numbersIn(gate.pass).flatMap((number) => [number, number + 1, number - 1])];
  return candidates.find((value) => {
    const answer = evaluateCondition(gate.pass, { value }, nowMs);
    return answer.kind === 'value' && answer.isTrue === (assumption === 'pass');
  });
}

function numbersIn(condition: unknown): readonly number[] {
  if (typeof condition === 'number') return [condition];
  if (typeof condition !== 'object' || condition === null) return [];
  return Object.values(condition).flatMap(numbersIn);
}
