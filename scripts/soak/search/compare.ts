// Compares a simulation with the same one without faults: faults may cost time, but may neither change the end state nor repeat work.

import { draw } from '../../../simulation/random.ts';
import type { RunResult } from '../../../simulation/run.ts';
import { type GroupShape, isOfProcesses, type Scenario, type ScenarioEvent, traitsOfShape } from '../../../simulation/scenario.ts';

/** Returns the scenario without faults and without events of agents and API servers. Events of people and accidents stay. */
export function withoutFaults(scenario: Scenario): Scenario {
  const { clockRates: _, ...rest } = scenario;
  return { ...rest, rates: {}, faults: [], events: scenario.events.filter((event) => !isOfProcesses(event)) };
}

/** Returns the scenario with work whose writes can be counted: one rollout or one change of replicas. Drops accidents, but keeps pauses and answers. */
export function countable(scenario: Scenario): Scenario {
  const changes: readonly ScenarioEvent[] =
    draw(scenario.seed, 'countable') < 0.5
      ? [{ atMs: 20_000, kind: 'setImage', image: 'app:2' }]
      : [{ atMs: 20_000, kind: 'setReplicas', replicas: otherReplicas(scenario) }];
  const kept = scenario.events.filter(
    (event) => isOfProcesses(event) || event.kind === 'pause' || event.kind === 'resume' || isAnswer(event),
  );
  // A run that fails only because of faults would be rolled back, which replaces more pods.
  const { rollsBack: _, ...group } = scenario.group;
  return { ...scenario, group, events: [...changes, ...kept].sort((one, other) => one.atMs - other.atMs) };
}

/** Returns whether the event is an answer to a wave. Other requests may change the number of replaced pods. */
function isAnswer(event: ScenarioEvent): boolean {
  return event.kind === 'request' && (event.action === 'approve' || event.action === 'reject');
}

function otherReplicas({ group, seed }: Scenario): number {
  return draw(seed, 'countable replicas') < 0.5 && group.podsPerZone > 1 ? group.podsPerZone - 1 : group.podsPerZone + 1;
}

/** Returns the differences of the end states, one sentence each; empty if the states are equal. */
export function differentEnds(result: RunResult, faultless: RunResult): readonly string[] {
  const names = [...new Set([...Object.keys(result.endState), ...Object.keys(faultless.endState)])].sort();
  return names.flatMap((name) => {
    const with_ = result.endState[name] ?? 'nothing';
    const without = faultless.endState[name] ?? 'nothing';
    return with_ === without ? [] : [`${name} ends as ${with_}, and without faults as ${without}`];
  });
}

/** The writes that change availability. Their numbers are compared, because preconditions and the ledger must prevent duplicates. */
const neverTwice: readonly string[] = [
  'delete pods',
  'create pods/eviction',
  'patch statefulsets.apps',
  'update statefulsets.apps',
  'patch statefulsets.apps/scale',
  'update statefulsets.apps/scale',
];

/** The writes whose number depends on timing with the strategy `partition`: after a pause, one write may expose several pods. */
const inSteps: readonly string[] = ['patch statefulsets.apps', 'update statefulsets.apps'];

/** Returns the writes whose number differs from that without faults, one sentence each. Both results must be of `countable` scenarios. */
export function differentWrites(result: RunResult, faultless: RunResult, shape: Pick<GroupShape, 'strategy'>): readonly string[] {
  return neverTwice.flatMap((write) => {
    if (traitsOfShape(shape).lowersPartition && inSteps.includes(write)) return [];
    const count = result.writes[write] ?? 0;
    const without = faultless.writes[write] ?? 0;
    return count === without ? [] : [`${write} happened ${count} times, and ${without} times without faults`];
  });
}
