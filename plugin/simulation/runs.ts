// Simulates the rollout of one group many times, counts how the simulations end, and keeps the most informative one as a timeline.
// Here a run is one simulation.
import type { GroupDecision } from '../../engine/decision.ts';
import type { Turn } from '../../engine/plan/forward.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import type { Violation } from '../../simulation/oracles/oracle.ts';
import { failureOf, type RunResult, runScenario, type TimelineEntry } from '../../simulation/run.ts';
import type { Scenario, ScenarioEvent } from '../../simulation/scenario.ts';
import { shrink } from '../../simulation/shrink.ts';
import type { LaneSpan } from '../output/simulate.ts';
import { brief, type Played, playOne } from './play.ts';
import { type Simulated, scenarioOfGiven } from './scenario.ts';

interface SimulatedRun {
  /** The seed repeats exactly this run. */
  readonly seed: number;
  /** `done`: the group reached the desired state and then stayed unchanged. */
  readonly end: 'done' | 'unfinished';
  /** The virtual milliseconds until the desired state, rounded up to 5 s; for an unfinished run, until its end. */
  readonly durationMs: number;
  readonly unfinished?: string;
  readonly violations: readonly Violation[];
  readonly faults: RunResult['faults'];
}

export interface ShownRun extends SimulatedRun {
  /** The entries that people read, ordered by time. */
  readonly timeline: readonly TimelineEntry[];
  /** The rule results that blocked the group when the run ended. The JSON output has this name. */
  readonly heldBy: readonly string[];
  /** The smallest scenario of a run that broke an invariant; `npm run soak -- --plan` repeats it. */
  readonly smallest?: { readonly scenario: Scenario; readonly triedRuns: number; readonly isCutShort: boolean };
}

export interface Simulation {
  readonly seed: number;
  readonly runs: readonly SimulatedRun[];
  readonly violated: number;
  readonly unfinished: number;
  readonly durationMs: { readonly p50: number; readonly p90: number; readonly max: number };
  readonly shown: ShownRun;
  readonly spans: readonly LaneSpan[];
}

interface SimulationOptions {
  readonly seed: number;
  readonly runs: number;
  readonly progress?: (progress: Progress) => void;
  readonly play?: typeof runScenario;
  /** The threads that play the runs. Absent: this thread. */
  readonly players?: readonly ((scenario: Scenario) => Promise<Played>)[];
}

export interface Progress {
  readonly what: 'run' | 'shrink';
  readonly done: number;
  readonly of: number;
}

/** The maximum number of runs that search for a smaller scenario with the same violation. */
const shrinkRuns = 40;

/** Runs the seeds. Keeps the first run that broke an invariant, else the first unfinished run, else the first run. */
export async function simulateGroup(simulated: Simulated, options: SimulationOptions): Promise<Simulation> {
  const { seed, runs: count, progress, play = runScenario, players = [(scenario) => playOne(scenario, play)] } = options;
  const runs: SimulatedRun[] = [];
  let started = 0;
  let informative: Played | undefined;
  const playSome = async (player: (scenario: Scenario) => Promise<Played>): Promise<void> => {
    while (started < count) {
      const index = started;
      started += 1;
      progress?.({ what: 'run', done: index, of: count });
      const played = await player(scenarioOfGiven(simulated, seed + index));
      runs[index] = summaryOf(seed + index, played.result);
      // Only the summary of the other runs is kept.
      if (informative === undefined || isMoreInformative(played, informative)) informative = played;
    }
  };
  await Promise.all(players.map(playSome));
  const durations = runs
    .filter((run) => run.end === 'done')
    .map((run) => run.durationMs)
    .sort((one, other) => one - other);
  const quantile = (share: number): number => durations[Math.min(durations.length - 1, Math.floor(share * durations.length))] ?? 0;
  informative ??= await playOne(scenarioOfGiven(simulated, seed), play);
  return {
    seed,
    runs,
    violated: runs.filter((run) => run.violations.length > 0).length,
    unfinished: runs.filter((run) => run.end !== 'done').length,
    durationMs: { p50: quantile(0.5), p90: quantile(0.9), max: durations.at(-1) ?? 0 },
    ...(await shownRun(simulated, informative, options, play)),
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

/** Returns the weight of a run: 2 if an invariant was violated, 1 if the run is unfinished, otherwise 0. */
function weightOf({ result }: Played): number {
  if (result.violations.length > 0) return 2;
  return result.unfinished === undefined ? 0 : 1;
}

function isMoreInformative(one: Played, other: Played): boolean {
  return weightOf(one) === weightOf(other) ? one.scenario.seed < other.scenario.seed : weightOf(one) > weightOf(other);
}

async function shownRun(
  simulated: Simulated,
  played: Played,
  { progress }: SimulationOptions,
  play: typeof runScenario,
): Promise<Pick<Simulation, 'shown' | 'spans'>> {
  const whole = played.scenario;
  const failure = played.result.violations[0];
  if (failure === undefined) return describedRun(simulated, played);
  let tried = 0;
  const small = await shrink(
    whole,
    failure.invariant,
    async (scenario) => {
      progress?.({ what: 'shrink', done: tried, of: shrinkRuns });
      tried += 1;
      const result = await play(scenario, { ...brief, stopsAtViolation: true });
      const failed = failureOf(result, scenario);
      return { ...(failed === undefined ? {} : { failure: failed.id, failedAtMs: failed.atMs }), placed: result.placed };
    },
    shrinkRuns,
  );
  const { scenario, runs: triedRuns, isCutShort } = small;
  const { shown, spans } = describedRun(simulated, await playOne(scenario, play));
  return { shown: { ...shown, smallest: { scenario, triedRuns, isCutShort } }, spans };
}

function describedRun(simulated: Simulated, { scenario, result, turns, last }: Played): Pick<Simulation, 'shown' | 'spans'> {
  const { group } = simulated;
  const run = summaryOf(scenario.seed, result);
  const isUnfinished = run.end !== 'done';
  const shown: ShownRun = {
    ...run,
    timeline: readableEntries(result.timeline, group),
    heldBy: isUnfinished ? (last?.waits.map((answer) => `${answer.rule}: ${answer.fact}`) ?? []) : [],
  };
  // The lanes end at `durationMs`. The last turn may be earlier.
  const within = turns.filter(({ nowMs }) => nowMs <= run.durationMs);
  // So the last state is repeated at `durationMs`.
  const end = within.at(-1);
  const lanes = end === undefined ? [] : [...within, { ...end, nowMs: run.durationMs }];
  return { shown, spans: [...zoneSpans(lanes), ...faultSpans(scenario.events, group, run.durationMs)] };
}

/** Returns the entries without the single requests of agents and without faults of single requests: a run has thousands of each. */
function readableEntries(timeline: readonly TimelineEntry[], group: GroupDefinition): readonly TimelineEntry[] {
  return timeline
    .filter(({ who, what }) => (who === 'fault' ? isAccident(what) : !/: \d{3} \(/.test(what)))
    .map(({ atMs, who, what }) => ({ atMs: Math.round(atMs), who, what: who === 'fault' ? withZones(what, group) : what }));
}

/** Reports whether a fault is shown. Of the faults whose text starts with their class, only crashes and pauses of a process are shown. */
function isAccident(what: string): boolean {
  return !/^F\d/.test(what) || /^F1[12] /.test(what);
}

function withZones(what: string, group: GroupDefinition): string {
  return what
    .replace(/\bzone=([a-z])\b/g, (_, letter: string) => `zone=${group.zones[letter.charCodeAt(0) - 97]?.name ?? letter}`)
    .replace(/(\w*)Ms=(\d+)/g, (_, name: string, ms: string) => `${name}=${Math.round(Number(ms) / 100) / 10}s`);
}

/** Returns the faults in the lane of their zone. The absence of an agent has a lane with the name of the agent. */
function faultSpans(events: readonly ScenarioEvent[], { zones }: GroupDefinition, endMs: number): readonly LaneSpan[] {
  return events.flatMap((event): readonly LaneSpan[] => {
    const startSeconds = event.atMs / 1000;
    if (event.kind === 'crash' && event.atMs <= endMs) {
      const endSeconds = Math.min(endMs, event.atMs + event.restartAfterMs) / 1000;
      return [{ lane: `agent ${event.process}`, kind: 'fault', startSeconds, endSeconds }];
    }
    const letter = 'zone' in event ? event.zone : undefined;
    const zone = letter === undefined ? undefined : zones[letter.charCodeAt(0) - 97];
    if (zone === undefined || event.atMs > endMs) return [];
    return [{ lane: zone.name, kind: 'fault', startSeconds, endSeconds: startSeconds }];
  });
}

/** Returns the spans of every zone, in seconds of the clock. Equal consecutive states make one span. */
export function zoneSpans(turns: readonly Turn[]): readonly LaneSpan[] {
  const secondsAt = (index: number): number => (turns[index]?.nowMs ?? 0) / 1000;
  const zones = turns[0]?.decision.zones ?? [];
  const spans = zones.flatMap(({ zone: lane }) => {
    const kinds = turns.map(({ decision }) => zoneKind(decision, lane));
    const changes = turns.flatMap((_, index) => (index === 0 || kinds[index] !== kinds[index - 1] ? [index] : []));
    return changes.flatMap((change, index): readonly LaneSpan[] => {
      const kind = kinds[change];
      const [startSeconds, endSeconds] = [secondsAt(change), secondsAt(changes[index + 1] ?? turns.length - 1)];
      return kind === undefined || endSeconds <= startSeconds ? [] : [{ lane, kind, startSeconds, endSeconds }];
    });
  });
  return spans.sort((a, b) => a.startSeconds - b.startSeconds || (a.lane < b.lane ? -1 : 1));
}

function zoneKind(decision: GroupDecision, name: string): LaneSpan['kind'] | undefined {
  const zone = decision.zones.find((candidate) => candidate.zone === name);
  const step = decision.steps.find((candidate) => candidate.zone === name);
  const isActing = decision.actions.some((action) => 'zone' in action && action.zone === name);
  if (zone === undefined) return undefined;
  if (step !== undefined && step.kind !== 'roll' && isActing) return 'scale';
  if (isActing || zone.available < zone.replicas) return 'roll';
  if (decision.waits.some((result) => result.rule === 'soak' || result.rule === 'gate') && zone.updated > 0) return 'soak';
  return step !== undefined || zone.updated < zone.replicas ? 'wait' : undefined;
}
