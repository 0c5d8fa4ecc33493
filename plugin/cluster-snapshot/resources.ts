// The API resource of a kind: known for kinds of Kubernetes itself, discovered for others.
import { discover } from '../../cluster/request/discovery.ts';
import { apiVersionOf, type Resource, resources } from '../../cluster/request/resource.ts';
import type { Cluster } from '../connection.ts';

export type ResourceOf = (apiVersion: string, kind: string) => Resource | undefined;

/** Resources of Kubernetes itself; every other kind, ours included, may be missing. */
const builtIn: readonly Resource[] = Object.values(resources);

/** Finds the resources of these objects. Discovery is requested only for a kind that Kubernetes itself does not have. */
export async function resourcesOf(
  { env, timeoutMs }: Cluster,
  objects: readonly { readonly apiVersion?: unknown; readonly kind?: unknown }[],
): Promise<ResourceOf> {
  const findBuiltIn: ResourceOf = (apiVersion, kind) =>
    builtIn.find((resource) => resource.kind === kind && apiVersionOf(resource) === apiVersion);
  if (objects.every(({ apiVersion, kind }) => findBuiltIn(String(apiVersion), String(kind)) !== undefined)) return findBuiltIn;
  const discovery = await discover(env, { timeoutMs });
  return (apiVersion, kind) => {
    const slash = apiVersion.lastIndexOf('/');
    const [group, version] = [apiVersion.slice(0, Math.max(0, slash)), apiVersion.slice(slash + 1)];
    return findBuiltIn(apiVersion, kind) ?? discovery.find({ group, version, kind })[0];
  };
}
