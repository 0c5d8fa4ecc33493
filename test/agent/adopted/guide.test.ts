// What docs/migrate-from-rollout-operator.md names must exist.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { flagSpecs } from '../../../agent/flags/flags.ts';
import { findingCodes } from '../../../policies/findings/codes.ts';

const guide = readFileSync('docs/migrate-from-rollout-operator.md', 'utf8');

describe('the migration guide', () => {
  it('names the profile that adopted groups have', () => {
    expect(guide).toContain('`spec.profile: rolloutOperator`');
  });

  it('names flags that the agent has', () => {
    const inTheAgent = guide.split('## Not taken over yet')[0] ?? '';
    const named = [...inTheAgent.matchAll(/`--?([a-z][a-z-]*(?:\.[a-z-]+)*)(?:=[a-z]+)?`/g)]
      .map(([, name]) => name)
      .filter((name) => name !== 'name');
    expect(named).not.toEqual([]);
    expect(named.filter((name) => !flagSpecs.some((flag) => flag.name === name))).toEqual([]);
  });

  it('names findings that exist', () => {
    const codes = [...guide.matchAll(/RG\d{4}/g)].map(([code]) => code);
    expect(codes.filter((code) => !Object.hasOwn(findingCodes, code))).toEqual([]);
  });
});
