import { describe, expect, it } from 'vitest';
import { observePodBudget, observeZoneBudget } from '../../../engine/observe/budget.ts';

const selector = { matchLabels: { 'rollout-group': 'ingester' } };

function zoneBudget(spec: unknown) {
  return observeZoneBudget({ kind: 'ZoneAwarePodDisruptionBudget', metadata: { namespace: 'mimir', name: 'zpdb' }, spec });
}

describe('a ZoneAwarePodDisruptionBudget', () => {
  it.each([
    ['no limit allows one', { selector }, { maxUnavailable: 1 }],
    ['a count', { selector, maxUnavailable: 0 }, { maxUnavailable: 0 }],
    ['a percentage', { selector, maxUnavailablePercentage: 25 }, { maxUnavailablePercent: 25 }],
    [
      'a pattern with a delay',
      { selector, podNamePartitionRegex: 'i-([0-9]+)', crossZoneEvictionDelay: '1m30s' },
      { maxUnavailable: 1, partition: { pattern: 'i-([0-9]+)', group: 1 }, crossZoneDelayMs: 90_000 },
    ],
    [
      'two groups, of which one is named',
      { selector, podNamePartitionRegex: '([a-z])-([0-9]+)', podNameRegexGroup: 2 },
      { maxUnavailable: 1, partition: { pattern: '([a-z])-([0-9]+)', group: 2 } },
    ],
    [
      'an empty pattern and a group that is not looked at',
      { selector, podNamePartitionRegex: '', podNameRegexGroup: 'x' },
      { maxUnavailable: 1 },
    ],
    ['an empty delay', { selector, crossZoneEvictionDelay: '' }, { maxUnavailable: 1 }],
    [
      'a percentage of 0 with a pattern',
      { selector, maxUnavailablePercentage: 0, podNamePartitionRegex: '(a)' },
      { maxUnavailablePercent: 0, partition: { pattern: '(a)', group: 1 } },
    ],
    ['a field that nobody knows', { selector, color: 'red' }, { maxUnavailable: 1 }],
  ])('with %s is accepted', (_case, spec, expected) => {
    expect(zoneBudget(spec)).toEqual({
      namespace: 'mimir',
      name: 'zpdb',
      matchLabels: selector.matchLabels,
      crossZoneDelayMs: 0,
      ...expected,
    });
  });

  it.each([
    [undefined, 'spec is missing'],
    [{ selector, maxUnavailable: 0, maxUnavailablePercentage: 0 }, 'maxUnavailable and maxUnavailablePercentage are both set'],
    [{ selector, maxUnavailable: '1' }, 'maxUnavailable is not a whole number'],
    [{ selector, maxUnavailable: 1.5 }, 'maxUnavailable is not a whole number'],
    [{ selector, maxUnavailable: -1 }, 'maxUnavailable is -1; it must be 0 or more'],
    [{ selector, maxUnavailablePercentage: '10%' }, 'maxUnavailablePercentage is not a whole number'],
    [{ selector, maxUnavailablePercentage: 101 }, 'maxUnavailablePercentage is 101; it must be 0 to 100'],
    [{ selector, maxUnavailablePercentage: -1 }, 'maxUnavailablePercentage is -1; it must be 0 to 100'],
    [{ selector, podNamePartitionRegex: 7 }, 'podNamePartitionRegex is not text'],
    [{ selector, podNamePartitionRegex: '(', podNameRegexGroup: 'x' }, 'podNameRegexGroup is not a whole number'],
    [{ selector, podNamePartitionRegex: '(' }, 'podNamePartitionRegex ( does not compile'],
    [{ selector, podNamePartitionRegex: '(?=a)(b)' }, 'podNamePartitionRegex (?=a)(b) uses look-around or a back-reference'],
    [{ selector, podNamePartitionRegex: '(a)\\1' }, 'podNamePartitionRegex (a)\\1 uses look-around or a back-reference'],
    [{ selector, podNamePartitionRegex: 'a-(?:[0-9]+)' }, 'podNamePartitionRegex a-(?:[0-9]+) has no capture group'],
    [{ selector, podNamePartitionRegex: '(a)(b)' }, 'podNamePartitionRegex (a)(b) has 2 capture groups; podNameRegexGroup must name one'],
    [{ selector, podNamePartitionRegex: '(a)', podNameRegexGroup: 2 }, 'podNameRegexGroup is 2; the pattern has 1 capture groups'],
    [{ selector, podNamePartitionRegex: '(a)', podNameRegexGroup: -1 }, 'podNameRegexGroup is -1; the pattern has 1 capture groups'],
    [{}, 'selector.matchLabels is missing'],
    [{ selector: { matchExpressions: [] } }, 'selector.matchLabels is missing'],
    [{ selector: { matchLabels: { a: 1 } } }, 'selector.matchLabels is not a map of text'],
    [{ selector, crossZoneEvictionDelay: 5 }, 'crossZoneEvictionDelay is not text'],
    [{ selector, crossZoneEvictionDelay: '1d' }, 'crossZoneEvictionDelay 1d is not a duration'],
    [{ selector, crossZoneEvictionDelay: '-1s' }, 'crossZoneEvictionDelay -1s is negative'],
    [{ selector, crossZoneEvictionDelay: '1s' }, 'crossZoneEvictionDelay needs podNamePartitionRegex'],
    [
      { selector, podNamePartitionRegex: '(a)', maxUnavailablePercentage: 1 },
      'maxUnavailablePercentage cannot be combined with podNamePartitionRegex',
    ],
    [{ maxUnavailable: -1, podNamePartitionRegex: '(', crossZoneEvictionDelay: '1d' }, 'maxUnavailable is -1; it must be 0 or more'],
    [{ podNamePartitionRegex: '(', crossZoneEvictionDelay: '1d' }, 'podNamePartitionRegex ( does not compile'],
    [{ crossZoneEvictionDelay: '1d' }, 'selector.matchLabels is missing'],
  ])('%j is rejected with its first error', (spec, problem) => {
    expect(zoneBudget(spec)).toEqual({ unknown: `ZoneAwarePodDisruptionBudget mimir/zpdb: ${problem}` });
  });

  it('of another kind is rejected after the check of its spec', () => {
    expect([observeZoneBudget({ kind: 'Pod', spec: {} }), observeZoneBudget({ kind: 'Pod' })]).toEqual([
      { unknown: 'ZoneAwarePodDisruptionBudget /: kind is "Pod"' },
      { unknown: 'ZoneAwarePodDisruptionBudget /: spec is missing' },
    ]);
  });
});

describe('a PodDisruptionBudget', () => {
  const metadata = { namespace: 'mimir', name: 'pdb' };

  it('is read with its selector and its limit', () => {
    const expression = { key: 'zone', operator: 'In', values: ['a'] };
    const spec = { selector: { ...selector, matchExpressions: [expression] }, maxUnavailable: '50%' };
    expect(observePodBudget({ metadata, spec })).toEqual({
      ...metadata,
      selector: { matchLabels: selector.matchLabels, matchExpressions: [expression] },
      maxUnavailable: '50%',
    });
  });

  it('without a selector selects no pod, and with an empty one every pod', () => {
    expect([observePodBudget({ metadata, spec: { minAvailable: 1 } }), observePodBudget({ metadata, spec: { selector: {} } })]).toEqual([
      { ...metadata, minAvailable: 1, selector: { matchExpressions: [{ key: 'nothing', operator: 'In', values: [] }] } },
      { ...metadata, selector: { matchLabels: {}, matchExpressions: [] } },
    ]);
  });

  it('with an invalid selector is unknown', () => {
    expect(observePodBudget({ metadata, spec: { selector: 'x' } })).toEqual({
      unknown: 'PodDisruptionBudget mimir/pdb: spec.selector is not a label selector',
    });
  });
});
