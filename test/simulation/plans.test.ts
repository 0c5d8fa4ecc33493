import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { judge } from '../../simulation/search/judge.ts';
import { readPlans } from '../../simulation/search/replay.ts';
import { shareOf } from '../kit/share.ts';

const file = 'test/simulation/plans/found.json';
const plans = readPlans(readFileSync(file, 'utf8'), file);

describe('stored plans find nothing again', () => {
  it.each(shareOf(plans, 4).map((plan) => [plan.name, plan] as const))('%s', async (_, plan) => {
    const { failure } = await judge(plan, { isRepeated: true, compared: [] });
    expect(failure && `${failure.id}: ${failure.message}`).toBeUndefined();
  });
});
