// Judges prepared pods: no pod is removed before its delay is over, and the preparation of pods that stay is cancelled (S11, L5).

import { instantAt, isAgent, numberAt, placeOf, statefulSetResource } from '../objects.ts';
import type { Commit, ModelObject } from '../server/request.ts';
import { machineOf, type Oracle, type PodCalled } from './oracle.ts';
import { type Book, isInRange } from './places.ts';

/** The calls to the pods of one ordinal since the preparation was last cancelled. */
interface PrepareCall {
  readonly uid: string;
  readonly sinceMs: number;
  /** The lead of the calling agent's wall clock, in milliseconds. */
  readonly wallErrorMs: number;
  /** The earliest reported time, in milliseconds since the simulation began. */
  readonly reportedMs: number | undefined;
}

/** The rounding error of times, because pods report whole seconds. */
const roundingMs = 1_000;

/**
 * The judge of preparations. It sees each commit before the book records it. The delay of a downscale counts in true time from the first
 * received call. A later reported time restarts the delay. A wrong wall clock may shorten the delay by its error. In drop-in groups the
 * time that the pod reports counts.
 */
export class PreparationJudge implements Oracle {
  readonly #book: Book;
  readonly #scene: Book['scene'];
  readonly #asked = new Map<string, PrepareCall>();
  /** The last received call by path and pod. `isAsked` is true if it asked the pod to leave. */
  readonly #isLeaving = new Map<string, { readonly pod: string; readonly isAsked: boolean }>();
  readonly #trustsPods: boolean;

  constructor(book: Book) {
    this.#book = book;
    this.#scene = book.scene;
    this.#trustsPods = this.#scene.group.kind === 'adopted';
  }

  podCalled(call: PodCalled): void {
    if (call.namespace === this.#scene.namespace) this.#noteCall(call);
  }

  committed(commit: Commit): void {
    if (commit.resource === statefulSetResource && commit.type === 'MODIFIED' && isDecrease(commit)) this.#checkDecrease(commit);
  }

  ended(): void {
    for (const { pod, isAsked } of this.#isLeaving.values()) {
      if (isAsked && isStaying(this.#book, pod))
        this.#scene.violated('L5', `at the end ${pod} is still prepared to leave, although it stays`);
    }
  }

  #noteCall({ process, pod, uid, method, path, atMs, reportedMs }: PodCalled): void {
    this.#isLeaving.set(`${path} ${pod}`, { pod, isAsked: method === 'POST' });
    if (method === 'DELETE') this.#asked.delete(pod);
    else {
      const call = { uid, sinceMs: atMs, wallErrorMs: machineOf(this.#scene, process).wallErrorMs, reportedMs };
      this.#asked.set(pod, continued(this.#asked.get(pod), call, atMs));
    }
  }

  #checkDecrease({ before, after, actor, atMs }: Commit): void {
    const zone = this.#book.zoneOf(after.metadata.name);
    const facts = zone?.facts.latest();
    if (zone === undefined || facts === undefined || !isAgent(actor, this.#scene.agentUser) || this.#book.terms.isExcepted()) return;
    const from = numberAt(before, 'spec', 'replicas') ?? 1;
    const to = numberAt(after, 'spec', 'replicas') ?? 1;
    const moment = this.#book.momentOf({ actor, atMs });
    const terms = this.#book.terms.of(zone.statefulSet).since(moment.fromMs);
    if (terms.some(({ isForced, delayMs }) => isForced || delayMs === undefined)) return;
    const delayMs = Math.min(...terms.map((one) => one.delayMs ?? 0));
    if (!Number.isFinite(delayMs)) return;
    for (let ordinal = facts.first + to; ordinal < facts.first + from; ordinal += 1) {
      const pod = zone.places.get(ordinal)?.pod;
      const name = `${zone.statefulSet}-${ordinal}`;
      const uid = pod?.metadata.uid ?? this.#asked.get(name)?.uid;
      // An absent pod that was never asked has nothing to prepare, and a new pod was unknown to the decision.
      if (uid === undefined || (instantAt(pod, 'metadata', 'creationTimestamp') ?? 0) > moment.fromMs) continue;
      const what = `${actor.process ?? ''} scales ${zone.statefulSet} to ${to}`;
      this.#checkPrepared({ name, uid }, what, { actor, atMs, delayMs });
    }
  }

  #checkPrepared(
    { name, uid }: Pick<ModelObject['metadata'], 'name' | 'uid'>,
    what: string,
    { actor, atMs, delayMs }: Pick<Commit, 'actor' | 'atMs'> & { readonly delayMs: number },
  ): void {
    const call = this.#asked.get(name);
    if (call?.uid !== uid) {
      this.#scene.violated('S11', `${what}, and ${name} (${uid}) was never asked to prepare`);
      return;
    }
    const aheadMs = Math.max(0, machineOf(this.#scene, actor.process).wallErrorMs - (this.#trustsPods ? 0 : call.wallErrorMs));
    const preparedMs = atMs - (this.#trustsPods ? (call.reportedMs ?? call.sinceMs) : call.sinceMs);
    if (preparedMs + aheadMs + roundingMs < delayMs)
      this.#scene.violated('S11', `${what}, and ${name} has been prepared for ${Math.round(preparedMs)} ms, not for ${delayMs} ms`);
  }
}

function continued(before: PrepareCall | undefined, call: PrepareCall, atMs: number): PrepareCall {
  if (before === undefined) return call;
  const { reportedMs } = call;
  // A reported time in the future does not count.
  if (reportedMs === undefined || before.reportedMs === undefined || reportedMs > atMs) {
    return { ...before, uid: call.uid, reportedMs: before.reportedMs ?? reportedMs };
  }
  const isSame = Math.abs(reportedMs - before.reportedMs) < roundingMs;
  if (isSame || (call.uid === before.uid && reportedMs < before.reportedMs)) {
    return { ...before, uid: call.uid, reportedMs: Math.min(reportedMs, before.reportedMs) };
  }
  return call;
}

function isDecrease({ before, after }: Commit): boolean {
  return (numberAt(after, 'spec', 'replicas') ?? 1) < (numberAt(before, 'spec', 'replicas') ?? 1);
}

function isStaying(book: Book, pod: string): boolean {
  const named = placeOf(pod);
  const place = named && book.zoneOf(named.statefulSet)?.places.get(named.ordinal);
  return place?.pod !== undefined && isInRange(place);
}
