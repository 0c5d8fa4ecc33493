// The API resources of our kinds and of any other kind, and the failure when a kind is not installed.
import { discover } from '../../cluster/request/discovery.ts';
import { isStatus } from '../../cluster/request/failure.ts';
import { apiVersionOf, type Resource, resources } from '../../cluster/request/resource.ts';
import type { Cluster } from '../connection.ts';
import { exitCodes, Failure } from '../failure.ts';

const ours = (plural: string, kind: string): Resource => ({
  group: 'rollout-group.dev',
  version: 'v1alpha1',
  plural,
  kind,
  isNamespaced: true,
});

export const rolloutGroups = ours('rolloutgroups', 'RolloutGroup');
export const rolloutPolicies = ours('rolloutpolicies', 'RolloutPolicy');
export const rolloutExceptions = ours('rolloutexceptions', 'RolloutException');
export const rolloutIntents = ours('rolloutintents', 'RolloutIntent');
export const metricSources = ours('metricsources', 'MetricSource');
export const notificationChannels = ours('notificationchannels', 'NotificationChannel');
export const rolloutRuns = ours('rolloutruns', 'RolloutRun');

/** Returns a handler of failed requests. @throws Failure with `what` if the kind is not installed, otherwise the error itself. */
export function ifNotInstalled({ kind }: Resource, what: string): (error: unknown) => never {
  return (error) => {
    if (!isStatus(error, 404)) throw error;
    throw new Failure({
      exitCode: exitCodes.notFound,
      what,
      why: `the kind ${kind} is not installed in this cluster`,
      todo: `kubectl rollout-group schema ${kind} -o crd | kubectl apply -f -`,
    });
  };
}

/** The zone budgets of grafana/rollout-operator. */
export const zoneBudgets: Resource = {
  group: 'rollout-operator.grafana.com',
  version: 'v1',
  plural: 'zoneawarepoddisruptionbudgets',
  kind: 'ZoneAwarePodDisruptionBudget',
  isNamespaced: true,
};

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
