// Draws the scenario of a seed: the group, the agents, the faults and their rates. Each seed leaves out some classes of faults, so that
// rare combinations of the other classes occur.
import type { FaultClass } from '../../faults/fault.ts';
import { between, draw, oneOf, type Random, streamOf } from '../../random.ts';
import { type GroupShape, letterOf, type Scenario, type ScenarioEvent } from '../../scenario.ts';
import { drawnEvents } from './events.ts';

/** The time until which faults happen, in virtual milliseconds. */
const safetyMs = 400_000;

/** `quietMs` of most seeds. Every eighth seed has the default, which is longer than five minutes. */
const shortQuietMs = 90_000;

/** The constant part of `healingMs`: twice ten minutes. */
const healingBaseMs = 1_200_000;

/** The highest rate of each class: its share of requests, watch lines, calls to pods or gate readings (docs/simulation.md). */
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
  // A process sends about one request per second. Important requests have a higher rate (faults/source.ts).
  F11: 0.015,
  F12: 0.025,
  F21: 0.3,
  F22: 0.3,
};

export function isDrawn(seed: number, faultClass: FaultClass): boolean {
  // Fewer seeds have F14, because clocks seldom jump.
  return draw(seed, `class ${faultClass}`) >= (faultClass === 'F14' ? 0.5 : 0.4);
}

/** Returns the scenario of a seed. The same seed always gives the same scenario. */
export function scenarioOf(seed: number): Scenario {
  const group = withDisruption(seed, withPreparation(seed, withStrategy(seed, drawnGroup(streamOf(seed, 'group')))));
  const agents = oneOf(streamOf(seed, 'agents'), [2, 2, 2, 2, 2, 2, 2, 2, 1, 3]);
  const rates = drawnRates(seed, 1, (faultClass) => isDrawn(seed, faultClass));
  const clockRates = drawnClockRates(seed, agents);
  const events = drawnEvents(seed, { group, agents, endMs: safetyMs, isDrawn: (faultClass) => isDrawn(seed, faultClass) });
  return {
    seed,
    group,
    agents,
    ...(clockRates === undefined ? {} : { clockRates }),
    safetyMs,
    healingMs: healingMsOf(group) + aheadMs(events),
    // One seed in eight has the default of `quietMs`. No such seed is played several times.
    ...(seed % 8 === 1 ? {} : { quietMs: shortQuietMs }),
    events,
    rates,
    faults: [],
  };
}

/** Returns `healingMs` for correct clocks: the base, and twice the time to roll pod by pod and to scale zone by zone. */
function healingMsOf(group: GroupShape): number {
  const podMs = group.drainMs + group.startMs + group.minReadySeconds * 1000 + 15_000;
  const scalingMs = (group.delaySeconds + group.betweenZonesSeconds) * 1000 * group.zones;
  return Math.ceil(healingBaseMs + 2 * group.zones * group.podsPerZone * podMs + 2 * scalingMs);
}

/** Returns how far a stored time may be in the future because of clock jumps. A reader with a correct clock waits for that time. */
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
    // grafana/rollout-operator deletes pods, so a drop-in group does too.
    rotateBy: kind === 'native' && random() < 0.4 ? 'evict' : 'delete',
    replicas,
    delaySeconds: replicas === 'delayedMirror' ? oneOf(random, [20, 30, 60]) : 0,
    betweenZonesSeconds: replicas === 'own' ? 0 : oneOf(random, [0, 0, 10, 30]),
    drainMs: Math.round(between(random, 500, 10_000)),
    startMs: Math.round(between(random, 1000, 15_000)),
    ...(gate === undefined ? {} : { gate }),
  };
}

/** Gives some native groups the strategy `partition` or `pinned`. Its random number is separate, so that no other number changes. */
function withStrategy(seed: number, group: GroupShape): GroupShape {
  const lot = draw(seed, 'engine');
  if (group.kind === 'adopted' || lot >= 0.3) return group;
  return lot < 0.15 ? { ...group, strategy: 'partition', rotateBy: 'delete' } : { ...group, strategy: 'pinned' };
}

/** Lets half of the groups with a delay prepare their pods also before the removal. Its random number is separate, as in `withStrategy`. */
function withPreparation(seed: number, group: GroupShape): GroupShape {
  return group.replicas === 'delayedMirror' && draw(seed, 'prepares') < 0.5 ? { ...group, prepares: true } : group;
}

/** Gives some native groups a budget for disruptions by others, which the webhooks enforce. Its random number is separate, as in `withStrategy`. */
function withDisruption(seed: number, group: GroupShape): GroupShape {
  if (group.kind === 'adopted' || draw(seed, 'disruption') >= 0.35) return group;
  return { ...group, disruption: oneOf(streamOf(seed, 'disruption limit'), [1, 1, 2]) };
}

/** Draws a rate for each class of single faults that occurs. `severity` is the factor on the highest rates. */
export function drawnRates(seed: number, severity: number, occurs: (faultClass: FaultClass) => boolean): Scenario['rates'] {
  const rates: Partial<Record<FaultClass, number>> = {};
  for (const [name, highest] of Object.entries(highestRate)) {
    const faultClass = name as FaultClass;
    if (!occurs(faultClass)) continue;
    // The draw is squared, so that most seeds have few faults of a class and can finish their work, and some seeds have many.
    const share = draw(seed, `rate ${faultClass}`) ** 2;
    rates[faultClass] = Math.ceil(severity * highest * share * 1e6) / 1e6;
  }
  return rates;
}

/** Draws clock rates for some seeds. The rates may differ by more than leader election tolerates. */
function drawnClockRates(seed: number, agents: number): Scenario['clockRates'] {
  if (!isDrawn(seed, 'F13') || draw(seed, 'clocks differ') >= 0.4) return undefined;
  const random = streamOf(seed, 'clock rates');
  const rates: Record<string, number> = {};
  for (let index = 0; index < agents; index += 1) {
    const letter = letterOf(index);
    // A clock is slow as often as it is fast.
    const isFast = random() < 0.5;
    rates[letter] = Math.round(between(random, isFast ? 1 : 0.4, isFast ? 2.2 : 1) * 1000) / 1000;
  }
  return rates;
}
