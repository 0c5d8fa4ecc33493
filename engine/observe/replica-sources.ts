// The objects that groups read replicas from, and the watches for them.
import type { GroupDefinition } from '../../policies/definition.ts';
import type { ReplicaSourceReference } from './source.ts';

/** The objects that the zones of a group mirror, each once; of two ways to read one object the first zone's counts. */
export function replicaSourcesOf({ namespace, zones }: Pick<GroupDefinition, 'namespace' | 'zones'>): readonly ReplicaSourceReference[] {
  const found = new Map<string, ReplicaSourceReference>();
  for (const { replicas } of zones) {
    if (replicas.kind !== 'mirror') continue;
    const { apiVersion, resourceKind: kind, name, read, fieldPath } = replicas;
    const key = JSON.stringify([apiVersion, kind, name]);
    if (!found.has(key)) found.set(key, { namespace, apiVersion, kind, name, read, ...(fieldPath && { fieldPath }) });
  }
  return [...found.values()];
}

/** A kind that is to be watched; the group part of `apiVersion` alone matters where the version is empty or not served. */
interface WatchedKind {
  readonly apiVersion: string;
  readonly kind: string;
}

/** The kinds that are to be watched for the replicas of these groups, each once, sorted. */
export function watchedReplicaKinds(groups: readonly Pick<GroupDefinition, 'namespace' | 'zones'>[]): readonly WatchedKind[] {
  const found = new Map<string, WatchedKind>();
  for (const { apiVersion, kind } of groups.flatMap(replicaSourcesOf)) found.set(`${apiVersion} ${kind}`, { apiVersion, kind });
  return [...found.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, watched]) => watched);
}
