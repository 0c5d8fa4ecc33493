// Draws the events of a seed: changes by people and autoscalers, and accidents.

import { type Draw, type DrawInput, drawnAccidents, event, lasting, ordinal, within, zone } from '../../../simulation/faults/drawn.ts';
import { between, draw, oneOf, type Random, streamOf, wholeBetween } from '../../../simulation/random.ts';
import { letterOf, persons, type ScenarioEvent, traitsOfShape } from '../../../simulation/scenario.ts';
import { ruleName } from '../groups/group-objects.ts';

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
    ...regrownZones(seed, input, stories),
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

/**
 * Returns the growth of a zone by hand during or after a delayed downscale, so that the agent must remove new pods with used volumes. The
 * stream is separate.
 */
function regrownZones(seed: number, { group, isDrawn, endMs }: DrawInput, stories: readonly ScenarioEvent[]): readonly ScenarioEvent[] {
  if (group.replicas !== 'delayedMirror' || !isDrawn('F17')) return [];
  const random = streamOf(seed, 'regrown zones');
  const scalings = stories.filter((event) => event.kind === 'setReplicas');
  return scalings.flatMap(({ atMs: scaledMs, replicas }): readonly ScenarioEvent[] => {
    const atMs = at(scaledMs + 1000 * group.delaySeconds + between(random, -10_000, 40_000));
    const zoneName = letterOf(wholeBetween(random, 0, group.zones));
    if (random() < 0.4 || atMs > endMs - 20_000) return [];
    return [{ atMs, kind: 'scaleByHand', zone: zoneName, replicas: Math.max(replicas, group.podsPerZone) }];
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
