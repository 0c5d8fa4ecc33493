// Builds the scenario of one simulation of the user's group: objects, policies and change, with requested accidents and random faults.
// Here a run is one simulation.
import { podTimesOf, type Quantiles } from '../../engine/plan/document.ts';
import { runForward } from '../../engine/plan/forward.ts';
import type { PlanInput } from '../../engine/plan/plan.ts';
import type { World } from '../../engine/world/model.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { parseDuration } from '../../policies/duration.ts';
import { listed } from '../../policies/wording.ts';
import { drawnAccidents, drawnRates, isDrawn } from '../../simulation/faults/drawn.ts';
import type { FaultClass } from '../../simulation/faults/fault.ts';
import { givenGroup, shapeOf } from '../../simulation/given.ts';
import { between, streamOf } from '../../simulation/random.ts';
import type { GivenGroup, GroupShape, Scenario, ScenarioEvent } from '../../simulation/scenario.ts';
import type { Json } from '../../simulation/server/request.ts';
import { notFoundFailure, usageFailure } from '../failure.ts';
import { podText } from '../output/pod-text.ts';
import { faultNames, usualFaults } from '../verbs/preview.ts';

/** The values shared by all runs of a group. */
export interface Simulated {
  readonly group: GroupDefinition;
  readonly given: GivenGroup;
  readonly pods: { readonly drain: Quantiles; readonly start: Quantiles };
  /** The duration of the plan without faults, or until its last progress, in milliseconds. */
  readonly plannedMs: number;
  readonly isPlanned: boolean;
  readonly faults: readonly string[];
  readonly requested: readonly ScenarioEvent[];
  /** The time at which a run is stopped, in milliseconds of its clock. */
  readonly untilMs: number | undefined;
}

interface SimulatedOptions extends Pick<Simulated, 'faults' | 'requested' | 'untilMs'> {
  readonly input: PlanInput;
  readonly documents: readonly Json[];
  readonly group: GroupDefinition;
  /** The group with every change that no rule denies. */
  readonly world: World;
  readonly refusedZones: readonly string[];
  /** The wall clock at the start of a run, in milliseconds since 1970; undefined if no rule reads it. */
  readonly startMs: number | undefined;
}

export function simulatedGroup({ input, documents, group, world, refusedZones, startMs, ...rest }: SimulatedOptions): Simulated {
  const { assumptions, current, desired } = input;
  const refused = group.zones.filter((zone) => refusedZones.includes(zone.name)).map((zone) => zone.statefulSet);
  const given = givenGroup({
    group,
    documents,
    startMs,
    refused: new Set(refused),
    running: current as readonly Json[],
    desired: desired as readonly Json[],
    withoutGates: assumptions.gates === 'pass',
    withoutApprovals: assumptions.approvals === 'given',
  });
  const { last, end } = runForward(world, group);
  return {
    group,
    given,
    ...rest,
    pods: podTimesOf(assumptions, group),
    plannedMs: last.nowMs - world.snapshot.nowMs,
    isPlanned: end === 'done',
  };
}

const minuteMs = 60_000;
/** The limits of a run: a plan that never finishes is stopped early, and a short plan gets time to finish. */
const longestBlockedMs = 30 * minuteMs;
const shortestMs = 10 * minuteMs;

/** The factor on the highest fault rates of the tests, which search for defects. The result is like a bad week of a cluster. */
const severity = 0.2;

/** Returns the scenario of a seed: the same seed and group give the same scenario. */
export function scenarioOfGiven(simulated: Simulated, seed: number): Scenario {
  const { given, plannedMs, isPlanned, requested, untilMs = Number.POSITIVE_INFINITY } = simulated;
  const group = groupOf(simulated, seed);
  const workMs = isPlanned ? plannedMs : Math.min(plannedMs, longestBlockedMs);
  const neededMs = Math.max(shortestMs, Math.round(1.5 * workMs), (requested.at(-1)?.atMs ?? 0) + minuteMs);
  // A run that --until stops has no faults in its last tenth, so that no late fault is the reason why the run is unfinished.
  const safetyMs = Math.round(Math.min(0.9 * untilMs, neededMs));
  const healingMs = isPlanned ? Math.max(60 * minuteMs, 3 * workMs) : longestBlockedMs;
  return {
    seed,
    group,
    given,
    agents: agentNames.length,
    safetyMs,
    healingMs: Math.max(0, Math.min(healingMs, untilMs - safetyMs)),
    events: [...requested, ...accidentsOf(simulated, group, seed, Math.max(minuteMs, workMs))]
      .filter((event) => event.atMs < safetyMs)
      .sort((one, other) => one.atMs - other.atMs),
    rates: drawnRates(seed, severity, (faultClass) => occurs(simulated, seed, faultClass)),
    faults: [],
  };
}

/** Draws the drain and start durations of pods for one run, from 0.6 times p50 up to p90. */
function groupOf({ group, given, pods }: Simulated, seed: number): GroupShape {
  const random = streamOf(seed, 'times');
  const drawn = ({ p50Seconds, p90Seconds }: Quantiles): number =>
    Math.round(1000 * between(random, 0.6 * p50Seconds, Math.max(p50Seconds, p90Seconds)));
  return shapeOf(group, given, { drainMs: drawn(pods.drain), startMs: drawn(pods.start) });
}

/** Reports whether the fault class occurs in the run. If `--faults` has several names, each run draws some of their classes. */
function occurs({ faults }: Simulated, seed: number, faultClass: FaultClass): boolean {
  return faultsNamed(faults).classes.includes(faultClass) && (faults.length === 1 || isDrawn(seed, faultClass));
}

function accidentsOf(simulated: Simulated, group: GroupShape, seed: number, endMs: number): readonly ScenarioEvent[] {
  const { events } = faultsNamed(simulated.faults);
  const drawn = drawnAccidents(seed, {
    group,
    agents: agentNames.length,
    endMs,
    isDrawn: (faultClass) => occurs(simulated, seed, faultClass),
  });
  return drawn.filter(({ kind }) => events.includes(kind));
}

const kinds = ['pod', 'zone', 'node', 'drain', 'agent'] as const;
type Kind = (typeof kinds)[number];

interface FaultRequest {
  readonly text: string;
  readonly kind: Kind;
  readonly name: string;
  readonly afterMs: number;
  /** The parsed `+LENGTH`; undefined without a length. */
  readonly forMs?: number;
}

/** Reads `WHAT=NAME@DURATION[+LENGTH]`. Throws Failure with exit code 3 for anything else. */
export function parseFault(text: string): FaultRequest {
  const [, kind, name = '', after = '', lasting] = /^([a-z]+)=([^@\s]+)@([^+]+)(?:\+(.+))?$/.exec(text) ?? [];
  const afterMs = parseDuration(after);
  const forMs = lasting === undefined ? undefined : parseDuration(lasting);
  const isKnown = kinds.some((known) => known === kind);
  if (!isKnown || afterMs === undefined || (lasting !== undefined && forMs === undefined)) {
    throw usageFailure(
      `--fail ${text} is not understood`,
      'write pod=NAME@DURATION, or zone=, node=ZONE, drain=ZONE or agent=a, such as pod=ingester-zone-b-1@20m or node=zone-a@14m+5m',
    );
  }
  return { text, kind: kind as Kind, name, afterMs, ...(forMs === undefined ? {} : { forMs }) };
}

/** The default times after which a lost node returns and a dead agent restarts. */
const nodeAwayMs = 10 * 60_000;
const agentAwayMs = 5000;
const agentNames = ['a', 'b'];

/** Returns the events of the requests by time. A `pod` or `zone` request kills containers; with a length, the pods are unready instead. */
export function eventsOf(
  requests: readonly FaultRequest[],
  group: GroupDefinition,
  pods: ReadonlyMap<string, readonly string[]>,
): readonly ScenarioEvent[] {
  const events = requests.flatMap((request) => eventsOfOne(request, group, pods));
  return events.sort((one, other) => one.atMs - other.atMs);
}

function eventsOfOne(
  request: FaultRequest,
  { zones }: GroupDefinition,
  pods: ReadonlyMap<string, readonly string[]>,
): readonly ScenarioEvent[] {
  const { kind, name, afterMs: atMs, forMs } = request;
  if (kind === 'agent')
    return agentNames.includes(name) ? [{ atMs, kind: 'crash', process: name, restartAfterMs: forMs ?? agentAwayMs }] : [];
  return zones.flatMap(({ name: zoneName, statefulSet }, index): readonly ScenarioEvent[] => {
    const zone = String.fromCharCode('a'.charCodeAt(0) + index);
    const members = pods.get(statefulSet) ?? [];
    if (kind === 'pod')
      return podEvents(
        request,
        zone,
        members.filter((pod) => [pod, podText(zoneName, pod)].includes(name)),
      );
    if (zoneName !== name) return [];
    if (kind === 'node') return [{ atMs, kind: 'nodeLost', zone, forMs: forMs ?? nodeAwayMs }];
    return kind === 'drain' ? [{ atMs, kind: 'nodeDrained', zone }] : podEvents(request, zone, members);
  });
}

function podEvents({ afterMs: atMs, forMs }: FaultRequest, zone: string, pods: readonly string[]): readonly ScenarioEvent[] {
  return pods.map((pod) => {
    const place = { atMs, zone, ordinal: Number(/\d+$/.exec(pod)?.[0] ?? 0) };
    return forMs === undefined ? { kind: 'podDies', ...place } : { kind: 'podFails', ...place, forMs };
  });
}

/** Throws Failure for the first request that names no known pod, zone or agent. */
export function refuseUnknownFault(
  requests: readonly FaultRequest[],
  groups: readonly GroupDefinition[],
  isKnown: (request: FaultRequest) => boolean,
): void {
  const unknown = requests.find((request) => !isKnown(request));
  if (unknown === undefined) return;
  const zones = groups.flatMap((group) => group.zones);
  const isPod = unknown.kind === 'pod';
  throw notFoundFailure(`--fail ${unknown.text} names no ${isPod ? 'pod' : unknown.kind === 'agent' ? 'agent' : 'zone'} of the groups`, {
    why: isPod
      ? `a pod name is a StatefulSet or zone with an ordinal; StatefulSets: ${zones.map(({ statefulSet }) => statefulSet).join(', ')}`
      : `known are ${unknown.kind === 'agent' ? agentNames.join(', ') : zones.map(({ name }) => name).join(', ')}`,
  });
}

/** The faults behind a name in `--faults`: fault classes, and the kinds of accident that are drawn from these classes. */
interface NamedFaults {
  readonly classes: readonly FaultClass[];
  readonly events: readonly ScenarioEvent['kind'][];
}

const named: Readonly<Record<string, NamedFaults>> = {
  network: { classes: ['F1', 'F2', 'F3', 'F5'], events: [] },
  conflicts: { classes: ['F4'], events: [] },
  watch: { classes: ['F6', 'F7', 'F8', 'F9'], events: [] },
  server: { classes: ['F10'], events: ['frontEndLags', 'frontEndRestarts'] },
  crash: { classes: ['F11'], events: ['crash', 'stop'] },
  pause: { classes: ['F12'], events: ['pauseProcess'] },
  clock: { classes: ['F14'], events: ['jumpWallClock'] },
  lease: { classes: ['F13'], events: ['deleteLease', 'editLease'] },
  pods: { classes: ['F15', 'F17', 'F21'], events: ['slowKubelet', 'stuckTerminating', 'podFlaps', 'podFails', 'podDies'] },
  nodes: { classes: ['F15', 'F17'], events: ['nodeLost', 'nodeDrained'] },
  controllers: { classes: ['F16'], events: ['controllerLags', 'controllerIsStale'] },
  webhook: { classes: ['F20'], events: ['webhookAway'] },
  people: { classes: ['F17', 'F18'], events: ['deletePod', 'scaleByHand', 'recreateStatefulSet', 'leaveGroup', 'setStrategy'] },
};

/** Returns the names in `--faults`. The default is `usualFaults`, or no name with `--fail`. Throws Failure for an unknown name. */
export function parseFaults(text: string | undefined, hasRequests: boolean): readonly string[] {
  if (text === undefined) return hasRequests ? [] : usualFaults;
  const names = text.split(',').map((name) => name.trim());
  const [only] = names;
  if (names.length === 1 && only === 'none') return [];
  if (names.length === 1 && only === 'all') return faultNames;
  const unknown = names.find((name) => !faultNames.includes(name));
  if (unknown === undefined) return faultNames.filter((name) => names.includes(name));
  throw usageFailure(`--faults ${text}: ${unknown} is unknown`, `known are ${listed(faultNames)}; or write all, or none`);
}

export function faultsNamed(names: readonly string[]): NamedFaults {
  const parts = names.flatMap((name) => named[name] ?? []);
  return {
    classes: [...new Set(parts.flatMap(({ classes }) => classes))],
    events: [...new Set(parts.flatMap(({ events }) => events))],
  };
}
