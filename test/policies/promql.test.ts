// What is a PromQL query and what cannot be one, wherever it is cut or damaged.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { queryProblem } from '../../policies/integrations/promql.ts';

const queries = [
  'up',
  'up{job="a", instance=~"b.*",} == 1',
  '{__name__="up"}',
  '{"http.requests", "my.label"=\'x\'}',
  'sum(rate(http_requests_total{code!~"2.."}[5m])) by (job) / sum without (code) (rate(http_requests_total[5m])) < 0.01',
  'sum by (job) (up) > bool 1',
  'a * on (x, y) group_left (z) b',
  'a / ignoring(x) group_right b',
  'a and on() (time() - timestamp(up{job="x"}) < 60)',
  'rate(x[5m:1m] offset -1h)',
  'x @ 1609746000.000 offset 5m',
  'x @ start() + x @ end()',
  'max_over_time(deriv(rate(x[1m])[5m:30s])[10m:])',
  'histogram_quantile(0.9, sum by (le) (rate(b[5m])))',
  '-1 + +2 ^ 3 % .5e-3',
  '0x1F + 1e10 + Inf + NaN + 1_000',
  'vector(1) unless absent(up) or up # the end',
  'count_values("version", build)',
  'label_replace(up, "a", "$1", `b\\`, "(.*)")',
  'job:errors:rate5m > 1h30m',
  'topk(3, x) atan2 y',
  'x default 0 if y',
  'x{a="1" or b="2"}',
  'SUM(x) BY (y)',
  'x offset (5m)',
];

describe('a query', () => {
  it.each(queries)('is %j', (query) => {
    expect(queryProblem(query)).toBeUndefined();
  });

  it.each([
    ['', 0, 'is empty'],
    ['  # nothing', 0, 'is empty'],
    ['sum(up', 6, 'ends where ")" is missing'],
    ['up)', 2, 'has ")" where an operator or the end is missing'],
    ['up up', 3, 'has "up" where an operator or the end is missing'],
    ['up >', 4, 'ends where a metric, a number or a bracket is missing'],
    ['* up', 0, 'has "*" where a metric, a number or a bracket is missing'],
    ['up{job="a}', 7, 'has a text that does not end'],
    ['up{job=a}', 7, 'has "a" where a text in quotes is missing'],
    ['up{job}', 6, 'has "}" where =, !=, =~ or !~ is missing'],
    ['up{job="a"', 10, 'ends where "}" is missing'],
    ['rate(x[5m)', 6, 'has a range that does not end'],
    ['rate(x[])', 6, 'has a range without a duration'],
    ['sum by (x) up', 11, 'has "up" where "(" is missing'],
    ['sum by x (up)', 7, 'has "x" where "(" is missing'],
    ['f(a,)', 4, 'has ")" where a metric, a number or a bracket is missing'],
    ['x offset', 8, 'ends where a duration is missing'],
    ['x @ start', 9, 'ends where "(" is missing'],
    ['x = 1', 2, 'has "=" where an operator or the end is missing'],
    ['up; drop', 2, 'has an unexpected ";"'],
    ['rate(x[$__interval]) > $threshold', 23, 'has an unexpected "$"'],
    [`${'('.repeat(200)}1${')'.repeat(200)}`, 100, 'is nested deeper than 100 levels'],
  ])('is not %j', (query, at, message) => {
    expect(queryProblem(query)).toEqual({ at, message });
  });

  it('that is cut or damaged has a result, with a place in it', () => {
    const damage = fc.tuple(
      fc.constantFrom(...queries),
      fc.nat(80),
      fc.nat(3),
      fc.constantFrom('', '(', ')', '"', '[', '{', '\\', '#', '\ud800'),
    );
    fc.assert(
      fc.property(damage, ([query, at, removed, added]) => {
        const text = query.slice(0, at) + added + query.slice(at + removed);
        const problem = queryProblem(text);
        expect(problem === undefined || (problem.at >= 0 && problem.at <= text.length)).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });

  it('that is long is read at once', () => {
    const long = `${'up + '.repeat(20_000)}up`;
    expect(queryProblem(long)).toBeUndefined();
    expect(queryProblem(`${long} +`)?.at).toBe(long.length + 2);
  });
});
