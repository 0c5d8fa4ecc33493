import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { conditionLimits, operators } from '../../../policies/condition/shape.ts';
import { ruleVariables, variablePaths } from '../../../policies/condition/variables.ts';

describe('docs/conditions.md', () => {
  const page = readFileSync('docs/conditions.md', 'utf8');
  const code = new Set([...page.matchAll(/`([^`\n]+)`/g)].flatMap((match) => (match[1] ?? '').split(' ')));

  it('names every operator', () => {
    expect([...operators.keys()].filter((name) => !code.has(name))).toEqual([]);
  });

  it('names every variable, and every field of a zone', () => {
    const names = variablePaths(ruleVariables(['NAME'])).map((path) => path.replace(/\.\*$/, '').replace(/^.*\[\]\./, ''));
    expect(names.filter((name) => !code.has(name))).toEqual([]);
  });

  it('names the limits', () => {
    const { depth, nodes, textLength, listLength } = conditionLimits;
    expect(page.replaceAll('\n', ' ')).toContain(
      `${nodes} nodes, ${depth} levels, ${listLength} items in a list and ${textLength.toLocaleString('en-US')} characters`,
    );
  });
});
