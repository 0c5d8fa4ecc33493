// An undone revision stays blocked, also when a GitOps tool applies it again.
import type { GroupContext } from '../context.ts';
import type { RuleResult } from '../decision.ts';
import type { ZoneView } from '../observe/view.ts';
import { earliest, result } from '../rule.ts';
import { objectOf, requesterText, undoRequest } from '../run/requests.ts';

/** Returns the block of the zone's update revision; undefined if no request undid it. */
export function undoneResult(context: GroupContext, { zone, set }: ZoneView): RuleResult | undefined {
  const undo = undoRequest(context, zone.name, set?.status.updateRevision);
  if (undo === undefined) return undefined;
  return result(
    'undone',
    'wait',
    `update revision ${set?.status.updateRevision} of zone ${zone.name} was undone by ${requesterText(undo)}`,
    {
      limit: 'another template',
      source: objectOf(undo),
      earliestMs: earliest([undo.expiresMs]),
    },
  );
}
