// Measures the simulation: two agents in virtual time.

import type { Scenario } from '../../simulation/scenario.ts';
import { playGenerated } from '../soak/generated.ts';
import { scenarioOf } from '../soak/search/draw.ts';
import { type Figure, median } from './figure.ts';

/** Returns the processor time of a run, which depends less on other work on the machine than its duration. */
async function processorMs(scenario: Scenario, endsWhenConverged: boolean): Promise<number> {
  const before = process.cpuUsage();
  const { violations, unfinished } = await playGenerated(scenario, endsWhenConverged ? { endsWhenConverged, quietMs: 90_000 } : {});
  const { user, system } = process.cpuUsage(before);
  if (violations.length > 0 || unfinished !== undefined) throw new Error(`seed ${scenario.seed}: ${violations[0]?.message ?? unfinished}`);
  return (user + system) / 1000;
}

/** One image for three zones of 20 pods, five at a time, without faults. */
function rollout(): Scenario {
  const { gate: _, ...group } = scenarioOf(1).group;
  return {
    seed: 1,
    group: {
      ...group,
      kind: 'native',
      zones: 3,
      podsPerZone: 20,
      maxUnavailable: 5,
      minReadySeconds: 0,
      podManagementPolicy: 'Parallel',
      rotateBy: 'delete',
      replicas: 'own',
      delaySeconds: 0,
      betweenZonesSeconds: 0,
      drainMs: 10_000,
      startMs: 30_000,
    },
    agents: 2,
    safetyMs: 3_600_000,
    healingMs: 3_600_000,
    events: [{ atMs: 5000, kind: 'setImage', image: 'app:2' }],
    rates: {},
    faults: [],
  };
}

/** Measures the simulation in less than a minute. */
export async function simulationFigures(): Promise<readonly Figure[]> {
  const seeds: number[] = [];
  for (let seed = 1; seed <= 15; seed += 1) seeds.push(await processorMs(scenarioOf(seed), false));
  const rollouts: number[] = [];
  for (let count = 0; count < 3; count += 1) rollouts.push(await processorMs(rollout(), true));
  return [
    // The promise is 2,000 seeds in 10 minutes on 2 cores.
    {
      what: 'a simulated run with faults, 1,000 virtual seconds and more',
      value: median(seeds),
      bar: 600,
      unit: 'ms',
      floor: 'of the processor',
    },
    { what: 'a simulated rollout of 3 x 20 pods', value: median(rollouts), bar: 3000, unit: 'ms', floor: 'of the processor' },
  ];
}
