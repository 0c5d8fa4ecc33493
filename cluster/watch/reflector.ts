// Follows one collection of the API server for the caches: lists it, watches it, and keeps its objects in a store whose age is known.
import { messageOf } from '../../policies/error-message.ts';
import { type Clock, type ClusterEnv, sleep } from '../env.ts';
import { Backoff, slow, soon } from '../request/backoff.ts';
import { ApiFailure, isStatus } from '../request/failure.ts';
import { listProjected, selectorQuery } from '../request/read.ts';
import { collectionPath, compareResourceVersions, HighWaterMark, type KubernetesObject, type Resource } from '../request/resource.ts';
import { type Change, Entries, type Entry, type Store } from './store.ts';
import { parseWatchLine, type WatchEnd, type WatchLine, watchOnce } from './watch.ts';

export type { Change } from './store.ts';

/** The longest silence of a watch. Servers send a bookmark about once a minute, so a longer silence means a dead connection. */
const idleMs = 90_000;
/** The minimum time between two openings of a watch with events. After a shorter watch, the time is random, up to twice as long. */
const reopenMs = 1000;
/** The time after which a watch counts as successful, even if no event arrived. */
const settledMs = 10_000;
/** The maximum age of the last list when a watch ends. An older list is replaced by a new list, in case the watch missed an event. */
const usualRelistMs = 1_800_000;
/** The minimum age of the last list at which a caller can request a new list. */
const leastRelistMs = 10_000;
const timeoutMs = 30_000;

interface Failure {
  readonly reason: FailureReason;
  readonly message: string;
}

type Verdict = Extract<WatchLine, { readonly kind: 'unparsable' | 'error' }>;

/** Starts to follow a collection. Never throws, and retries without limit. */
export class Reflector<View> {
  readonly #entries = new Entries<View>();
  readonly store: Store<View> = this.#entries;
  readonly #contact: Contact;
  readonly #options: ReflectorOptions<View>;
  readonly #stopped = new AbortController();
  readonly #soon: Backoff;
  readonly #slow: Backoff;
  /** The newest version seen. The store is complete up to this version. */
  readonly #mark: HighWaterMark;
  #failure: Failure | undefined;
  #reported = '';
  #syncedMs: number | undefined;
  #listedMs = 0;
  #needsList = false;
  #endWatch: () => void = () => undefined;

  constructor(options: ReflectorOptions<View>) {
    this.#options = options;
    this.#soon = new Backoff(options.env.random, soon);
    this.#slow = new Backoff(options.env.random, slow);
    this.#mark = new HighWaterMark();
    this.#contact = new Contact(options.env.clock);
    void this.#run();
  }

  async #run(): Promise<void> {
    while (!this.#stopped.signal.aborted) {
      if (await this.#list()) await this.#follow();
    }
  }

  /** Ends callbacks, timers and the watch. Ignores the answer to a list in progress. */
  readonly stop = (): void => {
    this.#stopped.abort();
    this.#endWatch();
  };

  /** Lists again at once, because the watch missed a change. Does nothing within ten seconds after a list. */
  readonly relist = (): void => {
    if (this.#options.env.clock.monotonicMs() - this.#listedMs < leastRelistMs) return;
    this.#needsList = true;
    this.#endWatch();
  };

  readonly state = (): ReflectorState => {
    const failure = this.#failure ?? this.#invalidObjects();
    if (failure !== undefined) {
      return { kind: 'failing', ...failure, hasSynced: this.#syncedMs !== undefined };
    }
    return this.#syncedMs === undefined ? { kind: 'starting' } : { kind: 'synced', atMs: this.#syncedMs };
  };

  /** Returns the version up to which the store is complete; undefined before the first list. */
  readonly resourceVersion = (): string | undefined => (this.#syncedMs === undefined ? undefined : this.#mark.value);

  /** Reports whether the store includes that version, for example the version of our own last write. */
  readonly hasSeen = (resourceVersion: string): boolean => this.#syncedMs !== undefined && this.#mark.covers(resourceVersion);

  /** Returns the milliseconds since the last message from the server; undefined before the first. */
  readonly silentMs = (): number | undefined => this.#contact.silentMs();

  /** Returns the maximum age of the store in milliseconds on the monotonic clock; infinite before the first list. */
  readonly ageMs = (): number => this.#contact.ageMs();

  /** Lists the whole collection. Returns false after a failure and its delay. */
  async #list(): Promise<boolean> {
    const { env, resource, namespace, labelSelector, fieldSelector, site } = this.#options;
    const askedMs = env.clock.monotonicMs();
    try {
      const selection = { namespace, labelSelector, fieldSelector, timeoutMs, site: `${site}.list` };
      const listed = await listProjected(env, resource, { ...selection, project: (object) => this.#entryOf(object) });
      if (this.#stopped.signal.aborted) return false;
      if (this.#mark.isOlder(listed.resourceVersion)) {
        await this.#refuseList(listed.resourceVersion);
        return false;
      }
      this.#slow.reset();
      this.#listedMs = env.clock.monotonicMs();
      this.#storeList(listed.items, listed.resourceVersion, askedMs);
      return true;
    } catch (error) {
      await this.#fail(error);
      return false;
    }
  }

  #storeList(items: readonly Entry<View>[], resourceVersion: string, askedMs: number): void {
    this.#needsList = false;
    const changes = this.#entries.replace(items);
    this.#mark.raise(resourceVersion);
    this.#contact.recordMessage();
    this.#contact.recordList(askedMs);
    this.#succeed();
    for (const change of changes) this.#notify(change);
    this.#report();
  }

  async #refuseList(resourceVersion: string): Promise<void> {
    const message = `the API server returned a stale list: resourceVersion ${resourceVersion} after ${this.#mark.value}`;
    this.#failure = { reason: 'unreachable', message };
    this.#report();
    await this.#wait(this.#soon.nextMs());
  }

  /** Watches from the version of the store repeatedly, until a list is necessary. */
  async #follow(): Promise<void> {
    const { env } = this.#options;
    // A list may be wanted during the pause after a watch. Another watch before it is useless, and its denial would not delay the list.
    while (!this.#stopped.signal.aborted && !this.#needsList) {
      const openedMs = env.clock.monotonicMs();
      const from = this.#mark.value;
      const end = await this.#watch();
      if (this.#stopped.signal.aborted || this.#needsList) return;
      const livedMs = env.clock.monotonicMs() - openedMs;
      const hasAdvanced = this.#mark.value !== from;
      if (hasAdvanced || livedMs >= settledMs) this.#soon.reset();
      if (await this.#handleEnd(end, { livedMs, hasAdvanced })) return;
      if (env.clock.monotonicMs() - this.#listedMs >= (this.#options.relistMs ?? usualRelistMs)) return;
    }
  }

  /** Handles the end of a watch. Returns true if a list must follow. */
  async #handleEnd(
    end: WatchEnd<Verdict>,
    { livedMs, hasAdvanced }: { readonly livedMs: number; readonly hasAdvanced: boolean },
  ): Promise<boolean> {
    switch (end.kind) {
      case 'failed':
        return await this.#handleError(end.error);
      case 'verdict':
        return await this.#handleVerdict(end.verdict);
      case 'stalled':
        return false;
      case 'closed':
        // If the server closed the watch at once without an event, the delay grows. Otherwise the watch opens again soon.
        if (livedMs < reopenMs) await this.#wait(hasAdvanced ? reopenMs * (1 + this.#options.env.random()) - livedMs : this.#soon.nextMs());
        return false;
    }
  }

  #watch() {
    const { env, resource, namespace, site } = this.#options;
    const query = selectorQuery(this.#options);
    query.set('watch', '1');
    query.set('allowWatchBookmarks', 'true');
    query.set('resourceVersion', this.#mark.value ?? '');
    // The timeout is random, so that the watches of many processes do not all end together.
    query.set('timeoutSeconds', String(Math.floor(300 + 300 * env.random())));
    const ending = new AbortController();
    this.#endWatch = () => ending.abort();
    return watchOnce<Verdict>({
      env,
      path: `${collectionPath(resource, namespace)}?${query}`,
      site: `${site}.watch`,
      openTimeoutMs: timeoutMs,
      idleMs,
      signal: ending.signal,
      onOpen: () => {
        this.#contact.recordMessage();
        this.#succeed();
        this.#report();
      },
      onLine: (line) => this.#read(line),
    });
  }

  /** Handles an error of the watch. Returns true if a list must follow. */
  async #handleError(error: unknown): Promise<boolean> {
    if (isStatus(error, 410)) {
      // Many watches expire together when a server restarts, so the next list waits for a random time.
      await this.#wait(this.#soon.nextMs());
      return true;
    }
    const { deniedWatchMs } = this.#options;
    if (deniedWatchMs !== undefined && isStatus(error, 403)) {
      await this.#wait(deniedWatchMs);
      return true;
    }
    await this.#fail(error);
    return isStatus(error, 400, 403, 404, 405);
  }

  async #handleVerdict(verdict: Verdict): Promise<boolean> {
    if (verdict.kind === 'error') return this.#handleError(verdict.error);
    await this.#wait(this.#soon.nextMs());
    return true;
  }

  #read(text: string): Verdict | undefined {
    if (text === '') return undefined;
    const { resource, site } = this.#options;
    const line: WatchLine = parseWatchLine(text, resource, `${site}.watch`);
    if (line.kind === 'unparsable' || line.kind === 'error') return line;
    this.#contact.recordMessage();
    const { resourceVersion } = line;
    // Events of one collection are ordered by version. An older event was sent twice, or by a stale server.
    const order = compareResourceVersions(resourceVersion, this.#mark.value ?? '');
    if (order !== undefined && order <= 0) return undefined;
    this.#mark.raise(resourceVersion);
    this.#contact.recordNews();
    if (line.kind === 'bookmark') return undefined;
    const { namespace = '', name } = line.object.metadata;
    const changes = line.kind === 'gone' ? this.#entries.remove(namespace, name) : this.#entries.put(this.#entryOf(line.object));
    for (const change of changes) this.#notify(change);
    if (changes.length > 0) this.#report();
    return undefined;
  }

  #entryOf(object: KubernetesObject): Entry<View> {
    const { namespace = '', name, uid = '', resourceVersion = '' } = object.metadata;
    const key = { namespace, name, uid, resourceVersion };
    try {
      return { ...key, content: { kind: 'view', view: this.#options.project(object) } };
    } catch (error) {
      return { ...key, content: { kind: 'invalid', message: messageOf(error) } };
    }
  }

  async #fail(error: unknown): Promise<void> {
    if (this.#stopped.signal.aborted) return;
    const reason = reasonOf(error);
    this.#failure = { reason, message: messageOf(error) };
    this.#report();
    const delayMs = reason === 'unreachable' ? this.#soon.nextMs() : this.#slow.nextMs();
    const askedMs = error instanceof ApiFailure ? (error.retryAfterMs ?? 0) : 0;
    await this.#wait(Math.max(delayMs, askedMs));
  }

  #succeed(): void {
    if (this.#syncedMs === undefined || this.#failure !== undefined) this.#syncedMs = this.#options.env.clock.nowMs();
    this.#failure = undefined;
  }

  #invalidObjects(): Failure | undefined {
    const [first, ...others] = this.#entries.invalid();
    if (first === undefined) return undefined;
    const place = first.namespace === '' ? first.name : `${first.namespace}/${first.name}`;
    const more = others.length === 0 ? '' : `, and ${others.length} more`;
    return { reason: 'invalid', message: `${this.#options.resource.kind} ${place} cannot be parsed: ${first.message}${more}` };
  }

  #notify(change: Change<View>): void {
    this.#call(() => this.#options.onChange(change));
  }

  #report(): void {
    const state = this.state();
    const summary = state.kind === 'failing' ? `${state.kind} ${state.reason} ${state.hasSynced} ${state.message}` : state.kind;
    if (summary === this.#reported) return;
    this.#reported = summary;
    this.#call(() => this.#options.onState?.(state));
  }

  #call(callback: () => void): void {
    if (this.#stopped.signal.aborted) return;
    try {
      callback();
    } catch {
      // The store is complete without the callback, so the reflector continues.
    }
  }

  #wait(delayMs: number): Promise<void> {
    return sleep(this.#options.env, delayMs, this.#stopped.signal);
  }
}

function reasonOf(error: unknown): FailureReason {
  if (isStatus(error, 403)) return 'forbidden';
  return isStatus(error, 404, 405) ? 'missing' : 'unreachable';
}

export type ReflectorState =
  | { readonly kind: 'starting' }
  /** The store has been up to date since `atMs` of the wall clock. */
  | { readonly kind: 'synced'; readonly atMs: number }
  | {
      readonly kind: 'failing';
      /** `unreachable`: no answer, an error, or a stale list. `invalid`: up to date except for unparsable objects (`store.invalid()`). */
      readonly reason: FailureReason;
      readonly message: string;
      /** True if a list succeeded earlier. Then the store has the state of the last contact. */
      readonly hasSynced: boolean;
    };

type FailureReason = 'forbidden' | 'missing' | 'unreachable' | 'invalid';

export interface ReflectorOptions<View> {
  readonly env: ClusterEnv;
  readonly resource: Resource;
  /** The namespace to follow; all namespaces if absent. */
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  /** Returns the kept part of an object. If `project` throws, the object is invalid; other objects are not affected. */
  readonly project: (object: KubernetesObject) => View;
  /** Runs once for each change, after the store contains it. Exceptions are ignored. */
  readonly onChange: (change: Change<View>) => void;
  /** Runs after each change of the state. */
  readonly onState?: (state: ReflectorState) => void;
  /** The call site for logs and injected faults; `.list` and `.watch` are appended. */
  readonly site: string;
  /** The maximum age of the last list when a watch ends, in milliseconds; default 30 minutes. */
  readonly relistMs?: number | undefined;
  /** The time to the next list if the client may list but not watch, in milliseconds. Absent: as after any other denial, at least 30 s. */
  readonly deniedWatchMs?: number | undefined;
}

/** Lines that arrive within this time count as one message: a watch that catches up sends many lines at once. */
const messageMs = 1000;

/**
 * Tracks the last contact with the server and the maximum age of the known state. A delayed server first sends old events: they may have
 * happened at any time since the previous message. So the state is certain only as of the time at which the previous message arrived.
 */
export class Contact {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  #heardMs: number | undefined;
  /** The begin and the end (so far) of the latest message. */
  #begunMs = Number.NEGATIVE_INFINITY;
  #newestMs = Number.NEGATIVE_INFINITY;
  #certainMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
  }

  recordMessage(): void {
    this.#heardMs = this.#clock.monotonicMs();
  }

  recordNews(): void {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#begunMs >= messageMs) {
      this.#certainMs = Math.max(this.#certainMs, this.#newestMs);
      this.#begunMs = nowMs;
    }
    this.#newestMs = nowMs;
  }

  /** Records a list that is complete as of `asOfMs` (monotonic clock) or later. */
  recordList(asOfMs: number): void {
    this.#begunMs = this.#clock.monotonicMs();
    this.#newestMs = asOfMs;
    this.#certainMs = Math.max(this.#certainMs, asOfMs);
  }

  /** Returns the milliseconds since the last message; undefined before the first. */
  silentMs(): number | undefined {
    return this.#heardMs === undefined ? undefined : this.#clock.monotonicMs() - this.#heardMs;
  }

  /** Returns the maximum age of the state in milliseconds; infinite before the first list. */
  ageMs(): number {
    return this.#clock.monotonicMs() - this.#certainMs;
  }
}
