// Which Kubernetes Events the release of a group is worth: each is about one of its StatefulSets, as there is nothing else left to ask.
import type { ReleaseReport } from '../report.ts';
import type { EventFact } from './event-facts.ts';

export interface ReleaseFact {
  readonly fact: EventFact;
  readonly statefulSet: string;
}

/** What this turn was worth telling. */
export function releaseFactsOf({ group, decision, terms, performed }: ReleaseReport): readonly ReleaseFact[] {
  const waiting = (terms?.zones ?? []).filter(({ zone }) => terms?.released?.includes(zone) !== true);
  const subject = `nothing defines the group ${group.name} any more, which said onPolicyDeleted: release`;
  if (decision.kind === 'wait') {
    const { because, earliestMs, ledger } = decision;
    // While nobody knows whether the definition is gone there is nothing to tell.
    if (ledger.release?.goneMs === undefined) return [];
    const when =
      earliestMs === undefined ? `waits: ${because}` : `follows at ${new Date(earliestMs).toISOString()}, unless a definition comes back`;
    const fact: EventFact = {
      ...{ type: 'Normal', reason: earliestMs === undefined ? 'ReleaseWaits' : 'ReleaseAnnounced', action: 'Wait' },
      ...{ note: `${subject}: partition 0 of this StatefulSet ${when}`, identity: `${ledger.release.goneMs}` },
    };
    return waiting.map(({ zone, statefulSet }) => ({ statefulSet, fact: { ...fact, zone } }));
  }
  if (performed === undefined || performed.action.kind !== 'setPartition') return [];
  const { zone, statefulSet, from, pods } = performed.action;
  const moves = pods.length === 0 ? 'no pod goes by that' : `its StatefulSet controller replaces ${pods.map(({ pod }) => pod).join(', ')}`;
  const fact: EventFact =
    performed.result === 'done'
      ? { type: 'Normal', reason: 'Released', action: 'Release', note: `${subject}: partition ${from} became 0; ${moves}`, zone }
      : {
          ...{ type: 'Warning', reason: 'ReleaseFailed', action: 'Release', zone },
          note: `${subject}: partition ${from} could not become 0: ${performed.message ?? performed.result}`,
        };
  return [{ statefulSet, fact }];
}
