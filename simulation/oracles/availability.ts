// Judges disruptions: one zone at a time, within its budget, after earlier disruptions have settled (S1, S2, S3, S8, S9, S15, S26).

import { isAgent, isTerminating, podResource, revisionLabelOf, textAt } from '../objects.ts';
import { traitsOfShape } from '../scenario.ts';
import type { Commit } from '../server/request.ts';
import type { Moment, Oracle } from './oracle.ts';
import {
  type Book,
  isAbsent,
  isDisruption,
  isInRange,
  isOpen,
  isReplaced,
  isSettled,
  limitSince,
  type Place,
  unavailableIn,
  wasDown,
  type Zone,
} from './places.ts';

/** Creates the judge of disruptions. It sees each commit before the book records it. */
export function judgeAvailability(book: Book): Oracle {
  return {
    committed: (commit) => {
      const place = disruptedByUs(book, commit);
      if (place === undefined || book.terms.isExcepted()) return;
      const moment = book.momentOf(commit);
      const disruption = { book, place, what: `${commit.actor.process ?? ''} disrupts ${commit.after.metadata.name}`, moment };
      // An unavailable pod may be replaced while pods of other zones are unavailable (L6, S9), except in drop-in groups.
      const isRepair = book.scene.group.kind === 'native' && wasDown(place, moment);
      for (const why of otherZones(book, place.zone, moment, isRepair)) book.scene.violated('S1', `${disruption.what} while ${why}`);
      checkBudget(disruption);
      if (book.scene.group.kind === 'native') {
        checkSettled(disruption);
        checkShrinking(disruption);
      }
    },
  };
}

/** Returns the place whose pod an agent deletes with this commit. */
export function disruptedByUs(book: Book, commit: Commit): Place | undefined {
  if (commit.resource !== podResource || !isDisruption(commit) || !isAgent(commit.actor, book.scene.agentUser)) return undefined;
  return commit.after.metadata.namespace === book.scene.namespace ? book.placeOfPod(commit.after) : undefined;
}

interface Disruption {
  readonly book: Book;
  readonly place: Place;
  /** The process and the pod, such as `a1 disrupts server-0`. */
  readonly what: string;
  readonly moment: Moment;
}

/**
 * Returns one reason, as part of a sentence, for each other zone that forbids a disruption in this zone. A repair of an unavailable pod
 * only requires that every StatefulSet exists.
 */
export function otherZones(book: Book, own: Zone, moment: Moment, isRepair: boolean): readonly string[] {
  const others = book.zones.filter((zone) => zone !== own && !isExempt(book, zone, moment) && (!isRepair || isAbsent(book, zone, moment)));
  return others.flatMap((zone) => unavailabilityOf(book, zone, moment) ?? []);
}

/** Reports, as part of a sentence, the missing StatefulSet or the unavailable pods that the decision had to know; else undefined. */
export function unavailabilityOf(book: Book, zone: Zone, moment: Moment): string | undefined {
  if (isAbsent(book, zone, moment)) return `the StatefulSet ${zone.statefulSet} does not exist`;
  const unavailable = unavailableIn(book, zone, moment) ?? [];
  return unavailable.length === 0 ? undefined : `${zone.statefulSet} has unavailable pods: ${named(unavailable)}`;
}

/** Returns whether the zone does not count, because grafana/rollout-operator ignores a paused zone. */
function isExempt({ scene, terms }: Book, zone: Zone, { fromMs }: Moment): boolean {
  const settings = terms.of(zone.statefulSet).since(fromMs);
  return scene.group.kind === 'adopted' && settings.some(({ isPaused }) => isPaused);
}

function checkBudget(disruption: Disruption): void {
  const { book, place, what, moment } = disruption;
  const { scene, terms } = book;
  // The disruption of an unavailable pod uses no budget.
  if (wasDown(place, moment)) return;
  const limit = limitSince(book, place.zone, moment);
  if (limit === undefined) return;
  const others = (unavailableIn(book, place.zone, moment) ?? []).filter((other) => other !== place);
  if (others.length + 1 > limit) {
    const isUnreadable = terms.of(place.zone.statefulSet).latest()?.isUnreadable === true;
    scene.violated(
      isUnreadable ? 'S26' : 'S2',
      `${what} while ${place.zone.statefulSet} has ${others.length === 0 ? 'no other pod' : named(others)} unavailable, and no more than ${limit} may be unavailable`,
    );
  }
  const paused = book.zones.filter((zone) => isExempt(book, zone, moment));
  const counted = book.zones.filter((zone) => !paused.includes(zone));
  const unavailable = counted.flatMap((zone) => unavailableIn(book, zone, moment) ?? []).filter((other) => other !== place);
  if (unavailable.length + 1 > Math.max(limit, 1)) {
    scene.violated('S3', `${what} although ${named(unavailable)} of the group are unavailable, and no more than ${limit} may be`);
  }
}

/** Checks S8, and the part of S9 that limits how many pods are replaced at the same time. */
function checkSettled({ book, place, what, moment }: Disruption): void {
  const { scene } = book;
  const open = book.zones.flatMap((zone) => [...zone.places.values()].filter((other) => other !== place && isStillOpen(other, moment)));
  const isMember = ({ zone }: Place): boolean => book.terms.wasMember(zone.statefulSet, moment.fromMs);
  // A zone with an unavailable pod comes first. Another zone may have an available successor at the old revision, if the controller lagged
  // or the webhook was unavailable. That zone settles only by a further disruption, which must wait for the unavailable pod.
  const comesFirst = [...place.zone.places.values()].some((other) => isInRange(other) && wasDown(other, moment));
  // A zone that was opened in this way stays open, and a new template starts the waves again. A pod that was created without the webhook is
  // replaced again when its zone is due.
  const isDueLater = ({ open: disrupted }: Place): boolean =>
    comesFirst ||
    traitsOfShape(scene.group).pinsPods ||
    Math.max(place.zone.disruptedMs, book.templateMs) > (disrupted?.atMs ?? Number.POSITIVE_INFINITY);
  const elsewhere = open.filter(
    (other) => other.zone !== place.zone && isMember(other) && !(isDueLater(other) && isReplaced(other, moment.atMs + moment.aheadMs)),
  );
  if (elsewhere.length > 0) scene.violated('S8', `${what} before ${named(elsewhere)} settled`);
  const limit = limitSince(book, place.zone, moment);
  if (limit === undefined) return;
  const here = open.filter((other) => other.zone === place.zone && !isReplaced(other, moment.atMs + moment.aheadMs));
  if (!wasDown(place, moment) && here.length + 1 > limit) {
    scene.violated('S8', `${what} before ${named(here)} settled, and no more than ${limit} may be open`);
  }
  const unavailable = (unavailableIn(book, place.zone, moment) ?? []).filter((other) => other !== place);
  const inFlight = unavailable.filter((other) => isInFlight(book, other, moment) && !waitsForRepair(other, place, moment));
  const most = isOrdered(place.zone) ? 1 : Math.max(1, limit);
  if (inFlight.length + 1 > most) {
    scene.violated('S9', `${what} while ${named(inFlight)} are being replaced, and no more than ${most} may be at once`);
  }
  const lower = unavailable.filter(({ ordinal }) => isOrdered(place.zone) && ordinal < place.ordinal);
  if (lower.length > 0) scene.violated('S9', `${what}, whose successor would wait for ${named(lower)} (OrderedReady)`);
}

function isOrdered({ set }: Zone): boolean {
  return textAt(set, 'spec', 'podManagementPolicy') === 'OrderedReady';
}

function isStillOpen(place: Place, { atMs, aheadMs }: Moment): boolean {
  return isOpen(place, atMs) && !isSettled(place, atMs + aheadMs);
}

/** Returns whether an agent deleted the pod and the successor is missing or at the target revision. */
function isInFlight(book: Book, { isOurs, pod, zone }: Place, { fromMs }: Moment): boolean {
  if (!isOurs) return false;
  if (pod === undefined || isTerminating(pod)) return true;
  return book.targetsSince(zone, fromMs).every((target) => target === revisionLabelOf(pod));
}

/** Returns whether the pod is missing because under OrderedReady the controller creates no pod above an unavailable pod. */
function waitsForRepair({ ordinal, pod }: Place, repaired: Place, moment: Moment): boolean {
  return isOrdered(repaired.zone) && pod === undefined && ordinal > repaired.ordinal && wasDown(repaired, moment);
}

function checkShrinking({ book, place, what, moment }: Disruption): void {
  for (const zone of book.zones) {
    const { statefulSet, surplus } = zone;
    if (surplus === undefined || (!surplus.isOurs && surplus.sinceMs > moment.fromMs)) continue;
    if (!book.terms.wasMember(statefulSet, moment.fromMs)) continue;
    // An unavailable pod may be replaced while unavailable pods block the removal of the surplus pods.
    if (wasDown(place, moment) && isRemovalBlocked(zone, moment)) continue;
    book.scene.violated('S15', `${what} while pods of ${statefulSet} are being removed`);
  }
}

/** Returns whether an unavailable pod blocks the removal, because under OrderedReady the controller deletes no pod above it. */
function isRemovalBlocked(zone: Zone, moment: Moment): boolean {
  return isOrdered(zone) && [...zone.places.values()].some((other) => isInRange(other) && wasDown(other, moment));
}

/** Returns the pod names of the places. */
export function named(places: readonly Place[]): string {
  return places.map(({ zone, ordinal }) => `${zone.statefulSet}-${ordinal}`).join(', ');
}
