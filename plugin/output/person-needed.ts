// Describes why a group needs a person to continue.

import type { PublishedDecision } from '../../engine/publish/published.ts';
import type { PersonNeeded } from '../../engine/publish/status.ts';
import { instantText } from '../../policies/instant.ts';

/** Returns a clause such as `mimir/ingester is paused until it is resumed`. */
export function personNeededText(why: PersonNeeded, { namespace, group, waits }: PublishedDecision): string {
  const name = `${namespace}/${group}`;
  switch (why) {
    case 'failed':
      return `the run of ${name} failed`;
    case 'blocked':
      return `${name} is blocked: a rule denies the next step`;
    case 'misplaced':
      return `${name} is blocked: pods restarted with the wrong revision`;
    case 'approval':
      return `${name} waits for an approval`;
    case 'undone':
      return `${name} is blocked: its update revision was undone`;
    case 'paused': {
      const untilMs = waits.find(({ rule }) => rule === 'paused')?.earliestMs;
      return `${name} is paused until ${untilMs === undefined ? 'it is resumed' : instantText(untilMs)}`;
    }
  }
}
