// Checks whether the caches match the objects that people wrote. A pause that no watch reported must be found before a pod is deleted, and so must
// a recreated zone that only its labels name.
import type { ClusterEnv } from '../../cluster/env.ts';
import { isSameJson } from '../../cluster/request/json.ts';
import { listObjects } from '../../cluster/request/read.ts';
import type { Caches, FreshObjects } from '../watched/caches.ts';
import type { WrittenPlaces } from '../watched/written-objects.ts';

interface WrittenQuestion extends WrittenPlaces {
  readonly caches: Pick<Caches, 'written' | 'statefulSet'>;
  /** The StatefulSets as they were read past the caches, when they were. */
  readonly fresh: FreshObjects | undefined;
  /** A cache that is no older than this for certain is believed, in milliseconds. */
  readonly longestAgeMs: number;
  /** Timeout of each request in milliseconds. */
  readonly timeoutMs: number;
}

/**
 * Asks the quorum for what people have written wherever a cache may be behind, and compares it with the caches, from which definitions are made.
 * Returns false if a cache is stale, because the decision may already be forbidden (S28). Rejects if an object cannot be read.
 */
export async function isAsWritten(
  env: Pick<ClusterEnv, 'kubernetes' | 'clock'>,
  { caches, namespace, agentNamespace, fresh, longestAgeMs, timeoutMs }: WrittenQuestion,
): Promise<boolean> {
  for (const [name, set] of fresh?.statefulSets ?? []) {
    if (!isSameJson(set?.manifest, caches.statefulSet(namespace, name)?.manifest)) return false;
  }
  const doubtful = caches.written({ namespace, agentNamespace }).filter(({ ageMs }) => ageMs > longestAgeMs);
  const answers = await Promise.all(
    doubtful.map(async (written) => {
      const askedMs = env.clock.monotonicMs();
      const { items } = await listObjects(env, written.resource, { namespace: written.namespace, site: 'written.list', timeoutMs });
      const isSame = written.isSame(items);
      if (isSame) written.confirm(askedMs);
      else written.relist();
      return isSame;
    }),
  );
  return answers.every((isSame) => isSame);
}
