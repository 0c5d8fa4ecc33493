// A revision that a person took back is held, also when somebody asks for it again, as a GitOps tool does that knows nothing of it.
import type { GroupContext } from '../context.ts';
import type { RuleResult } from '../decision.ts';
import type { ZoneView } from '../observe/view.ts';
import { earliest, result } from '../rule.ts';
import { objectOf, requesterText, undoRequest } from '../run/requests.ts';

/** What holds the revision that the zone is to run; undefined when nobody took it back. */
export function undoneResult(context: GroupContext, { zone, set }: ZoneView): RuleResult | undefined {
  const undo = undoRequest(context, zone.name, set?.status.updateRevision);
  if (undo === undefined) return undefined;
  return result(
    'undone',
    'wait',
    `${requesterText(undo)} took back ${set?.status.updateRevision}, which zone ${zone.name} asks for again`,
    {
      limit: 'another template',
      source: objectOf(undo),
      earliestMs: earliest([undo.expiresMs]),
    },
  );
}
