// Many runs of one group: how each of them ended, and the one that tells most, as a timeline; a run that broke an invariant is made small first.
import type { GroupDecision } from '../../engine/decision.ts';
import type { Turn } from '../../engine/plan/forward.ts';
import type { Violation } from '../../simulation/oracles/oracle.ts';
import { runStartMs } from '../../simulation/process/clock.ts';
import { type RunOptions, type RunResult, runScenario, type TimelineEntry } from '../../simulation/run.ts';
import type { Scenario } from '../../simulation/scenario.ts';
import { failureOf } from '../../simulation/search/judge.ts';
import { shrink } from '../../simulation/search/shrink.ts';
import type { LaneSpan } from '../output/timeline.ts';
import { type Simulated, scenarioOfGiven } from './scenario.ts';
import { faultSpans, readableEntries } from './timeline-entries.ts';
import { zoneSpans } from './zone-spans.ts';

interface SimulatedRun {
  /** Repeats this very run. */
  readonly seed: number;
  /** `done`: the group became what was asked of it, and was left alone then. */
  readonly end: 'done' | 'unfinished';
  /** Until it was as wanted, to five seconds; of an unfinished run until it was broken off. In virtual milliseconds, as all instants. */
  readonly durationMs: number;
  /** Why it is unfinished. */
  readonly unfinished?: string;
  readonly violations: readonly Violation[];
  /** How many faults happened, by class. */
  readonly faults: RunResult['faults'];
}

export interface ShownRun extends SimulatedRun {
  /** What people want to know of it, in the order in which it happened. */
  readonly timeline: readonly TimelineEntry[];
  /** Why the group waited when the run ended. */
  readonly heldBy: readonly string[];
  /** What is left of a run that broke an invariant; `npm run soak -- --plan` plays it. */
  readonly smallest?: { readonly scenario: Scenario; readonly triedRuns: number; readonly isCutShort: boolean };
}

export interface Simulation {
  readonly seed: number;
  readonly runs: readonly SimulatedRun[];
  /** How many runs broke an invariant. */
  readonly violated: number;
  readonly unfinished: number;
  /** Of the runs that are done. */
  readonly durationMs: { readonly p50: number; readonly p90: number; readonly max: number };
  readonly shown: ShownRun;
  readonly spans: readonly LaneSpan[];
}

interface SimulationOptions {
  readonly seed: number;
  readonly runs: number;
  readonly progress?: (progress: Progress) => void;
  readonly play?: typeof runScenario;
}

export interface Progress {
  readonly what: 'run' | 'shrink';
  readonly done: number;
  readonly of: number;
}

/** A minute after the end of all work nothing may be written but Leases; half of one more shows it. */
const quietMs = 90_000;
/** Making a run small may take as long as so many runs. */
const shrinkRuns = 40;
const brief: RunOptions = { endsWhenConverged: true, quietMs };

/** Plays one run for each seed from the first one on, and tells the first that broke an invariant, or did not come to its end, or the first. */
export async function simulateGroup(simulated: Simulated, options: SimulationOptions): Promise<Simulation> {
  const { seed, runs: count, progress, play = runScenario } = options;
  const runs: SimulatedRun[] = [];
  let telling: Played | undefined;
  for (let index = 0; index < count; index += 1) {
    progress?.({ what: 'run', done: index, of: count });
    const played = await playOne(scenarioOfGiven(simulated, seed + index), play);
    runs.push(summaryOf(seed + index, played.result));
    // Of all the others only the summary is kept.
    if (telling === undefined || weightOf(played) > weightOf(telling)) telling = played;
  }
  const durations = runs
    .filter((run) => run.end === 'done')
    .map((run) => run.durationMs)
    .sort((one, other) => one - other);
  const quantile = (share: number): number => durations[Math.min(durations.length - 1, Math.floor(share * durations.length))] ?? 0;
  telling ??= await playOne(scenarioOfGiven(simulated, seed), play);
  return {
    seed,
    runs,
    violated: runs.filter((run) => run.violations.length > 0).length,
    unfinished: runs.filter((run) => run.end !== 'done').length,
    durationMs: { p50: quantile(0.5), p90: quantile(0.9), max: durations.at(-1) ?? 0 },
    ...(await tellRun(simulated, telling, options, play)),
  };
}

function summaryOf(seed: number, result: RunResult): SimulatedRun {
  const { violations, faults, unfinished, convergedMs, endMs } = result;
  return {
    seed,
    end: unfinished === undefined ? 'done' : 'unfinished',
    durationMs: unfinished === undefined ? (convergedMs ?? endMs) : endMs,
    ...(unfinished === undefined ? {} : { unfinished }),
    violations,
    faults,
  };
}

/** A broken invariant tells more than a run without an end, and the first of its kind more than those after it. */
function weightOf({ result }: Played): number {
  if (result.violations.length > 0) return 2;
  return result.unfinished === undefined ? 0 : 1;
}

async function tellRun(
  simulated: Simulated,
  played: Played,
  { progress }: SimulationOptions,
  play: typeof runScenario,
): Promise<Pick<Simulation, 'shown' | 'spans'>> {
  const whole = played.scenario;
  const failure = played.result.violations[0];
  if (failure === undefined) return told(simulated, played);
  let tried = 0;
  const small = await shrink(
    whole,
    failure.invariant,
    async (scenario) => {
      progress?.({ what: 'shrink', done: tried, of: shrinkRuns });
      tried += 1;
      const result = await play(scenario, { ...brief, isShort: true });
      const failed = failureOf(result, scenario);
      return { ...(failed === undefined ? {} : { failure: failed.id, failedAtMs: failed.atMs }), placed: result.placed };
    },
    shrinkRuns,
  );
  const { scenario, runs: triedRuns, isCutShort } = small;
  const { shown, spans } = told(simulated, await playOne(scenario, play));
  return { shown: { ...shown, smallest: { scenario, triedRuns, isCutShort } }, spans };
}

interface Played {
  readonly scenario: Scenario;
  readonly result: RunResult;
  readonly turns: readonly Turn[];
  readonly last: GroupDecision | undefined;
}

async function playOne(scenario: Scenario, play: typeof runScenario): Promise<Played> {
  const turns: Turn[] = [];
  const result = await play(scenario, {
    ...brief,
    isTold: true,
    observer: {
      turnEnded: (_, { decision, startedMs }) => {
        if (decision !== undefined) turns.push({ nowMs: startedMs - runStartMs, decision });
      },
    },
  });
  // A clock may be wrong while things go wrong; turns are heard in their order.
  let latestMs = 0;
  const inOrder = turns.map((turn) => {
    latestMs = Math.max(latestMs, Math.min(turn.nowMs, result.endMs));
    return { ...turn, nowMs: latestMs };
  });
  return { scenario, result, turns: inOrder, last: turns.at(-1)?.decision };
}

function told(simulated: Simulated, { scenario, result, turns, last }: Played): Pick<Simulation, 'shown' | 'spans'> {
  const { group } = simulated;
  const run = summaryOf(scenario.seed, result);
  const isHeld = run.end !== 'done';
  const shown: ShownRun = {
    ...run,
    timeline: readableEntries(result.timeline, group),
    heldBy: isHeld ? (last?.waits.map((answer) => `${answer.rule}: ${answer.fact}`) ?? []) : [],
  };
  // Lanes begin with the run and end with it, not with the first turn and after the quiet at the end.
  const from = turns[0]?.nowMs ?? 0;
  const within = turns.filter(({ nowMs }) => nowMs <= run.durationMs);
  // Who waits for good has no further turn.
  const end = within.at(-1);
  const lanes = end === undefined ? [] : [...within, { ...end, nowMs: run.durationMs }];
  const shifted = zoneSpans(lanes).map((span) => ({
    ...span,
    startSeconds: span.startSeconds + from / 1000,
    endSeconds: span.endSeconds + from / 1000,
  }));
  return { shown, spans: [...shifted, ...faultSpans(scenario.events, group, run.durationMs)] };
}
