// Lists the judges of a simulation and creates them. The judges that need the book of places share one book.
import { judgeAvailability } from './availability.ts';
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
import { PreparationJudge } from './preparations.ts';
import { ReplicaJudge } from './replicas.ts';
import { judgeRequests } from './requests.ts';
import { judgeRollbacks } from './rollbacks.ts';
import { judgeRuns } from './runs.ts';
import { SettlingJudge } from './settling.ts';
import { judgeTargets } from './targets.ts';

/** Creates a judge that needs the book of places. */
export type BookJudge = (book: Book) => Oracle;

export const bookJudges = {
  availability: judgeAvailability,
  targets: judgeTargets,
  replicas: (book) => new ReplicaJudge(book),
  preparations: (book) => new PreparationJudge(book),
  ledgers: (book) => new LedgerJudge(book),
  partitions: judgePartitions,
  pins: judgePins,
  decisions: (book) => new DecisionJudge(book),
  runs: judgeRuns,
  rollbacks: judgeRollbacks,
} as const satisfies Readonly<Record<string, BookJudge>>;

export const sceneJudges = {
  requests: judgeRequests,
  leadership: judgeLeadership,
  settling: (scene) => new SettlingJudge(scene),
  effort: judgeEffort,
  isolation: judgeIsolation,
  masters: judgeMasters,
} as const satisfies Readonly<Record<string, OracleFactory>>;

/** Creates every judge. The judges with the book see a commit before the book records it. */
export function createOracles(scene: Scene, judges: Readonly<Record<string, BookJudge>> = bookJudges): readonly Oracle[] {
  const book = new Book(scene);
  return [...Object.values(judges).map((judgeOf) => judgeOf(book)), book, ...Object.values(sceneJudges).map((judgeOf) => judgeOf(scene))];
}
