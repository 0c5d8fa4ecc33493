// Queries of PhasedRollouts: counted series, comments, blanks in texts, and expressions that always answer.
import { describe, expect, it } from 'vitest';
import { countedQuery } from '../../../policies/adopt/phased-rollout.ts';

describe('a query of a PhasedRollout', () => {
  it.each([
    ['up == 1', 'count(up == 1)'],
    ['sum(rate(x[5m]))\n  /   sum(y) < 1', 'count(sum(rate(x[5m])) / sum(y) < 1)'],
    ['up{job="a  b"} < 1', 'count(up{job="a  b"} < 1)'],
    ["up{job='it\\'s  # no comment'} < 1", "count(up{job='it\\'s  # no comment'} < 1)"],
    ['up{job=`a\\`} < 1 # end', 'count(up{job=`a\\`} < 1)'],
    ['errors[5m]', 'count(last_over_time(errors[5m]))'],
    ['errors[5m] offset 1h', 'count(last_over_time(errors[5m] offset 1h))'],
    ['rate(x[5m]) > 1', 'count(rate(x[5m]) > 1)'],
    ['max_over_time(up[1h:5m]) < 1', 'count(max_over_time(up[1h:5m]) < 1)'],
    ['# nothing\n', ''],
    ['', ''],
  ])('%j is sent as %j', (expression, query) => {
    expect(countedQuery(expression).query).toBe(query);
  });

  it('reports a comment, and no hash in a text', () => {
    expect(['up < 1 # why', 'up{a="#"} < 1'].map((expression) => countedQuery(expression).hasComment)).toEqual([true, false]);
  });

  it.each([
    ['sum(errors)', true],
    ['vector(0)', true],
    ['up{job!="a"}', true],
    ['errors > bool 1', true],
    ['errors > 1', false],
    ['errors{job="a"} != 0', false],
    ['absent(errors)', false],
    ['up unless errors', false],
  ])('%j has a series for any value: %s', (expression, isAlwaysTrue) => {
    expect(countedQuery(expression).isAlwaysTrue).toBe(isAlwaysTrue);
  });
});
