import { describe, expect, it } from 'vitest';
import { oscillationViolations } from './oscillation.ts';

describe('S16, replicas that go back and forth', () => {
  const write = (zone: string, from: number, to: number, inputs = 'count 3') => ({ zone, from, to, inputs });

  it('are found where nothing that they follow has changed', () => {
    expect(oscillationViolations([write('a', 3, 5), write('a', 5, 3)])).toEqual(['S16: the replicas of zone a oscillate']);
    expect(oscillationViolations([write('a', 3, 5), write('b', 5, 3), write('a', 5, 4), write('a', 4, 5)])).toEqual([
      'S16: the replicas of zone a oscillate',
      'S16: the replicas of zone a oscillate',
    ]);
  });

  it('are no violation in one direction, in different zones, or when their source has changed', () => {
    expect(oscillationViolations([write('a', 3, 5), write('a', 5, 7)])).toEqual([]);
    expect(oscillationViolations([write('a', 3, 5), write('b', 5, 3)])).toEqual([]);
    expect(oscillationViolations([write('a', 3, 5), write('a', 5, 3, 'count 4')])).toEqual([]);
  });
});
