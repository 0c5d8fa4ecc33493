// Models one process of the API server: a watch cache per resource that lags slightly, and its watches.
import { draw } from '../random.ts';
import type { Scheduler } from '../scheduler.ts';
import type { Commit } from './request.ts';
import type { Collection, Storage } from './store.ts';

/** The range of the latency until a commit is in a watch cache, in milliseconds. */
const latencyMs = { from: 5, to: 50 };
/** With more unprocessed events than this, a cache without watches processes the due events. */
const maxUnread = 100;

interface FrontEndOptions {
  readonly scheduler: Pick<Scheduler, 'nowMs' | 'after'>;
  readonly storage: Storage;
  readonly seed: number;
  readonly index: number;
}

interface Follower {
  readonly saw: (commit: Commit) => void;
  readonly cut: (reason: string) => void;
}

export class FrontEnd {
  readonly scheduler: Pick<Scheduler, 'nowMs' | 'after'>;
  readonly storage: Storage;
  readonly #options: FrontEndOptions;
  readonly #caches = new Map<string, WatchCache>();
  /** The revision after which the caches know all events. */
  #startRevision = 0;
  #lag: { readonly untilMs: number; readonly revision: number } | undefined;
  /** True after the end of all faults. */
  #isCurrent = false;

  constructor(options: FrontEndOptions) {
    this.#options = options;
    this.scheduler = options.scheduler;
    this.storage = options.storage;
  }

  cache(resource: string): WatchCache {
    let cache = this.#caches.get(resource);
    if (cache === undefined) {
      cache = new WatchCache(this, this.storage.collection(resource), this.#startRevision);
      this.#caches.set(resource, cache);
    }
    return cache;
  }

  /** Records a commit that becomes visible later. */
  hear(commit: Commit): void {
    const { seed, index } = this.#options;
    const latency = latencyMs.from + (latencyMs.to - latencyMs.from) * draw(seed, `latency ${index} ${commit.revision}`);
    this.cache(commit.resource).expect(commit, commit.atMs + latency);
  }

  /** Shows no new state until that time. Has no effect after `endLag`, for example if a suspended process reconnects later. */
  lag(untilMs: number): void {
    if (this.#isCurrent) return;
    const nowMs = this.scheduler.nowMs();
    const isLagging = this.#lag !== undefined && this.#lag.untilMs > nowMs;
    const revision = isLagging ? (this.#lag?.revision ?? 0) : this.storage.revision;
    for (const cache of this.#caches.values()) cache.catchUp();
    this.#lag = { untilMs: Math.max(untilMs, isLagging ? (this.#lag?.untilMs ?? 0) : 0), revision };
  }

  /** Ends all lag, now and later: processes the due events and sends them to the watches. */
  endLag(): void {
    this.#isCurrent = true;
    this.#lag = undefined;
    for (const cache of this.#caches.values()) cache.resume();
  }

  /** Goes back to that revision and shows no newer state until that time, except after `endLag`. Watches receive no event twice. */
  goBack(revision: number, untilMs: number): void {
    if (this.#isCurrent) return;
    for (const cache of this.#caches.values()) cache.goBack(revision);
    this.#lag = { untilMs, revision };
  }

  /** Ends every watch. If `isCompacted`, the front end restarts from the stored state without history. */
  restart(isCompacted: boolean): void {
    if (isCompacted) this.#lag = undefined;
    if (isCompacted) this.#startRevision = this.storage.revision;
    for (const cache of this.#caches.values()) cache.restart(isCompacted);
  }

  /** The time until which no new state is visible. Without a fault, this time has passed. */
  get lagsUntilMs(): number {
    return this.#lag?.untilMs ?? 0;
  }

  /** The newest revision that a cache of this front end can have. */
  get horizon(): number {
    return this.#lag !== undefined && this.#lag.untilMs > this.scheduler.nowMs() ? this.#lag.revision : this.storage.revision;
  }
}

export class WatchCache {
  readonly collection: Collection;
  readonly frontEnd: FrontEnd;
  readonly #followers = new Set<Follower>();
  #expected: { readonly commit: Commit; readonly dueMs: number }[] = [];
  #lastDueMs = 0;
  /** The revision after which the cache knows all events. */
  #startRevision: number;
  #cancelTimer: (() => void) | undefined;

  constructor(frontEnd: FrontEnd, collection: Collection, startRevision: number) {
    this.frontEnd = frontEnd;
    this.collection = collection;
    this.#startRevision = startRevision;
  }

  expect(commit: Commit, dueMs: number): void {
    this.#lastDueMs = Math.max(this.#lastDueMs, dueMs);
    this.#expected.push({ commit, dueMs: this.#lastDueMs });
    if (this.#followers.size > 0) this.#setTimer();
    else if (this.#expected.length > maxUnread) this.catchUp();
  }

  /** Goes back to an earlier revision, so that the later events are processed again. */
  goBack(revision: number): void {
    this.#expected = this.collection.since(revision).map((commit) => ({ commit, dueMs: commit.atMs }));
  }

  /** Processes due events and passes them to the followers. */
  catchUp(): void {
    const nowMs = this.frontEnd.scheduler.nowMs();
    if (this.frontEnd.lagsUntilMs > nowMs) return;
    let count = 0;
    while ((this.#expected[count]?.dueMs ?? Number.POSITIVE_INFINITY) <= nowMs) count += 1;
    if (count === 0) return;
    const seen = this.#expected.slice(0, count);
    this.#expected = this.#expected.slice(count);
    for (const { commit } of seen) for (const follower of [...this.#followers]) follower.saw(commit);
  }

  /** Returns the newest processed revision. */
  version(): number {
    this.catchUp();
    const next = this.#expected[0];
    const horizon = this.frontEnd.horizon;
    return next === undefined ? horizon : Math.min(horizon, next.commit.revision - 1);
  }

  /** Returns the oldest revision at which a watch may begin. */
  oldest(): number {
    return Math.max(this.#startRevision, this.collection.oldestWatchable(this.frontEnd.scheduler.nowMs()));
  }

  follow(follower: Follower): () => void {
    this.#followers.add(follower);
    this.#setTimer();
    return () => {
      this.#followers.delete(follower);
    };
  }

  restart(isCompacted: boolean): void {
    for (const follower of [...this.#followers]) follower.cut('the API server restarted');
    if (!isCompacted) return;
    this.#expected = [];
    this.#startRevision = this.frontEnd.storage.revision;
  }

  /** Processes the due events, and sets the timer for the next event. */
  resume(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    this.catchUp();
    this.#setTimer();
  }

  /** Sets a timer for the next event, but only for followers. A read catches up without a timer. */
  #setTimer(): void {
    const next = this.#expected[0];
    if (this.#cancelTimer !== undefined || next === undefined || this.#followers.size === 0) return;
    const { scheduler } = this.frontEnd;
    const atMs = Math.max(next.dueMs, this.frontEnd.lagsUntilMs);
    this.#cancelTimer = scheduler.after(atMs - scheduler.nowMs(), () => this.resume());
  }
}
