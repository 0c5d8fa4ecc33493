// Draws faults that meet at the same time, because single faults seldom do: an accident that no watch shows, and a delayed scale-down.

import { type DrawInput, event, lasting, ordinal, within, zone } from '../../../simulation/faults/drawn.ts';
import type { PlacedFault } from '../../../simulation/faults/fault.ts';
import { between, draw, oneOf, type Random, streamOf, wholeBetween } from '../../../simulation/random.ts';
import {
  type GroupShape,
  letterOf,
  persons,
  policyStates,
  rights,
  type ScenarioEvent,
  traitsOfShape,
} from '../../../simulation/scenario.ts';
import { firstImage } from './events.ts';

type Events = readonly ScenarioEvent[];

/** Returns further events for a scenario with these events. Each kind has a separate random stream. */
export function drawnTogether(seed: number, input: DrawInput, events: Events): Events {
  return [
    ...drawnBlindness(seed, input, events),
    ...drawnCuts(seed, input),
    ...drawnRevocations(seed, input),
    ...drawnStarvation(seed, input),
    ...drawnPromotions(seed, input, events),
    ...drawnReapplies(seed, input, events),
    ...drawnPolicyChanges(seed, input, events),
    ...drawnVersions(seed, input, events),
    ...drawnScaling(seed, input, events),
    ...drawnRecreations(seed, input, events),
  ];
}

/**
 * Returns times in which every watch is silent, most of them during a rollout or a change of replicas. Meanwhile a pod fails, or a person
 * pauses the group. Then the API servers often restart without their history, so that only a new list shows the change.
 */
function drawnBlindness(seed: number, input: DrawInput, events: Events): Events {
  const { isDrawn, endMs } = input;
  if (!isDrawn('F10')) return [];
  const random = streamOf(seed, 'blindness');
  const changes = events.filter(({ kind }) => kind === 'setImage' || kind === 'setReplicas');
  return Array.from({ length: wholeBetween(random, 1, 3) }).flatMap((): Events => {
    const chosenMs =
      random() < 0.3 || changes.length === 0 ? between(random, 5000, endMs) : oneOf(random, changes).atMs + between(random, 2000, 60_000);
    const atMs = Math.round(Math.min(chosenMs, endMs - 80_000));
    const forMs = lasting(12_000, 45_000)(random, input, atMs);
    const meanwhileMs = atMs + wholeBetween(random, 200, 4000);
    const failure = event('podFails', { zone, ordinal, forMs: () => forMs })(random, input, meanwhileMs);
    const isPaused = random() < 0.3;
    const isCompacted = random() < 0.5;
    const frontEnds = [0, 1];
    return [
      ...frontEnds.map((frontEnd) => ({ atMs, kind: 'frontEndLags', frontEnd, forMs }) as const),
      ...(isDrawn('F17') && !isPaused ? [failure] : []),
      ...(isPaused
        ? ([
            { atMs: meanwhileMs, kind: 'pause' },
            { atMs: meanwhileMs + 30_000, kind: 'resume' },
          ] as const)
        : []),
      ...(isCompacted
        ? frontEnds.map((frontEnd) => ({ atMs: atMs + forMs - 500, kind: 'frontEndRestarts', frontEnd, isCompacted }) as const)
        : []),
    ];
  });
}

/** Returns times in which the agents reach no API server, half of them until the faults end. */
function drawnCuts(seed: number, input: DrawInput): Events {
  const { isDrawn, endMs } = input;
  if (!isDrawn('F10') || draw(seed, 'is cut off') >= 0.35) return [];
  const random = streamOf(seed, 'cuts');
  const forMs = lasting(8000, 60_000)(random, input, 0);
  const atMs = Math.round(random() < 0.5 ? endMs - 1000 - forMs : between(random, 5000, endMs - 80_000));
  const restarts = [0, 1].map((frontEnd) => ({ atMs, kind: 'frontEndRestarts', frontEnd, isCompacted: false }) as const);
  return [event('cutOff', { forMs: within(forMs, forMs) })(random, input, atMs), ...restarts];
}

/**
 * Returns times in which the API server denies requests of the agents. They end long before the faults, because an agent waits for minutes
 * before it repeats a request that is denied again and again.
 */
function drawnRevocations(seed: number, input: DrawInput): Events {
  if (!input.isDrawn('F25') || draw(seed, 'loses rights') >= 0.5) return [];
  const random = streamOf(seed, 'rights');
  return Array.from({ length: wholeBetween(random, 1, 4) }, (): ScenarioEvent => {
    const atMs = Math.round(between(random, 5000, Math.max(6000, input.endMs - 200_000)));
    return event('rightsRevoked', { right: () => oneOf(random, rights), forMs: within(3000, 60_000) })(random, input, atMs);
  });
}

/**
 * Returns applies of a GitOps tool. The first one makes the tool an owner before the first change, if no manager owns a field with another
 * value. The later ones come during rollouts and changes of replicas. Seeds that are compared have none, because conflicts depend on timing.
 */
function drawnReapplies(seed: number, input: DrawInput, events: Events): Events {
  const { group, isDrawn, endMs } = input;
  if (!isDrawn('F18') || seed % 20 === 0 || draw(seed, 'has a GitOps tool') >= 0.4) return [];
  const random = streamOf(seed, 'GitOps tool');
  const changes = events.filter(({ kind }) => kind === 'setImage' || kind === 'setReplicas');
  const replicas = random() < 0.4 ? (['replicas'] as const) : [];
  const partition = group.strategy !== undefined && random() < 0.4 ? (['partition'] as const) : [];
  const owns = [...replicas, ...partition];
  const later = Array.from({ length: wholeBetween(random, 1, 5) }, (): ScenarioEvent => {
    const chosenMs = changes.length === 0 ? between(random, 5000, endMs) : oneOf(random, changes).atMs + between(random, 1000, 90_000);
    const atMs = Math.round(Math.min(chosenMs, endMs - 120_000));
    return {
      atMs,
      kind: 'reapply',
      owns,
      isForced: random() < 0.7,
      ...(random() < 0.3 ? { zone: zone(random, input, atMs) } : {}),
      ...(random() < 0.2 ? { image: firstImage } : {}),
    };
  });
  return [{ atMs: wholeBetween(random, 500, 4000), kind: 'reapply', owns, isForced: random() < 0.7 }, ...later];
}

/** Returns times in which one process can open no connection. The others go on. */
function drawnStarvation(seed: number, input: DrawInput): Events {
  const { isDrawn, agents, endMs } = input;
  if (!isDrawn('F23') || draw(seed, 'opens no connections') >= 0.5) return [];
  const random = streamOf(seed, 'starvation');
  return Array.from({ length: wholeBetween(random, 1, 4) }, (): ScenarioEvent => {
    const atMs = Math.round(between(random, 5000, endMs - 80_000));
    const process = letterOf(wholeBetween(random, 0, agents));
    return { atMs, kind: 'noConnections', process, forMs: within(3000, 60_000)(random, input, atMs) };
  });
}

/** Returns promotions of waves during rollouts, in half of the groups with waves. A person without a wave to promote does nothing. */
function drawnPromotions(seed: number, { group, endMs }: DrawInput, events: Events): Events {
  const rollouts = events.filter(({ kind }) => kind === 'setImage');
  if (group.waves === undefined || rollouts.length === 0 || draw(seed, 'promotes') >= 0.5) return [];
  const random = streamOf(seed, 'promotions');
  return Array.from({ length: wholeBetween(random, 1, 3) }, (): ScenarioEvent => {
    const atMs = Math.round(Math.min(oneOf(random, rollouts).atMs + between(random, 5000, 90_000), endMs - 20_000));
    return { atMs, kind: 'request', action: 'promote', by: oneOf(random, persons) };
  });
}

/** Returns changes of the policies in Git, most of them during a rollout or a change of replicas. Seeds that are compared have none. */
function drawnPolicyChanges(seed: number, input: DrawInput, events: Events): Events {
  const { group, isDrawn, endMs } = input;
  if ((group.windows ?? group.rules) === undefined || !isDrawn('F19') || seed % 20 === 0) return [];
  const random = streamOf(seed, 'changes of policies');
  return Array.from({ length: wholeBetween(random, 1, 5) }, (): ScenarioEvent => {
    const atMs = nearChange(random, events, endMs - 60_000);
    const states = group.hasPolicyDirectory === true ? policyStates : (['removed', 'invalid', 'invalid'] as const);
    return { atMs, kind: 'setPolicies', to: oneOf(random, states), forMs: within(3000, 90_000)(random, input, atMs) };
  });
}

/** Returns times at which an agent of another version leads. */
function drawnVersions(seed: number, input: DrawInput, events: Events): Events {
  if (!input.isDrawn('F24') || draw(seed, 'is upgraded') >= 0.35) return [];
  const random = streamOf(seed, 'versions');
  return Array.from({ length: wholeBetween(random, 1, 4) }, (): ScenarioEvent => {
    const atMs = nearChange(random, events, input.endMs - 60_000);
    const version = oneOf(random, ['older', 'newer', 'next', 'next'] as const);
    return { atMs, kind: 'otherVersion', version, forMs: within(10_000, 90_000)(random, input, atMs) };
  });
}

/** Returns changes of replicas during rollouts, in half of the native groups. Seeds that are compared have none, because their number counts. */
function drawnScaling(seed: number, { group, endMs }: DrawInput, events: Events): Events {
  const rollouts = events.filter(({ kind }) => kind === 'setImage');
  if (group.kind === 'adopted' || rollouts.length === 0 || seed % 20 === 0 || draw(seed, 'scales a rolling group') >= 0.5) return [];
  const random = streamOf(seed, 'scaling of a rolling group');
  return Array.from({ length: wholeBetween(random, 1, 3) }, (): ScenarioEvent => {
    const atMs = Math.round(Math.min(oneOf(random, rollouts).atMs + between(random, 1000, 40_000), endMs - 170_000));
    const replicas = Math.max(1, group.podsPerZone + oneOf(random, [-1, -1, 1, 2]));
    return { atMs: Math.max(1000, atMs), kind: 'setReplicas', replicas };
  });
}

/** Returns the recreation of a StatefulSet of a group that was rolled back, if a rollback completes. Seeds that are compared have none. */
function drawnRecreations(seed: number, input: DrawInput, events: Events): Events {
  const rollout = events.find(({ kind }) => kind === 'setImage');
  const isPossible = rollout !== undefined && traitsOfShape(input.group).canRollBack && input.isDrawn('F18') && seed % 20 !== 0;
  if (!isPossible || draw(seed, 'recreates after a rollback') >= 0.6) return [];
  const random = streamOf(seed, 'recreation after a rollback');
  const draws = { zone, isOrphaning: () => random() < 0.7, afterMs: lasting(500, 20_000), isAfterRollback: () => true as const };
  return [event('recreateStatefulSet', draws)(random, input, Math.round(rollout.atMs + between(random, 5000, 120_000)))];
}

/** Draws a time up to a minute after a rollout or a change of replicas, and sometimes any time. */
function nearChange(random: Random, events: Events, latestMs: number): number {
  const changes = events.filter(({ kind }) => kind === 'setImage' || kind === 'setReplicas');
  const isAnywhere = changes.length === 0 || random() < 0.25;
  const chosenMs = isAnywhere ? between(random, 5000, latestMs) : oneOf(random, changes).atMs + between(random, 1000, 60_000);
  return Math.round(Math.min(chosenMs, latestMs));
}

/** Returns delays of the first scale-downs of a group with a time between zones, so that the later ones must count from their arrival. */
export function heldScaling(seed: number, group: GroupShape): readonly PlacedFault[] {
  if (group.kind === 'adopted' || group.betweenZonesSeconds === 0) return [];
  const random = streamOf(seed, 'held scaling');
  return ['a1', 'b1', 'a2', 'b2'].flatMap((process) =>
    [1, 2, 3].flatMap((count): readonly PlacedFault[] => {
      const delayMs = wholeBetween(random, 2000, 9000);
      if (random() < 0.5) return [];
      return [{ at: `${process}/act.scaleStatefulSet#${count}`, port: 'request', fault: { class: 'F3', kind: 'held', delayMs } }];
    }),
  );
}
