// Compares the cached objects that people wrote with directly read ones.
import type { ClusterEnv } from '../../cluster/env.ts';
import { isSameJson } from '../../cluster/request/json.ts';
import type { KubernetesObject, Resource } from '../../cluster/request/resource.ts';
import type { Watched } from './watched.ts';

/** The objects of one kind and namespace that people write, as a cache has them. */
export interface WrittenObjects {
  readonly resource: Resource;
  readonly namespace: string;
  /** States how long ago a change of them would certainly have been known, in milliseconds: heard of, or found by a list that said the same. */
  readonly ageMs: number;
  /** They were read past the cache by a request that was sent then (monotonic), and are the same. */
  readonly confirm: (askedMs: number) => void;
  /** Reports whether the cache says the same as these, which were read past it. */
  readonly isSame: (objects: readonly KubernetesObject[]) => boolean;
  /** Lists again at once, because a direct read differs: the watch is stale or missed a change. */
  readonly relist: () => void;
}

/** The namespaces to compare. */
export interface WrittenPlaces {
  /** Namespace of the group. */
  readonly namespace: string;
  /** Namespace of policies that bind other namespaces. */
  readonly agentNamespace: string;
}

/** A kind that people write. */
interface WrittenKind {
  readonly resource: Resource;
  readonly watched: Pick<Watched<unknown>, 'problem' | 'ageMs' | 'degradation' | 'relist'>;
  /** Reports whether such objects concern only their own namespace. */
  readonly isLocal: boolean;
  /** Returns the parts that people write, by name: from the cache, and from given objects. */
  readonly known: (namespace: string) => readonly Said[];
  readonly read: (objects: readonly KubernetesObject[]) => readonly Said[];
}

/** The name of an object and its content. */
export type Said = readonly [name: string, says: unknown];

/** The objects that people have written, kind by kind; kinds that the server does not serve, or does not let us read, are left out. */
export function writtenObjects(
  { clock }: Pick<ClusterEnv, 'clock'>,
  kinds: readonly WrittenKind[],
): (places: WrittenPlaces) => readonly WrittenObjects[] {
  /** By kind and namespace: one list serves every group there. */
  const confirmedMs = new Map<string, number>();
  return ({ namespace: own, agentNamespace }) =>
    kinds.flatMap(({ resource, watched, isLocal, known, read }) => {
      if (watched.degradation()?.reason === 'missing') return [];
      const namespaces = isLocal ? [own] : [...new Set([own, agentNamespace])];
      const readable = namespaces.filter((one) => watched.problem(one) === undefined && watched.ageMs(one) < Number.POSITIVE_INFINITY);
      return readable.map((namespace): WrittenObjects => {
        const key = `${resource.kind} ${namespace}`;
        return {
          resource,
          namespace,
          ageMs: Math.min(watched.ageMs(namespace), clock.monotonicMs() - (confirmedMs.get(key) ?? Number.NEGATIVE_INFINITY)),
          confirm: (askedMs) => void confirmedMs.set(key, askedMs),
          isSame: (objects) => isSameJson(byName(known(namespace)), byName(read(objects))),
          relist: () => watched.relist(namespace),
        };
      });
    });
}

/** Sorts by name for the comparison. */
function byName(said: readonly Said[]): readonly Said[] {
  return [...said].sort(([a], [b]) => (a < b ? -1 : 1));
}
