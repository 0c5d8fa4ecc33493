// Judges pins: a new pod comes up at its pinned revision, and agents stop after two failed replacements of a pod (S6, S7, S19, L4).

import type { PodAdmitted } from '../cluster/pin-webhook.ts';
import {
  configMapResource,
  controllerOf,
  field,
  intentResource,
  isAgent,
  isTerminating,
  partitionOf,
  podResource,
  revisionLabelOf,
  statefulSetResource,
} from '../objects.ts';
import { traitsOfShape } from '../scenario.ts';
import type { Commit, ModelObject } from '../server/request.ts';
import { disruptedByUs } from './availability.ts';
import { updatesEveryPod } from './converged.ts';
import { isLedger, type LedgerText, type PinnedPod, pinKey, readLedger } from './documents.ts';
import type { Oracle } from './oracle.ts';
import { type Book, isDisruption, isInRange, type Place, type SetFacts, type Zone } from './places.ts';

/** The partition with which the StatefulSet controller replaces no pod. */
const holding = 1_000_000;
/** The most deletions of a pod for one revision before agents must wait for a person. */
const maxTries = 2;

/** The last deleted pod of a place, and the pin of its successor. */
interface Left {
  readonly owner: string | undefined;
  readonly revision: string;
  /** True if the ledger pinned the pod to its revision. */
  readonly isNoted: boolean;
  readonly pinnedTo: string | undefined;
}

/** Creates the judge of pins. It sees each commit before the book records it. */
export function judgePins(book: Book): Oracle {
  if (!traitsOfShape(book.scene.group).pinsPods) return {};
  return new PinJudge(book);
}

class PinJudge implements Oracle {
  readonly #book: Book;
  #ledger: LedgerText | undefined;
  readonly #admitted = new Map<string, PodAdmitted>();
  readonly #left = new Map<Place, Left>();
  readonly #tries = new Map<Place, { readonly revision: string; readonly count: number; readonly sinceMs: number }>();
  /** The last time at which the ledger pinned the pod to its own revision, by UID. */
  readonly #noted = new Map<string, number>();
  /** The creation time by UID; absent for the initial pods. */
  readonly #createdMs = new Map<string, number>();

  constructor(book: Book) {
    this.#book = book;
    for (const map of book.scene.list(configMapResource, book.scene.namespace)) if (isLedger(map)) this.#ledger = readLedger(map);
  }

  podAdmitted(admitted: PodAdmitted): void {
    this.#admitted.set(admitted.pod, admitted);
  }

  committed(commit: Commit): void {
    const { resource, after, type } = commit;
    if (after.metadata.namespace !== this.#book.scene.namespace) return;
    if (resource === configMapResource && isLedger(after)) this.#written(commit);
    // A retry request of a person permits further attempts.
    if (resource === intentResource && field(after, 'spec', 'action') === 'retry') this.#tries.clear();
    if (resource === statefulSetResource && type === 'MODIFIED') this.#checkPartition(commit);
    if (resource !== podResource) return;
    if (isDisruption(commit)) this.#podLeft(commit);
    if (type === 'ADDED') this.#podCreated(commit);
  }

  ended(): void {
    if (!updatesEveryPod(this.#book.scene)) return;
    for (const one of this.#ledger?.pins.values() ?? [])
      this.#book.scene.violated('L4', `at the end the ledger still pins pod ${one.ordinal} of zone ${one.zone} to ${one.revision}`);
  }

  #pinOf({ zone, ordinal }: Place): PinnedPod | undefined {
    return this.#ledger?.pins.get(pinKey(this.#book.terms.zoneName(zone.statefulSet), ordinal));
  }

  #places(): readonly Place[] {
    return this.#book.zones.flatMap(({ places }) => [...places.values()]);
  }

  #written(commit: Commit): void {
    const { after, actor, type } = commit;
    const before = this.#ledger;
    this.#ledger = type === 'DELETED' ? undefined : readLedger(after);
    if (isAgent(actor, this.#book.scene.agentUser)) {
      for (const place of this.#places()) {
        const formerPin = before?.pins.get(pinKey(this.#book.terms.zoneName(place.zone.statefulSet), place.ordinal));
        if (formerPin !== undefined && this.#pinOf(place)?.revision !== formerPin.revision) this.#checkForgotten(place, formerPin, commit);
      }
    }
    for (const place of this.#places()) {
      if (place.pod !== undefined && this.#pinOf(place)?.revision === revisionLabelOf(place.pod))
        this.#noted.set(place.pod.metadata.uid, commit.atMs);
    }
  }

  /** Checks that agents do not drop a pin that a pod needs. Another target is allowed, and no pod needs a pin to a rolled-back revision. */
  #checkForgotten(place: Place, { revision }: PinnedPod, commit: Commit): void {
    const facts = this.#factsIfPinNeeded(place, revision, commit);
    const next = this.#pinOf(place)?.revision;
    const restored = (from: string): string | undefined => this.#book.restored(place.zone, from, this.#ledger?.run);
    const isTarget = ({ updateRevision }: SetFacts): boolean => [updateRevision, restored(updateRevision)].includes(next);
    if (facts === undefined || restored(revision) !== undefined || (next !== undefined && facts.some(isTarget))) return;
    this.#book.scene.violated('S6', `${commit.actor.process ?? ''} drops the pin of ${place.pod?.metadata.name} to ${revision}`);
  }

  /** Returns the facts that the decision may have seen, if the pod needs a pin to come back at this revision; else undefined. */
  #factsIfPinNeeded({ pod, zone }: Place, revision: string, { actor, atMs }: Commit): readonly SetFacts[] | undefined {
    const { fromMs } = this.#book.momentOf({ actor, atMs });
    const facts = zone.facts.since(fromMs);
    if (
      pod === undefined ||
      isTerminating(pod) ||
      revisionLabelOf(pod) !== revision ||
      !this.#book.terms.wasMember(zone.statefulSet, fromMs)
    )
      return undefined;
    if ((this.#createdMs.get(pod.metadata.uid) ?? 0) > fromMs) return undefined;
    const known = facts.filter((one) => one !== undefined);
    const isPinNeeded =
      known.length === facts.length && known.every(({ uid, currentRevision }) => uid === controllerOf(pod) && currentRevision !== revision);
    return isPinNeeded ? known : undefined;
  }

  /** Checks that agents write only the partition `holding`, and only after the ledger pins every pod that needs a pin. */
  #checkPartition(commit: Commit): void {
    const { before, after, actor } = commit;
    const { scene } = this.#book;
    const zone = this.#book.zoneOf(after.metadata.name);
    const [from, to] = [partitionOf(before), partitionOf(after)];
    if (zone === undefined || from === to || !isAgent(actor, scene.agentUser)) return;
    const what = `${actor.process ?? ''} writes the partition ${to} of ${zone.statefulSet}`;
    if (to !== holding) scene.violated('S6', what);
    for (const place of zone.places.values()) {
      const revision = place.pod === undefined ? '' : revisionLabelOf(place.pod);
      if (this.#pinOf(place)?.revision === revision || this.#factsIfPinNeeded(place, revision, commit) === undefined) continue;
      scene.violated('S6', `${what} before the ledger pins ${place.pod?.metadata.name} to ${revision}`);
    }
  }

  #podLeft(commit: Commit): void {
    const pod = commit.before ?? commit.after;
    const place = this.#book.placeOfPod(pod);
    if (place === undefined) return;
    if (isInRange(place)) this.#left.set(place, this.#leaving(place, pod));
    else this.#left.delete(place);
    if (disruptedByUs(this.#book, commit) === place) this.#checkDisruption(place, pod, commit);
  }

  #leaving(place: Place, pod: ModelObject): Left {
    const notedMs = this.#noted.get(pod.metadata.uid);
    return {
      owner: controllerOf(pod),
      revision: revisionLabelOf(pod),
      isNoted: notedMs !== undefined && this.#book.terms.wasMember(place.zone.statefulSet, notedMs),
      pinnedTo: this.#pinOf(place)?.revision,
    };
  }

  /** Checks that a pin is stored before the deletion, and that agents wait for a person after two failed attempts. */
  #checkDisruption(place: Place, pod: ModelObject, { actor, atMs }: Commit): void {
    const { scene } = this.#book;
    const { fromMs } = this.#book.momentOf({ actor, atMs });
    const by = actor.process ?? '';
    const { name } = pod.metadata;
    const pinned = this.#pinOf(place)?.revision;
    const targets = this.#book.targetsSince(place.zone, fromMs);
    if (pinned === undefined || targets.every((target) => target !== undefined && target !== pinned)) {
      const content = pinned === undefined ? 'does not pin its successor' : `pins its successor to ${pinned}`;
      scene.violated('S19', `${by} disrupts ${name}, and the ledger ${content}`);
      return;
    }
    const known = this.#tries.get(place);
    const isSame = known?.revision === pinned && this.#book.terms.wasMember(place.zone.statefulSet, known.sinceMs);
    const tries = isSame ? { ...known, count: known.count + 1 } : { revision: pinned, count: 1, sinceMs: atMs };
    this.#tries.set(place, tries);
    if (tries.count > maxTries)
      scene.violated('S7', `${by} disrupts ${name} after ${tries.count - 1} earlier disruptions, and no successor was at ${pinned}`);
  }

  #podCreated({ after, atMs }: Commit): void {
    const place = this.#book.placeOfPod(after);
    const { name, uid } = after.metadata;
    const admitted = this.#admitted.get(name);
    this.#admitted.delete(name);
    this.#createdMs.set(uid, atMs);
    const zone = this.#book.zones.find(({ statefulSet }) => name.startsWith(`${statefulSet}-`));
    if (zone === undefined || admitted === undefined) return;
    const ordinal = Number(name.slice(zone.statefulSet.length + 1));
    const pinned = this.#ledger?.pins.get(pinKey(this.#book.terms.zoneName(zone.statefulSet), ordinal))?.revision;
    const revision = revisionLabelOf(after);
    if (pinned === revision) {
      this.#noted.set(uid, atMs);
      if (place !== undefined) this.#tries.delete(place);
    }
    const requested = pinned ?? this.#book.startRevision(zone, admitted.createdRevision);
    if (revision !== admitted.createdRevision && (admitted.isUnavailable || revision !== requested)) {
      this.#book.scene.violated(
        'S6',
        `${name} is created at ${revision}, which neither the StatefulSet controller nor the ledger requests`,
      );
    }
    const left = place === undefined ? undefined : this.#left.get(place);
    if (left !== undefined) this.#checkSame(zone, left, { after, admitted, atMs });
  }

  /** Checks the revision of a new pod, unless the webhook was unavailable, the controller lagged, or the partition exposes the pod. */
  #checkSame(
    zone: Zone,
    { owner, revision: before, isNoted, pinnedTo }: Left,
    { after, admitted, atMs }: { readonly after: ModelObject; readonly admitted: PodAdmitted; readonly atMs: number },
  ): void {
    const facts = zone.facts.latest();
    const is = revisionLabelOf(after);
    const isOther =
      facts === undefined ||
      owner !== facts.uid ||
      controllerOf(after) !== owner ||
      !this.#book.terms.wasMember(zone.statefulSet, atMs - 10_000);
    if (isOther || is === before || admitted.isUnavailable || admitted.createdRevision !== facts.currentRevision) return;
    const wanted = pinnedTo ?? (isNoted ? before : facts.currentRevision);
    if ([wanted, ...[before, admitted.createdRevision].map((revision) => this.#book.startRevision(zone, revision))].includes(is)) return;
    this.#book.scene.violated('S6', `${after.metadata.name} was at ${before}, and its successor is at ${is} instead of ${wanted}`);
  }
}
