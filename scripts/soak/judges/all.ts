// Lists the judges of generated groups, and plays scenarios under them. They judge by the shape of the group, which a group of a user lacks.
import { type BookJudge, bookJudges } from '../../../simulation/oracles/all.ts';
import { type RunOptions, type RunResult, runScenario } from '../../../simulation/run.ts';
import type { Scenario } from '../../../simulation/scenario.ts';
import { judgeAdmissions } from './admissions.ts';
import { judgeDeadlines } from './deadlines.ts';
import { judgePolicies } from './policies.ts';
import { judgeProgress } from './progress.ts';
import { ReviewJudge } from './reviews.ts';
import { judgeWaves } from './waves.ts';
import { judgeZones } from './zones.ts';

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

/** Plays the scenario as `simulate` does, under all judges. */
export function playGenerated(scenario: Scenario, options: RunOptions = {}): Promise<RunResult> {
  return runScenario(scenario, { judges: generatedJudges, ...options });
}
