// Lists the judges of a simulation and creates them. The judges that need the book of places share one book.
import { judgeAdmissions } from './admissions.ts';
import { judgeAvailability } from './availability.ts';
import { judgeDeadlines } from './deadlines.ts';
import { DecisionJudge } from './decisions.ts';
import { judgeEffort } from './effort.ts';
import { judgeIsolation } from './isolation.ts';
import { judgeLeadership } from './leadership.ts';
import { LedgerJudge } from './ledgers.ts';
import { judgeMasters } from './masters.ts';
import type { Oracle, OracleFactory, Scene } from './oracle.ts';
import { judgePartitions } from './partitions.ts';
import { judgePins } from './pins.ts';
import { Book } from './places.ts';
import { judgePolicies } from './policies.ts';
import { PreparationJudge } from './preparations.ts';
import { judgeProgress } from './progress.ts';
import { ReplicaJudge } from './replicas.ts';
import { judgeRequests } from './requests.ts';
import { ReviewJudge } from './reviews.ts';
import { judgeRollbacks } from './rollbacks.ts';
import { judgeRuns } from './runs.ts';
import { SettlingJudge } from './settling.ts';
import { judgeTargets } from './targets.ts';
import { judgeWaves } from './waves.ts';
import { judgeZones } from './zones.ts';

export const bookJudges = {
  availability: judgeAvailability,
  targets: judgeTargets,
  replicas: (book) => new ReplicaJudge(book),
  preparations: (book) => new PreparationJudge(book),
  ledgers: (book) => new LedgerJudge(book),
  partitions: judgePartitions,
  pins: judgePins,
  decisions: (book) => new DecisionJudge(book),
  admissions: judgeAdmissions,
  reviews: (book) => new ReviewJudge(book),
  waves: judgeWaves,
  progress: judgeProgress,
  zones: judgeZones,
  runs: judgeRuns,
  deadlines: judgeDeadlines,
  rollbacks: judgeRollbacks,
  policies: judgePolicies,
} as const satisfies Readonly<Record<string, (book: Book) => Oracle>>;

export const sceneJudges = {
  requests: judgeRequests,
  leadership: judgeLeadership,
  settling: (scene) => new SettlingJudge(scene),
  effort: judgeEffort,
  isolation: judgeIsolation,
  masters: judgeMasters,
} as const satisfies Readonly<Record<string, OracleFactory>>;

export type JudgeName = keyof typeof bookJudges | keyof typeof sceneJudges;

/** Creates every judge. The judges with the book see a commit before the book records it. */
export function createOracles(scene: Scene): readonly Oracle[] {
  const book = new Book(scene);
  return [
    ...Object.values(bookJudges).map((judgeOf) => judgeOf(book)),
    book,
    ...Object.values(sceneJudges).map((judgeOf) => judgeOf(scene)),
  ];
}
