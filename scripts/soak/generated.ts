// Plays scenarios with generated groups: with their objects, policies, webhooks and gates, and with judges that judge by the shape of the group.

import type { GeneratedParts } from '../../simulation/cluster/world.ts';
import { type BookJudge, bookJudges } from '../../simulation/oracles/all.ts';
import { type RunOptions, type RunResult, runScenario } from '../../simulation/run.ts';
import type { Scenario } from '../../simulation/scenario.ts';
import { createGateServer } from './groups/gate-server.ts';
import { groupObjects, waveSpecs } from './groups/group-objects.ts';
import { Policies } from './groups/policies.ts';
import { judgeAdmissions } from './judges/admissions.ts';
import { judgeDeadlines } from './judges/deadlines.ts';
import { judgePolicies } from './judges/policies.ts';
import { judgeProgress } from './judges/progress.ts';
import { ReviewJudge } from './judges/reviews.ts';
import { judgeTermination } from './judges/termination.ts';
import { judgeWaves } from './judges/waves.ts';
import { judgeZones } from './judges/zones.ts';
import { admissionOf } from './webhooks/admission.ts';

const { runs, rollbacks, ...first } = bookJudges;

/** The judges with the book of places, in the order in which they see a commit. */
export const generatedJudges = {
  ...first,
  admissions: judgeAdmissions,
  reviews: (book) => new ReviewJudge(book),
  waves: judgeWaves,
  progress: judgeProgress,
  zones: judgeZones,
  runs,
  deadlines: judgeDeadlines,
  rollbacks,
  policies: judgePolicies,
} as const satisfies Readonly<Record<string, BookJudge>>;

/** The parts of generated groups. */
export const generated: GeneratedParts = {
  judges: generatedJudges,
  judgeTermination,
  createAdmission: admissionOf,
  groupObjects,
  waveSpecs,
  createPolicies: (options) => new Policies(options),
  createGateServer,
};

/** Plays the scenario as `simulate` does, with the parts of generated groups. */
export function playGenerated(scenario: Scenario, options: RunOptions = {}): Promise<RunResult> {
  return runScenario(scenario, { generated, ...options });
}
