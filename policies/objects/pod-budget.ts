// Computes how many healthy pods a PodDisruptionBudget requires, and finds budgets that allow no disruption.

/** The fields `spec.maxUnavailable` and `spec.minAvailable` of the object. */
export interface BudgetAmounts {
  readonly maxUnavailable?: number | string;
  readonly minAvailable?: number | string;
}

/** Converts a count, or a percentage of `expected`, to a number of pods. Rounds up as the disruption controller does. */
export function budgetAmount(value: number | string, expected: number): number {
  if (typeof value === 'number') return value;
  const percent = /^(\d+)%$/.exec(value)?.[1];
  return percent === undefined ? 0 : Math.ceil((Number(percent) * expected) / 100);
}

/** Returns the number of pods that must stay healthy of `expected` pods. A budget without a limit allows no disruption. */
export function desiredHealthy({ maxUnavailable, minAvailable }: BudgetAmounts, expected: number): number {
  if (maxUnavailable !== undefined) return Math.max(0, expected - budgetAmount(maxUnavailable, expected));
  return minAvailable === undefined ? expected : budgetAmount(minAvailable, expected);
}

export interface ZeroBudget {
  /** The field with the limit; absent if the object has neither field. */
  readonly field?: 'maxUnavailable' | 'minAvailable';
  /** The reason as a part of a message, such as `maxUnavailable is 0`. */
  readonly text: string;
}

/**
 * Returns why the budget allows no disruption of healthy pods; undefined if it allows one or `expected` is 0. If `expected` is absent,
 * returns only a reason that is true for any number of pods, because the selector may match unknown workloads.
 */
export function zeroBudgetOf(budget: BudgetAmounts, expected?: number): ZeroBudget | undefined {
  if (expected === undefined ? !isWhole(budget) : expected <= 0 || desiredHealthy(budget, expected) < expected) return undefined;
  const { maxUnavailable, minAvailable } = budget;
  if (maxUnavailable !== undefined) return { field: 'maxUnavailable', text: `maxUnavailable is ${maxUnavailable}` };
  if (minAvailable === undefined) return { text: 'it has neither maxUnavailable nor minAvailable' };
  const of = expected === undefined ? '' : expected === 1 ? ' of 1 pod' : ` of ${expected} pods`;
  return { field: 'minAvailable', text: `minAvailable is ${minAvailable}${of}` };
}

/** Returns whether a budget requires every pod to be healthy, for any number of pods. */
function isWhole({ maxUnavailable, minAvailable }: BudgetAmounts): boolean {
  if (maxUnavailable !== undefined) return budgetAmount(maxUnavailable, 100) <= 0;
  return minAvailable === undefined || (typeof minAvailable === 'string' && budgetAmount(minAvailable, 100) >= 100);
}
