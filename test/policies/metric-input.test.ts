import { describe, expect, it } from 'vitest';
import { inputEveryMs, inputsRead } from '../../policies/integrations/metric-source.ts';
import { policy, policyRule } from '../kit/questions.ts';

describe('the period of a metric input', () => {
  it.each([
    [1_000, 1_000],
    [20_000, 10_000],
    [30_000, 15_000],
    [60_000, 15_000],
    [120_000, 30_000],
    [240_000, 60_000],
    [3_600_000, 60_000],
  ])('with a maximum age of %i ms is %i ms', (maxAgeMs, everyMs) => {
    expect(inputEveryMs(maxAgeMs)).toBe(everyMs);
  });
});

describe('the inputs that rules read', () => {
  const metric = { source: 'prod', query: 'x', noData: 'unknown', maxAgeMs: 60_000 } as const;
  const metrics = { queue: metric, lag: metric, errors: metric, idle: metric };

  it('are those of conditions, in each of their forms, and of messages', () => {
    const rules = [
      policyRule({ when: { '>': [{ var: ['inputs.metrics.queue', 0] }, 1] } }),
      policyRule({ when: { '>': [{ val: ['inputs', 'metrics', 'lag'] }, 1] } }),
      policyRule({ message: 'errors are ${inputs.metrics.errors}' }),
    ];
    expect(inputsRead(policy({ metrics, rules }))).toEqual(['errors', 'lag', 'queue']);
  });

  it('are absent without a rule that names any', () => {
    expect(
      inputsRead(policy({ metrics, rules: [policyRule({ when: { '>': [{ var: 'target.replicas' }, 1] }, message: 'queue' })] })),
    ).toEqual([]);
    expect(inputsRead(policy({ metrics, rules: [] }))).toEqual([]);
  });
});
