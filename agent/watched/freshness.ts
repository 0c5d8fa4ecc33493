// Tracks the states that the caches must show before the next decision: after own writes and direct reads.
import { compareResourceVersions } from '../../cluster/request/resource.ts';

/** An object that was written or read past the cache, and the least that the cache must know of it. */
export type ChangedObject = { readonly namespace: string; readonly name: string; readonly uid: string } & (
  | { readonly kind: 'pod'; readonly isGoing: true }
  | { readonly kind: 'pod' | 'statefulSet'; readonly isGoing?: false; readonly resourceVersion: string }
);

/** The cached state of one object. */
interface CachedObject {
  readonly uid: string;
  readonly resourceVersion: string;
  readonly isTerminating: boolean;
}

export interface CacheView {
  readonly lookUp: (kind: ChangedObject['kind'], namespace: string, name: string) => CachedObject | undefined;
  /** Reports whether the cache has seen everything up to this version. */
  readonly hasSeen: (kind: ChangedObject['kind'] | 'node', namespace: string, resourceVersion: string) => boolean;
}

/** The objects of one group of which the caches may still show an older state. */
export class Freshness {
  readonly #caches: CacheView;
  #expected: readonly ChangedObject[] = [];

  constructor(caches: CacheView) {
    this.#caches = caches;
  }

  expect(objects: readonly ChangedObject[]): void {
    this.#expected = [...this.#expected, ...objects];
  }

  /** Reports whether a cache is behind something that is known already. What it has caught up with is forgotten. */
  isBehind(): boolean {
    this.#expected = this.#expected.filter((object) => !this.#isSeen(object));
    return this.#expected.length > 0;
  }

  /** Forgets all expectations, because the objects are read directly. */
  clear(): void {
    this.#expected = [];
  }

  #isSeen(object: ChangedObject): boolean {
    const cached = this.#caches.lookUp(object.kind, object.namespace, object.name);
    if (object.isGoing) return cached === undefined || cached.uid !== object.uid || cached.isTerminating;
    const { resourceVersion } = object;
    if (cached === undefined) return this.#caches.hasSeen(object.kind, object.namespace, resourceVersion);
    if (cached.resourceVersion === resourceVersion) return true;
    return (compareResourceVersions(cached.resourceVersion, resourceVersion) ?? 0) > 0;
  }
}
