// Builds the scenario of a run of the user's group: objects, policies and change, with the requested faults.
import type { Quantiles } from '../../engine/plan/document.ts';
import { runForward } from '../../engine/plan/forward.ts';
import type { PlanInput } from '../../engine/plan/plan.ts';
import type { World } from '../../engine/world/model.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import type { FaultClass } from '../../simulation/faults/fault.ts';
import { givenGroup, shapeOf } from '../../simulation/given.ts';
import { between, draw, streamOf } from '../../simulation/random.ts';
import type { GivenGroup, GroupShape, Scenario, ScenarioEvent } from '../../simulation/scenario.ts';
import { highestRate, isDrawn } from '../../simulation/search/draw/draw.ts';
import { drawnAccidents } from '../../simulation/search/draw/events.ts';
import type { Json } from '../../simulation/server/request.ts';
import { faultsNamed } from '../source/faults.ts';

/** The values shared by all runs of a group. */
export interface Simulated {
  readonly group: GroupDefinition;
  readonly given: GivenGroup;
  readonly pods: { readonly drain: Quantiles; readonly start: Quantiles };
  /** Duration of the plan without faults, or until its last progress, in milliseconds. */
  readonly plannedMs: number;
  /** The plan finishes. */
  readonly isPlanned: boolean;
  readonly faults: readonly string[];
  readonly requested: readonly ScenarioEvent[];
  /** When a run is stopped, in milliseconds of its clock. */
  readonly untilMs: number | undefined;
}

interface SimulatedOptions extends Pick<Simulated, 'faults' | 'requested' | 'untilMs'> {
  readonly input: PlanInput;
  readonly documents: readonly Json[];
  readonly group: GroupDefinition;
  /** The group with every change that no rule denies. */
  readonly world: World;
  /** Zones with a denied change. */
  readonly refusedZones: readonly string[];
  /** The wall clock at the start of a run, in milliseconds since 1970; undefined if no rule reads it. */
  readonly startMs: number | undefined;
}

/** The installed number of agents. */
const agents = 2;

export function simulatedGroup({ input, documents, group, world, refusedZones, startMs, ...rest }: SimulatedOptions): Simulated {
  const { assumptions, current, desired } = input;
  const refused = group.zones.filter((zone) => refusedZones.includes(zone.name)).map((zone) => zone.statefulSet);
  const given = givenGroup({
    group,
    documents,
    startMs,
    refused: new Set(refused),
    running: current as readonly Json[],
    asked: desired as readonly Json[],
    withoutGates: assumptions.gates === 'pass',
    withoutApprovals: assumptions.approvals === 'given',
  });
  const { last, end } = runForward(world, group);
  return {
    group,
    given,
    ...rest,
    pods: { ...assumptions.pods, ...assumptions.groups[group.name] },
    plannedMs: last.nowMs - world.snapshot.nowMs,
    isPlanned: end === 'done',
  };
}

const minuteMs = 60_000;
/** A plan that never finishes is stopped early; a short one gets time to finish. */
const longestHeldMs = 30 * minuteMs;
const shortestMs = 10 * minuteMs;

/** Share of the highest rates that tests draw from: a bad week of a cluster, not a search for defects of the agent. */
const severity = 0.2;

/** Returns the scenario of a seed: the same seed and group give the same scenario. */
export function scenarioOfGiven(simulated: Simulated, seed: number): Scenario {
  const { given, plannedMs, isPlanned, requested, untilMs = Number.POSITIVE_INFINITY } = simulated;
  const group = groupOf(simulated, seed);
  const workMs = isPlanned ? plannedMs : Math.min(plannedMs, longestHeldMs);
  const neededMs = Math.max(shortestMs, Math.round(1.5 * workMs), (requested.at(-1)?.atMs ?? 0) + minuteMs);
  // A run that is stopped has no faults in its last tenth either, so that faults do not cause its end.
  const safetyMs = Math.round(Math.min(0.9 * untilMs, neededMs));
  const healingMs = isPlanned ? Math.max(60 * minuteMs, 3 * workMs) : longestHeldMs;
  return {
    seed,
    group,
    given,
    agents,
    safetyMs,
    healingMs: Math.max(0, Math.min(healingMs, untilMs - safetyMs)),
    events: [...requested, ...accidentsOf(simulated, group, seed, Math.max(minuteMs, workMs))]
      .filter((event) => event.atMs < safetyMs)
      .sort((one, other) => one.atMs - other.atMs),
    rates: ratesOf(simulated, seed),
    faults: [],
  };
}

/** Each run draws the durations of pods between usual and long. */
function groupOf({ group, given, pods }: Simulated, seed: number): GroupShape {
  const random = streamOf(seed, 'times');
  const drawn = ({ p50Seconds, p90Seconds }: Quantiles): number =>
    Math.round(1000 * between(random, 0.6 * p50Seconds, Math.max(p50Seconds, p90Seconds)));
  return shapeOf(group, given, { drainMs: drawn(pods.drain), startMs: drawn(pods.start) });
}

/** A single requested kind of fault occurs in every run. Several kinds are drawn, so that rare combinations occur. */
function isIn({ faults }: Simulated, seed: number, faultClass: FaultClass): boolean {
  return faultsNamed(faults).classes.includes(faultClass) && (faults.length === 1 || isDrawn(seed, faultClass));
}

function accidentsOf(simulated: Simulated, group: GroupShape, seed: number, endMs: number): readonly ScenarioEvent[] {
  const { events } = faultsNamed(simulated.faults);
  const drawn = drawnAccidents(seed, { group, agents, endMs, isDrawn: (faultClass) => isIn(simulated, seed, faultClass) });
  return drawn.filter(({ kind }) => events.includes(kind));
}

function ratesOf(simulated: Simulated, seed: number): Scenario['rates'] {
  const rates: Partial<Record<FaultClass, number>> = {};
  for (const [name, highest] of Object.entries(highestRate)) {
    const faultClass = name as FaultClass;
    if (!isIn(simulated, seed, faultClass)) continue;
    // Squared, as in search/draw.ts: most runs get few faults of a class.
    rates[faultClass] = Math.ceil(severity * highest * draw(seed, `rate ${faultClass}`) ** 2 * 1e6) / 1e6;
  }
  return rates;
}
