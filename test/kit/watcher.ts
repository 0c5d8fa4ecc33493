// Judges the disruptions of groups of StatefulSets independently: reconstructs the history, and checks whether each disruption was allowed.
// It shares no code with the agent.
import { type History, type ObjectEvent, ordinalOf, type RecordedRequest, Replay, revisionOf, type ZoneState } from './watcher-history.ts';
import { checkRequest, describe, isDone, isEviction, isPodDelete, isWrite, preconditionsOf } from './watcher-requests.ts';

/** A group as the test defines it. */
export interface WatchedGroup {
  readonly namespace: string;
  readonly zones: readonly {
    readonly statefulSet: string;
    /** Number of pods, or a percentage of the replicas, rounded down, at least 1. */
    readonly maxUnavailable: number | `${number}%`;
  }[];
}

interface Violation {
  readonly invariant: 'S1' | 'S2' | 'S6' | 'S7' | 'S8' | 'S10' | 'S20';
  readonly message: string;
}

interface Disruption {
  readonly request: RecordedRequest;
  readonly uid: string;
  /** The revision at which the pod began to terminate. */
  readonly revision: number;
}

interface OpenDisruption {
  readonly zone: string;
  readonly ordinal: number;
  readonly uid: string;
  /** The update revision at that time. A successor with it has settled, even if a newer one exists by then. */
  readonly target: string | undefined;
}

/**
 * Returns every violation by the actors (user names), in order. S1: no pod of a zone is disrupted unless every other zone is available.
 * S2: the budget of the zone is kept, including pods that are down for other reasons. S6: an updated pod stays. S7: no pod is deleted
 * twice, or while it terminates. S8: a disruption beyond the budget waits until the earlier ones have settled, so that their successors
 * are available at the update revision. S10 and S20: as in `checkRequest`. An unavailable pod may be replaced regardless of the budget.
 * Revisions decide the state at the time when a pod began to terminate.
 */
export function checkHistory(history: History, actors: readonly string[], groups: readonly WatchedGroup[]): readonly Violation[] {
  const isActor = ({ user }: RecordedRequest) => actors.includes(user.username);
  const events = history.events.toSorted((one, other) => revisionOf(one) - revisionOf(other));
  const requests = history.requests.toSorted((one, other) => (one.stageTimestamp < other.stageTimestamp ? -1 : 1));
  const deletions = requests
    .filter((request) => isWrite(request) && isDone(request) && (isEviction(request) || isPodDelete(request)))
    .map((request) => ({ request, uid: uidOf(request, events) }));
  const violations: Violation[] = requests.filter(isActor).flatMap(checkRequest);
  const disruptions: Disruption[] = [];
  for (const [index, { request, uid }] of deletions.entries()) {
    if (!isActor(request)) continue;
    const before = deletions.slice(0, index).find((other) => other.uid === uid);
    const revision = terminationOf(uid, events);
    if (before !== undefined) {
      const what = isActor(before.request) ? 'was deleted before' : `was being deleted by ${before.request.user.username}`;
      violations.push({ invariant: 'S7', message: `${describe(request)}: the pod ${uid} ${what}` });
    } else if (revision === undefined) {
      violations.push({ invariant: 'S7', message: `${describe(request)}: the history does not show that the pod ${uid} ends` });
    } else disruptions.push({ request, uid, revision });
  }
  return [...violations, ...checkDisruptions(events, disruptions, groups)];
}

/** Counts the use of each verb on each resource by these users, including denied requests, without Leases. */
export function countWrites({ requests }: Pick<History, 'requests'>, actors: readonly string[]): Readonly<Record<string, number>> {
  const counts = new Map<string, number>();
  for (const request of requests) {
    if (!isWrite(request) || !actors.includes(request.user.username) || request.objectRef?.resource === 'leases') continue;
    const key = [request.verb, [request.objectRef?.resource, request.objectRef?.subresource].filter(Boolean).join('/')].join(' ');
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return Object.fromEntries([...counts].sort());
}

function checkDisruptions(
  events: readonly ObjectEvent[],
  disruptions: readonly Disruption[],
  groups: readonly WatchedGroup[],
): readonly Violation[] {
  const violations: Violation[] = [];
  const replay = new Replay();
  const books = groups.map((group) => new GroupBook(group, replay));
  let next = 0;
  for (const disruption of disruptions.toSorted((one, other) => one.revision - other.revision)) {
    for (; next < events.length; next++) {
      const event = events[next];
      if (event === undefined || revisionOf(event) >= disruption.revision) break;
      replay.apply(event);
      for (const book of books) book.settle();
    }
    for (const book of books) violations.push(...book.check(disruption));
  }
  return violations;
}

/** The open disruptions of one group. */
class GroupBook {
  readonly #group: WatchedGroup;
  readonly #replay: Replay;
  #open: readonly OpenDisruption[] = [];

  constructor(group: WatchedGroup, replay: Replay) {
    this.#group = group;
    this.#replay = replay;
  }

  /** Forgets disruptions whose successor is available, or whose ordinal no longer exists. */
  settle(): void {
    if (this.#open.length === 0) return;
    this.#open = this.#open.filter(({ zone, ordinal, uid, target }) => {
      const state = this.#zone(zone);
      if (state === undefined) return true;
      const first = state.set.spec.ordinals?.start ?? 0;
      if (ordinal >= first + state.set.spec.replicas) return false;
      return !state.pods.some(
        (pod) =>
          ordinalOf(pod) === ordinal &&
          pod.metadata.uid !== uid &&
          [target, state.set.status.updateRevision].includes(pod.metadata.labels?.['controller-revision-hash']) &&
          this.#replay.isAvailable(pod, state.set, Number.POSITIVE_INFINITY),
      );
    });
  }

  check({ request, uid }: Disruption): readonly Violation[] {
    const pod = this.#replay.pod(uid);
    const zone = this.#group.zones.find(({ statefulSet }) => this.#zone(statefulSet)?.pods.some(({ metadata }) => metadata.uid === uid));
    const state = zone === undefined ? undefined : this.#zone(zone.statefulSet);
    if (pod === undefined || zone === undefined || state === undefined) return [];
    const found: Violation[] = [];
    const say = (invariant: Violation['invariant'], what: string) => found.push({ invariant, message: `${describe(request)}: ${what}` });
    const atMs = Date.parse(request.stageTimestamp);
    const ordinal = ordinalOf(pod);

    for (const { statefulSet } of this.#group.zones) {
      if (statefulSet === zone.statefulSet) continue;
      const other = this.#zone(statefulSet);
      const lacking = other === undefined ? undefined : this.#replay.lacking(other, atMs);
      if (lacking === undefined) say('S1', `the StatefulSet ${statefulSet} is not there`);
      else if (lacking.length > 0) say('S1', `${statefulSet} lacks ${lacking.length} pods: ${lacking.join(', ')}`);
    }
    const limit = limitOf(zone.maxUnavailable, state.set.spec.replicas);
    const isDown = !this.#replay.isAvailable(pod, state.set, atMs);
    const down = this.#replay.lacking(state, atMs).filter((other) => other !== ordinal);
    if (!isDown && down.length + 1 > limit) say('S2', `with ${down.length} others down it is more than ${limit}`);
    if (pod.metadata.labels?.['controller-revision-hash'] === state.set.status.updateRevision) {
      say('S6', `the pod is at the update revision ${state.set.status.updateRevision}`);
    }
    const open = this.#open.filter((other) => other.zone !== zone.statefulSet || other.ordinal !== ordinal);
    const elsewhere = open.filter((other) => other.zone !== zone.statefulSet);
    if (elsewhere.length > 0) say('S8', `${elsewhere.length} disruptions in other zones have not settled`);
    const here = open.length - elsewhere.length;
    if (!isDown && here + 1 > limit) say('S8', `${here} disruptions in the zone have not settled, and no more than ${limit} may be open`);
    this.#open = [...open, { zone: zone.statefulSet, ordinal, uid, target: state.set.status.updateRevision }];
    return found;
  }

  #zone(statefulSet: string): ZoneState | undefined {
    return this.#replay.zone(this.#group.namespace, statefulSet);
  }
}

function limitOf(maxUnavailable: number | `${number}%`, replicas: number): number {
  if (typeof maxUnavailable === 'number') return maxUnavailable;
  return Math.max(1, Math.floor((Number.parseInt(maxUnavailable, 10) * replicas) / 100));
}

/**
 * Returns the deleted pod: by the precondition, by the pod in the response, or by the name, which belongs to the youngest pod of that
 * time.
 */
function uidOf(request: RecordedRequest, events: readonly ObjectEvent[]): string {
  const { uid } = preconditionsOf(request);
  if (typeof uid === 'string') return uid;
  const answered = (request.responseObject as { readonly kind?: string; readonly metadata?: { readonly uid?: string } } | undefined) ?? {};
  if (answered.kind === 'Pod' && answered.metadata?.uid !== undefined) return answered.metadata.uid;
  // Finds the pod with the name at the time of the request. Times of objects are whole seconds, so the end distinguishes a successor in
  // the same second.
  const receivedMs = Date.parse(request.requestReceivedTimestamp);
  const named = events.filter(
    ({ kind, type, object: { metadata } }) =>
      kind === 'Pod' &&
      type === 'ADDED' &&
      metadata.name === request.objectRef?.name &&
      metadata.namespace === request.objectRef?.namespace &&
      Date.parse(metadata.creationTimestamp ?? '') <= receivedMs,
  );
  const ended = named.find(({ object: { metadata } }) => endedMs(metadata.uid ?? '', events) >= Math.floor(receivedMs / 1000) * 1000);
  return (ended ?? named.at(-1))?.object.metadata.uid ?? 'unknown';
}

/** Returns when the pod was told to terminate: its timestamp minus the grace period. Infinity if it was not. */
function endedMs(uid: string, events: readonly ObjectEvent[]): number {
  const told = events.find(({ kind, object: { metadata } }) => kind === 'Pod' && metadata.uid === uid && metadata.deletionTimestamp);
  const { deletionTimestamp = '', deletionGracePeriodSeconds = 0 } = told?.object.metadata ?? {};
  return Date.parse(deletionTimestamp) - deletionGracePeriodSeconds * 1000;
}

function terminationOf(uid: string, events: readonly ObjectEvent[]): number | undefined {
  const event = events.find(
    ({ kind, type, object: { metadata } }) =>
      kind === 'Pod' && metadata.uid === uid && (type === 'DELETED' || metadata.deletionTimestamp !== undefined),
  );
  return event === undefined ? undefined : revisionOf(event);
}
