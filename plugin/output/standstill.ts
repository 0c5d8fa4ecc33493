// Why a group stands still until somebody does something, as a sentence part.
import type { PersonNeeded } from '../../engine/publish/person.ts';
import type { PublishedDecision } from '../../engine/publish/published.ts';
import { instantText } from '../../policies/instant.ts';

/** `mimir/ingester is paused, and goes on when somebody resumes it`. */
export function standstillText(why: PersonNeeded, { namespace, group, waits }: PublishedDecision): string {
  const name = `${namespace}/${group}`;
  switch (why) {
    case 'failed':
      return `the run of ${name} has failed`;
    case 'blocked':
      return `${name} does not go on: policy refuses the next step`;
    case 'misplaced':
      return `${name} does not go on: pods came back without their revision, and it needs a person`;
    case 'approval':
      return `${name} waits for an approval`;
    case 'undone':
      return `${name} does not go on: somebody took back what it is asked to be`;
    case 'paused': {
      const untilMs = waits.find(({ rule }) => rule === 'paused')?.earliestMs;
      return `${name} is paused, and goes on ${untilMs === undefined ? 'when somebody resumes it' : `at ${instantText(untilMs)}`}`;
    }
  }
}
