import { describe, expect, it } from 'vitest';
import { matchesSelector } from '../../policies/label-selector.ts';
import type { LabelSelector } from '../../policies/schema/scalars.ts';

const labels = { tier: 'write', zone: 'a' };

function expression(key: string, operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist', values?: string[]): LabelSelector {
  return { matchExpressions: [{ key, operator, ...(values === undefined ? {} : { values }) }] };
}

describe('a label selector', () => {
  it.each<readonly [selector: LabelSelector, expected: boolean]>([
    [{}, true],
    [{ matchLabels: {} }, true],
    [{ matchLabels: { tier: 'write' } }, true],
    [{ matchLabels: { tier: 'write', zone: 'b' } }, false],
    [{ matchLabels: { absent: '' } }, false],
    [expression('tier', 'In', ['read', 'write']), true],
    [expression('tier', 'In', ['read']), false],
    [expression('tier', 'In', []), false],
    [expression('tier', 'In'), false],
    [expression('absent', 'In', ['']), false],
    [expression('tier', 'NotIn', ['read']), true],
    [expression('tier', 'NotIn', ['write']), false],
    [expression('absent', 'NotIn', ['write']), true],
    [expression('tier', 'Exists'), true],
    [expression('absent', 'Exists'), false],
    [expression('absent', 'DoesNotExist'), true],
    [expression('tier', 'DoesNotExist'), false],
    [expression('constructor', 'Exists'), false],
    [{ matchLabels: { tier: 'write' }, ...expression('zone', 'NotIn', ['a']) }, false],
    [{ matchLabels: { tier: 'write' }, ...expression('zone', 'In', ['a']) }, true],
  ])('%j: %s', (selector, expected) => {
    expect(matchesSelector(selector, labels)).toBe(expected);
  });
});
