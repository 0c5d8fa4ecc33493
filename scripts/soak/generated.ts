// Plays scenarios with generated groups: under further judges, which judge by the shape of the group, and with webhooks.
import { type BookJudge, bookJudges } from '../../simulation/oracles/all.ts';
import { type GeneratedParts, type RunOptions, type RunResult, runScenario } from '../../simulation/run.ts';
import type { Scenario } from '../../simulation/scenario.ts';
import { judgeAdmissions } from './judges/admissions.ts';
import { judgeDeadlines } from './judges/deadlines.ts';
import { judgePolicies } from './judges/policies.ts';
import { judgeProgress } from './judges/progress.ts';
import { ReviewJudge } from './judges/reviews.ts';
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

const generated: GeneratedParts = { judges: generatedJudges, createAdmission: admissionOf };

/** Plays the scenario as `simulate` does, with the parts of generated groups. */
export function playGenerated(scenario: Scenario, options: RunOptions = {}): Promise<RunResult> {
  return runScenario(scenario, { generated, ...options });
}
