import { describe, expect, it } from 'vitest';
import { type BudgetAmounts, budgetAmount, desiredHealthy, zeroBudgetOf } from '../../policies/objects/pod-budget.ts';

describe('an amount of a PodDisruptionBudget', () => {
  it.each([
    [0, 7, 0],
    [3, 7, 3],
    ['0%', 7, 0],
    ['50%', 7, 4],
    ['50%', 4, 2],
    ['50%', 2, 1],
    ['50%', 1, 1],
    ['25%', 10, 3],
    ['100%', 7, 7],
    ['1%', 1, 1],
    ['1%', 0, 0],
    ['many', 7, 0],
    ['3', 7, 0],
    ['-3%', 7, 0],
  ])('of %s of %i pods is %i: a percentage is rounded up, other text is invalid', (value, expected, amount) => {
    expect(budgetAmount(value, expected)).toBe(amount);
  });
});

describe('a PodDisruptionBudget that allows no disruption', () => {
  it.each<[string, BudgetAmounts, number, string]>([
    ['none of any number', { maxUnavailable: 0 }, 9, 'maxUnavailable: maxUnavailable is 0'],
    ['nothing as a percentage', { maxUnavailable: '0%' }, 9, 'maxUnavailable: maxUnavailable is 0%'],
    ['as many as there are', { minAvailable: 9 }, 9, 'minAvailable: minAvailable is 9 of 9 pods'],
    ['more than there are', { minAvailable: 3 }, 1, 'minAvailable: minAvailable is 3 of 1 pod'],
    ['all of them', { minAvailable: '100%' }, 4, 'minAvailable: minAvailable is 100% of 4 pods'],
    ['a share that rounds up to all of them', { minAvailable: '51%' }, 1, 'minAvailable: minAvailable is 51% of 1 pod'],
    ['neither number', {}, 3, 'undefined: it has neither maxUnavailable nor minAvailable'],
  ])('requires %s, and the text names it', (_name, budget, expected, text) => {
    const found = zeroBudgetOf(budget, expected);
    expect(`${found?.field}: ${found?.text}`).toBe(text);
    expect(desiredHealthy(budget, expected)).toBeGreaterThanOrEqual(expected);
  });

  it.each<[BudgetAmounts, string | undefined]>([
    [{ maxUnavailable: 0 }, 'maxUnavailable is 0'],
    [{ maxUnavailable: '0%' }, 'maxUnavailable is 0%'],
    [{ minAvailable: '100%' }, 'minAvailable is 100%'],
    [{}, 'it has neither maxUnavailable nor minAvailable'],
    [{ maxUnavailable: 1 }, undefined],
    [{ maxUnavailable: '1%' }, undefined],
    [{ minAvailable: '99%' }, undefined],
    [{ minAvailable: 1_000_000 }, undefined],
  ])('exists for any selector, or may exist: %j', (budget, text) => {
    expect(zeroBudgetOf(budget)?.text).toBe(text);
  });

  it.each<[BudgetAmounts, number]>([
    [{ maxUnavailable: 1 }, 1],
    [{ maxUnavailable: '1%' }, 100],
    [{ minAvailable: 8 }, 9],
    [{ minAvailable: '99%' }, 200],
    [{ minAvailable: 0 }, 1],
    [{ maxUnavailable: 0 }, 0],
    [{}, 0],
  ])('is different from these: %j over %i pods', (budget, expected) => {
    expect(zeroBudgetOf(budget, expected)).toBeUndefined();
  });
});
