// The objects that replicas are mirrored from, read once.
import { discover } from '../../cluster/request/discovery.ts';
import { isStatus } from '../../cluster/request/failure.ts';
import { getObject } from '../../cluster/request/read.ts';
import type { Resource } from '../../cluster/request/resource.ts';
import { observeReplicaSource } from '../../engine/observe/source.ts';
import type { ReplicaSourceView } from '../../engine/snapshot.ts';
import type { GroupDefinition, ReplicasDefinition } from '../../policies/definition.ts';
import type { Cluster } from '../connection.ts';

type MirrorDefinition = Extract<ReplicasDefinition, { readonly kind: 'mirror' }>;

/** Asks nothing when no group mirrors anything. What may not be read is unknown. */
export async function readReplicaSources(cluster: Cluster, groups: readonly GroupDefinition[]): Promise<readonly ReplicaSourceView[]> {
  const mirrors = groups.flatMap(({ namespace, zones }) =>
    zones.flatMap(({ replicas }) => (replicas.kind === 'mirror' ? [{ namespace, mirror: replicas }] : [])),
  );
  const distinct = new Map(
    mirrors.map((one) => [`${one.namespace}/${one.mirror.apiVersion}/${one.mirror.resourceKind}/${one.mirror.name}`, one]),
  );
  if (distinct.size === 0) return [];
  const find = await resourceFinder(cluster);
  return Promise.all([...distinct.values()].map(({ namespace, mirror }) => readOne(cluster, namespace, mirror, find(mirror))));
}

/** Where the API server serves the kind of a mirrored object; undefined when it does not. */
export async function resourceFinder({ env, timeoutMs }: Cluster): Promise<(mirror: MirrorDefinition) => Resource | undefined> {
  const discovery = await discover(env, { timeoutMs });
  return ({ apiVersion, resourceKind }) => {
    const [first = '', second] = apiVersion.split('/');
    const [group, version] = second === undefined ? ['', first] : [first, second];
    return discovery.find({ group, version, kind: resourceKind })[0];
  };
}

async function readOne(
  { env, timeoutMs }: Cluster,
  namespace: string,
  mirror: MirrorDefinition,
  resource: Resource | undefined,
): Promise<ReplicaSourceView> {
  const { apiVersion, resourceKind: kind, name, read, fieldPath } = mirror;
  const identity = { namespace, apiVersion, kind, name };
  if (resource === undefined) return { ...identity, replicas: { unknown: `the API server serves no ${kind} of ${apiVersion}` } };
  try {
    const subresource = read === 'scale' ? { subresource: 'scale' } : {};
    const object = await getObject(env, resource, { namespace, name }, { site: 'live.replicaSource', timeoutMs, ...subresource });
    return observeReplicaSource({ ...identity, read, fieldPath }, object);
  } catch (error) {
    if (!isStatus(error, 403, 404)) throw error;
    return { ...identity, replicas: { unknown: error.message } };
  }
}
