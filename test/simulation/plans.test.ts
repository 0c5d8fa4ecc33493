import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { judge } from '../../simulation/search/judge.ts';
import { readPlan } from '../../simulation/search/replay.ts';

const folder = 'test/simulation/plans';
const files = readdirSync(folder).filter((name) => name.endsWith('.json'));

describe('what once was found is not found again', () => {
  it.each(files)('%s', async (file) => {
    const plan = readPlan(readFileSync(join(folder, file), 'utf8'), file);
    expect(`${plan.name}.json`).toBe(file);
    const { failure } = await judge(plan, { isRepeated: true, compared: [] });
    expect(failure && `${failure.id}: ${failure.message}`).toBeUndefined();
  });
});
