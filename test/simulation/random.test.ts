import { describe, expect, it } from 'vitest';
import { between, draw, oneOf, streamOf, wholeBetween } from '../../simulation/random.ts';

describe('random numbers', () => {
  it('are equal for the same seed and name, and differ for other seeds and names', () => {
    expect(draw(1, 'F1 a1/lease.renew#3')).toBe(draw(1, 'F1 a1/lease.renew#3'));
    const drawn = new Set<number>();
    for (let seed = 0; seed < 50; seed += 1)
      for (let index = 0; index < 50; index += 1) drawn.add(draw(seed, `F1 a1/lease.renew#${index}`));
    expect(drawn.size).toBe(2500);
  });

  it('are spread evenly, also for similar seeds and names', () => {
    const counts = new Array<number>(10).fill(0);
    for (let seed = 1; seed <= 100; seed += 1) {
      for (let index = 1; index <= 100; index += 1) {
        const at = Math.floor(draw(seed, `a1/act.deletePod#${index}`) * 10);
        counts[at] = (counts[at] ?? 0) + 1;
      }
    }
    // 1,000 each, with a standard deviation of 30.
    for (const count of counts) expect(Math.abs(count - 1000)).toBeLessThan(150);
  });

  it('form one stream for each name, and a new stream of that name repeats it', () => {
    const take = (name: string): readonly number[] => {
      const random = streamOf(5, name);
      return [random(), random(), random()];
    };
    expect(take('one')).toEqual(take('one'));
    expect(take('one')).not.toEqual(take('two'));
    for (const value of take('one')) {
      expect(value).toBeGreaterThanOrEqual(0);
      expect(value).toBeLessThan(1);
    }
  });

  it('stay within their bounds', () => {
    const random = streamOf(1, 'bounds');
    const whole = new Set<number>();
    for (let index = 0; index < 500; index += 1) {
      whole.add(wholeBetween(random, 3, 6));
      const value = between(random, -2, 2);
      expect(value).toBeGreaterThanOrEqual(-2);
      expect(value).toBeLessThan(2);
      expect(['x', 'y']).toContain(oneOf(random, ['x', 'y']));
    }
    expect([...whole].sort()).toEqual([3, 4, 5]);
    expect(() => oneOf(random, [])).toThrow('the list is empty');
  });
});
