// Judges the requests of others that a webhook let pass: they count like the disruptions of agents, and none passes unjudged (S30, S31).
import { configMapResource, controllerOf, podResource } from '../../../simulation/objects.ts';
import { named, unavailabilityOf } from '../../../simulation/oracles/availability.ts';
import { type Claimed, isLedger, readLedger } from '../../../simulation/oracles/documents.ts';
import { type Moment, machineOf, momentOf, type Oracle } from '../../../simulation/oracles/oracle.ts';
import { type Book, isAdmitted, isDisruption, type Place, unavailableIn, wasDown, type Zone } from '../../../simulation/oracles/places.ts';
import { runStartMs } from '../../../simulation/process/clock.ts';
import type { Actor, Commit, ModelObject } from '../../../simulation/server/request.ts';

/** The time in which an allowed request may be repeated, and a tolerance for the time of the review (engine/judge/admission-claims.ts). */
const repeatMs = 30_000;
const reviewMs = 12_000;
/** The time in which a claim counts, less the time between the review and the write of the ledger. */
const claimMs = 110_000;

/** Creates the judge of admitted requests. It sees each commit before the book records it. */
export function judgeAdmissions(book: Book): Oracle {
  return new AdmissionJudge(book);
}

class AdmissionJudge implements Oracle {
  readonly #book: Book;
  /** The claims of the ledger on pods. */
  #claims: readonly Claimed[] = [];
  /** The UIDs of all pods that had a claim. */
  readonly #claimed = new Set<string>();

  constructor(book: Book) {
    this.#book = book;
  }

  committed(commit: Commit): void {
    const { resource, actor, after, atMs } = commit;
    const { scene, terms } = this.#book;
    if (resource === configMapResource && isLedger(after) && after.metadata.namespace === scene.namespace) this.#noteLedger(commit);
    const { admission } = actor;
    if (resource !== podResource || admission === undefined || !isDisruption(commit)) return;
    const place = this.#book.placeOfPod(after);
    if (place === undefined || admission.uid !== after.metadata.uid || terms.isExcepted()) return;
    const sent = { actor: { user: actor.user, process: admission.by, sentAtMs: admission.sentAtMs }, atMs };
    const moment = { ...momentOf(scene, sent), isOfWebhook: true };
    // An answer may name no group only if the pod had none, or has one for less time than a webhook needs to know the group.
    if (admission.group === undefined && !terms.wasMember(place.zone.statefulSet, moment.fromMs)) return;
    const what = `${admission.by} lets ${actor.user} disrupt ${after.metadata.name}`;
    // An orphaned pod has no group. A deletion may pass unjudged, because the kubelet removes pods with the same request.
    const isOwned = isOwnedSince(place.zone, after, atMs);
    if (isAdmitted(commit)) checkBudget(this.#book, place, moment, what);
    // /admission/enforce, which reviews native groups, claims every disruption; /admission/pod-eviction only those that use the budget.
    const needsClaim = scene.group.kind === 'native' || !wasDown(place, moment);
    if (isAdmitted(commit) && isOwned) this.#checkClaim(admission, { atMs, needsClaim }, what);
    // The webhook may have seen the pod before its StatefulSet was created again and adopted it.
    if (!admission.isJudged && admission.failurePolicy === 'Fail' && isOwnedSince(place.zone, after, moment.fromMs))
      scene.violated('S31', `${what} without a judgement`);
  }

  /** Checks that the request has a claim if it needs one, and was not allowed long ago. A pod may have the claims of an eviction and of a deletion. */
  #checkClaim(
    { uid, by, sentAtMs, group }: NonNullable<Actor['admission']>,
    { atMs, needsClaim }: { readonly atMs: number; readonly needsClaim: boolean },
    what: string,
  ): void {
    const { scene } = this.#book;
    if (needsClaim && !this.#claimed.has(uid))
      scene.violated('S30', `${what} without a claim, and its answer names ${group ?? 'no group'}`);
    const { rate, wallErrorMs, jumpedAtMs = 0 } = machineOf(scene, by);
    // The webhook judged by the clock before the jump.
    if (jumpedAtMs >= sentAtMs) return;
    const allowed = this.#claims.flatMap((one) => (one.uid === uid && one.admittedWallMs !== undefined ? [one.admittedWallMs] : []));
    const agoMs = Math.min(...allowed.map((wallMs) => Math.abs(runStartMs + atMs + wallErrorMs - wallMs)));
    if (allowed.length > 0 && agoMs > repeatMs + reviewMs * Math.max(1, rate))
      scene.violated('S30', `${what}, which was allowed ${Math.round(agoMs)} ms ago`);
  }

  #noteLedger({ after, type, atMs }: Commit): void {
    const before = this.#claims;
    const claims = type === 'DELETED' ? [] : [...(readLedger(after)?.claims.values() ?? [])];
    this.#claims = claims.filter(({ verb }) => verb === 'deletePod' || verb === 'evictPod');
    for (const { uid } of this.#claims) this.#claimed.add(uid);
    if (this.#book.scene.group.disruption !== undefined && !this.#book.terms.isExcepted()) this.#checkClaims(before, atMs);
  }

  /** Checks that the webhooks claim no more available pods of a zone than the budget permits. */
  #checkClaims(before: readonly Claimed[], atMs: number): void {
    const { scene } = this.#book;
    const limit = scene.group.disruption ?? 1;
    const isNew = ({ uid }: Claimed): boolean => !before.some((one) => one.uid === uid);
    const moment = momentOf(scene, { actor: { user: '' }, atMs });
    const isUp = ({ uid }: Claimed): boolean => {
      const pod = this.#book.podByUid(uid);
      const place = pod === undefined ? undefined : this.#book.placeOfPod(pod);
      return place !== undefined && place.pod === pod && !wasDown(place, moment);
    };
    const claimed = this.#claims.filter((claim) => claim.admittedWallMs !== undefined && isUp(claim));
    for (const claim of claimed.filter(isNew)) {
      const others = claimed.filter(
        (one) =>
          one.uid !== claim.uid && one.zone === claim.zone && Math.abs((one.admittedWallMs ?? 0) - (claim.admittedWallMs ?? 0)) < claimMs,
      );
      if (others.length >= limit)
        scene.violated(
          'S30',
          `a webhook claims ${claim.uid} next to ${others.map(({ uid }) => uid).join(', ')}, and no more than ${limit} may be`,
        );
    }
  }
}

/** Returns whether the StatefulSet of the zone owns the pod, and was not recreated since this time. */
function isOwnedSince({ facts }: Zone, pod: ModelObject, fromMs: number): boolean {
  const owner = controllerOf(pod);
  return owner !== undefined && facts.since(fromMs).every((one) => one?.uid === owner);
}

function checkBudget(book: Book, place: Place, moment: Moment, what: string): void {
  const { disruption, zoneBudget } = book.scene.group;
  const limit = disruption ?? zoneBudget;
  // A pod that is down already uses no budget.
  if (limit === undefined || wasDown(place, moment)) return;
  for (const zone of book.zones) {
    const why = zone === place.zone ? undefined : unavailabilityOf(book, zone, moment);
    if (why !== undefined) book.scene.violated('S30', `${what} while ${why}`);
  }
  const others = (unavailableIn(book, place.zone, moment) ?? []).filter((other) => other !== place);
  if (others.length + 1 > limit)
    book.scene.violated('S30', `${what} while ${named(others)} are unavailable, and no more than ${limit} may be`);
}
