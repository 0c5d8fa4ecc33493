// Plays one scenario to its end under the judges, and returns violations, a timeline and the end state.

import { defined } from '../policies/values/defined.ts';
import type { GeneratedParts } from './cluster/world.ts';
import type { FaultClass, PlacedFault, Point } from './faults/fault.ts';
import { field, imagesOf } from './objects.ts';
import { podsOf } from './oracles/converged.ts';
import type { Oracle, Scene, Violation } from './oracles/oracle.ts';
import type { Leak } from './process/agents.ts';
import type { Scenario } from './scenario.ts';
import type { ModelObject } from './server/request.ts';
import { Run } from './stage.ts';

export interface TimelineEntry {
  readonly atMs: number;
  /** The actor: `people`, `fault`, `a1` (a process), `cluster` or `verdict`. */
  readonly who: string;
  readonly what: string;
}

export interface RunOptions {
  readonly keepsTimeline?: boolean;
  /** False to compute no `traceHash`. */
  readonly isTraced?: boolean;
  readonly stopsAtViolation?: boolean;
  /** Replaces `quietMs` of the scenario. */
  readonly quietMs?: number;
  /** True to end faults as soon as all events happened and the group has its requested state, instead of after `safetyMs`. */
  readonly endsWhenConverged?: boolean;
  readonly generated?: GeneratedParts;
  readonly observer?: RunObserver;
}

interface RunObserver extends Oracle {
  /** Called when a line of a watch reaches the process. */
  readonly lineArrived?: (point: Point, line: string) => void;
}

export interface RunResult {
  readonly violations: readonly Violation[];
  /** The reason why the group did not converge, writes did not end, or a process left something open; absent otherwise. */
  readonly unfinished?: string;
  /** The time of the check that found the group converged. Without `endsWhenConverged`, checks begin 5 s after `safetyMs`. */
  readonly convergedMs?: number;
  readonly faults: Readonly<Partial<Record<FaultClass, number>>>;
  /** The faults with a place. A scenario with these `faults` and empty `rates` gives the same simulation. */
  readonly placed: readonly PlacedFault[];
  /** The number of crashes at requests. The key is `site moment`, for example `act.deletePod afterApply`. */
  readonly crashes: Readonly<Record<string, number>>;
  /** The number of agents' requests that changed something, by `verb resource[/subresource]`, without Leases. */
  readonly writes: Readonly<Record<string, number>>;
  /**
   * The end state of each StatefulSet by name, and of each ReplicaTemplate and RolloutGroup by kind and name. The keys of every group but
   * the first also have the namespace.
   */
  readonly endState: Readonly<Record<string, string>>;
  readonly events: number;
  /** The end of the simulation on the scheduler's clock. */
  readonly endMs: number;
  /** The hash of all events in order; empty without a trace. Equal simulations have equal hashes. */
  readonly traceHash: string;
  readonly timeline: readonly TimelineEntry[];
}

/** The id of a failure without a violated invariant: the result has `unfinished`. */
export const unfinishedFailure = 'unfinished';

export interface Failure {
  /** The first violated invariant, or the id of another failure. */
  readonly id: string;
  readonly atMs: number;
  readonly message: string;
  /** The failing scenario: the judged scenario, or a scenario with which it was compared. */
  readonly scenario: Scenario;
}

/** Plays the scenario with the real loop of the agent. The result contains the errors of the agent. */
export async function runScenario(scenario: Scenario, options: RunOptions = {}): Promise<RunResult> {
  const run = new Run(scenario, options);
  const { scheduler } = run;
  const isOver = (): boolean => options.stopsAtViolation === true && run.violations.length > 0;
  let unfinished: string | undefined;
  let convergedMs: number | undefined;
  try {
    const check = convergenceCheck(run);
    if (options.endsWhenConverged !== true) await scheduler.runUntil(scenario.safetyMs, isOver);
    else await runUntilConverged(run, scenario, check, isOver);
    const quietMs = run.hasLostEvent ? usualQuietMs : (options.quietMs ?? scenario.quietMs ?? usualQuietMs);
    if (!isOver()) unfinished = await heal(run, scenario, { check, isOver, quietMs });
    convergedMs = check.sinceMs();
    if (!isOver()) unfinished ??= await leave(run);
  } catch (error) {
    run.violated('error', `an unexpected error: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
  }
  for (const problem of run.agents.defects()) run.violated('error', problem);
  run.agents.close();
  return {
    violations: run.violations,
    ...defined({ unfinished, convergedMs }),
    faults: run.faults.counts(),
    placed: run.faults.placed(),
    crashes: run.faults.crashes(),
    writes: run.writes,
    endState: Object.assign({}, ...run.scenes.map(endStateOf)),
    events: scheduler.eventCount(),
    endMs: scheduler.nowMs(),
    traceHash: run.trace.hash(),
    timeline: run.timeline,
  };
}

/** Returns the failure of the simulation; undefined on success. */
export function failureOf(result: RunResult, scenario: Scenario): Failure | undefined {
  const [violation] = result.violations;
  if (violation !== undefined) return { id: violation.invariant, atMs: violation.atMs, message: violation.message, scenario };
  if (result.unfinished === undefined) return undefined;
  return { id: unfinishedFailure, atMs: result.endMs, message: result.unfinished, scenario };
}

const checkEveryMs = 5000;
/** The default of `quietMs`. It is longer than the interval of periodic work, which is at most five minutes. */
const usualQuietMs = 330_000;
/** The time of the first convergence check. Before this time, a part of the requested change may not be applied yet. */
const firstCheckMs = 30_000;

type ConvergenceCheck = ReturnType<typeof convergenceCheck>;

function convergenceCheck(run: Run) {
  let sinceMs: number | undefined;
  return {
    /** Returns the first difference from the requested state; undefined if the group has converged. */
    missing: (): string | undefined => {
      const missing = run.missing();
      sinceMs = missing === undefined ? (sinceMs ?? run.scheduler.nowMs()) : undefined;
      return missing;
    },
    /** Returns the time since which every check has found the group converged; undefined if the last check did not. */
    sinceMs: () => sinceMs,
  };
}

/** Injects faults until the group has converged after the last event, at most until `safetyMs`. */
async function runUntilConverged(
  { scheduler }: Run,
  { events, safetyMs }: Scenario,
  check: ConvergenceCheck,
  isOver: () => boolean,
): Promise<void> {
  const fromMs = Math.min(safetyMs, Math.max(firstCheckMs, (events.at(-1)?.atMs ?? 0) + checkEveryMs));
  await scheduler.runUntil(Math.min(fromMs, firstCheckMs), isOver);
  while (!isOver() && scheduler.nowMs() < safetyMs) {
    if (check.missing() === undefined && scheduler.nowMs() >= fromMs) return;
    await scheduler.runUntil(Math.min(safetyMs, scheduler.nowMs() + checkEveryMs), isOver);
  }
}

interface Healing {
  readonly check: ConvergenceCheck;
  readonly isOver: () => boolean;
  readonly quietMs: number;
}

/** Ends all faults and waits until the group has converged and agents no longer write. Returns the failure; undefined on success. */
async function heal(run: Run, { safetyMs, healingMs }: Scenario, { check, isOver, quietMs }: Healing): Promise<string | undefined> {
  run.beginHealing();
  const endMs = safetyMs + healingMs;
  let wasMissing: string | undefined = 'it was not checked';
  while (!isOver() && run.scheduler.nowMs() < endMs) {
    await run.scheduler.runUntil(Math.min(endMs, run.scheduler.nowMs() + checkEveryMs), isOver);
    const missing = check.missing();
    // The quiet time begins after the group has converged.
    if (missing !== undefined || wasMissing !== undefined) run.quietSinceMs = run.scheduler.nowMs();
    wasMissing = missing;
    if (missing === undefined && run.scheduler.nowMs() - run.quietSinceMs >= quietMs) {
      run.endJudgement();
      return undefined;
    }
  }
  if (isOver()) return undefined;
  if (wasMissing !== undefined) return `it did not converge within ${Math.round(healingMs / 1000)} s: ${wasMissing}`;
  return `it never became quiet: ${run.lastWrite}`;
}

/** The time limit for the shutdown of all agents, which takes at most 32 s (Agents.end). */
const leavingMs = 60_000;

/** Stops the agents and checks for leaks. */
async function leave({ agents, scheduler }: Run): Promise<string | undefined> {
  let leaks: readonly Leak[] | undefined;
  const ended = agents.end().then((found) => {
    leaks = found;
  });
  await scheduler.runUntil(scheduler.nowMs() + leavingMs, () => leaks !== undefined);
  if (leaks === undefined) return `the agents did not end within ${leavingMs / 1000} s`;
  await ended;
  return leaks.length === 0 ? undefined : `not closed: ${leaks.map(({ process, what }) => `${what} by ${process}`).join(', ')}`;
}

const mirrored = ['replicatemplates.rollout-operator.grafana.com', 'rolloutgroups.rollout-group.dev'];

/** Returns each StatefulSet with its pods, and `status.replicas` of each ReplicaTemplate and RolloutGroup. */
function endStateOf(scene: Pick<Scene, 'namespace' | 'statefulSets' | 'list' | 'get'>, index: number): Readonly<Record<string, string>> {
  const state: Record<string, string> = {};
  const place = index === 0 ? '' : `${scene.namespace}/`;
  for (const name of scene.statefulSets) {
    const set = scene.get('statefulsets.apps', scene.namespace, name);
    state[`${place}${name}`] = set === undefined ? 'nothing' : statefulSetText(set, podsOf(scene, set));
  }
  for (const resource of mirrored) {
    for (const object of scene.list(resource, scene.namespace)) {
      const replicas = field(object, 'status', 'replicas');
      if (replicas !== undefined) state[`${object.kind} ${place}${object.metadata.name}`] = `${replicas} replicas in its status`;
    }
  }
  return state;
}

function statefulSetText(set: ModelObject, pods: readonly ModelObject[]): string {
  const images = [...new Set(pods.map(imagesText).sort())];
  const template = imagesText(field(set, 'spec', 'template'));
  return `${field(set, 'spec', 'replicas')} replicas of ${template}, ${pods.length} pods of ${images.join(' and ') || 'nothing'}`;
}

function imagesText(value: unknown): string {
  return imagesOf(value)
    .map((image) => image || 'no image')
    .join(' with ');
}
