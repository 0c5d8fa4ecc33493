// What a PodDisruptionBudget asks for: how many pods must stay healthy, and why one lets no pod go at all.

/** `spec.maxUnavailable` or `spec.minAvailable`, as the object has them. */
export interface BudgetAmounts {
  readonly maxUnavailable?: number | string;
  readonly minAvailable?: number | string;
}

/** A percentage or count of a PodDisruptionBudget, rounded up as the disruption controller does. */
export function budgetAmount(value: number | string, expected: number): number {
  if (typeof value === 'number') return value;
  const percent = /^(\d+)%$/.exec(value)?.[1];
  return percent === undefined ? 0 : Math.ceil((Number(percent) * expected) / 100);
}

/** Healthy pods that a budget asks for, of so many expected. A budget with neither limit lets nothing go. */
export function desiredHealthy({ maxUnavailable, minAvailable }: BudgetAmounts, expected: number): number {
  if (maxUnavailable !== undefined) return Math.max(0, expected - budgetAmount(maxUnavailable, expected));
  return minAvailable === undefined ? expected : budgetAmount(minAvailable, expected);
}

export interface ZeroBudget {
  /** The field that says so; absent when none is written. */
  readonly field?: 'maxUnavailable' | 'minAvailable';
  /** What it says, as a sentence part. */
  readonly text: string;
}

/**
 * Why the budget lets no pod go although every pod that it covers is healthy, so that neither time nor progress helps; undefined when it lets one
 * go, and when there are no pods. Without `expected`, the number of those pods, only what holds for any number: the disruption controller counts
 * the pods of every workload that the selector matches, also of Deployments, of which neither the files nor the agent may know.
 */
export function zeroBudgetOf(budget: BudgetAmounts, expected?: number): ZeroBudget | undefined {
  if (expected === undefined ? !isWhole(budget) : expected <= 0 || desiredHealthy(budget, expected) < expected) return undefined;
  const { maxUnavailable, minAvailable } = budget;
  if (maxUnavailable !== undefined) return { field: 'maxUnavailable', text: `maxUnavailable is ${maxUnavailable}` };
  if (minAvailable === undefined) return { text: 'it has neither maxUnavailable nor minAvailable' };
  const of = expected === undefined ? '' : expected === 1 ? ' of 1 pod' : ` of ${expected} pods`;
  return { field: 'minAvailable', text: `minAvailable is ${minAvailable}${of}` };
}

/** Whether a budget asks for every pod, however many there are. */
function isWhole({ maxUnavailable, minAvailable }: BudgetAmounts): boolean {
  if (maxUnavailable !== undefined) return budgetAmount(maxUnavailable, 100) <= 0;
  return minAvailable === undefined || (typeof minAvailable === 'string' && budgetAmount(minAvailable, 100) >= 100);
}
