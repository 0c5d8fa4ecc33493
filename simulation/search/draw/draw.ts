// The scenario of a seed: which group, how many agents, what may go wrong and how often. Each seed leaves some classes of faults out, so that rare
// combinations of the others get room.
import type { FaultClass } from '../../faults/fault.ts';
import { letterOf } from '../../letter.ts';
import { between, draw, oneOf, type Random, streamOf } from '../../random.ts';
import type { GroupShape, Scenario, ScenarioEvent } from '../../scenario.ts';
import { drawnEvents } from './events.ts';

/** How long things go wrong, in virtual milliseconds. */
const safetyMs = 400_000;

/**
 * The quiet at the end of most seeds, in virtual milliseconds: enough for what must be known, told and tried again within a minute. What happens every five
 * minutes is waited for by every eighth seed, as a fifth of all that is simulated would otherwise be renewals of the Lease.
 */
const shortQuietMs = 90_000;

/** Of healing, beside what the group needs to roll and scale: ten quiet minutes, and as much again. */
const healingBaseMs = 1_200_000;

/** The highest share of each class that is drawn by rates: of requests, of watch lines, of pod calls, of readings of gates (docs/simulation.md). */
export const highestRate: Readonly<Partial<Record<FaultClass, number>>> = {
  F1: 0.15,
  F2: 0.15,
  F3: 0.1,
  F4: 0.2,
  F5: 0.15,
  F6: 0.02,
  F7: 0.08,
  F8: 0.05,
  F9: 0.001,
  // A process asks about once a second and each request has three moments: up to one crash in 60 s, one pause in 40 s.
  F11: 0.015,
  F12: 0.025,
  F21: 0.3,
  F22: 0.3,
};

/** In what share of the seeds each class is left out; F14 is rare, as clocks seldom jump. */
function leftOut(faultClass: FaultClass): number {
  return faultClass === 'F14' ? 0.5 : 0.4;
}

/** Whether things of that class go wrong in the scenario of the seed. */
export function isDrawn(seed: number, faultClass: FaultClass): boolean {
  return draw(seed, `class ${faultClass}`) >= leftOut(faultClass);
}

/** The scenario of a seed: the same seed gives the same one. */
export function scenarioOf(seed: number): Scenario {
  const group = withEngine(seed, drawnGroup(streamOf(seed, 'group')));
  const agents = oneOf(streamOf(seed, 'agents'), [2, 2, 2, 2, 2, 2, 2, 2, 1, 3]);
  const rates = drawnRates(seed);
  const clockRates = drawnClockRates(seed, agents);
  const events = drawnEvents(seed, group, agents, safetyMs, (faultClass) => isDrawn(seed, faultClass));
  const scenario: Scenario = {
    seed,
    group,
    agents,
    ...(clockRates === undefined ? {} : { clockRates }),
    safetyMs,
    healingMs: healingMsOf(group) + aheadMs(events),
    ...(hasLongQuiet(seed) ? {} : { quietMs: shortQuietMs }),
    events,
    rates,
    faults: [],
  };
  return scenario;
}

/** Not those that are played several times. */
function hasLongQuiet(seed: number): boolean {
  return seed % 8 === 1;
}

/** How long a group may take to converge and be quiet, in virtual milliseconds: twice a whole rollout, each pod on its own. */
function healingMsOf(group: GroupShape): number {
  const podMs = group.drainMs + group.startMs + group.minReadySeconds * 1000 + 15_000;
  const scalingMs = (group.delaySeconds + group.betweenZonesSeconds) * 1000 * group.zones;
  return Math.ceil(healingBaseMs + 2 * group.zones * group.podsPerZone * podMs + 2 * scalingMs);
}

/** By how much an instant that was written down may lie ahead: whoever reads it with a right clock waits until it has come, and then for as long as it asks. */
function aheadMs(events: readonly ScenarioEvent[]): number {
  return events.reduce((sum, event) => sum + (event.kind === 'jumpWallClock' ? Math.max(0, event.byMs) : 0), 0);
}

function drawnGroup(random: Random): GroupShape {
  const isUsual = random() < 0.7;
  const zones = isUsual ? 3 : oneOf(random, [2, 3, 3, 4]);
  const podsPerZone = isUsual ? 3 : oneOf(random, [1, 2, 4, 5]);
  const kind = random() < 0.7 ? 'native' : 'adopted';
  const replicas = oneOf(random, ['own', 'own', 'leader', 'mirror', 'delayedMirror'] as const);
  const gate = kind === 'native' && random() < 0.35 ? oneOf(random, ['passing', 'flipping'] as const) : undefined;
  return {
    kind,
    zones,
    podsPerZone,
    maxUnavailable: oneOf(random, [1, 1, 1, 2, '34%', '50%']),
    minReadySeconds: oneOf(random, [0, 0, 5, 10]),
    podManagementPolicy: random() < 0.7 ? 'Parallel' : 'OrderedReady',
    // An adopted group is rotated as its former operator did.
    rotateBy: kind === 'native' && random() < 0.4 ? 'evict' : 'delete',
    replicas,
    delaySeconds: replicas === 'delayedMirror' ? oneOf(random, [20, 30, 60]) : 0,
    betweenZonesSeconds: replicas === 'own' ? 0 : oneOf(random, [0, 0, 10, 30]),
    drainMs: Math.round(between(random, 500, 10_000)),
    startMs: Math.round(between(random, 1000, 15_000)),
    ...(gate === undefined ? {} : { gate }),
  };
}

/**
 * Some native groups leave the deleting to the StatefulSet controller, and some have pods pinned when they are made. Drawn apart, so that the rest
 * of a seed is what it was before there were such.
 */
function withEngine(seed: number, group: GroupShape): GroupShape {
  const lot = draw(seed, 'engine');
  if (group.kind === 'adopted' || lot >= 0.3) return group;
  return lot < 0.15 ? { ...group, strategy: 'partition', rotateBy: 'delete' } : { ...group, strategy: 'pinned' };
}

function drawnRates(seed: number): Scenario['rates'] {
  const rates: Partial<Record<FaultClass, number>> = {};
  for (const [name, highest] of Object.entries(highestRate)) {
    const faultClass = name as FaultClass;
    if (!isDrawn(seed, faultClass)) continue;
    // Squared: most seeds get little of a class, so that work is done at all and the last few writes of it are reached; some get a lot.
    const share = draw(seed, `rate ${faultClass}`) ** 2;
    rates[faultClass] = Math.ceil(highest * share * 1e6) / 1e6;
  }
  return rates;
}

/** Some seeds have clocks whose rates differ by more than an election of leaders can bear. */
function drawnClockRates(seed: number, agents: number): Scenario['clockRates'] {
  if (!isDrawn(seed, 'F13') || draw(seed, 'clocks differ') >= 0.4) return undefined;
  const random = streamOf(seed, 'clock rates');
  const rates: Record<string, number> = {};
  for (let index = 0; index < agents; index += 1) {
    const letter = letterOf(index);
    // As often slow as fast.
    const isFast = random() < 0.5;
    rates[letter] = Math.round(between(random, isFast ? 1 : 0.4, isFast ? 2.2 : 1) * 1000) / 1000;
  }
  return rates;
}
