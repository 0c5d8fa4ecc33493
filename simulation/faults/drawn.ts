// Draws the faults of a seed: the rates of single faults, and accidents.
import { between, draw, oneOf, type Random, streamOf, wholeBetween } from '../random.ts';
import { type EventFields, type GroupShape, letterOf, type Scenario, type ScenarioEvent, traitsOfShape } from '../scenario.ts';
import type { FaultClass } from './fault.ts';

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

export interface DrawInput {
  readonly group: GroupShape;
  readonly agents: number;
  /** The end of the faults, which also ends the effects of events. All events happen before this time. */
  readonly endMs: number;
  readonly isDrawn: (faultClass: FaultClass) => boolean;
}

/** A function that draws an event at `atMs`, or one of its fields. */
export type Draw<Value> = (random: Random, input: DrawInput, atMs: number) => Value;

type Kind = ScenarioEvent['kind'];

/** The accidents of one fault class: the range of their number, and functions that draw one. */
interface Accidents {
  readonly class: FaultClass;
  /** The name of the random stream; the class by default. */
  readonly stream?: string;
  /** Only these groups have the accidents; all groups if absent. */
  readonly isFor?: (group: GroupShape) => boolean;
  readonly fewest: number;
  readonly most: number;
  readonly draws: readonly Draw<ScenarioEvent>[];
}

export function event<Name extends Kind>(
  kind: Name,
  parameters: { readonly [Field in keyof EventFields<Name>]: Draw<EventFields<Name>[Field]> },
): Draw<ScenarioEvent> {
  const draws = Object.entries<Draw<unknown>>(parameters);
  return (random, input, atMs) =>
    ({ atMs, kind, ...Object.fromEntries(draws.map(([name, drawn]) => [name, drawn(random, input, atMs)])) }) as unknown as ScenarioEvent;
}

export const zone: Draw<string> = (random, { group }) => letterOf(wholeBetween(random, 0, group.zones));
export const ordinal: Draw<number> = (random, { group }) => wholeBetween(random, 0, group.podsPerZone);
const process: Draw<string> = (random, { agents }) => letterOf(wholeBetween(random, 0, agents));
const frontEnd: Draw<number> = (random) => wholeBetween(random, 0, 2);

function share(most: number): Draw<boolean> {
  return (random) => random() < most;
}

/** Draws a log-uniform number of whole milliseconds between `fromMs` and `toMs`. */
export function lasting(fromMs: number, toMs: number): Draw<number> {
  return (random) => Math.round(fromMs * (toMs / fromMs) ** random());
}

/** Draws a duration as `lasting` does, cut off one second before the faults end, but at least one second. */
export function within(fromMs: number, toMs: number): Draw<number> {
  const drawn = lasting(fromMs, toMs);
  return (random, input, atMs) => Math.max(1000, Math.min(drawn(random, input, atMs), input.endMs - atMs - 1000));
}

/** Draws how many times slower a kubelet is. */
const factor: Draw<number> = (...at) => lasting(1000, 8000)(...at) / 1000;

const accidents: readonly Accidents[] = [
  {
    class: 'F10',
    fewest: 1,
    most: 4,
    draws: [
      event('frontEndLags', { frontEnd, forMs: within(2000, 120_000) }),
      event('frontEndRestarts', { frontEnd, isCompacted: share(0.5) }),
    ],
  },
  {
    class: 'F11',
    fewest: 0,
    most: 3,
    draws: [
      event('crash', { process, restartAfterMs: lasting(500, 40_000) }),
      event('stop', { process, restartAfterMs: lasting(500, 40_000) }),
    ],
  },
  { class: 'F12', fewest: 1, most: 4, draws: [event('pauseProcess', { process, durationMs: within(1000, 120_000) })] },
  { class: 'F13', fewest: 1, most: 3, draws: [event('deleteLease', {}), event('editLease', {})] },
  {
    class: 'F14',
    fewest: 1,
    most: 3,
    draws: [
      event('jumpWallClock', { process, byMs: (random, ...rest) => (random() < 0.5 ? -1 : 1) * lasting(1000, 3_600_000)(random, ...rest) }),
    ],
  },
  {
    class: 'F15',
    fewest: 1,
    most: 5,
    draws: [
      event('slowKubelet', { startFactor: factor, drainFactor: factor, forMs: within(10_000, 120_000) }),
      event('stuckTerminating', { zone, ordinal, forMs: within(10_000, 120_000) }),
      event('podFlaps', { zone, ordinal, times: (random) => wholeBetween(random, 1, 6) }),
      event('nodeLost', { zone, forMs: within(5000, 90_000) }),
    ],
  },
  {
    class: 'F16',
    fewest: 1,
    most: 3,
    draws: [
      event('controllerLags', { delayMs: lasting(500, 20_000), forMs: within(10_000, 120_000) }),
      event('controllerIsStale', { forMs: within(5000, 60_000) }),
    ],
  },
  {
    class: 'F17',
    fewest: 1,
    most: 5,
    draws: [
      event('podFails', { zone, ordinal, forMs: within(2000, 90_000) }),
      event('podDies', { zone, ordinal }),
      event('deletePod', { zone, ordinal }),
      event('nodeDrained', { zone }),
      event('scaleByHand', { zone, replicas: (random, { group }) => Math.max(1, group.podsPerZone + wholeBetween(random, -1, 3)) }),
    ],
  },
  {
    class: 'F18',
    fewest: 0,
    most: 2,
    draws: [
      event('recreateStatefulSet', { zone, isOrphaning: share(0.6), afterMs: within(500, 20_000) }),
      event('leaveGroup', { zone, forMs: within(5000, 60_000) }),
      event('setStrategy', { zone, type: () => 'RollingUpdate' as const, forMs: within(5000, 60_000) }),
    ],
  },
  {
    class: 'F20',
    isFor: (group) => traitsOfShape(group).pinsPods,
    fewest: 1,
    most: 3,
    draws: [event('webhookAway', { forMs: within(5000, 120_000) })],
  },
  {
    class: 'F20',
    stream: 'F20 of webhooks',
    isFor: ({ webhooks }) => webhooks === true,
    fewest: 0,
    most: 3,
    draws: [
      event('webhookAway', { forMs: within(2000, 60_000) }),
      event('webhookSlow', { delayMs: lasting(500, 9000), forMs: within(5000, 60_000) }),
    ],
  },
];

/** Returns the accidents of the drawn classes in no particular order. `input.endMs` is at least a minute. */
export function drawnAccidents(seed: number, input: DrawInput): readonly ScenarioEvent[] {
  const events: ScenarioEvent[] = [];
  for (const { class: faultClass, stream = faultClass, isFor, fewest, most, draws } of accidents) {
    if (!input.isDrawn(faultClass) || isFor?.(input.group) === false) continue;
    // Each class has its own stream, so that leaving out a class does not change the other classes.
    const random = streamOf(seed, `events ${stream}`);
    const count = wholeBetween(random, fewest, most + 1);
    for (let index = 0; index < count; index += 1) {
      // Every accident starts at least 20 seconds before the end.
      const atMs = Math.round(between(random, 5000, input.endMs - 20_000));
      events.push(oneOf(random, draws)(random, input, atMs));
    }
  }
  return events;
}
