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

export interface Standstill {
  /** The field that says so; absent when none is written. */
  readonly field?: 'maxUnavailable' | 'minAvailable';
  /** What it says, as a sentence part. */
  readonly text: string;
}

/**
 * Why the budget lets no pod go although every one of the `expected` pods is healthy, so that neither time nor progress helps; undefined when it
 * lets one go, and when there are no pods.
 */
export function standstillOf(budget: BudgetAmounts, expected: number): Standstill | undefined {
  if (expected <= 0 || desiredHealthy(budget, expected) < expected) return undefined;
  const { maxUnavailable, minAvailable } = budget;
  if (maxUnavailable !== undefined) return { field: 'maxUnavailable', text: `maxUnavailable is ${maxUnavailable}` };
  if (minAvailable === undefined) return { text: 'it has neither maxUnavailable nor minAvailable' };
  const of = expected === 1 ? '1 pod' : `${expected} pods`;
  return { field: 'minAvailable', text: `minAvailable is ${minAvailable} of ${of}` };
}
