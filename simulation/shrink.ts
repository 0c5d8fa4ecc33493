// Shrinks a failing scenario to fewer faults, events, agents, zones and pods, and less time, with the same failure.

import { canonicalJson } from '../policies/values/canonical-json.ts';
import type { FaultClass, PlacedFault } from './faults/fault.ts';
import { type GroupShape, letterOf, type OtherGroup, type Scenario, type ScenarioEvent } from './scenario.ts';

export interface Attempt {
  /** The first violated invariant, or another failure; undefined on success. */
  readonly failure?: string;
  /** The time of the failure, in virtual milliseconds. */
  readonly failedAtMs?: number;
  readonly placed: readonly PlacedFault[];
}

type TryScenario = (scenario: Scenario) => Promise<Attempt>;

interface Shrunk {
  /** The shrunk scenario, which fails in the same way as the given scenario. */
  readonly scenario: Scenario;
  readonly runs: number;
  /** True if the limit of simulations was reached before all candidates were tried. */
  readonly isCutShort: boolean;
}

const usualRuns = 250;

/**
 * Returns a smaller scenario with the same failure. First it replaces rates by the faults that happened, so that these no longer depend on
 * draws. Throws if the scenario does not fail with `failure`.
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

type Search = Awaited<ReturnType<typeof startSearch>>;

async function startSearch(first: Scenario, failure: string, attempt: TryScenario, maxRuns: number) {
  const tried = new Set<string>();
  let runs = 1;
  let best = first;
  let result = await attempt(first);
  if (result.failure !== failure) throw new Error(`expected the failure ${failure}, found ${result.failure ?? 'no failure'}`);
  tried.add(canonicalJson(first));
  return {
    /** Returns the smallest failing scenario so far. */
    best: () => best,
    failedAtMs: () => result.failedAtMs ?? best.safetyMs,
    placed: () => result.placed,
    /** Tries a candidate. If it fails in the same way, it becomes the best. Skips candidates tried before, and all beyond the limit. */
    fails: async (candidate: Scenario): Promise<boolean> => {
      const text = canonicalJson(candidate);
      if (runs >= maxRuns || tried.has(text)) return false;
      tried.add(text);
      runs += 1;
      const now = await attempt(candidate);
      if (now.failure !== failure) return false;
      best = candidate;
      result = now;
      return true;
    },
    runs: () => runs,
    isSpent: () => runs >= maxRuns,
    text: () => canonicalJson(best),
  };
}

type Reducer = (search: Search) => Promise<unknown>;

/** Replaces rates by the faults that happened. If the scenario then no longer fails, it removes classes from the rates one by one. */
async function placeFaults(search: Search): Promise<void> {
  if (await search.fails({ ...search.best(), rates: {}, faults: search.placed() })) return;
  for (const name of Object.keys(search.best().rates)) {
    const { [name as FaultClass]: _, ...rates } = search.best().rates;
    await search.fails({ ...search.best(), rates });
  }
}

/** Tries to leave out the other groups, then each of them, then parts of their events. */
async function fewerGroups(search: Search): Promise<void> {
  const withOthers = (others: readonly OtherGroup[]): Promise<boolean> => {
    const { others: _, ...rest } = search.best();
    return search.fails(others.length === 0 ? rest : { ...rest, others });
  };
  await fewest(search.best().others ?? [], withOthers);
  for (const index of (search.best().others ?? []).keys()) {
    const { events = [] } = search.best().others?.[index] ?? {};
    await fewest(events, (left) =>
      withOthers((search.best().others ?? []).map((other, at) => (at === index ? { ...other, events: left } : other))),
    );
  }
}

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

const plainer: readonly ((group: GroupShape) => GroupShape)[] = [
  ({ gate: _, gateFailureLimit: __, ...group }) => group,
  ({ gateFailureLimit: _, ...group }) => group,
  ({ waves: _, ...group }) => group,
  ({ waves, ...group }) => ({ ...group, ...(waves === undefined || waves.length < 2 ? {} : { waves: waves.slice(1) }) }),
  ({ waves, ...group }) => ({
    ...group,
    ...(waves === undefined ? {} : { waves: waves.map(({ gates: _, soakSeconds: __, approvals: ___, approvers: ____, ...wave }) => wave) }),
  }),
  ({ webhooks: _, noDownscale: __, zoneBudget: ___, ...group }) => group,
  ({ zoneBudget: _, ...group }) => group,
  ({ noDownscale: _, ...group }) => group,
  ({ minIntervalSeconds: _, ...group }) => group,
  ({ rollsBack: _, ...group }) => group,
  ({ windows: _, ...group }) => group,
  ({ rules: _, ...group }) => group,
  ({ rules, ...group }) => ({ ...group, ...(rules === undefined ? {} : { rules: rules.slice(0, 1) }) }),
  ({ windows, ...group }) => ({ ...group, ...(windows === undefined ? {} : { windows: windows.slice(0, 1) }) }),
  ({ deadlineSeconds: _, ...group }) => group,
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

async function plainerGroup(search: Search): Promise<void> {
  if (search.best().given !== undefined) return;
  for (const change of plainer) {
    const scenario = search.best();
    const group = change(scenario.group);
    await search.fails({ ...scenario, group, events: scenario.events.flatMap((event) => inZones(event, group.zones)) });
  }
}

/** Returns the event for existing zones only, as a list; an empty list if no zone is left. */
function inZones(event: ScenarioEvent, zones: number): readonly ScenarioEvent[] {
  const exists = (zone: string): boolean => zone < letterOf(zones);
  if ('zone' in event && event.zone !== undefined) return exists(event.zone) ? [event] : [];
  if (event.kind !== 'setImage' || event.zones === undefined) return [event];
  const left = event.zones.filter(exists);
  return left.length === 0 ? [] : [{ ...event, zones: left }];
}

const reducers: readonly Reducer[] = [fewerGroups, lessTime, fewerClasses, fewerEvents, fewerFaults, fewerAgents, plainerGroup];

/**
 * Removes shorter and shorter parts of the list if `isSo` returns true for the remaining items. Returns the remaining items in order.
 * Calls `isSo` at most about n log n + n² times.
 */
export async function fewest<Item>(items: readonly Item[], isSo: (items: readonly Item[]) => Promise<boolean>): Promise<readonly Item[]> {
  if (items.length === 0 || (await isSo([]))) return [];
  let kept = items;
  let partLength = Math.ceil(kept.length / 2);
  for (;;) {
    let isShorter = false;
    for (let from = 0; from < kept.length; ) {
      const rest = [...kept.slice(0, from), ...kept.slice(from + partLength)];
      if (rest.length > 0 && (await isSo(rest))) {
        kept = rest;
        isShorter = true;
      } else from += partLength;
    }
    if (partLength === 1 && !isShorter) return kept;
    // Single items are tried repeatedly, because an item may have been needed only by an item that was removed later.
    partLength = Math.max(1, Math.ceil(partLength / 2));
  }
}
