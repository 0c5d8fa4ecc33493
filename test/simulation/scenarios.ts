// Scenarios for tests of what is done with them.
import type { Scenario } from '../../simulation/scenario.ts';
import { defaultShape } from './cluster/world.ts';

/** Three zones of three pods, two agents, nothing asked for and nothing wrong. */
export const quietScenario: Scenario = {
  seed: 7,
  group: { ...defaultShape, drainMs: 2000, startMs: 3000 },
  agents: 2,
  safetyMs: 400_000,
  healingMs: 1_300_000,
  events: [],
  rates: {},
  faults: [],
};
