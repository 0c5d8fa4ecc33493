import { describe, expect, it } from 'vitest';
import { contradictionOf, isEmptySelector, isWithin } from '../../policies/label-selector.ts';
import type { LabelSelector } from '../../policies/schema/scalars.ts';
import { inspectPattern, partitionReader } from '../../policies/text/partition-pattern.ts';

const label = (labels: Record<string, string>): LabelSelector => ({ matchLabels: labels });
const expression = (operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist', values?: string[], key = 'zone'): LabelSelector => ({
  matchExpressions: [{ key, operator, ...(values ? { values } : {}) }],
});
const both = (a: LabelSelector, b: LabelSelector): LabelSelector => ({
  matchLabels: { ...a.matchLabels, ...b.matchLabels },
  matchExpressions: [...(a.matchExpressions ?? []), ...(b.matchExpressions ?? [])],
});

describe('a selector', () => {
  it('is empty without a requirement', () => {
    expect([{}, { matchLabels: {}, matchExpressions: [] }, label({ a: 'b' }), expression('Exists')].map(isEmptySelector)).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });

  it.each([
    [label({ zone: 'a' }), undefined],
    [expression('In'), 'In on zone has no values'],
    [expression('Exists', ['a']), 'Exists on zone takes no values'],
    [both(label({ zone: 'a' }), expression('NotIn', ['b'])), undefined],
    [both(label({ zone: 'a' }), expression('NotIn', ['a'])), 'the requirements on zone exclude each other'],
    [both(label({ zone: 'a' }), expression('In', ['b', 'c'])), 'the requirements on zone exclude each other'],
    [both(expression('In', ['a', 'b']), expression('In', ['b', 'c'])), undefined],
    [both(expression('Exists'), expression('DoesNotExist')), 'the requirements on zone exclude each other'],
    [both(expression('NotIn', ['a']), expression('DoesNotExist')), undefined],
  ])('%j has the contradiction %s', (selector, expected) => {
    expect(contradictionOf(selector)).toBe(expected);
  });

  it.each([
    [label({ app: 'x', zone: 'a' }), label({ app: 'x' }), true],
    [label({ app: 'x' }), label({ app: 'x', zone: 'a' }), false],
    [label({ zone: 'a' }), expression('In', ['a', 'b']), true],
    [expression('In', ['a', 'c']), expression('In', ['a', 'b']), false],
    [label({ zone: 'a' }), expression('Exists'), true],
    [label({ zone: 'a' }), expression('NotIn', ['b']), true],
    [label({ zone: 'a' }), expression('NotIn', ['a']), false],
    [expression('DoesNotExist'), expression('NotIn', ['a']), true],
    [expression('NotIn', ['a', 'b']), expression('NotIn', ['a']), true],
    [expression('NotIn', ['a']), expression('NotIn', ['a', 'b']), false],
    [expression('NotIn', ['a']), expression('Exists'), false],
    [label({ zone: 'a' }), expression('DoesNotExist'), false],
    [label({ app: 'x' }), label({ zone: 'x' }), false],
  ])('%j is within %j: %s', (inner, outer, expected) => {
    expect(isWithin(inner, outer)).toBe(expected);
  });
});

it.each([
  ['ingester-zone-[a-z]-([0-9]+)', 1],
  ['(?:a|b)-(x)-(y)', 2],
  ['(?P<zone>a)-x', 1],
  ['a{2,3}(b+)c*', 1],
  ['(?:[a-z]{2})+-(\\(+)', 1],
  ['(?:a|b)?-([(+*|)]+)', 1],
  ['a-(?!b)(c)', 'uses look-around or a back-reference'],
  ['(?<=a)(c)', 'uses look-around or a back-reference'],
  ['(a)-\\1', 'uses look-around or a back-reference'],
  // RE2 takes these, and so does a matcher whose time is linear.
  ['(a+)+', 1],
  ['(.*a){20}', 1],
  ['(.*).*.*.*.*.*.*x', 1],
  ['((a{1000}){1000}){1000}', 'is too large'],
  ['('.repeat(200), 'does not compile'],
  ['([0-9]+', 'does not compile'],
])('the pattern %s has the result %j', (pattern, expected) => {
  const inspected = inspectPattern(pattern);
  expect('problem' in inspected ? inspected.problem : inspected.groupCount).toEqual(expected);
});

it.each(['(.*).*.*.*.*.*.*.*.*x', '(a+)+x', '(a|aa)+x', '(.*a){20}x', '(a?){30}a{30}x'])(
  'a long name makes %s no slower than its length',
  (pattern) => {
    const read = partitionReader({ pattern, group: 1 });
    expect(Array.from({ length: 50 }, () => read('a'.repeat(253)))).toEqual(Array.from({ length: 50 }, () => undefined));
  },
);
