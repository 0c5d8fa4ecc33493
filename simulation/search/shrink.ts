// Makes a failing scenario small: fewer faults, events, agents, zones and pods, and less time, as long as it fails in the same way.
import { canonicalJson } from '../../engine/hash.ts';
import type { FaultClass, PlacedFault } from '../faults/fault.ts';
import { letterOf } from '../letter.ts';
import type { GroupShape, Scenario, ScenarioEvent } from '../scenario.ts';
import { fewest } from './fewest.ts';

/** What running a scenario has shown. */
export interface Attempt {
  /** The invariant that was broken first, or another name for how it failed; undefined when all was well. */
  readonly failure?: string;
  /** When that was, in virtual milliseconds. */
  readonly failedAtMs?: number;
  /** Faults that happened, with their places (RunResult.placed). */
  readonly placed: readonly PlacedFault[];
}

type TryScenario = (scenario: Scenario) => Promise<Attempt>;

interface Shrunk {
  /** Fails in the same way as the one that was given. */
  readonly scenario: Scenario;
  readonly runs: number;
  /** There were more things to try than runs. */
  readonly isCutShort: boolean;
}

/** How many runs shrinking may take when nobody says otherwise. */
const usualRuns = 250;

/**
 * A smaller scenario that fails as this one does: `failure` names how, and any other way does not count. Rates are turned into the faults that they
 * led to first, so that leaving one out does not move the others. Throws when the scenario does not fail so to begin with.
 */
export async function shrink(scenario: Scenario, failure: string, attempt: TryScenario, maxRuns: number = usualRuns): Promise<Shrunk> {
  const search = await startSearch(scenario, failure, attempt, maxRuns);
  await placeFaults(search);
  for (let before = ''; before !== search.text() && !search.isSpent(); ) {
    before = search.text();
    for (const reduce of reducers) await reduce(search);
  }
  return { scenario: search.best(), runs: search.runs(), isCutShort: search.isSpent() };
}

interface Search {
  /** The smallest one so far that fails. */
  readonly best: () => Scenario;
  readonly failedAtMs: () => number;
  readonly placed: () => readonly PlacedFault[];
  /** Whether it fails in the same way; then it is the best from now on. False without a run when no run is left, or it was tried before. */
  readonly fails: (candidate: Scenario) => Promise<boolean>;
  readonly runs: () => number;
  readonly isSpent: () => boolean;
  /** The best as text. */
  readonly text: () => string;
}

async function startSearch(first: Scenario, failure: string, attempt: TryScenario, maxRuns: number): Promise<Search> {
  const tried = new Set<string>();
  let runs = 1;
  let best = first;
  let shown = await attempt(first);
  if (shown.failure !== failure) throw new Error(`it does not fail by ${failure}, but ${shown.failure ?? 'not at all'}`);
  tried.add(canonicalJson(first));
  return {
    best: () => best,
    failedAtMs: () => shown.failedAtMs ?? best.safetyMs,
    placed: () => shown.placed,
    fails: async (candidate) => {
      const text = canonicalJson(candidate);
      if (runs >= maxRuns || tried.has(text)) return false;
      tried.add(text);
      runs += 1;
      const now = await attempt(candidate);
      if (now.failure !== failure) return false;
      best = candidate;
      shown = now;
      return true;
    },
    runs: () => runs,
    isSpent: () => runs >= maxRuns,
    text: () => canonicalJson(best),
  };
}

type Reducer = (search: Search) => Promise<unknown>;

/** Rates are turned into the faults that they led to. When it then no longer fails, classes are left out one by one. */
async function placeFaults(search: Search): Promise<void> {
  if (await search.fails({ ...search.best(), rates: {}, faults: search.placed() })) return;
  for (const name of Object.keys(search.best().rates)) {
    const { [name as FaultClass]: _, ...rates } = search.best().rates;
    await search.fails({ ...search.best(), rates });
  }
}

/** Nothing after the failure matters; and the less before it, the better. */
async function lessTime(search: Search): Promise<void> {
  const cut = (safetyMs: number): Promise<boolean> => {
    const scenario = search.best();
    const events = scenario.events.filter((event) => event.atMs < safetyMs);
    return search.fails({ ...scenario, safetyMs, events });
  };
  const failedMs = Math.ceil((search.failedAtMs() + 1) / 1000) * 1000;
  if (failedMs < search.best().safetyMs) await cut(failedMs);
  for (const share of [0.25, 0.5, 0.75]) if (await cut(Math.ceil((search.best().safetyMs * share) / 1000) * 1000)) return;
}

async function fewerClasses(search: Search): Promise<void> {
  for (const faultClass of new Set(search.best().faults.map((placed) => placed.fault.class))) {
    const scenario = search.best();
    await search.fails({ ...scenario, faults: scenario.faults.filter((placed) => placed.fault.class !== faultClass) });
  }
}

const fewerEvents: Reducer = (search) => fewest(search.best().events, (events) => search.fails({ ...search.best(), events }));

const fewerFaults: Reducer = (search) => fewest(search.best().faults, (faults) => search.fails({ ...search.best(), faults }));

async function fewerAgents(search: Search): Promise<void> {
  const { clockRates: _, ...evenly } = search.best();
  if (search.best().clockRates !== undefined) await search.fails(evenly);
  for (let agents = 1; agents < search.best().agents; agents += 1) {
    const scenario = search.best();
    const isGone = (process: string): boolean => process >= letterOf(agents);
    const events = scenario.events.filter((event) => !('process' in event && isGone(event.process)));
    if (await search.fails({ ...scenario, agents, events, faults: scenario.faults.filter(({ at }) => !isGone(at.charAt(0))) })) return;
  }
}

/** Steps towards the plainest group. */
const plainer: readonly ((group: GroupShape) => GroupShape)[] = [
  ({ gate: _, ...group }) => group,
  (group) => ({ ...group, zones: Math.max(1, group.zones - 1) }),
  (group) => ({ ...group, podsPerZone: 1 }),
  (group) => ({ ...group, podsPerZone: Math.max(1, group.podsPerZone - 1) }),
  (group) => ({ ...group, kind: 'native' }),
  (group) => ({ ...group, replicas: 'own', delaySeconds: 0, betweenZonesSeconds: 0 }),
  (group) => ({ ...group, betweenZonesSeconds: 0 }),
  (group) => ({ ...group, minReadySeconds: 0 }),
  (group) => ({ ...group, maxUnavailable: 1 }),
  (group) => ({ ...group, podManagementPolicy: 'Parallel' }),
  ({ strategy: _, ...group }) => group,
  (group) => ({ ...group, rotateBy: 'delete' }),
];

/** One step at a time. Somebody's own group stays as it is. */
async function plainerGroup(search: Search): Promise<void> {
  if (search.best().given !== undefined) return;
  for (const change of plainer) {
    const scenario = search.best();
    const group = change(scenario.group);
    await search.fails({ ...scenario, group, events: scenario.events.flatMap((event) => inZones(event, group.zones)) });
  }
}

/** The event with only those of its zones that there are; nothing when it has none left. */
function inZones(event: ScenarioEvent, zones: number): readonly ScenarioEvent[] {
  const isThere = (zone: string): boolean => zone < letterOf(zones);
  if ('zone' in event && event.zone !== undefined) return isThere(event.zone) ? [event] : [];
  if (event.kind !== 'setImage' || event.zones === undefined) return [event];
  const left = event.zones.filter(isThere);
  return left.length === 0 ? [] : [{ ...event, zones: left }];
}

const reducers: readonly Reducer[] = [lessTime, fewerClasses, fewerEvents, fewerFaults, fewerAgents, plainerGroup];
