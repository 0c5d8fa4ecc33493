// Judges writes of partitions, because a lower partition disrupts the pods that it exposes (S1, S2, S4, S6, S28).

import { controllerOf, isAgent, isTerminating, partitionOf, revisionLabelOf, statefulSetResource } from '../objects.ts';
import { traitsOfShape } from '../scenario.ts';
import type { Commit } from '../server/request.ts';
import { named, otherZones } from './availability.ts';
import type { Oracle } from './oracle.ts';
import { type Book, isInRange, limitSince, type Place, unavailableIn, wasDown, type Zone } from './places.ts';
import { checkObserved, isPaused } from './targets.ts';

/** Creates the judge of partitions. It sees each commit before the book records it. */
export function judgePartitions(book: Book): Oracle {
  return {
    committed: (commit) => {
      const { resource, type, actor, after, before } = commit;
      if (resource !== statefulSetResource || type !== 'MODIFIED' || !isAgent(actor, book.scene.agentUser)) return;
      const zone = book.zoneOf(after.metadata.name);
      const [from, to] = [partitionOf(before), partitionOf(after)];
      if (zone === undefined || from === to || book.terms.isExcepted()) return;
      // With pinned pods the partition rises above pods of any revision (pins.ts).
      if (to > from && traitsOfShape(book.scene.group).pinsPods) return;
      if (to > from) checkRaised(book, zone, commit, { from, to });
      else checkLowered(book, zone, commit, { from, to });
    },
  };
}

interface Change {
  readonly from: number;
  readonly to: number;
}

/** Returns the places whose living pods are outdated by every status that the decision may have seen. */
export function outdated(zone: Zone, fromMs: number): readonly Place[] {
  const facts = zone.facts.since(fromMs);
  const now = facts.at(-1);
  if (now === undefined) return [];
  return [...zone.places.values()].filter((place) => {
    const { pod } = place;
    if (pod === undefined || isTerminating(pod) || !isInRange(place) || controllerOf(pod) !== now.uid) return false;
    return facts.every((one) => one !== undefined && one.updateRevision !== revisionLabelOf(pod));
  });
}

/**
 * Checks that a raised partition reverts no updated pod. A pod below the partition comes back at the current revision, any other pod at the
 * update revision (kubernetes.io, StatefulSet, "Partitioned rolling updates"). While both are equal, the partition changes no revision.
 */
function checkRaised(book: Book, zone: Zone, { actor, after }: Commit, { from, to }: Change): void {
  const now = zone.facts.latest();
  if (now === undefined || now.currentRevision === now.updateRevision) return;
  const reverted = [...zone.places.values()].filter(
    ({ pod, ordinal }) =>
      ordinal >= now.first + from && ordinal < now.first + to && pod !== undefined && revisionLabelOf(pod) === now.updateRevision,
  );
  if (reverted.length === 0) return;
  const what = `${actor.process ?? ''} raises the partition of ${after.metadata.name}`;
  book.scene.violated('S6', `${what}, and ${named(reverted)} would come back at ${now.currentRevision}`);
}

function checkLowered(book: Book, zone: Zone, { actor, atMs, after }: Commit, { from, to }: Change): void {
  const { scene } = book;
  const moment = book.momentOf({ actor, atMs });
  const first = zone.facts.latest()?.first ?? 0;
  const behind = outdated(zone, moment.fromMs);
  const exposed = behind.filter(({ ordinal }) => ordinal >= first + to && ordinal < first + from);
  if (exposed.length === 0) return;
  const what = `${actor.process ?? ''} exposes ${named(exposed)} by partition ${to} of ${after.metadata.name}`;
  const [only, ...more] = exposed;
  // As with deletions, one unavailable pod at a time may be replaced while pods of other zones are unavailable.
  const isRepair = only !== undefined && more.length === 0 && wasDown(only, moment);
  for (const why of otherZones(book, zone, moment, isRepair)) scene.violated('S1', `${what} while ${why}`);
  const limit = limitSince(book, zone, moment);
  const released = behind.filter(({ ordinal }) => ordinal >= first + from);
  const down = new Set([...(unavailableIn(book, zone, moment) ?? []), ...released]);
  const costly = exposed.filter((place) => !wasDown(place, moment) && !down.has(place));
  if (limit !== undefined && costly.length > 0 && down.size + costly.length > limit) {
    scene.violated(
      'S2',
      `${what} while ${down.size === 0 ? 'nothing' : named([...down])} is unavailable or already exposed, and at most ${limit} may be`,
    );
  }
  checkObserved(book, moment, what);
  if (isPaused(book, zone.statefulSet, moment)) scene.violated('S28', `${what} during a pause`);
}
