// Derives the facts of a run for notifications: its progress, the rule that blocks it, and its pods in order.
import type { GroupDefinition } from '../../policies/definition.ts';
import { defined } from '../../policies/values/defined.ts';
import { type GroupDecision, isMoving } from '../decision.ts';
import { isAvailable, isCrashing, viewGroup, type ZoneView } from '../observe/view.ts';
import { storedResult } from '../rule.ts';
import { lacksApproval } from '../rules/approval.ts';
import type { RunState } from '../run/run-state.ts';
import type { PodView, Snapshot } from '../snapshot.ts';

export interface Hold {
  /** A rule of the engine, or `policy/rule`. */
  readonly rule: string;
  readonly fact: string;
  readonly limit?: string;
  /** The earliest instant at which the block could end without any event, in milliseconds since 1970. */
  readonly untilMs?: number;
}

interface ZoneProgress {
  readonly zone: string;
  readonly pods: number;
  readonly updated: number;
  readonly available: number;
}

export interface Progress {
  /** Updated pods in percent, rounded down: 100 only if all pods are updated. */
  readonly percent: number;
  readonly pods: number;
  readonly updated: number;
  readonly available: number;
  /** The name of the wave, and its place counted from 1. */
  readonly wave?: { readonly name: string; readonly place: number; readonly count: number };
}

export interface RunFacts extends Progress {
  readonly namespace: string;
  readonly group: string;
  readonly run: RunState;
  readonly goal: string;
  readonly hold?: Hold;
  /** The rule result that blocks the next pod while other pods are in flight. */
  readonly inFlight?: Hold;
  /** True if the block may end without a person: by time, by ready pods or by readings. Its notification is sent later than usual. */
  readonly isPatient: boolean;
  readonly zones: readonly ZoneProgress[];
  readonly commit?: string;
  readonly cause?: string;
}

type PodProgress = 'new' | 'old' | 'starting' | 'leaving' | 'unready' | 'crashing' | 'missing' | 'unknown';

interface PodLine {
  readonly pod: string;
  readonly state: PodProgress;
}

export interface PodLines {
  /** The first pods by zone and ordinal. */
  readonly lines: readonly PodLine[];
  /** The number of all expected pods. */
  readonly count: number;
}

interface ObservedTurn {
  readonly group: GroupDefinition;
  readonly snapshot: Snapshot;
  readonly decision: GroupDecision;
}

const longestText = 400;

/** Returns the facts of the run; undefined if the group has no run yet. */
export function runFacts({ group, decision }: ObservedTurn): RunFacts | undefined {
  const { run, wave } = decision;
  const [first] = decision.waits;
  if (run === undefined) return undefined;
  const zones = decision.zones.map(({ zone, replicas, updated, available }) => ({ zone, pods: replicas, updated, available }));
  const sum = (of: (zone: ZoneProgress) => number): number => zones.reduce((total, zone) => total + of(zone), 0);
  const [pods, updated, available] = [sum((zone) => zone.pods), sum((zone) => zone.updated), sum((zone) => zone.available)];
  const hold = holdOf(decision);
  const { commit, cause } = run.origin ?? {};
  return {
    namespace: group.namespace,
    group: group.name,
    run,
    goal: decision.goal.slice(0, longestText),
    zones,
    percent: pods === 0 ? 100 : Math.floor((updated * 100) / pods),
    pods,
    updated,
    available,
    ...(wave === undefined ? {} : { wave: { name: wave.name, place: Math.min(wave.index + 1, wave.count), count: wave.count } }),
    ...(hold === undefined ? {} : isMoving(decision) ? { inFlight: hold } : { hold }),
    isPatient: isMoving(decision) || (first?.outcome === 'wait' && first.rule !== 'paused' && !lacksApproval(first)),
    ...(commit === undefined ? {} : { commit }),
    ...(cause === undefined ? {} : { cause: cause.slice(0, longestText) }),
  };
}

/** Returns the leading block; undefined while the decision acts, because budgets and readiness then always block the next pod. */
function holdOf({ outcome, waits: [first] }: GroupDecision): Hold | undefined {
  if (outcome === 'act' || first === undefined) return undefined;
  const { rule, fact, limit, earliestMs } = storedResult(first);
  const optional = defined({ limit: limit?.slice(0, longestText), untilMs: earliestMs });
  return { rule: rule.slice(0, 317), fact: fact.slice(0, longestText), ...optional };
}

/** Returns the lines of up to `most` expected pods, by zone and ordinal. The list is built on demand, because groups may have many pods. */
export function podLines({ group, snapshot }: Pick<ObservedTurn, 'group' | 'snapshot'>, most: number): PodLines {
  const { zones } = viewGroup(snapshot, group);
  const lines = zones.flatMap((zone) => linesOf(zone, { group, nowMs: snapshot.nowMs, most }));
  return { lines: lines.slice(0, most), count: zones.reduce((sum, { set }) => sum + (set?.replicas ?? 0), 0) };
}

interface LineOptions {
  readonly group: GroupDefinition;
  readonly nowMs: number;
  readonly most: number;
}

function linesOf({ set, unknown, pods, claims }: ZoneView, { group, nowMs, most }: LineOptions): readonly PodLine[] {
  if (set === undefined) return [];
  const byOrdinal = new Map(pods.map((pod) => [pod.ordinal, pod]));
  const claimed = new Set(claims.map(({ uid }) => uid));
  const isUp = (pod: PodView): boolean => isAvailable(pod, group, set.minReadySeconds, nowMs);
  return Array.from({ length: Math.min(set.replicas, most) }, (_, index): PodLine => {
    const ordinal = set.firstOrdinal + index;
    const pod = byOrdinal.get(ordinal);
    if (pod === undefined) return { pod: `${set.name}-${ordinal}`, state: unknown === undefined ? 'missing' : 'unknown' };
    if (pod.isTerminating || claimed.has(pod.uid)) return { pod: pod.name, state: 'leaving' };
    return { pod: pod.name, state: podProgress(pod, pod.revision === set.status.updateRevision, isUp(pod)) };
  });
}

function podProgress(pod: PodView, isUpdated: boolean, isUp: boolean): PodProgress {
  if (isUp) return isUpdated ? 'new' : 'old';
  if (isCrashing(pod)) return 'crashing';
  return isUpdated ? 'starting' : 'unready';
}
