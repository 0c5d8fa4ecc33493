import { describe, expect, it } from 'vitest';
import { ordinalRanges, unavailableLimit, waveTarget } from '../../engine/amount.ts';

const percents = [1, 10, 25, 33, 50, 75, 99, 100];

describe('the updated pods of a wave', () => {
  it.each([
    [1, [1, 1, 1, 1, 1, 1, 1, 1]],
    [2, [1, 1, 1, 1, 1, 1, 1, 2]],
    [3, [1, 1, 1, 1, 2, 2, 2, 3]],
    [4, [1, 1, 1, 2, 2, 3, 3, 4]],
    [5, [1, 1, 2, 2, 3, 4, 4, 5]],
    [7, [1, 1, 2, 3, 4, 6, 6, 7]],
    [10, [1, 1, 3, 4, 5, 8, 9, 10]],
    [33, [1, 4, 9, 11, 17, 25, 32, 33]],
    [100, [1, 10, 25, 33, 50, 75, 99, 100]],
    [1000, [10, 100, 250, 330, 500, 750, 990, 1000]],
  ])('follow the table of percentages for %i pods', (replicas, expected) => {
    expect(percents.map((percent) => waveTarget({ percent }, replicas))).toEqual(expected);
  });

  it.each([
    [-5, 7, 0],
    [0, 7, 0],
    [120, 7, 7],
    [0.5, 7, 1],
    [50, 0, 0],
    [100, 0, 0],
  ])('of %d percent of %i pods are %i at the edges', (percent, replicas, expected) => {
    expect(waveTarget({ percent }, replicas)).toBe(expected);
  });

  it('add 1, 3 and 3 pods in waves of 1, 50 and 100 percent of seven', () => {
    expect([1, 50, 100].map((percent) => waveTarget({ percent }, 7))).toEqual([1, 4, 7]);
  });

  it.each([
    [0, 3, 0],
    [1, 3, 1],
    [3, 3, 3],
    [4, 3, 3],
    [1, 0, 0],
  ])('of a wave of %i pods in a zone of %i are %i, at most the whole zone', (count, replicas, expected) => {
    expect(waveTarget({ pods: count }, replicas)).toBe(expected);
  });
});

describe('the pods that may be unavailable', () => {
  it.each([
    [0, 10, 0],
    [1, 10, 1],
    [20, 10, 20],
    ['0%', 10, 1],
    ['1%', 10, 1],
    ['10%', 9, 1],
    ['10%', 10, 1],
    ['10%', 19, 1],
    ['10%', 20, 2],
    ['25%', 10, 2],
    ['33%', 3, 1],
    ['34%', 3, 1],
    ['67%', 3, 2],
    ['99%', 100, 99],
    ['100%', 7, 7],
    ['50%', 0, 1],
  ] as const)('with %s of %i pods are %i: a percentage is rounded down, to one at least', (limit, replicas, expected) => {
    expect(unavailableLimit(limit, replicas)).toBe(expected);
  });
});

describe('ordinals as text', () => {
  it.each([
    [[], ''],
    [[0], '0'],
    [[0, 1], '0-1'],
    [[3, 1, 2, 0, 5], '0-3,5'],
    [[1, 3, 5], '1,3,5'],
    [[10, 9, 2], '2,9-10'],
    [[7, 8, 0, 1], '0-1,7-8'],
  ])('%j are "%s"', (ordinals, expected) => {
    expect(ordinalRanges(ordinals)).toBe(expected);
  });

  it('are sorted in a copy', () => {
    const ordinals = Object.freeze([2, 1]);
    expect(ordinalRanges(ordinals)).toBe('1-2');
  });
});
