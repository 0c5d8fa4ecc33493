// What docs/migrate-from-rollout-operator.md names must exist.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { flags } from '../../../agent/flags/flags.ts';
import { adoptedCompatibility } from '../../../policies/adopt/group.ts';
import { findingCodes } from '../../../policies/findings/codes.ts';

const guide = readFileSync('docs/migrate-from-rollout-operator.md', 'utf8');

describe('the migration guide', () => {
  it('has every setting that adopted groups keep, with its value', () => {
    const settings = Object.entries(adoptedCompatibility).map(([field, value]) => `\`${field}: ${value}\``);
    expect(settings.filter((setting) => !guide.includes(setting))).toEqual([]);
  });

  it('names flags that the agent has', () => {
    const inTheAgent = guide.split('## Not taken over yet')[0] ?? '';
    const named = [...inTheAgent.matchAll(/`--?([a-z][a-z-]*(?:\.[a-z-]+)*)(?:=[a-z]+)?`/g)]
      .map(([, name]) => name)
      .filter((name) => name !== 'name');
    expect(named).not.toEqual([]);
    expect(named.filter((name) => !flags.some((flag) => flag.name === name))).toEqual([]);
  });

  it('names findings that exist', () => {
    const codes = [...guide.matchAll(/RG\d{4}/g)].map(([code]) => code);
    expect(codes.filter((code) => !Object.hasOwn(findingCodes, code))).toEqual([]);
  });
});
