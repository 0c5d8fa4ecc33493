import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareResourceVersions, HighWaterMark } from '../../cluster/request/resource.ts';

describe('the order of resource versions', () => {
  it('is that of unsigned integers of any length', () => {
    const version = fc.bigInt({ min: 0n, max: 10n ** 40n });
    fc.assert(
      fc.property(version, version, (a, b) => {
        const order = compareResourceVersions(String(a), String(b)) ?? Number.NaN;
        expect(Math.sign(order)).toBe(a < b ? -1 : a > b ? 1 : 0);
      }),
    );
  });

  it.each([
    ['abc', '1'],
    ['1', ''],
    ['1.5', '1'],
    ['-1', '1'],
    ['01', '2'],
    ['1e3', '2'],
  ])('does not compare %s with %s', (a, b) => {
    expect(compareResourceVersions(a, b)).toBeUndefined();
  });

  it('treats equal texts as equal versions, also if they are not numbers', () => {
    expect(compareResourceVersions('abc', 'abc')).toBe(0);
  });
});

describe('a high-water mark', () => {
  it('never goes back', () => {
    const mark = new HighWaterMark();
    for (const version of ['9', '10', '9', '2']) mark.raise(version);
    expect(mark.value).toBe('10');
  });

  it('covers what is not newer, and nothing before anything was seen', () => {
    const mark = new HighWaterMark();
    expect(mark.covers('1')).toBe(false);
    mark.raise('100');
    expect(['99', '100', '101', 'abc'].map((version) => mark.covers(version))).toEqual([true, true, false, false]);
  });

  it('is ahead only of versions that are known to be older', () => {
    const mark = new HighWaterMark('100');
    expect(['99', '100', '101', 'abc'].map((version) => mark.isOlder(version))).toEqual([true, false, false, false]);
  });
});
