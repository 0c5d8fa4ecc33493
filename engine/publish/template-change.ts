// Compares the templates of a group with its published decision: the decision or its run may not know the last change.

import type { StatefulSetView } from '../snapshot.ts';
import type { PublishedDecision, PublishedZone } from './published.ts';

type DecidedRun = Pick<PublishedDecision, 'run'>;

/** Reports whether the StatefulSet of the zone has a change that its controller has not observed, or a revision that the decision does not know. */
export function isNewerThan({ run }: DecidedRun, zone: PublishedZone, { generation, status }: StatefulSetView): boolean {
  if (status.observedGeneration < generation) return true;
  const known = updatedRevision(zone);
  return known !== undefined && ![known, run?.rolledBack?.revisions[zone.zone]].includes(status.updateRevision);
}

/** Reports whether the decision knows a template that its run does not roll out, for example because no run begins while a zone is unread. */
export function isRunOfOlderTemplate({ run, zones }: Pick<PublishedDecision, 'run' | 'zones'>): boolean {
  return zones.some((zone) => {
    const [target, known] = [run?.target[zone.zone], updatedRevision(zone)];
    return target !== undefined && known !== undefined && known !== target;
  });
}

/** Returns the revision of updated pods; undefined if unknown. Earlier versions publish it only as the last revision of the pods. */
export function updatedRevision({ desiredRevision, updated, revisions }: PublishedZone): string | undefined {
  return desiredRevision ?? (updated === 0 ? undefined : revisions.at(-1)?.revision);
}
