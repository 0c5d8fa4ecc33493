// The resources of our kinds, and the failure when a kind is not installed.
import type { Resource } from '../../cluster/request/resource.ts';
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

/** Returns the failure for a kind that is needed and not installed. */
export function notInstalled({ kind }: Resource, what: string): Failure {
  return new Failure({
    exitCode: exitCodes.notFound,
    what,
    why: `the kind ${kind} is not installed in this cluster`,
    todo: `kubectl rollout-group schema ${kind} -o crd | kubectl apply -f -`,
  });
}

/** The zone budgets of grafana/rollout-operator. */
export const zoneBudgets: Resource = {
  group: 'rollout-operator.grafana.com',
  version: 'v1',
  plural: 'zoneawarepoddisruptionbudgets',
  kind: 'ZoneAwarePodDisruptionBudget',
  isNamespaced: true,
};
