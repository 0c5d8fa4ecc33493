import { describe, expect, it } from 'vitest';
import { randomFrom } from './random.ts';

const draw = (seed: number, count: number): readonly number[] => {
  const random = randomFrom(seed);
  return Array.from({ length: count }, () => random.next());
};

describe('randomness from a seed', () => {
  it('is mulberry32, so that a seed in an old report still names the same run', () => {
    expect(draw(1, 4)).toEqual([0.6270739405881613, 0.002735721180215478, 0.5274470399599522, 0.9810509674716741]);
    expect(draw(0, 2)).toEqual([0.26642920868471265, 0.0003297457005828619]);
  });

  it('repeats for the same seed, and differs for another seed', () => {
    expect(draw(7, 20)).toEqual(draw(7, 20));
    expect(draw(7, 20)).not.toEqual(draw(8, 20));
  });

  it('uses only the lowest 32 bits of the seed', () => {
    expect(draw(2 ** 32 + 5, 3)).toEqual(draw(5, 3));
    expect(draw(-1, 3)).toEqual(draw(2 ** 32 - 1, 3));
  });

  it('returns whole numbers from 0 to below the end, and reaches each of them', () => {
    const random = randomFrom(3);
    const seen = new Set(Array.from({ length: 200 }, () => random.below(5)));
    expect([...seen].sort()).toEqual([0, 1, 2, 3, 4]);
  });

  it('can pick each item of a list, and returns undefined for an empty list', () => {
    const random = randomFrom(3);
    const seen = new Set(Array.from({ length: 100 }, () => random.pick(['x', 'y', 'z'])));
    expect([...seen].sort()).toEqual(['x', 'y', 'z']);
    expect(random.pick([])).toBeUndefined();
  });
});
