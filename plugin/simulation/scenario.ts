// Builds the scenario of a run of the user's group: objects, policies and change, with the requested faults.
import type { Quantiles } from '../../engine/plan/assumptions.ts';
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

/** What is the same in every run of a group. */
export interface Simulated {
  readonly group: GroupDefinition;
  readonly given: GivenGroup;
  readonly pods: { readonly drain: Quantiles; readonly start: Quantiles };
  /** How long the plan takes undisturbed, or until nothing moves any more, in milliseconds. */
  readonly plannedMs: number;
  /** Whether the plan comes to its end at all. */
  readonly isPlanned: boolean;
  readonly faults: readonly string[];
  readonly requested: readonly ScenarioEvent[];
  /** When a run is broken off, on its clock. */
  readonly untilMs: number | undefined;
}

interface SimulatedOptions extends Pick<Simulated, 'faults' | 'requested' | 'untilMs'> {
  readonly input: PlanInput;
  readonly documents: readonly Json[];
  readonly group: GroupDefinition;
  /** The group as it stands with everything asked for that is not refused. */
  readonly world: World;
  /** Zones of which something is refused. */
  readonly refusedZones: readonly string[];
  /** The wall clock when a run begins, in milliseconds since 1970; undefined where it means nothing. */
  readonly startMs: number | undefined;
}

/** Two agents, as they are installed. */
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
/** A plan that never ends is not watched for days, and a short one is given time to come to its end. */
const longestHeldMs = 30 * minuteMs;
const shortestMs = 10 * minuteMs;

/** Of the highest rates that tests draw from: a bad week of a cluster, and not a search for defects of the agent. */
const severity = 0.2;

/** The run of a seed: the same seed and group give the same one. */
export function scenarioOfGiven(simulated: Simulated, seed: number): Scenario {
  const { given, plannedMs, isPlanned, requested, untilMs = Number.POSITIVE_INFINITY } = simulated;
  const group = groupOf(simulated, seed);
  const workMs = isPlanned ? plannedMs : Math.min(plannedMs, longestHeldMs);
  const neededMs = Math.max(shortestMs, Math.round(1.5 * workMs), (requested.at(-1)?.atMs ?? 0) + minuteMs);
  // A run that is broken off has a last tenth without faults too, so that they are not what holds it.
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

/** Pods take between what is usual and what is long, otherwise in each run. */
function groupOf({ group, given, pods }: Simulated, seed: number): GroupShape {
  const random = streamOf(seed, 'times');
  const drawn = ({ p50Seconds, p90Seconds }: Quantiles): number =>
    Math.round(1000 * between(random, 0.6 * p50Seconds, Math.max(p50Seconds, p90Seconds)));
  return shapeOf(group, given, { drainMs: drawn(pods.drain), startMs: drawn(pods.start) });
}

/** A kind of fault that is asked for alone comes in every run; several are drawn, so that rare combinations get room. */
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
    // Squared, as in search/draw.ts: most runs get little of a class.
    rates[faultClass] = Math.ceil(severity * highest * draw(seed, `rate ${faultClass}`) ** 2 * 1e6) / 1e6;
  }
  return rates;
}
