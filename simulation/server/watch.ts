// Implements one watch of the API server: past events since a version, then new events, with bookmarks and a timeout.
import { apiVersionOf } from '../../cluster/request/resource.ts';
import type { WatchCache } from './front-end.ts';
import type { ServedKind } from './kinds.ts';
import { badRequest, expired, internal, statusOf } from './refusal.ts';
import type { Commit, Json, ModelObject, ModelWatch, WatchSink } from './request.ts';
import type { Selects } from './selector.ts';
import { textOf } from './store.ts';

/** The interval of bookmarks, and the time from the last bookmark to the end of the watch. */
const bookmarkMs = 60_000;
const beforeEndMs = 2000;
/** The range of the lifetime of a watch without a timeout: 30 minutes to an hour. */
const defaultTimeoutMs = { from: 1_800_000, to: 3_600_000 };
const openingMs = 1;

interface WatchOptions {
  readonly kind: ServedKind;
  readonly namespace: string;
  readonly query: URLSearchParams;
  readonly selects: Selects | undefined;
  /** A random number from 0 to 1. It determines the lifetime of a watch without a timeout. */
  readonly chance: number;
}

interface WatchStart {
  /** The revision after which events are sent; undefined if the watch begins with the existing objects. */
  readonly revision: number | undefined;
  /** True if the watch begins with the newest stored state instead of the state in the cache. */
  readonly isConsistent: boolean;
  /** True if a bookmark marks the end of the existing objects. */
  readonly marksBeginning: boolean;
  readonly hasBookmarks: boolean;
  readonly timeoutMs: number;
}

/** Opens the watch. Sends no line before this function returns. Throws Refusal. */
export function openWatch(cache: WatchCache, options: WatchOptions, sink: WatchSink): ModelWatch {
  const start = watchStartOf(options);
  return new OpenWatch(cache, options, start, sink);
}

function watchStartOf({ query, chance }: WatchOptions): WatchStart {
  const version = query.get('resourceVersion') ?? '';
  const hasBookmarks = ['true', '1'].includes(query.get('allowWatchBookmarks') ?? '');
  // A watch with bookmarks counts as a streaming list if its version is absent or 0.
  const isStreamingList = (version === '' || version === '0') && hasBookmarks;
  const seconds = query.get('timeoutSeconds');
  if (seconds !== null && !/^-?\d+$/.test(seconds)) throw badRequest(`strconv.ParseInt: parsing "${seconds}": invalid syntax`);
  if (!/^\d*$/.test(version)) {
    throw internal(`resourceVersion: Invalid value: "${version}": strconv.ParseUint: parsing "${version}": invalid syntax`);
  }
  const timeoutMs = Number(seconds ?? 0) * 1000;
  return {
    revision: version === '' || version === '0' ? undefined : Number(version),
    isConsistent: isStreamingList && version === '',
    marksBeginning: isStreamingList,
    hasBookmarks,
    timeoutMs: timeoutMs > 0 ? timeoutMs : defaultTimeoutMs.from + (defaultTimeoutMs.to - defaultTimeoutMs.from) * chance,
  };
}

class OpenWatch implements ModelWatch {
  readonly #cache: WatchCache;
  readonly #options: WatchOptions;
  readonly #sink: WatchSink;
  readonly #endMs: number;
  readonly #stop: () => void;
  /** The lines that wait until the response headers are sent; undefined afterwards. */
  #held: string[] | undefined = [];
  #isOver = false;
  #cancelBookmark: () => void = () => undefined;
  #cancelEnd: () => void = () => undefined;
  #sentRevision: number;

  constructor(cache: WatchCache, options: WatchOptions, start: WatchStart, sink: WatchSink) {
    const { scheduler, storage } = cache.frontEnd;
    this.#cache = cache;
    this.#options = options;
    this.#sink = sink;
    this.#endMs = scheduler.nowMs() + start.timeoutMs;
    const version = cache.version();
    const isTooOld = start.revision !== undefined && start.revision < cache.oldest();
    // A real API server waits until the cache is current. The state of the storage gives the same result.
    const begin = start.isConsistent ? storage.revision : version;
    this.#sentRevision = start.revision === undefined ? begin : Math.max(start.revision, begin);
    if (isTooOld)
      this.#send({ type: 'ERROR', object: statusOf(expired(`too old resource version: ${start.revision ?? 0} (${cache.oldest()})`)) });
    else if (start.revision !== undefined) this.#sendSince(start.revision, version);
    else this.#sendAll(begin);
    if (start.marksBeginning) this.#bookmark(begin, { 'k8s.io/initial-events-end': 'true' });
    this.#stop = cache.follow({ saw: (commit) => this.#saw(commit), cut: (reason) => this.#finish(reason) });
    scheduler.after(openingMs, () => this.#begin(isTooOld));
    this.#cancelEnd = scheduler.after(start.timeoutMs, () => this.#finish('the time of the watch is over'));
    if (start.hasBookmarks && !isTooOld) this.#planBookmark();
  }

  close(): void {
    this.#isOver = true;
    this.#release();
  }

  #begin(isTooOld: boolean): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const line of held) if (!this.#isOver) this.#sink.line(line);
    if (isTooOld) this.#finish('the version is too old');
  }

  #finish(reason: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#release();
    this.#sink.end(reason);
  }

  #release(): void {
    this.#stop();
    this.#cancelBookmark();
    this.#cancelEnd();
  }

  #saw(commit: Commit): void {
    if (commit.revision <= this.#sentRevision) return;
    this.#sentRevision = commit.revision;
    this.#sendCommit(commit);
  }

  #sendSince(revision: number, version: number): void {
    for (const commit of this.#cache.collection.since(revision)) if (commit.revision <= version) this.#sendCommit(commit);
  }

  #sendAll(version: number): void {
    for (const object of this.#cache.collection.listAt(version)) {
      if (this.#isSelected(object)) this.#sendLine(lineOf('ADDED', object));
    }
  }

  /** Sends a commit. An object that begins to match is ADDED. An object that stops matching is DELETED, in its former state. */
  #sendCommit({ type, before, after, revision }: Commit): void {
    const wasSelected = before !== undefined && this.#isSelected(before);
    if (type === 'DELETED') {
      if (wasSelected) this.#sendLine(lineOf('DELETED', after));
      return;
    }
    if (this.#isSelected(after)) this.#sendLine(lineOf(wasSelected ? 'MODIFIED' : 'ADDED', after));
    else if (wasSelected) {
      this.#send({ type: 'DELETED', object: { ...before, metadata: { ...before.metadata, resourceVersion: String(revision) } } });
    }
  }

  #isSelected(object: ModelObject): boolean {
    const { namespace, selects } = this.#options;
    return (namespace === '' || object.metadata.namespace === namespace) && (selects === undefined || selects(object));
  }

  #planBookmark(): void {
    const { scheduler } = this.#cache.frontEnd;
    const leftMs = this.#endMs - scheduler.nowMs();
    const isLast = leftMs - beforeEndMs <= bookmarkMs;
    const delayMs = isLast ? leftMs - beforeEndMs : bookmarkMs;
    if (delayMs <= 0) return;
    this.#cancelBookmark = scheduler.after(delayMs, () => {
      this.#bookmark(this.#cache.version(), undefined);
      this.#planBookmark();
    });
  }

  #bookmark(revision: number, annotations: Json | undefined): void {
    const { kind } = this.#options;
    const metadata = { resourceVersion: String(revision), ...(annotations !== undefined && { annotations }) };
    this.#send({ type: 'BOOKMARK', object: { kind: kind.kind, apiVersion: apiVersionOf(kind), metadata } });
  }

  #send(event: Json): void {
    this.#sendLine(JSON.stringify(event));
  }

  #sendLine(line: string): void {
    if (this.#isOver) return;
    if (this.#held === undefined) this.#sink.line(line);
    else this.#held.push(line);
  }
}

function lineOf(type: string, object: ModelObject): string {
  return `{"type":"${type}","object":${textOf(object)}}`;
}
