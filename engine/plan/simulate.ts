// Simulation: the plan carried out in the model while things break, with the invariants asked at every decision.
import type { GroupDefinition } from '../../policies/definition.ts';
import type { Action, GroupDecision } from '../decision.ts';
import { flapping, type ReplicaWrite, replicaWrites, violationsOf } from '../invariants.ts';
import { isUnknown } from '../snapshot.ts';
import type { World } from '../world/model.ts';
import { runForward, type ScheduledEvent, type Turn } from './forward.ts';
import { type Random, randomFrom } from './random.ts';

/** A fault that a person asked for: at an offset from the start of the run. */
export interface RequestedFault {
  readonly kind: 'podFails' | 'podDies';
  readonly pod: string;
  readonly afterMs: number;
}

export interface SimulationOptions {
  readonly seed: number;
  readonly runs: number;
  /** Random faults of each run; 0 runs the plan undisturbed. */
  readonly faultsPerRun: number;
  readonly faults: readonly RequestedFault[];
  /** Random faults happen within this time from the start; 4 hours unless given. */
  readonly faultsWithinMs?: number;
  /** Virtual time after which a run is broken off. */
  readonly untilMs?: number;
  /** Sees every decision of every run. */
  readonly onTurn?: (turn: Turn) => void;
}

export interface TimelineEntry {
  readonly atMs: number;
  readonly what: string;
}

export interface SimulatedRun {
  /** Repeats this very run. */
  readonly seed: number;
  readonly end: 'done' | 'held' | 'limit';
  readonly durationMs: number;
  readonly turns: number;
  readonly violations: readonly TimelineEntry[];
  readonly timeline: readonly TimelineEntry[];
  /** Why the group was held when the run ended. */
  readonly heldBy: readonly string[];
}

export interface Simulation {
  readonly seed: number;
  readonly runs: readonly SimulatedRun[];
  readonly violated: number;
  readonly unfinished: number;
  readonly durationMs: { readonly p50: number; readonly p90: number; readonly max: number };
}

/** Failed pods are looked after within this time, as they are by people and node controllers. */
const longestRepairMs = 30 * 60_000;

/** Runs the group forward many times from the same world, each time with other faults and start times. */
export function simulate(start: World, group: GroupDefinition, options: SimulationOptions): Simulation {
  const runs = Array.from({ length: options.runs }, (_, index) => simulateOnce(start, group, options, options.seed + index));
  const durations = runs
    .filter((run) => run.end === 'done')
    .map((run) => run.durationMs)
    .sort((a, b) => a - b);
  const quantile = (share: number): number => durations[Math.min(durations.length - 1, Math.floor(share * durations.length))] ?? 0;
  return {
    seed: options.seed,
    runs,
    violated: runs.filter((run) => run.violations.length > 0).length,
    unfinished: runs.filter((run) => run.end !== 'done').length,
    durationMs: { p50: quantile(0.5), p90: quantile(0.9), max: durations.at(-1) ?? 0 },
  };
}

function simulateOnce(start: World, group: GroupDefinition, options: SimulationOptions, seed: number): SimulatedRun {
  const random = randomFrom(seed);
  const beginMs = start.snapshot.nowMs;
  const timeline: TimelineEntry[] = [];
  const violations: TimelineEntry[] = [];
  const writes: ReplicaWrite[] = [];
  const events = [...requestedEvents(start, group, options.faults), ...randomEvents(start, group, options, random)];
  for (const { atMs, input } of events) {
    if (input.kind === 'podFails' || input.kind === 'podDies')
      timeline.push({ atMs: atMs - beginMs, what: `${input.kind === 'podFails' ? 'fault: pod fails' : 'pod is replaced'} ${input.pod}` });
  }
  const onTurn = (turn: Turn, world: World): void => {
    const atMs = turn.nowMs - beginMs;
    for (const what of violationsOf({ snapshot: world.snapshot, group, decision: turn.decision })) violations.push({ atMs, what });
    writes.push(...replicaWrites({ decision: turn.decision, snapshot: world.snapshot }));
    const line = describeActions(turn.decision);
    if (line !== '') timeline.push({ atMs, what: line });
    options.onTurn?.(turn);
  };
  const untilMs = options.untilMs === undefined ? {} : { untilMs: beginMs + options.untilMs };
  const { turns, last, end } = runForward(withJitter(start, random), group, { onTurn, events, ...untilMs });
  for (const what of flapping(writes)) violations.push({ atMs: last.nowMs - beginMs, what });
  return {
    seed,
    end,
    durationMs: end === 'limit' && options.untilMs !== undefined ? options.untilMs : last.nowMs - beginMs,
    turns,
    violations,
    timeline: timeline.sort((a, b) => a.atMs - b.atMs),
    heldBy: end === 'done' ? [] : last.decision.waits.map((answer) => `${answer.rule}: ${answer.fact}`),
  };
}

/** Pods take between half and three times as long as assumed, differently in each zone. */
function withJitter(world: World, random: Random): World {
  const keys = [...world.durations.keys()].sort();
  const stretch = (ms: number): number => Math.round(ms * (0.5 + 2.5 * random.next()));
  const durations = new Map(
    keys.map((key) => {
      const assumed = world.durations.get(key) ?? { drainMs: 0, startMs: 0 };
      return [key, { drainMs: stretch(assumed.drainMs), startMs: stretch(assumed.startMs) }];
    }),
  );
  return { ...world, durations };
}

function requestedEvents(start: World, group: GroupDefinition, faults: readonly RequestedFault[]): readonly ScheduledEvent[] {
  return faults.map((fault) => ({
    atMs: start.snapshot.nowMs + fault.afterMs,
    input: { kind: fault.kind, namespace: group.namespace, pod: fault.pod },
  }));
}

/** Pods of any zone crash or vanish at random instants of the first hours; what crashed is replaced some time later. */
function randomEvents(start: World, group: GroupDefinition, options: SimulationOptions, random: Random): readonly ScheduledEvent[] {
  const pods = podNames(start, group);
  const spanMs = options.faultsWithinMs ?? options.untilMs ?? 4 * 3_600_000;
  const events: ScheduledEvent[] = [];
  for (let count = 0; count < options.faultsPerRun; count += 1) {
    const pod = random.pick(pods);
    if (pod === undefined) continue;
    const atMs = start.snapshot.nowMs + random.below(spanMs);
    const target = { namespace: group.namespace, pod };
    if (random.next() < 0.5) events.push({ atMs, input: { kind: 'podDies', ...target } });
    else {
      const reason = random.next() < 0.5 ? { reason: 'CrashLoopBackOff' } : {};
      events.push(
        { atMs, input: { kind: 'podFails', ...target, ...reason } },
        { atMs: atMs + 60_000 + random.below(longestRepairMs), input: { kind: 'podDies', ...target } },
      );
    }
  }
  return events;
}

function podNames(start: World, group: GroupDefinition): readonly string[] {
  const sets = new Set(group.zones.map((zone) => zone.statefulSet));
  return start.snapshot.pods
    .filter((view) => view.namespace === group.namespace && sets.has(view.statefulSet))
    .flatMap((view) => (isUnknown(view.pods) ? [] : view.pods.map((pod) => pod.name)))
    .sort();
}

/** What a decision does, in one line; empty when it only waits. */
export function describeActions(decision: GroupDecision): string {
  return decision.actions.map(describeAction).join(', ');
}

/** One action in a few words. */
export function describeAction(action: Action): string {
  switch (action.kind) {
    case 'deletePod':
    case 'evictPod':
      return `${action.because === 'stuck' ? 'cure' : 'replace'} ${action.pod}`;
    case 'scaleStatefulSet':
      return `scale ${action.statefulSet} ${action.from} to ${action.to}`;
    case 'callPods':
      return `${action.method === 'POST' ? 'prepare' : 'withdraw'} ${action.statefulSet} ${action.ordinals.join(',')}`;
    case 'writeBackReplicas':
      return `tell ${action.resourceKind} ${action.name} ${action.replicas} replicas`;
    case 'advanceCurrentRevision':
      return `advance the current revision of ${action.statefulSet}`;
  }
}
