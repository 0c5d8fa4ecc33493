// Finds the API resources of our kinds and of other kinds for the verbs, and reports kinds that are not installed.
import { discover } from '../../cluster/request/discovery.ts';
import { isStatus } from '../../cluster/request/failure.ts';
import { apiVersionOf, type Resource, resources } from '../../cluster/request/resource.ts';
import { resourceOfKind } from '../../policies/schema/kinds.ts';
import type { Cluster } from '../connection.ts';
import { notFoundFailure } from '../failure.ts';

export const rolloutGroups: Resource = resourceOfKind('RolloutGroup');
export const rolloutPolicies: Resource = resourceOfKind('RolloutPolicy');
export const rolloutExceptions: Resource = resourceOfKind('RolloutException');
export const rolloutIntents: Resource = resourceOfKind('RolloutIntent');
export const metricSources: Resource = resourceOfKind('MetricSource');
export const notificationChannels: Resource = resourceOfKind('NotificationChannel');
export const rolloutRuns: Resource = resourceOfKind('RolloutRun');

/** Returns a handler of failed requests. It throws a Failure with `what` if the kind is not installed, otherwise the error itself. */
export function ifNotInstalled({ kind }: Resource, what: string): (error: unknown) => never {
  return (error) => {
    if (!isStatus(error, 404)) throw error;
    throw notFoundFailure(what, {
      why: `the kind ${kind} is not installed in this cluster`,
      todo: `kubectl rollout-group schema ${kind} -o crd | kubectl apply -f -`,
    });
  };
}

type ResourceOf = (apiVersion: string, kind: string) => Resource | undefined;

/** The built-in resources of Kubernetes. Every other kind, also our own, may be missing. */
const builtIn: readonly Resource[] = Object.values(resources);

/** Returns a function that finds the resources of these objects. Reads the discovery only if a kind is not built in. */
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
