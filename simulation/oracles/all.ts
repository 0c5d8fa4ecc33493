// Lists the judges of a run. Judges that need the book of places share it, and see a change before the book does.
import { judgeAvailability } from './availability.ts';
import { judgeDecisions } from './decisions.ts';
import { judgeEffort } from './effort.ts';
import { judgeGates } from './gates.ts';
import { judgeLeadership } from './leadership.ts';
import { judgeLedgers } from './ledgers.ts';
import type { Oracle, OracleFactory, Scene } from './oracle.ts';
import { judgePartitions } from './partitions.ts';
import { judgePins } from './pins.ts';
import { type Book, createBook } from './places.ts';
import { judgePreparations } from './preparations.ts';
import { judgeReplicas } from './replicas.ts';
import { judgeRequests } from './requests.ts';
import { judgeSettling } from './settling.ts';
import { judgeTargets } from './targets.ts';

/** Judges of disruptions by agents, by file. */
export const bookJudges = {
  availability: judgeAvailability,
  targets: judgeTargets,
  replicas: judgeReplicas,
  preparations: judgePreparations,
  ledgers: judgeLedgers,
  partitions: judgePartitions,
  pins: judgePins,
  decisions: judgeDecisions,
} as const satisfies Readonly<Record<string, (book: Book) => Oracle>>;

/** Judges without the book. */
export const sceneJudges = {
  requests: judgeRequests,
  leadership: judgeLeadership,
  settling: judgeSettling,
  gates: judgeGates,
  effort: judgeEffort,
} as const satisfies Readonly<Record<string, OracleFactory>>;

export type JudgeName = keyof typeof bookJudges | keyof typeof sceneJudges;

/** Creates one of each; the run reports everything to all of them. */
export const oracleFactories: readonly OracleFactory[] = [judgesWithBook, ...Object.values(sceneJudges)];

function judgesWithBook(scene: Scene): Oracle {
  const book = createBook(scene);
  const judges: readonly Oracle[] = Object.values(bookJudges).map((judgeOf) => judgeOf(book));
  return {
    committed: (commit) => {
      for (const judge of judges) judge.committed?.(commit);
      book.apply(commit);
    },
    answered: (answered) => {
      for (const judge of judges) judge.answered?.(answered);
    },
    turnEnded: (process, report) => {
      for (const judge of judges) judge.turnEnded?.(process, report);
    },
    podCalled: (call) => {
      for (const judge of judges) judge.podCalled?.(call);
    },
    podAdmitted: (admitted) => {
      for (const judge of judges) judge.podAdmitted?.(admitted);
    },
    processChanged: (process, change) => {
      for (const judge of judges) judge.processChanged?.(process, change);
    },
    healingBegan: () => {
      for (const judge of judges) judge.healingBegan?.();
    },
    ended: () => {
      for (const judge of judges) judge.ended?.();
    },
  };
}
