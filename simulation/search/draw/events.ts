// Draws the events of a seed: changes by people and autoscalers, and accidents.

import type { FaultClass } from '../../faults/fault.ts';
import { between, oneOf, type Random, streamOf, wholeBetween } from '../../random.ts';
import { type GroupShape, letterOf, type ScenarioEvent } from '../../scenario.ts';

type Maker = (random: Random, input: DrawInput, atMs: number) => ScenarioEvent;

/** The accidents of one fault class: the range of their number, and functions that create one. */
interface Kind {
  readonly class: FaultClass;
  /** Only groups with this strategy have these accidents; all groups if absent. */
  readonly strategy?: GroupShape['strategy'];
  readonly fewest: number;
  readonly most: number;
  readonly makers: readonly Maker[];
}

const ordinalOf = (random: Random, { group }: DrawInput): number => wholeBetween(random, 0, group.podsPerZone);
const zoneOf = (random: Random, { group }: DrawInput): string => letterOf(wholeBetween(random, 0, group.zones));
const processOf = (random: Random, { agents }: DrawInput): string => letterOf(wholeBetween(random, 0, agents));

/** Draws a log-uniform number of whole milliseconds between `fromMs` and `toMs`. */
function lasting(random: Random, fromMs: number, toMs: number): number {
  return Math.round(fromMs * (toMs / fromMs) ** random());
}

/** Draws a duration as `lasting` does, cut off one second before the faults end, but at least one second. */
function within(random: Random, { endMs }: DrawInput, atMs: number, [fromMs, toMs]: readonly [number, number]): number {
  return Math.max(1000, Math.min(lasting(random, fromMs, toMs), endMs - atMs - 1000));
}

const kinds: readonly Kind[] = [
  {
    class: 'F10',
    fewest: 1,
    most: 4,
    makers: [
      (random, input, atMs) => ({
        atMs,
        kind: 'frontEndLags',
        frontEnd: wholeBetween(random, 0, 2),
        forMs: within(random, input, atMs, [2000, 120_000]),
      }),
      (random, _, atMs) => ({ atMs, kind: 'frontEndRestarts', frontEnd: wholeBetween(random, 0, 2), isCompacted: random() < 0.5 }),
    ],
  },
  {
    class: 'F11',
    fewest: 0,
    most: 3,
    makers: [
      (random, input, atMs) => ({ atMs, kind: 'crash', process: processOf(random, input), restartAfterMs: lasting(random, 500, 40_000) }),
      (random, input, atMs) => ({ atMs, kind: 'stop', process: processOf(random, input), restartAfterMs: lasting(random, 500, 40_000) }),
    ],
  },
  {
    class: 'F12',
    fewest: 1,
    most: 4,
    makers: [
      (random, input, atMs) => ({
        atMs,
        kind: 'pauseProcess',
        process: processOf(random, input),
        durationMs: within(random, input, atMs, [1000, 120_000]),
      }),
    ],
  },
  {
    class: 'F13',
    fewest: 1,
    most: 3,
    makers: [(_, __, atMs) => ({ atMs, kind: 'deleteLease' }), (_, __, atMs) => ({ atMs, kind: 'editLease' })],
  },
  {
    class: 'F14',
    fewest: 1,
    most: 3,
    makers: [
      (random, input, atMs) => ({
        atMs,
        kind: 'jumpWallClock',
        process: processOf(random, input),
        byMs: Math.round((random() < 0.5 ? -1 : 1) * lasting(random, 1000, 3_600_000)),
      }),
    ],
  },
  {
    class: 'F15',
    fewest: 1,
    most: 5,
    makers: [
      (random, input, atMs) => ({
        atMs,
        kind: 'slowKubelet',
        startFactor: Math.round(lasting(random, 1000, 8000)) / 1000,
        drainFactor: Math.round(lasting(random, 1000, 8000)) / 1000,
        forMs: within(random, input, atMs, [10_000, 120_000]),
      }),
      (random, input, atMs) => ({
        atMs,
        kind: 'stuckTerminating',
        zone: zoneOf(random, input),
        ordinal: ordinalOf(random, input),
        forMs: within(random, input, atMs, [10_000, 120_000]),
      }),
      (random, input, atMs) => ({
        atMs,
        kind: 'podFlaps',
        zone: zoneOf(random, input),
        ordinal: ordinalOf(random, input),
        times: wholeBetween(random, 1, 6),
      }),
      (random, input, atMs) => ({
        atMs,
        kind: 'nodeLost',
        zone: zoneOf(random, input),
        forMs: within(random, input, atMs, [5000, 90_000]),
      }),
    ],
  },
  {
    class: 'F16',
    fewest: 1,
    most: 3,
    makers: [
      (random, input, atMs) => ({
        atMs,
        kind: 'controllerLags',
        delayMs: lasting(random, 500, 20_000),
        forMs: within(random, input, atMs, [10_000, 120_000]),
      }),
      (random, input, atMs) => ({ atMs, kind: 'controllerIsStale', forMs: within(random, input, atMs, [5000, 60_000]) }),
    ],
  },
  {
    class: 'F17',
    fewest: 1,
    most: 5,
    makers: [
      (random, input, atMs) => ({
        atMs,
        kind: 'podFails',
        zone: zoneOf(random, input),
        ordinal: ordinalOf(random, input),
        forMs: within(random, input, atMs, [2000, 90_000]),
      }),
      (random, input, atMs) => ({ atMs, kind: 'podDies', zone: zoneOf(random, input), ordinal: ordinalOf(random, input) }),
      (random, input, atMs) => ({ atMs, kind: 'deletePod', zone: zoneOf(random, input), ordinal: ordinalOf(random, input) }),
      (random, input, atMs) => ({ atMs, kind: 'nodeDrained', zone: zoneOf(random, input) }),
      (random, input, atMs) => ({
        atMs,
        kind: 'scaleByHand',
        zone: zoneOf(random, input),
        replicas: Math.max(1, input.group.podsPerZone + wholeBetween(random, -1, 3)),
      }),
    ],
  },
  {
    class: 'F18',
    fewest: 0,
    most: 2,
    makers: [
      (random, input, atMs) => ({
        atMs,
        kind: 'recreateStatefulSet',
        zone: zoneOf(random, input),
        isOrphaning: random() < 0.6,
        afterMs: within(random, input, atMs, [500, 20_000]),
      }),
      (random, input, atMs) => ({
        atMs,
        kind: 'leaveGroup',
        zone: zoneOf(random, input),
        forMs: within(random, input, atMs, [5000, 60_000]),
      }),
      (random, input, atMs) => ({
        atMs,
        kind: 'setStrategy',
        zone: zoneOf(random, input),
        type: 'RollingUpdate',
        forMs: within(random, input, atMs, [5000, 60_000]),
      }),
    ],
  },
  {
    class: 'F20',
    strategy: 'pinned',
    fewest: 1,
    most: 3,
    makers: [(random, input, atMs) => ({ atMs, kind: 'webhookAway', forMs: within(random, input, atMs, [5000, 120_000]) })],
  },
];

/** Returns all events, sorted by time: changes by people and autoscalers, and accidents of the drawn classes. */
export function drawnEvents(seed: number, input: DrawInput): readonly ScenarioEvent[] {
  const events = [...drawnStories(streamOf(seed, 'stories'), input), ...drawnAccidents(seed, input)];
  return events.sort((one, other) => one.atMs - other.atMs);
}

/** Returns the accidents of the drawn classes in no particular order. `input.endMs` is at least a minute. */
export function drawnAccidents(seed: number, input: DrawInput): readonly ScenarioEvent[] {
  const events: ScenarioEvent[] = [];
  for (const kind of kinds) {
    if (!input.isDrawn(kind.class) || (kind.strategy !== undefined && kind.strategy !== input.group.strategy)) continue;
    // Each class has its own stream, so that leaving out a class does not change the other classes.
    const random = streamOf(seed, `events ${kind.class}`);
    const count = wholeBetween(random, kind.fewest, kind.most + 1);
    for (let index = 0; index < count; index += 1) {
      // Every accident starts at least 20 seconds before the end.
      const atMs = Math.round(between(random, 5000, input.endMs - 20_000));
      events.push(oneOf(random, kind.makers)(random, input, atMs));
    }
  }
  return events;
}

/** The input of a draw. */
interface DrawInput {
  readonly group: GroupShape;
  readonly agents: number;
  /** The end of the faults. All events and their effects end before this time. */
  readonly endMs: number;
  readonly isDrawn: (faultClass: FaultClass) => boolean;
}

/** The initial image of every pod. */
const firstImage = 'app:1';

/** A function that returns the events of one sequence of changes by people, for example a rollout and its rollback. */
type Story = (random: Random, input: DrawInput, atMs: number) => readonly ScenarioEvent[];

const at = (atMs: number): number => Math.round(atMs);

const rollout: Story = (_, __, atMs) => [{ atMs, kind: 'setImage', image: 'app:2' }];

/** Sets a second image, often before every pod runs the first image. */
const secondRollout: Story = (random, _, atMs) => [
  { atMs, kind: 'setImage', image: 'app:2' },
  { atMs: at(atMs + between(random, 5000, 150_000)), kind: 'setImage', image: 'app:3' },
];

const rollback: Story = (random, _, atMs) => [
  { atMs, kind: 'setImage', image: 'app:2' },
  { atMs: at(atMs + between(random, 5000, 150_000)), kind: 'setImage', image: firstImage },
];

const brokenThenBack: Story = (random, _, atMs) => [
  { atMs, kind: 'setImage', image: 'broken/app:2' },
  { atMs: at(atMs + between(random, 20_000, 150_000)), kind: 'setImage', image: firstImage },
];

const brokenThenForward: Story = (random, _, atMs) => [
  { atMs, kind: 'setImage', image: 'broken/app:2' },
  { atMs: at(atMs + between(random, 20_000, 150_000)), kind: 'setImage', image: 'app:3' },
];

/** Sets the image in one zone first, later in all zones. */
const oneZoneFirst: Story = (random, { group }, atMs) => {
  const zone = letterOf(wholeBetween(random, 0, group.zones));
  return [
    { atMs, kind: 'setImage', image: 'app:2', zones: [zone] },
    { atMs: at(atMs + between(random, 2000, 60_000)), kind: 'setImage', image: 'app:2' },
  ];
};

/** Returns another number of replicas per zone, at least 1. */
function changed(random: Random, { group }: DrawInput): number {
  const change = oneOf(random, group.podsPerZone > 2 ? [-2, -1, -1, 1, 2] : [-1, 1, 2]);
  return Math.max(1, group.podsPerZone + change);
}

const scaled: Story = (random, input, atMs) => [{ atMs, kind: 'setReplicas', replicas: changed(random, input) }];

/** Decreases the replicas and reverts the decrease later, often before it is complete. */
const scaledAndBack: Story = (random, input, atMs) => [
  { atMs, kind: 'setReplicas', replicas: Math.max(1, input.group.podsPerZone - 1) },
  { atMs: at(atMs + between(random, 2000, 90_000)), kind: 'setReplicas', replicas: input.group.podsPerZone },
];

/** Changes the replicas several times, as an oscillating autoscaler does. */
const autoscaled: Story = (random, input, atMs) => {
  const count = wholeBetween(random, 3, 7);
  let nextMs = atMs;
  const events: ScenarioEvent[] = [];
  for (let index = 0; index < count; index += 1) {
    events.push({ atMs: at(nextMs), kind: 'setReplicas', replicas: changed(random, input) });
    nextMs += between(random, 10_000, 60_000);
  }
  return events;
};

const paused: Story = (random, _, atMs) => [
  { atMs, kind: 'pause' },
  { atMs: at(atMs + between(random, 10_000, 120_000)), kind: 'resume' },
];

const templates: readonly Story[] = [secondRollout, rollback, brokenThenBack, brokenThenForward, oneZoneFirst];

/** Returns the changes by people and autoscalers in no particular order. All of them happen before `input.endMs`. */
function drawnStories(random: Random, input: DrawInput): readonly ScenarioEvent[] {
  const latestMs = input.endMs - 170_000;
  const soon = (): number => at(between(random, 5000, Math.min(90_000, latestMs)));
  const sometime = (): number => at(between(random, 5000, latestMs));
  const stories: (readonly ScenarioEvent[])[] = [];
  // A second template change belongs to the fault class F18, an autoscaler to F17.
  const template = input.isDrawn('F18') && random() < 0.7 ? oneOf(random, templates) : rollout;
  const scale = input.isDrawn('F17') && random() < 0.3 ? autoscaled : oneOf(random, [scaled, scaledAndBack]);
  const what = random();
  if (what < 0.85) stories.push(template(random, input, soon()));
  if (what >= 0.5) stories.push(scale(random, input, sometime()));
  if (random() < 0.25) stories.push(paused(random, input, sometime()));
  return stories.flat().filter((event) => event.atMs < input.endMs - 5000);
}
