// Evaluates PodDisruptionBudgets as the eviction API does: required healthy pods, and pods that may be evicted.
import { matchesSelector } from '../../policies/label-selector.ts';
import { desiredHealthy } from '../../policies/objects/pod-budget.ts';
import { isUnknown, type PodBudgetView, type PodView, podsNamed, type Snapshot } from '../snapshot.ts';

interface BudgetHealth {
  readonly healthy: number;
  /** The sum of `spec.replicas` of the selected StatefulSets. */
  readonly expected: number;
  /** Pods that must stay healthy. */
  readonly desired: number;
}

/** Returns the budgets of the namespace that select a pod with these labels, by name; [] if the budgets could not be read. */
export function budgetsFor(snapshot: Pick<Snapshot, 'podBudgets'>, namespace: string, labels: PodView['labels']): readonly PodBudgetView[] {
  if (isUnknown(snapshot.podBudgets)) return [];
  return snapshot.podBudgets
    .filter((budget) => budget.namespace === namespace && matchesSelector(budget.selector, labels))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Returns the health of a budget, over the pods of every StatefulSet that the budget selects. */
export function budgetHealth(snapshot: Pick<Snapshot, 'statefulSets' | 'pods'>, budget: PodBudgetView): BudgetHealth {
  let healthy = 0;
  let expected = 0;
  for (const set of snapshot.statefulSets) {
    if (set.namespace !== budget.namespace || !matchesSelector(budget.selector, set.podLabels)) continue;
    expected += set.replicas;
    const pods = podsNamed(snapshot, set.namespace, set.name);
    if (pods === undefined || isUnknown(pods)) continue;
    for (const pod of pods) if (isHealthy(pod)) healthy += 1;
  }
  return { healthy, expected, desired: desiredHealthy(budget, expected) };
}

/** Returns the health of a budget as the fact of a rule. */
export function healthFact({ name }: PodBudgetView, { healthy, expected, desired }: BudgetHealth): string {
  return `${name} requires ${desired} of ${expected} pods: ${healthy} healthy`;
}

/**
 * Returns the budget for which the eviction API denies the eviction of a healthy pod, with its health; undefined if no budget denies it, and
 * if several budgets select the pod.
 */
export function denyingBudget(
  snapshot: Pick<Snapshot, 'statefulSets' | 'pods' | 'podBudgets'>,
  namespace: string,
  pod: PodView,
): { readonly budget: PodBudgetView; readonly health: BudgetHealth } | undefined {
  const [budget, second] = budgetsFor(snapshot, namespace, pod.labels);
  if (budget === undefined || second !== undefined || !isHealthy(pod)) return undefined;
  const health = budgetHealth(snapshot, budget);
  return health.healthy > health.desired ? undefined : { budget, health };
}

/**
 * Returns whether the eviction API allows the eviction. It allows terminating pods and pods that do not run, and denies pods with two
 * budgets. An unready pod may be evicted while enough other pods are healthy (`IfHealthyBudget`, the default). Snapshots
 * do not contain the policy `AlwaysAllow`.
 */
export function mayEvict(snapshot: Pick<Snapshot, 'statefulSets' | 'pods' | 'podBudgets'>, namespace: string, pod: PodView): boolean {
  if (pod.isTerminating || pod.phase === 'Pending' || pod.phase === 'Succeeded' || pod.phase === 'Failed') return true;
  const [budget, second] = budgetsFor(snapshot, namespace, pod.labels);
  if (budget === undefined) return true;
  if (second !== undefined) return false;
  const { healthy, desired } = budgetHealth(snapshot, budget);
  return isHealthy(pod) ? healthy - desired >= 1 : desired > 0 && healthy >= desired;
}

function isHealthy(pod: PodView): boolean {
  return pod.phase === 'Running' && pod.isReady && !pod.isTerminating;
}
