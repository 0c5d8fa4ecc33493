// Judges prepared pods: no pod is removed before its delay is over, and the preparation of pods that stay is cancelled (S11, L5).

import { getOrCreate } from '../../policies/values/map.ts';
import {
  controllerOf,
  instantAt,
  isAgent,
  numberAt,
  placeOf,
  podResource,
  prepareEndpoint,
  replicasOf,
  statefulSetResource,
} from '../objects.ts';
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
 * The judge of preparations. It sees each commit before the book records it. Every ordinal whose pod was created must be prepared, even if
 * its pod is lost. The delay of a downscale counts in true time from the first call that the pod received. A new pod or a later reported
 * time restarts the delay. A wrong wall clock may shorten the delay by its error. In drop-in groups the time that the pod reports counts.
 */
export class PreparationJudge implements Oracle {
  readonly #book: Book;
  readonly #scene: Book['scene'];
  /** The calls by path and pod: a group may prepare pods for a delay and before the removal, on two paths. */
  readonly #asked = new Map<string, PrepareCall>();
  /** The ordinals of each StatefulSet, by UID, whose pod was created, with the time of the first pod. */
  readonly #created = new Map<string, Map<number, number>>();
  /** The last received call by path and pod. `isAsked` is true if it asked the pod to leave. */
  readonly #isLeaving = new Map<string, { readonly pod: string; readonly isAsked: boolean }>();
  readonly #trustsPods: boolean;

  constructor(book: Book) {
    this.#book = book;
    this.#scene = book.scene;
    this.#trustsPods = this.#scene.group.kind === 'adopted';
    for (const pod of this.#scene.list(podResource, this.#scene.namespace)) this.#noteCreated(pod, 0);
  }

  podCalled(call: PodCalled): void {
    if (call.namespace === this.#scene.namespace) this.#noteCall(call);
  }

  committed(commit: Commit): void {
    const { resource, type, after, atMs } = commit;
    if (resource === podResource && type !== 'DELETED') this.#noteCreated(after, atMs);
    if (resource !== statefulSetResource || type !== 'MODIFIED' || !isDecrease(commit)) return;
    this.#checkDecrease(commit);
    const end = (numberAt(after, 'spec', 'ordinals', 'start') ?? 0) + replicasOf(after);
    const created = this.#createdIn(after.metadata.uid);
    for (const ordinal of created.keys()) if (ordinal >= end) created.delete(ordinal);
  }

  ended(): void {
    for (const [key, { pod, isAsked }] of this.#isLeaving) {
      // As in grafana/rollout-operator, a pod stays prepared if its webhook dies before the answer.
      if (this.#scene.webhooks !== undefined && this.#trustsPods && key.startsWith(`${prepareEndpoint.path} `)) continue;
      if (isAsked && isStaying(this.#book, pod))
        this.#scene.violated('L5', `at the end ${pod} is still prepared to leave, although it stays`);
    }
  }

  #noteCall({ process, pod, uid, method, path, atMs, reportedMs }: PodCalled): void {
    const key = `${path} ${pod}`;
    this.#isLeaving.set(key, { pod, isAsked: method === 'POST' });
    if (method === 'DELETE') this.#asked.delete(key);
    else {
      const call = { uid, sinceMs: atMs, wallErrorMs: machineOf(this.#scene, process).wallErrorMs, reportedMs };
      const before = this.#asked.get(key);
      const isOfPod = before !== undefined && (this.#trustsPods || before.uid === uid);
      this.#asked.set(key, isOfPod ? continued(before, call, atMs) : call);
    }
  }

  #createdIn(setUid: string): Map<number, number> {
    return getOrCreate(this.#created, setUid, () => new Map());
  }

  /** Remembers the ordinal of a pod until a decrease removes the ordinal, so that a pod that is lost meanwhile counts too. */
  #noteCreated(pod: ModelObject, atMs: number): void {
    const named = placeOf(pod.metadata.name);
    const facts = named && this.#book.zoneOf(named.statefulSet)?.facts.latest();
    if (named === undefined || facts === undefined || controllerOf(pod) !== facts.uid) return;
    const isInSet = named.ordinal >= facts.first && named.ordinal < facts.first + facts.replicas;
    const created = this.#createdIn(facts.uid);
    if (isInSet && !created.has(named.ordinal)) created.set(named.ordinal, atMs);
  }

  #checkDecrease({ before, after, actor, atMs }: Commit): void {
    const zone = this.#book.zoneOf(after.metadata.name);
    const facts = zone?.facts.latest();
    if (zone === undefined || facts === undefined || !isAgent(actor, this.#scene.agentUser) || this.#book.terms.isExcepted()) return;
    const [from, to] = [replicasOf(before), replicasOf(after)];
    const moment = this.#book.momentOf({ actor, atMs });
    const terms = this.#book.terms.of(zone.statefulSet).since(moment.fromMs);
    if (terms.some(({ isForced, delayMs }) => isForced || delayMs === undefined)) return;
    const delayMs = Math.min(...terms.map((one) => one.delayMs ?? 0));
    const path = terms.at(-1)?.delayPath;
    if (!Number.isFinite(delayMs) || path === undefined) return;
    const what = `${actor.process ?? ''} scales ${zone.statefulSet} to ${to}`;
    // A pod of an earlier downscale that has not been removed yet counts as well.
    const existing = [...zone.places].flatMap(([ordinal, { pod }]) => (pod === undefined ? [] : [[ordinal, createdAt(pod)] as const]));
    for (const [ordinal, createdMs] of new Map([...existing, ...this.#createdIn(facts.uid)])) {
      // A pod that was first created after the decision was made was unknown to it.
      if (ordinal < facts.first + to || ordinal >= facts.first + from || createdMs > moment.fromMs) continue;
      const pod = zone.places.get(ordinal)?.pod;
      // A decision that did not know this pod knew its predecessor.
      const isKnown = pod !== undefined && createdAt(pod) <= moment.fromMs;
      const name = `${zone.statefulSet}-${ordinal}`;
      this.#checkPrepared({ name, path, ...(isKnown ? { uid: pod.metadata.uid } : {}) }, what, { actor, atMs, delayMs });
    }
  }

  #checkPrepared(
    { name, path, uid }: { readonly name: string; readonly path: string; readonly uid?: string },
    what: string,
    { actor, atMs, delayMs }: Pick<Commit, 'actor' | 'atMs'> & { readonly delayMs: number },
  ): void {
    const call = this.#asked.get(`${path} ${name}`);
    if (call === undefined || (uid !== undefined && call.uid !== uid)) {
      this.#scene.violated('S11', `${what}, and ${name}${uid === undefined ? '' : ` (${uid})`} was never asked to prepare`);
      return;
    }
    const aheadMs = Math.max(0, machineOf(this.#scene, actor.process).wallErrorMs - (this.#trustsPods ? 0 : call.wallErrorMs));
    const preparedMs = atMs - (this.#trustsPods ? (call.reportedMs ?? call.sinceMs) : call.sinceMs);
    if (preparedMs + aheadMs + roundingMs < delayMs)
      this.#scene.violated('S11', `${what}, and ${name} has been prepared for ${Math.round(preparedMs)} ms, not for ${delayMs} ms`);
  }
}

function continued(before: PrepareCall, call: PrepareCall, atMs: number): PrepareCall {
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
  return replicasOf(after) < replicasOf(before);
}

function createdAt(pod: ModelObject): number {
  return instantAt(pod, 'metadata', 'creationTimestamp') ?? 0;
}

function isStaying(book: Book, pod: string): boolean {
  const named = placeOf(pod);
  const place = named && book.zoneOf(named.statefulSet)?.places.get(named.ordinal);
  return place?.pod !== undefined && isInRange(place);
}
