// The objects from which groups mirror their replicas, read once.
import { isStatus } from '../../cluster/request/failure.ts';
import { getObject } from '../../cluster/request/read.ts';
import type { KubernetesObject, Resource } from '../../cluster/request/resource.ts';
import { observeReplicaSource, type ReplicaSourceReference } from '../../engine/observe/source.ts';
import { isUnknown, type Known, type ReplicaSourceView } from '../../engine/snapshot.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import type { Cluster } from '../connection.ts';
import { resourcesOf } from './resources.ts';

/** A replica source as the engine reads it, with its object or Scale when there is one. */
interface ReadReplicaSource {
  readonly view: ReplicaSourceView;
  readonly object: KubernetesObject | undefined;
}

/** Reads the numbers of the replica sources of the groups. */
export async function readReplicaSources(cluster: Cluster, groups: readonly GroupDefinition[]): Promise<readonly ReplicaSourceView[]> {
  return (await readReplicaSourceObjects(cluster, groups)).map(({ view }) => view);
}

/** Reads the replica sources of the groups; sends no request when no group mirrors anything. A source that may not be read is unknown. */
export async function readReplicaSourceObjects(
  cluster: Cluster,
  groups: readonly GroupDefinition[],
): Promise<readonly ReadReplicaSource[]> {
  const references = new Map<string, ReplicaSourceReference>();
  for (const { namespace, zones } of groups) {
    for (const { replicas } of zones) {
      if (replicas.kind !== 'mirror') continue;
      const { apiVersion, resourceKind: kind, name, read, fieldPath } = replicas;
      references.set(`${namespace}/${apiVersion}/${kind}/${name}`, { namespace, apiVersion, kind, name, read, fieldPath });
    }
  }
  const find = await resourcesOf(cluster, [...references.values()]);
  return Promise.all(
    [...references.values()].map(async (reference) => {
      const { namespace, apiVersion, kind, name } = reference;
      const object = await readSource(cluster, reference, find(apiVersion, kind));
      if (isUnknown(object)) return { view: { namespace, apiVersion, kind, name, replicas: object }, object: undefined };
      return { view: observeReplicaSource(reference, object), object };
    }),
  );
}

async function readSource(
  { env, timeoutMs }: Cluster,
  { apiVersion, kind, namespace, name, read }: ReplicaSourceReference,
  resource: Resource | undefined,
): Promise<Known<KubernetesObject | undefined>> {
  if (resource === undefined) return { unknown: `the kind ${kind} of ${apiVersion} is not installed` };
  try {
    const subresource = read === 'scale' ? { subresource: 'scale' } : {};
    return await getObject(env, resource, { namespace, name }, { site: 'live.replicaSource', timeoutMs, ...subresource });
  } catch (error) {
    if (isStatus(error, 403)) return { unknown: `no permission to get ${resource.plural}${read === 'scale' ? '/scale' : ''}` };
    if (isStatus(error, 404)) return { unknown: `${kind} ${namespace}/${name} has no scale subresource` };
    throw error;
  }
}
