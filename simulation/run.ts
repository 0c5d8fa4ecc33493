// One run: the scenario played to its end, judged, and told.
import { endStateOf } from './end-state.ts';
import type { FaultClass, PlacedFault, Point } from './faults/fault.ts';
import type { Oracle, Violation } from './oracles/oracle.ts';
import type { Leak } from './process/agents.ts';
import type { Scenario } from './scenario.ts';
import { type Run, stageRun } from './stage.ts';

export interface TimelineEntry {
  readonly atMs: number;
  /** `people`, `fault`, `a1` (a process), `cluster`, `verdict`. */
  readonly who: string;
  readonly what: string;
}

export interface RunOptions {
  /** Keeps the timeline, which takes memory. */
  readonly isTold?: boolean;
  /** Ends at the first violation instead of at the end of the scenario. */
  readonly isShort?: boolean;
  /** In place of what the scenario says of the quiet at its end, in virtual milliseconds. */
  readonly quietMs?: number;
  /** Nothing goes wrong any more as soon as every event was and the group is as wanted, instead of after all of `safetyMs`. */
  readonly endsWhenConverged?: boolean;
  /** Hears of everything that the judges hear of, after them. */
  readonly observer?: RunObserver;
}

export interface RunObserver extends Oracle {
  /** A line of a watch has reached the process, whatever becomes of it there. */
  readonly lineArrived?: (point: Point, line: string) => void;
}

export interface RunResult {
  readonly violations: readonly Violation[];
  /** Why it did not converge, or never became quiet, or left something behind; undefined when it did and was. */
  readonly unfinished?: string;
  /** When the group was as wanted and stayed so, within five seconds; nobody looks before `safetyMs` but with `endsWhenConverged`. */
  readonly convergedMs?: number;
  /** Faults that happened, by class. */
  readonly faults: Readonly<Partial<Record<FaultClass, number>>>;
  /** Those of them that have a place: with `rates` empty and these as `faults`, the scenario gives the same run. */
  readonly placed: readonly PlacedFault[];
  /** How often each `site moment` was hit by a crash. */
  readonly crashes: Readonly<Record<string, number>>;
  /** Requests of agents that have changed something, by `verb resource[/subresource]`, Leases left out. */
  readonly writes: Readonly<Record<string, number>>;
  /** What has become of each StatefulSet and of what the group mirrors, by name. */
  readonly endState: Readonly<Record<string, string>>;
  readonly events: number;
  /** On the scheduler's clock, when it was over. */
  readonly endMs: number;
  /** Of everything that happened, in its order: equal for equal runs. */
  readonly traceHash: string;
  readonly timeline: readonly TimelineEntry[];
}

/** Plays the scenario with the agent's own loop. Never rejects for what the agent does: that is in the result. */
export async function runScenario(scenario: Scenario, options: RunOptions = {}): Promise<RunResult> {
  const run = stageRun(scenario, options);
  const { scheduler } = run;
  const isOver = (): boolean => options.isShort === true && run.violations.length > 0;
  let unfinished: string | undefined;
  let convergedMs: number | undefined;
  try {
    const look = lookout(run);
    if (options.endsWhenConverged !== true) await scheduler.runUntil(scenario.safetyMs, isOver);
    else await runUntilConverged(run, scenario, look, isOver);
    if (!isOver()) unfinished = await heal(run, scenario, { look, isOver, quietMs: options.quietMs ?? scenario.quietMs ?? usualQuietMs });
    convergedMs = look.sinceMs();
    if (!isOver()) unfinished ??= await leave(run);
  } catch (error) {
    run.violated('error', `something threw: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
  }
  for (const problem of run.agents.defects()) run.violated('error', problem);
  run.agents.close();
  return {
    violations: run.violations,
    ...(unfinished === undefined ? {} : { unfinished }),
    ...(convergedMs === undefined ? {} : { convergedMs }),
    faults: run.faults.counts(),
    placed: run.faults.placed(),
    crashes: run.faults.crashes(),
    writes: run.writes,
    endState: endStateOf(run.scene),
    events: scheduler.eventCount(),
    endMs: scheduler.nowMs(),
    traceHash: run.trace.hash(),
    timeline: run.timeline,
  };
}

/** Between two looks at whether the group has become what was asked of it. */
const lookEveryMs = 5000;
/** For so long nothing may be written once it has, unless it is said otherwise: whatever an agent does at times, it does every five minutes. */
const usualQuietMs = 330_000;
/** So long before that is looked at first: what is asked for when the run begins is applied one after the other. */
const firstLookMs = 30_000;

interface Lookout {
  /** What is missing now. */
  readonly missing: () => string | undefined;
  /** Since when nothing is, so far as somebody has looked. */
  readonly sinceMs: () => number | undefined;
}

function lookout(run: Run): Lookout {
  let sinceMs: number | undefined;
  return {
    missing: () => {
      const missing = run.missing();
      sinceMs = missing === undefined ? (sinceMs ?? run.scheduler.nowMs()) : undefined;
      return missing;
    },
    sinceMs: () => sinceMs,
  };
}

/** Lets things go wrong until the group is as it should be and nothing else is to happen, or for as long as the scenario says. */
async function runUntilConverged({ scheduler }: Run, { events, safetyMs }: Scenario, look: Lookout, isOver: () => boolean): Promise<void> {
  const fromMs = Math.min(safetyMs, Math.max(firstLookMs, (events.at(-1)?.atMs ?? 0) + lookEveryMs));
  await scheduler.runUntil(Math.min(fromMs, firstLookMs), isOver);
  while (!isOver() && scheduler.nowMs() < safetyMs) {
    if (look.missing() === undefined && scheduler.nowMs() >= fromMs) return;
    await scheduler.runUntil(Math.min(safetyMs, scheduler.nowMs() + lookEveryMs), isOver);
  }
}

interface Healing {
  readonly look: Lookout;
  readonly isOver: () => boolean;
  readonly quietMs: number;
}

/** Ends what goes wrong, and waits until the group is as it should be and quiet. Says why it did not come to that; undefined when it did. */
async function heal(run: Run, { safetyMs, healingMs }: Scenario, { look, isOver, quietMs }: Healing): Promise<string | undefined> {
  run.beginHealing();
  const endMs = safetyMs + healingMs;
  let wasMissing: string | undefined = 'it has not been looked at';
  while (!isOver() && run.scheduler.nowMs() < endMs) {
    await run.scheduler.runUntil(Math.min(endMs, run.scheduler.nowMs() + lookEveryMs), isOver);
    const missing = look.missing();
    // What was written until it was so belongs to the way there.
    if (missing !== undefined || wasMissing !== undefined) run.beginQuiet();
    wasMissing = missing;
    if (missing === undefined && run.scheduler.nowMs() - run.quietSinceMs() >= quietMs) {
      run.endJudgement();
      return undefined;
    }
  }
  if (isOver()) return undefined;
  if (wasMissing !== undefined) return `it did not converge within ${Math.round(healingMs / 1000)} s: ${wasMissing}`;
  return `it never became quiet: ${run.lastWrite()}`;
}

/** How long the agents may take to hand over: turns get 15 s, and a Lease is given back in one request. */
const leavingMs = 60_000;

/** Stops the agents and looks for what they leave behind. */
async function leave({ agents, scheduler }: Run): Promise<string | undefined> {
  let leaks: readonly Leak[] | undefined;
  const ended = agents.end().then((found) => {
    leaks = found;
  });
  await scheduler.runUntil(scheduler.nowMs() + leavingMs, () => leaks !== undefined);
  if (leaks === undefined) return `the agents did not end within ${leavingMs / 1000} s`;
  await ended;
  return leaks.length === 0 ? undefined : `left behind: ${leaks.map(({ process, what }) => `${what} by ${process}`).join(', ')}`;
}
