// Which resource an object belongs to, and the live object of the same name: known kinds at once, others by asking what the server serves.
import { discover } from '../../cluster/request/discovery.ts';
import { isStatus } from '../../cluster/request/failure.ts';
import { getObject } from '../../cluster/request/read.ts';
import { apiVersionOf, type KubernetesObject, type Resource, resources } from '../../cluster/request/resource.ts';
import type { ObjectContent } from '../../engine/diff/field-diff.ts';
import { fieldAt } from '../../engine/observe/raw.ts';
import type { Cluster } from '../connection.ts';
import { nameOf } from '../difference.ts';
import { type AskedObject, hasName } from '../source/cluster/desired-objects.ts';

type ResourceOf = (apiVersion: string, kind: string) => Resource | undefined;

/** Resources of Kubernetes itself; every other kind, ours included, may be missing. */
const known: readonly Resource[] = Object.values(resources);

/** Finds the resources of these objects. The server is asked only when one of them is of no kind that every server has. */
export async function resourcesOf({ env, timeoutMs }: Cluster, objects: readonly ObjectContent[]): Promise<ResourceOf> {
  const ofKnown: ResourceOf = (apiVersion, kind) =>
    known.find((resource) => resource.kind === kind && apiVersionOf(resource) === apiVersion);
  if (objects.every((object) => ofKnown(String(object['apiVersion']), String(object['kind'])) !== undefined)) return ofKnown;
  const discovery = await discover(env, { timeoutMs });
  return (apiVersion, kind) => {
    const version = apiVersion.slice(apiVersion.lastIndexOf('/') + 1);
    return ofKnown(apiVersion, kind) ?? discovery.find({ group: groupOf(apiVersion), version, kind })[0];
  };
}

/** The objects with their live twins; those that were read already are not read again. */
export async function liveTwins(
  { env, timeoutMs }: Cluster,
  asked: readonly ObjectContent[],
  resourceOf: ResourceOf,
  seen: readonly ObjectContent[],
): Promise<readonly AskedObject[]> {
  const read = new Map(seen.map((object) => [nameOf(object), object]));
  return Promise.all(
    asked.map(async (manifest): Promise<AskedObject> => {
      const resource = resourceOf(String(manifest['apiVersion']), String(manifest['kind']));
      const twin = read.get(nameOf(manifest));
      if (twin !== undefined && hasName(twin)) return { manifest, resource, live: twin };
      return { manifest, resource, live: resource === undefined ? undefined : await get(resource, manifest) };
    }),
  );

  async function get(resource: Resource, manifest: ObjectContent): Promise<KubernetesObject | undefined> {
    const namespace = fieldAt(manifest, ['metadata', 'namespace']);
    const target = { name: String(fieldAt(manifest, ['metadata', 'name']) ?? ''), ...(typeof namespace === 'string' ? { namespace } : {}) };
    try {
      return await getObject(env, resource, target, { site: 'source.twin', timeoutMs });
    } catch (error) {
      // The resource went away between discovery and now.
      if (isStatus(error, 404)) return undefined;
      throw error;
    }
  }
}

function groupOf(apiVersion: string): string {
  return apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : '';
}
