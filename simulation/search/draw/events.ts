// Draws the events of a seed: changes by people and autoscalers, and accidents.

import { ruleName } from '../../cluster/group-objects.ts';
import type { FaultClass } from '../../faults/fault.ts';
import { between, draw, oneOf, type Random, streamOf, wholeBetween } from '../../random.ts';
import { type EventFields, type GroupShape, letterOf, persons, type ScenarioEvent, traitsOfShape } from '../../scenario.ts';

/** A function that draws an event at `atMs`, or one of its fields. */
type Draw<Value> = (random: Random, input: DrawInput, atMs: number) => Value;

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

/** Returns all events, sorted by time: changes by people and autoscalers, and accidents of the drawn classes. */
export function drawnEvents(seed: number, input: DrawInput): readonly ScenarioEvent[] {
  const stories = drawnStories(streamOf(seed, 'stories'), input);
  // Only an approval ends the block of a rule that asks for one.
  const overridable = input.group.rules?.find(({ kind }) => kind !== 'ask' && kind !== 'plan');
  const returns = [...drawnReturns(seed, input, stories), ...drawnZoneReturns(seed, input, stories)];
  // An undo writes earlier images, so it cannot undo a restart.
  const isUndone = returns.some((one) => one.kind === 'request' && one.action === 'undo');
  const events = [
    ...stories,
    ...drawnDefinition(seed, input, stories),
    ...drawnAnswers(seed, input),
    ...drawnRequests(seed, input, stories),
    ...returns,
    ...(input.group.windows === undefined ? [] : drawnOverrides(seed, input, undefined)),
    ...(overridable === undefined ? [] : drawnOverrides(seed, input, ruleName(overridable))),
    ...drawnAccidents(seed, input),
    ...lostLeavingPods(seed, input, stories),
    ...drawnRaces(seed, input),
    ...(isUndone ? [] : drawnRestarts(seed, input)),
    ...drawnDecreases(seed, input),
  ];
  return events.sort((one, other) => one.atMs - other.atMs);
}

/** Returns the answers of people to waves: often, seldom or not at all. A person without a wave to answer does nothing. */
function drawnAnswers(seed: number, { group, endMs }: DrawInput): readonly ScenarioEvent[] {
  const isAsked =
    group.waves?.some(({ approvals }) => approvals !== undefined) === true ||
    group.rules?.some(({ kind }) => kind === 'ask' || kind === 'plan');
  if (isAsked !== true) return [];
  const random = streamOf(seed, 'answers');
  const everyMs = oneOf(random, [10_000, 20_000, 40_000, 100_000, endMs]);
  const rejects = random() < 0.2;
  const events: ScenarioEvent[] = [];
  for (let atMs = between(random, 0, everyMs); atMs < endMs - 5000; atMs += between(random, 0.5, 1.5) * everyMs) {
    const action = rejects && random() < 0.3 ? 'reject' : 'approve';
    const isUnverified = action === 'approve' && draw(seed, `unverified ${events.length}`) < 0.25;
    events.push({ atMs: at(atMs), kind: 'request', action, by: oneOf(random, persons), ...(isUnverified ? { isUnverified } : {}) });
  }
  return events;
}

/** Returns the requests of people during rollouts, and often a retry after an abort. A person without a run does nothing. */
function drawnRequests(seed: number, { group, endMs }: DrawInput, stories: readonly ScenarioEvent[]): readonly ScenarioEvent[] {
  const rollouts = stories.filter(({ kind }) => kind === 'setImage');
  if (group.kind === 'adopted' || rollouts.length === 0 || draw(seed, 'has requests') >= 0.5) return [];
  const random = streamOf(seed, 'requests');
  return Array.from({ length: wholeBetween(random, 1, 5) }).flatMap((): readonly ScenarioEvent[] => {
    const request = { kind: 'request', action: oneOf(random, ['abort', 'promote', 'retry'] as const), by: oneOf(random, persons) } as const;
    const atMs = at(Math.min(oneOf(random, rollouts).atMs + between(random, 2000, 90_000), endMs - 120_000));
    const retriedMs = at(atMs + between(random, 2000, 100_000));
    const isRetried = request.action === 'abort' && random() < 0.7;
    return [{ ...request, atMs }, ...(isRetried ? [{ ...request, action: 'retry', atMs: retriedMs } as const] : [])];
  });
}

/**
 * Returns the requests of people to return to the earlier revision. After an undo, the undone image may be applied again. An undo depends on
 * the published run, so seeds whose end is compared with that without faults have none.
 */
function drawnReturns(seed: number, { group, endMs, isDrawn }: DrawInput, stories: readonly ScenarioEvent[]): readonly ScenarioEvent[] {
  const rollouts = stories.filter((event) => event.kind === 'setImage');
  const { canRollBack } = traitsOfShape(group);
  if (group.kind === 'adopted' || rollouts.length === 0 || draw(seed, 'has returns') >= (canRollBack ? 0.7 : 0.3)) return [];
  const random = streamOf(seed, 'returns');
  return Array.from({ length: wholeBetween(random, 1, 3) }).flatMap((): readonly ScenarioEvent[] => {
    const undone = oneOf(random, rollouts);
    const request = { kind: 'request', action: canRollBack && random() < 0.6 ? 'rollback' : 'undo', by: oneOf(random, persons) } as const;
    const atMs = at(Math.min(undone.atMs + between(random, 5000, 90_000), endMs - 120_000));
    const laterMs = at(atMs + between(random, 2000, 100_000));
    const again = random();
    if (request.action === 'undo' && seed % 40 === 0) return [];
    if (request.action === 'undo')
      return [
        { ...request, atMs },
        ...(isDrawn('F18') && again < 0.4 && !undone.image.startsWith('broken/') ? [{ ...undone, atMs: laterMs }] : []),
      ];
    return [{ ...request, atMs }, ...(again < 0.5 ? [{ ...request, action: 'retry', atMs: laterMs } as const] : [])];
  });
}

/**
 * Returns the returns of one zone to its earlier template in the middle of a rollout: by an undo of the zone, or by an old manifest. Later the
 * zone often gets the new image again, or another zone returns too. The stream is separate.
 */
function drawnZoneReturns(seed: number, input: DrawInput, stories: readonly ScenarioEvent[]): readonly ScenarioEvent[] {
  const { group, endMs, isDrawn } = input;
  const rollouts = stories.filter((event) => event.kind === 'setImage').filter(({ image }) => image !== firstImage);
  if (group.kind === 'adopted' || rollouts.length === 0 || draw(seed, 'has returns of a zone') >= 0.3) return [];
  const random = streamOf(seed, 'returns of a zone');
  const returnOf = (name: string, atMs: number): readonly ScenarioEvent[] => {
    const isUndo = random() < 0.5;
    if (isUndo && seed % 40 !== 0) return [{ atMs, kind: 'request', action: 'undo', by: oneOf(random, persons), zone: name }];
    return isDrawn('F18') ? [{ atMs, kind: 'setImage', image: firstImage, zones: [name] }] : [];
  };
  const rollout = oneOf(random, rollouts);
  const atMs = at(Math.min(rollout.atMs + between(random, 5000, 90_000), endMs - 120_000));
  const laterMs = at(atMs + between(random, 2000, 100_000));
  const first = zone(random, input, atMs);
  const next = random();
  const isBroken = rollout.image.startsWith('broken/');
  if (next < 0.3 && isDrawn('F18') && !isBroken) return [...returnOf(first, atMs), { ...rollout, atMs: laterMs, zones: [first] }];
  return [...returnOf(first, atMs), ...(next < 0.6 ? returnOf(zone(random, input, atMs), laterMs) : [])];
}

/** Returns the exceptions that people make from a rule, by default from the windows, for the group or for a zone. */
function drawnOverrides(seed: number, input: DrawInput, rule: string | undefined): readonly ScenarioEvent[] {
  const ofRule = rule === undefined ? {} : { rule };
  const name = rule === undefined ? 'overrides' : `overrides ${rule}`;
  if (draw(seed, `has ${name}`) >= 0.6) return [];
  const random = streamOf(seed, name);
  return Array.from({ length: wholeBetween(random, 1, 4) }, (): ScenarioEvent => {
    const atMs = at(between(random, 10_000, input.endMs - 80_000));
    const ofZone = random() < 0.4 ? { zone: zone(random, input, atMs) } : {};
    const limit = random() < 0.25 ? { podsAtMost: 1 } : {};
    return {
      atMs,
      kind: 'override',
      by: oneOf(random, persons),
      forMs: within(20_000, 120_000)(random, input, atMs),
      ...ofRule,
      ...ofZone,
      ...limit,
    };
  });
}

/**
 * Returns the event that defines the group, in a quarter of the seeds with the strategy `partition` or `pinned`. It comes soon after the
 * first image, so the StatefulSets already roll.
 */
function drawnDefinition(seed: number, { group, isDrawn }: DrawInput, stories: readonly ScenarioEvent[]): readonly ScenarioEvent[] {
  const rollout = stories.find(({ kind }) => kind === 'setImage');
  if (rollout === undefined || group.strategy === undefined || !isDrawn('F18') || draw(seed, 'definition') >= 0.25) return [];
  return [{ atMs: rollout.atMs + Math.round(between(streamOf(seed, 'definition at'), 500, 40_000)), kind: 'defineGroup' }];
}

/**
 * Returns the losses of leaving pods while a delayed downscale waits. In a seed with F16, a lag of the StatefulSet controller delays their successors. The
 * stream is separate, so that no other event changes.
 */
function lostLeavingPods(seed: number, input: DrawInput, stories: readonly ScenarioEvent[]): readonly ScenarioEvent[] {
  const { group, isDrawn, endMs } = input;
  if (group.replicas !== 'delayedMirror' || !isDrawn('F17')) return [];
  const random = streamOf(seed, 'lost leaving pods');
  const scalings = stories.filter((event) => event.kind === 'setReplicas').sort((one, other) => one.atMs - other.atMs);
  return scalings.flatMap(({ atMs: scaledMs, replicas }, index): readonly ScenarioEvent[] => {
    const before = scalings[index - 1]?.replicas ?? group.podsPerZone;
    const atMs = at(scaledMs + between(random, 1000, 1000 * group.delaySeconds));
    if (replicas >= before || random() < 0.3 || atMs > endMs - 20_000) return [];
    const lost = { atMs, kind: 'deletePod', zone: zone(random, input, atMs), ordinal: wholeBetween(random, replicas, before) } as const;
    const lag = { delayMs: lasting(1000, 20_000)(random, input, atMs), forMs: within(10_000, 60_000)(random, input, atMs) };
    return isDrawn('F16') ? [{ atMs, kind: 'controllerLags', ...lag }, lost] : [lost];
  });
}

/** Returns requests of several people at nearly the same time, which the webhooks of several processes review. The stream is separate. */
function drawnRaces(seed: number, input: DrawInput): readonly ScenarioEvent[] {
  if ((input.group.disruption ?? input.group.zoneBudget) === undefined || !input.isDrawn('F17')) return [];
  const random = streamOf(seed, 'races');
  return Array.from({ length: wholeBetween(random, 1, 5) }).flatMap(() => {
    const fromMs = between(random, 5000, input.endMs - 40_000);
    return Array.from({ length: wholeBetween(random, 2, 5) }, (): ScenarioEvent => {
      const atMs = at(fromMs + between(random, 0, oneOf(random, [50, 1000, 8000])));
      const draws = [event('nodeDrained', { zone }), event('deletePod', { zone, ordinal })];
      return oneOf(random, draws)(random, input, atMs);
    });
  });
}

/**
 * Returns decreases by hand: while a pod of the group fails, which webhooks must deny, or during a pause, which blocks only the agent. The
 * stream is separate.
 */
function drawnDecreases(seed: number, input: DrawInput): readonly ScenarioEvent[] {
  const { group, endMs } = input;
  if (group.webhooks !== true || !input.isDrawn('F17')) return [];
  const random = streamOf(seed, 'decreases');
  const owners: Draw<string> = group.replicas === 'leader' ? () => 'a' : zone;
  return Array.from({ length: wholeBetween(random, 1, 5) }).flatMap((): readonly ScenarioEvent[] => {
    const failedMs = at(between(random, 5000, endMs - 70_000));
    const atMs = at(failedMs + between(random, 2000, 40_000));
    const replicas = Math.max(1, group.podsPerZone - wholeBetween(random, 0, 3));
    const failure = event('podFails', { zone, ordinal, forMs: within(20_000, 60_000) })(random, input, failedMs);
    const obstacle: readonly ScenarioEvent[] =
      random() < 0.3
        ? [
            { atMs: failedMs, kind: 'pause' },
            { atMs: failedMs + 45_000, kind: 'resume' },
          ]
        : [failure];
    return [...obstacle, { atMs, kind: 'scaleByHand', zone: owners(random, input, atMs), replicas }];
  });
}

/** Returns restarts, often during a rollout, in a fifth of the seeds. The stream is separate. */
function drawnRestarts(seed: number, input: DrawInput): readonly ScenarioEvent[] {
  if (draw(seed, 'has restarts') >= 0.2) return [];
  const random = streamOf(seed, 'restarts');
  return Array.from({ length: wholeBetween(random, 1, 3) }, (): ScenarioEvent => {
    const atMs = at(between(random, 5000, input.endMs - 150_000));
    return { atMs, kind: 'restart', ...(random() < 0.5 ? {} : { zone: zone(random, input, atMs) }) };
  });
}

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

export interface DrawInput {
  readonly group: GroupShape;
  readonly agents: number;
  /** The end of the faults, which also ends the effects of events. All events happen before this time. */
  readonly endMs: number;
  readonly isDrawn: (faultClass: FaultClass) => boolean;
}

export const firstImage = 'app:1';

/** A function that draws one sequence of changes by people, for example a rollout and its rollback. */
type Story = Draw<readonly ScenarioEvent[]>;

const at = (atMs: number): number => Math.round(atMs);

/** Returns the story of a first image, and of a second image after at least `fromMs`, often before every pod runs the first image. */
function images(first: string, second: string, fromMs: number): Story {
  return (random, _, atMs) => [
    { atMs, kind: 'setImage', image: first },
    { atMs: at(atMs + between(random, fromMs, 150_000)), kind: 'setImage', image: second },
  ];
}

const rollout: Story = (_, __, atMs) => [{ atMs, kind: 'setImage', image: 'app:2' }];

const oneZoneFirst: Story = (random, input, atMs) => [
  { atMs, kind: 'setImage', image: 'app:2', zones: [zone(random, input, atMs)] },
  { atMs: at(atMs + between(random, 2000, 60_000)), kind: 'setImage', image: 'app:2' },
];

const templates: readonly Story[] = [
  images('app:2', 'app:3', 5000),
  images('app:2', firstImage, 5000),
  images('broken/app:2', firstImage, 20_000),
  images('broken/app:2', 'app:3', 20_000),
  oneZoneFirst,
];

function changed(random: Random, { group }: DrawInput): number {
  return Math.max(1, group.podsPerZone + oneOf(random, group.podsPerZone > 2 ? [-2, -1, -1, 1, 2] : [-1, 1, 2]));
}

const scaled: Story = (random, input, atMs) => [{ atMs, kind: 'setReplicas', replicas: changed(random, input) }];

/** Decreases the replicas and reverts the decrease later, often before it is complete. */
const scaledAndBack: Story = (random, input, atMs) => [
  { atMs, kind: 'setReplicas', replicas: Math.max(1, input.group.podsPerZone - 1) },
  { atMs: at(atMs + between(random, 2000, 90_000)), kind: 'setReplicas', replicas: input.group.podsPerZone },
];

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
