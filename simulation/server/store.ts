// The storage behind every front end: one revision counter, the newest state of each object, and as much of the past as is not compacted away.
import type { Commit, Json, ModelObject } from './request.ts';

/** Where the counter begins; a real server has made some hundred commits of its own before anybody asks. */
const firstRevision = 1000;
/** Every so often everything older than the last time is compacted away, as the API server asks etcd to. */
const compactionMs = 300_000;
/** A watch cache keeps at least so many events of a resource, and all that are younger than `freshMs`. */
const keptEvents = 100;
const freshMs = 75_000;

type Change = Pick<Commit, 'type' | 'resource' | 'actor'> & {
  /** Absent when it is new. */
  readonly before?: ModelObject;
  /** As it is to be stored; its resourceVersion is given by the storage. */
  readonly object: ModelObject;
};

export class Storage {
  readonly #nowMs: () => number;
  readonly #collections = new Map<string, Collection>();
  readonly #listeners: ((commit: Commit) => void)[] = [];
  #revision = firstRevision;
  #compacted = 0;
  #nextCompaction = { revision: firstRevision, atMs: 0 };

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  get revision(): number {
    return this.#revision;
  }

  /** What was before this revision cannot be listed any more. */
  get compacted(): number {
    return this.#compacted;
  }

  /** Calls back after each commit, in order. */
  onCommit(listener: (commit: Commit) => void): void {
    this.#listeners.push(listener);
  }

  collection(resource: string): Collection {
    let collection = this.#collections.get(resource);
    if (collection === undefined) {
      collection = new Collection();
      this.#collections.set(resource, collection);
    }
    return collection;
  }

  /** Makes the change and answers the object as it is stored now, or as it was last. */
  commit({ type, resource, before, object, actor }: Change): ModelObject {
    this.#revision += 1;
    const after = withVersion(object, this.#revision);
    const told = { revision: this.#revision, atMs: this.#nowMs(), type, resource, after, actor };
    const commit: Commit = before === undefined ? told : { ...told, before };
    this.collection(resource).take(commit);
    this.#compactInTime(commit.atMs);
    for (const listener of this.#listeners) listener(commit);
    return after;
  }

  /** Forgets everything but the newest state. */
  compact(): void {
    this.#compacted = this.#revision;
  }

  #compactInTime(atMs: number): void {
    if (atMs - this.#nextCompaction.atMs < compactionMs) return;
    this.#compacted = Math.max(this.#compacted, this.#nextCompaction.revision);
    this.#nextCompaction = { revision: this.#revision, atMs };
    for (const collection of this.#collections.values()) collection.forget(this.#compacted, atMs);
  }
}

/** The objects of one resource in the order of the storage's keys, and the changes that led to them. */
export class Collection {
  readonly #objects = new Map<string, ModelObject>();
  #sorted: readonly ModelObject[] | undefined;
  /** Oldest first. */
  #events: Commit[] = [];
  /** Of the newest event that was dropped. */
  #dropped = 0;

  get(namespace: string, name: string): ModelObject | undefined {
    return this.#objects.get(`${namespace}/${name}`);
  }

  list(): readonly ModelObject[] {
    this.#sorted ??= sorted(this.#objects);
    return this.#sorted;
  }

  /** As it was when the revision was the newest one. */
  listAt(revision: number): readonly ModelObject[] {
    const newest = this.#events.at(-1);
    if (newest === undefined || newest.revision <= revision) return this.list();
    const objects = new Map(this.#objects);
    for (let index = this.#events.length - 1; index >= 0; index -= 1) {
      const event = this.#events[index];
      if (event === undefined || event.revision <= revision) break;
      const key = keyOf(event.after);
      if (event.before === undefined) objects.delete(key);
      else objects.set(key, event.before);
    }
    return sorted(objects);
  }

  /** Events after the revision, oldest first. */
  since(revision: number): readonly Commit[] {
    const events = this.#events;
    let index = events.length;
    while (index > 0 && (events[index - 1]?.revision ?? 0) > revision) index -= 1;
    return events.slice(index);
  }

  /** The oldest revision from which a watch cache can tell all that followed. */
  oldestWatchable(atMs: number): number {
    const index = this.#events.length - keptEvents - 1;
    for (let at = index; at >= 0; at -= 1) {
      const event = this.#events[at];
      if (event !== undefined && atMs - event.atMs > freshMs) return event.revision;
    }
    return this.#dropped;
  }

  take(commit: Commit): void {
    const key = keyOf(commit.after);
    this.#events.push(commit);
    if (commit.type === 'DELETED') this.#objects.delete(key);
    else this.#objects.set(key, commit.after);
    this.#sorted = undefined;
  }

  /** Drops events that neither a list nor a watch can ask for. */
  forget(compacted: number, atMs: number): void {
    const limit = this.#events.length - keptEvents;
    let count = 0;
    for (; count < limit; count += 1) {
      const event = this.#events[count];
      if (event === undefined || event.revision > compacted || atMs - event.atMs <= freshMs) break;
      this.#dropped = event.revision;
    }
    if (count > 0) this.#events = this.#events.slice(count);
  }
}

/** As etcd orders the keys: bytes of `namespace/name`. */
function sorted(objects: ReadonlyMap<string, ModelObject>): readonly ModelObject[] {
  return [...objects.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object);
}

/** The key of an object within its resource. */
export function keyOf({ metadata: { namespace = '', name } }: ModelObject): string {
  return `${namespace}/${name}`;
}

function withVersion(object: ModelObject, revision: number): ModelObject {
  return { ...object, metadata: { ...object.metadata, resourceVersion: String(revision) } };
}

const texts = new WeakMap<Json, string>();

/** The object as text, made once for each version of it. */
export function textOf(object: Json): string {
  let text = texts.get(object);
  if (text === undefined) {
    text = JSON.stringify(object);
    texts.set(object, text);
  }
  return text;
}
