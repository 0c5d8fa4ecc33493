// Models a controller's cache of one resource: commits arrive after a delay, own writes at once.
import type { Scheduler } from '../scheduler.ts';
import type { Commit, ModelObject } from '../server/request.ts';

export interface Informer {
  readonly get: (key: string) => ModelObject | undefined;
  readonly all: () => Iterable<ModelObject>;
  /** A commit of the resource; it arrives in the cache after the delay, in order. */
  readonly hear: (commit: Commit) => void;
  /** Applies an own write or a list. Never goes back. */
  readonly learn: (object: ModelObject) => void;
  /** Freezes the cache until it is thawed; the given objects replace the known ones. */
  readonly freeze: (past: readonly ModelObject[]) => void;
  /** Delivers everything under way at once. */
  readonly thaw: () => void;
  readonly isFrozen: () => boolean;
}

interface InformerOptions {
  readonly scheduler: Pick<Scheduler, 'nowMs' | 'after'>;
  /** Returns the time until the next commit arrives, in milliseconds. */
  readonly delayMs: () => number;
  /** Called after each arrival; `before` is the previous state. */
  readonly arrived: (after: ModelObject, before: ModelObject | undefined) => void;
  /** Called after a batch of arrivals. */
  readonly settled: () => void;
}

/** `namespace/name`. */
export function keyOf({ metadata }: ModelObject): string {
  return `${metadata.namespace ?? ''}/${metadata.name}`;
}

export function createInformer({ scheduler, delayMs, arrived, settled }: InformerOptions): Informer {
  const objects = new Map<string, ModelObject>();
  const pending: { readonly dueMs: number; readonly commit: Commit }[] = [];
  let lastDueMs = 0;
  let isFrozen = false;
  let cancel: (() => void) | undefined;

  const arrive = ({ type, after }: Commit): void => {
    const key = keyOf(after);
    const before = objects.get(key);
    // An own write may have delivered a newer state already.
    if (before !== undefined && versionOf(before) >= versionOf(after)) return;
    if (type === 'DELETED') objects.delete(key);
    else objects.set(key, after);
    arrived(after, before);
  };
  const deliver = (isAll: boolean): void => {
    cancel?.();
    cancel = undefined;
    let count = 0;
    for (const { dueMs, commit } of pending) {
      if (!isAll && dueMs > scheduler.nowMs()) break;
      arrive(commit);
      count += 1;
    }
    pending.splice(0, count);
    if (count > 0) settled();
    wait();
  };
  const wait = (): void => {
    const [head] = pending;
    if (head === undefined || isFrozen || cancel !== undefined) return;
    cancel = scheduler.after(head.dueMs - scheduler.nowMs(), () => {
      cancel = undefined;
      deliver(false);
    });
  };
  return {
    get: (key) => objects.get(key),
    all: () => objects.values(),
    hear: (commit) => {
      lastDueMs = Math.max(lastDueMs, scheduler.nowMs() + delayMs());
      pending.push({ dueMs: lastDueMs, commit });
      wait();
    },
    learn: (object) => {
      const before = objects.get(keyOf(object));
      if (isFrozen || (before !== undefined && versionOf(before) >= versionOf(object))) return;
      objects.set(keyOf(object), object);
    },
    freeze: (past) => {
      isFrozen = true;
      cancel?.();
      cancel = undefined;
      for (const object of past) objects.set(keyOf(object), object);
    },
    thaw: () => {
      isFrozen = false;
      lastDueMs = 0;
      deliver(true);
    },
    isFrozen: () => isFrozen,
  };
}

function versionOf({ metadata }: ModelObject): number {
  return Number(metadata.resourceVersion);
}
