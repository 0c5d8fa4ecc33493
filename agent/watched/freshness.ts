// Tracks the object states that the caches must reach before the next decision, after writes by the agent and direct reads.
import { compareResourceVersions } from '../../cluster/request/resource.ts';

/** An object that the agent wrote or read directly, with the state that the cache must reach: its deletion or a resource version. */
export type ChangedObject = {
  readonly kind: 'pod' | 'statefulSet';
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
} & ({ readonly deletion: 'begun' | 'completed' } | { readonly deletion?: undefined; readonly resourceVersion: string });

interface CachedObject {
  readonly uid: string;
  readonly resourceVersion: string;
  readonly isTerminating: boolean;
}

export interface CacheView {
  readonly lookUp: (kind: ChangedObject['kind'], namespace: string, name: string) => CachedObject | undefined;
  /** Returns whether the cache has received every change up to this resource version. */
  readonly hasSeen: (kind: ChangedObject['kind'] | 'node', namespace: string, resourceVersion: string) => boolean;
}

/** The objects of one group for which the caches may still contain an older state. */
export class Freshness {
  readonly #caches: CacheView;
  #expected: readonly ChangedObject[] = [];

  constructor(caches: CacheView) {
    this.#caches = caches;
  }

  expect(objects: readonly ChangedObject[]): void {
    this.#expected = [...this.#expected, ...objects];
  }

  /** Returns whether a cache is stale for an expected object. Forgets the objects whose state the caches have reached. */
  hasStaleCache(): boolean {
    this.#expected = this.#expected.filter((object) => !this.#isSeen(object));
    return this.#expected.length > 0;
  }

  /** Forgets all expectations, because the objects were read directly. */
  clear(): void {
    this.#expected = [];
  }

  #isSeen(object: ChangedObject): boolean {
    const cached = this.#caches.lookUp(object.kind, object.namespace, object.name);
    const { deletion } = object;
    if (deletion !== undefined) return cached?.uid !== object.uid || (deletion === 'begun' && cached.isTerminating);
    const { resourceVersion } = object;
    if (cached === undefined) return this.#caches.hasSeen(object.kind, object.namespace, resourceVersion);
    if (cached.resourceVersion === resourceVersion) return true;
    return (compareResourceVersions(cached.resourceVersion, resourceVersion) ?? 0) > 0;
  }
}
