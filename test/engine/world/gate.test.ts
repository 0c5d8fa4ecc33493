import { expect, it } from 'vitest';
import { modelReadings } from '../../../engine/world/model.ts';
import { evaluateCondition } from '../../../policies/condition/condition.ts';
import { gate } from '../../kit/groups.ts';
import { kitNowMs } from '../../kit/objects.ts';

it.each([
  [{ '<=': [{ var: 'value' }, 0.5] }],
  [{ '>': [{ var: 'value' }, 42_000] }],
  [{ '==': [{ var: 'value' }, 17] }],
  [{ '<': [{ var: 'value' }, -5] }],
  [{ and: [{ '>=': [{ var: 'value' }, 3] }, { '<': [{ var: 'value' }, 4] }] }],
])('an assumed reading passes or fails the condition as assumed: %j', (pass) => {
  const answers = (['pass', 'fail'] as const).map((assumption) => {
    const [reading] = modelReadings(gate({ pass }), kitNowMs, kitNowMs, assumption);
    if (reading?.result !== 'value') return reading;
    const answer = evaluateCondition(pass, { value: reading.value }, kitNowMs);
    return answer.kind === 'value' ? answer.isTrue : answer;
  });
  expect(answers).toEqual([true, false]);
});

it('a condition that no value meets is an error that says so', () => {
  expect(modelReadings(gate({ pass: { '<': [1, 0] } }), kitNowMs, kitNowMs, 'pass')).toEqual([
    { atMs: kitNowMs, result: 'error', message: 'no value was found for which gate errors would pass' },
  ]);
});

it('readings come every period, the first when they begin to count, and only those that can count are made', () => {
  const instants = (periods: number): readonly number[] =>
    modelReadings(gate({ consecutive: 3 }), kitNowMs, kitNowMs + periods * 60_000, 'pass').map(({ atMs }) => (atMs - kitNowMs) / 60_000);
  expect([instants(-0.5), instants(0), instants(1.9), instants(1000)]).toEqual([[], [0], [0, 1], [997, 998, 999, 1000]]);
});
