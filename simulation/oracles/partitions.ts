// Judges writes of partitions, because a lower partition disrupts the pods that it exposes (S1, S2, S4, S6, S28).

import {
  configMapResource,
  controllerOf,
  isAgent,
  isTerminating,
  partitionOf,
  podResource,
  revisionLabelOf,
  statefulSetResource,
} from '../objects.ts';
import { traitsOfShape } from '../scenario.ts';
import type { Commit } from '../server/request.ts';
import { named, otherZones } from './availability.ts';
import { isLedger, readLedger } from './documents.ts';
import { knownSinceMs, type Oracle } from './oracle.ts';
import { type Book, isInRange, limitSince, type Place, type SetFacts, unavailableIn, wasDown, type Zone } from './places.ts';
import { checkObserved, isPaused } from './targets.ts';

/** Creates the judge of partitions. It sees each commit before the book records it. */
export function judgePartitions(book: Book): Oracle {
  /** The creation time by UID; absent for the initial pods. */
  const createdMs = new Map<string, number>();
  return {
    committed: (commit) => {
      const { resource, type, after, atMs } = commit;
      if (resource === podResource && type === 'ADDED') createdMs.set(after.metadata.uid, atMs);
      if (resource === configMapResource && type !== 'DELETED' && isLedger(after)) checkBegun(book, commit);
      if (resource === statefulSetResource && type === 'MODIFIED') checkPartition(book, commit, createdMs);
    },
  };
}

function checkPartition(book: Book, commit: Commit, createdMs: ReadonlyMap<string, number>): void {
  const { actor, after, before } = commit;
  if (!isAgent(actor, book.scene.agentUser)) return;
  const zone = book.zoneOf(after.metadata.name);
  const [from, to] = [partitionOf(before), partitionOf(after)];
  if (zone === undefined || from === to || book.terms.isExcepted()) return;
  // With pinned pods the partition rises above pods of any revision (pins.ts).
  if (to > from && traitsOfShape(book.scene.group).pinsPods) return;
  if (to > from) checkRaised(book, zone, commit, { from, to, createdMs });
  else checkLowered(book, zone, commit, { from, to });
}

interface Change {
  readonly from: number;
  readonly to: number;
}

/**
 * Checks that a run begins only after the zones are frozen: the StatefulSet controller would replace exposed pods without waves and gates.
 * A zone cannot be frozen above an updated pod. The write replaces no pod, so a process that stood still may begin by an old snapshot.
 */
function checkBegun(book: Book, { actor, atMs, before, after }: Commit): void {
  if (!traitsOfShape(book.scene.group).lowersPartition) return;
  const known = before === undefined ? [] : (readLedger(before)?.rolling ?? []);
  const fromMs = knownSinceMs(book.scene, { actor, atMs });
  for (const zone of book.zones) {
    const name = book.terms.zoneName(zone.statefulSet);
    const facts = zone.facts.since(fromMs);
    const now = facts.at(-1);
    if (known.includes(name) || readLedger(after)?.rolling.includes(name) !== true || now === undefined) continue;
    const lowest = now.first + Math.max(...facts.map((one) => one?.partition ?? Number.POSITIVE_INFINITY));
    const updated = [...zone.places.values()].filter((place) => isUpdated(place, now)).map(({ ordinal }) => ordinal);
    const exposed = outdated(zone, fromMs).filter(({ ordinal }) => ordinal >= lowest && ordinal < Math.min(...updated));
    if (exposed.length === 0) continue;
    book.scene.violated('S6', `${actor.process ?? ''} begins a run while partition ${now.partition} exposes ${named(exposed)}`);
  }
}

/** Returns whether the pod would lose its update below a partition. If both revisions are equal, no pod would. */
function isUpdated({ pod }: Place, { currentRevision, updateRevision }: SetFacts): boolean {
  return currentRevision !== updateRevision && pod !== undefined && revisionLabelOf(pod) === updateRevision;
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

interface Raise extends Change {
  readonly createdMs: ReadonlyMap<string, number>;
}

/**
 * Checks that a raised partition reverts no updated pod. A pod below the partition comes back at the current revision, any other pod at the
 * update revision (kubernetes.io, StatefulSet, "Partitioned rolling updates"). While both are equal, the partition changes no revision.
 */
function checkRaised(book: Book, zone: Zone, { actor, atMs, after }: Commit, { from, to, createdMs }: Raise): void {
  const now = zone.facts.latest();
  const { fromMs } = book.momentOf({ actor, atMs });
  if (now === undefined) return;
  const reverted = [...zone.places.values()].filter(
    (place) =>
      place.ordinal >= now.first + from &&
      place.ordinal < now.first + to &&
      isInRange(place) &&
      isUpdated(place, now) &&
      (createdMs.get(place.pod?.metadata.uid ?? '') ?? 0) <= fromMs,
  );
  if (reverted.length === 0) return;
  const what = `${actor.process ?? ''} raises the partition of ${after.metadata.name}`;
  book.scene.violated('S6', `${what}, and ${named(reverted)} would come back at ${now.currentRevision}`);
}

/** Returns the outdated places that an agent exposes with this commit by a lower partition. */
export function exposedByUs(book: Book, { resource, type, before, after, actor, atMs }: Commit): readonly Place[] {
  const zone = resource === statefulSetResource && type === 'MODIFIED' ? book.zoneOf(after.metadata.name) : undefined;
  const [from, to] = [partitionOf(before), partitionOf(after)];
  if (zone === undefined || to >= from || !isAgent(actor, book.scene.agentUser)) return [];
  const first = zone.facts.latest()?.first ?? 0;
  const behind = outdated(zone, book.momentOf({ actor, atMs }).fromMs);
  return behind.filter(({ ordinal }) => ordinal >= first + to && ordinal < first + from);
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
