// The Kubernetes Events of groups that are defined no more, and of their release: each is about one of its StatefulSets, as there is nothing else left to ask.
import { undoneBy } from '../../engine/release/parting.ts';
import type { ReleaseDecision } from '../../engine/release/release.ts';
import type { PartingReport, ReleaseReport } from '../report.ts';
import type { EventFact } from './event-facts.ts';

export interface ReleaseFact {
  readonly fact: EventFact;
  readonly statefulSet: string;
}

type Waiting = Extract<ReleaseDecision, { readonly kind: 'wait' }>;

/** Returns the facts of a release turn. */
export function releaseFactsOf(report: ReleaseReport): readonly ReleaseFact[] {
  const { group, decision, performed } = report;
  const subject = `group ${group.name} has no definition any more (onPolicyDeleted: release)`;
  if (decision.kind === 'wait') return waitFacts(report, decision, subject);
  if (performed === undefined || performed.action.kind !== 'setPartition') return [];
  const { zone, statefulSet, from, pods } = performed.action;
  const moves = pods.length === 0 ? 'no pod is replaced' : `its StatefulSet controller replaces ${pods.map(({ pod }) => pod).join(', ')}`;
  const fact: EventFact =
    performed.result === 'done'
      ? { type: 'Normal', reason: 'Released', action: 'Release', note: `${subject}: partition ${from} is now 0; ${moves}`, zone }
      : {
          type: 'Warning',
          reason: 'ReleaseFailed',
          action: 'Release',
          zone,
          note: `${subject}: partition ${from} was not set to 0: ${performed.message ?? performed.result}`,
        };
  return [{ statefulSet, fact }];
}

/** Returns the facts of a waiting release. A release has no facts while its deletion is uncertain or it waits only briefly. */
function waitFacts(
  { snapshot, isLasting }: ReleaseReport,
  { because, earliestMs, ledger }: Waiting,
  subject: string,
): readonly ReleaseFact[] {
  const { release } = ledger;
  if (release?.goneMs === undefined || (earliestMs === undefined && !isLasting)) return [];
  const isAnnounced = earliestMs !== undefined;
  const undone = isAnnounced ? undoneBy(release, ledger, snapshot) : undefined;
  const when = isAnnounced ? `follows at ${new Date(earliestMs).toISOString()}, unless a definition comes back` : `waits: ${because}`;
  const fact: EventFact = {
    type: undone === undefined ? 'Normal' : 'Warning',
    reason: isAnnounced ? 'ReleaseAnnounced' : 'ReleaseWaits',
    action: 'Wait',
    note: `${subject}: partition 0 of this StatefulSet ${when}${undone === undefined ? '' : `; ${undone}`}`,
    identity: `${release.goneMs}`,
  };
  // By what is stored after the turn: a zone that was handed back just now waits for nothing.
  const waiting = release.zones.filter(({ zone }) => release.released?.includes(zone) !== true);
  return waiting.map(({ zone, statefulSet }) => ({ statefulSet, fact: { ...fact, zone } }));
}

/** Returns the facts of a deleted group that stays as it is, one for each deletion and StatefulSet. */
export function partingFactsOf({ snapshot, words }: PartingReport): readonly ReleaseFact[] {
  return words.map(({ zone, statefulSet, isWarning, note }) => ({
    statefulSet,
    fact: {
      type: isWarning ? 'Warning' : 'Normal',
      reason: 'GroupGone',
      action: 'Leave',
      note,
      zone,
      identity: `${snapshot.nowMs}`,
    },
  }));
}
