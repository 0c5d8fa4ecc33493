// The differential judge: faults may cost time, but they may neither change what becomes of a group nor have work done twice.

import { draw } from '../random.ts';
import type { RunResult } from '../run.ts';
import type { GroupShape, Scenario, ScenarioEvent } from '../scenario.ts';
import { traitsOfShape } from '../scenario.ts';

const ofProcesses: ReadonlySet<ScenarioEvent['kind']> = new Set([
  'crash',
  'stop',
  'pauseProcess',
  'jumpWallClock',
  'deleteLease',
  'editLease',
  'frontEndLags',
  'frontEndRestarts',
]);

/** What an event does to agents, their clocks, their Lease and their servers, and not to the group. */
function isOfProcesses(event: ScenarioEvent): boolean {
  return ofProcesses.has(event.kind);
}

/** The same workload, and nothing that goes wrong with the agents or on their way to the server. People and accidents stay. */
export function withoutFaults(scenario: Scenario): Scenario {
  const { clockRates: _, ...rest } = scenario;
  return { ...rest, rates: {}, faults: [], events: scenario.events.filter((event) => !isOfProcesses(event)) };
}

/**
 * The same faults over a workload whose writes can be counted beforehand: one rollout, or (half of the seeds) one change of replicas, and pauses.
 * With more than that it depends on the instants how often a pod is replaced: a second image may find the first one everywhere, or nowhere.
 */
export function countable(scenario: Scenario): Scenario {
  const wishes: readonly ScenarioEvent[] =
    draw(scenario.seed, 'countable') < 0.5
      ? [{ atMs: 20_000, kind: 'setImage', image: 'app:2' }]
      : [{ atMs: 20_000, kind: 'setReplicas', replicas: otherReplicas(scenario) }];
  const kept = scenario.events.filter((event) => isOfProcesses(event) || event.kind === 'pause' || event.kind === 'resume');
  return { ...scenario, events: [...wishes, ...kept].sort((one, other) => one.atMs - other.atMs) };
}

function otherReplicas({ group, seed }: Scenario): number {
  return draw(seed, 'countable replicas') < 0.5 && group.podsPerZone > 1 ? group.podsPerZone - 1 : group.podsPerZone + 1;
}

/** What is different in what has become of the group, one sentence each; nothing when all is the same. */
export function differentEnds(result: RunResult, faultless: RunResult): readonly string[] {
  const names = [...new Set([...Object.keys(result.endState), ...Object.keys(faultless.endState)])].sort();
  return names.flatMap((name) => {
    const with_ = result.endState[name] ?? 'nothing';
    const without = faultless.endState[name] ?? 'nothing';
    return with_ === without ? [] : [`${name} ends as ${with_}, and without faults as ${without}`];
  });
}

/**
 * Writes that take availability away or give it back: applied by the server, they are counted once each, whatever became of their answers.
 * Preconditions and the ledger are there so that a fault, whichever it is, never has one of them done twice.
 */
const neverTwice: readonly string[] = [
  'delete pods',
  'create pods/eviction',
  'patch statefulsets.apps',
  'update statefulsets.apps',
  'patch statefulsets.apps/scale',
  'update statefulsets.apps/scale',
];

/** Into how many steps a partition goes down depends on the instants: what is let go together after a pause goes one by one without. */
const inSteps: readonly string[] = ['patch statefulsets.apps', 'update statefulsets.apps'];

/** What the agents did more or less often than without faults, one sentence each. For scenarios that are `countable`. */
export function differentWrites(result: RunResult, faultless: RunResult, shape: Pick<GroupShape, 'strategy'>): readonly string[] {
  return neverTwice.flatMap((write) => {
    if (traitsOfShape(shape).lowersPartition && inSteps.includes(write)) return [];
    const count = result.writes[write] ?? 0;
    const without = faultless.writes[write] ?? 0;
    return count === without ? [] : [`${write} was done ${count} times, and without faults ${without} times`];
  });
}
