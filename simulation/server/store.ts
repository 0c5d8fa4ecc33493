// Implements the storage behind all front ends: the revision counter, the newest state of each object, and the recent history.

import { keptByObject } from '../../policies/values/map.ts';
import type { Commit, Json, ModelObject } from './request.ts';

/** The revision before the first commit. A real cluster has several hundred commits before its first workload. */
const firstRevision = 1000;
/** The interval at which the API server compacts the history in etcd. */
const compactionMs = 300_000;
/** The minimum number of events of a resource that a watch cache keeps. It keeps more events if they are younger than `freshMs`. */
const keptEvents = 100;
const freshMs = 75_000;

type Change = Pick<Commit, 'type' | 'resource' | 'actor'> & {
  /** Absent for a new object. */
  readonly before?: ModelObject;
  /** The state to store. The storage sets its resourceVersion. */
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

  /** The compacted revision. Older revisions cannot be listed. */
  get compacted(): number {
    return this.#compacted;
  }

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

  /** Commits the change. Returns the stored object, or the last state of a deleted object. */
  commit({ type, resource, before, object, actor }: Change): ModelObject {
    this.#revision += 1;
    const after = { ...object, metadata: { ...object.metadata, resourceVersion: String(this.#revision) } };
    const added = { revision: this.#revision, atMs: this.#nowMs(), type, resource, after, actor };
    const commit: Commit = before === undefined ? added : { ...added, before };
    this.collection(resource).take(commit);
    this.#compactInTime(commit.atMs);
    for (const listener of this.#listeners) listener(commit);
    return after;
  }

  /** Makes all states except the newest state unavailable for lists. */
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

/** The objects of one resource in key order, and their history. */
export class Collection {
  readonly #objects = new Map<string, ModelObject>();
  #sorted: readonly ModelObject[] | undefined;
  #events: Commit[] = [];
  /** The revision of the newest dropped event. */
  #dropped = 0;

  get(namespace: string, name: string): ModelObject | undefined {
    return this.#objects.get(`${namespace}/${name}`);
  }

  list(): readonly ModelObject[] {
    this.#sorted ??= sorted(this.#objects);
    return this.#sorted;
  }

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

  /** Returns the events after the revision, the oldest first. */
  since(revision: number): readonly Commit[] {
    const events = this.#events;
    let index = events.length;
    while (index > 0 && (events[index - 1]?.revision ?? 0) > revision) index -= 1;
    return events.slice(index);
  }

  /** Returns the oldest revision after which a watch cache knows all events. */
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

  /** Drops events that no list and no watch can request any more. */
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

/** Returns the objects in the key order of etcd: the bytes of `namespace/name`. */
function sorted(objects: ReadonlyMap<string, ModelObject>): readonly ModelObject[] {
  return [...objects.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object);
}

/** Returns the key of an object within its resource. */
export function keyOf({ metadata: { namespace = '', name } }: ModelObject): string {
  return `${namespace}/${name}`;
}

/** Returns the object as text, encoded once per version. */
export const textOf = keptByObject((object: Json): string => JSON.stringify(object));
