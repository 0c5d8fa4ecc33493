import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { processClock, processRandom, processTimers } from '../../cluster/connection/process-env.ts';

describe('the real environment', () => {
  it('has timers that fire once, not before their time, for any duration', () => {
    vi.useFakeTimers();
    onTestFinished(() => {
      vi.useRealTimers();
    });
    const dayMs = 24 * 3_600_000;
    const calls: string[] = [];
    processTimers.after(0, () => calls.push('now'));
    processTimers.after(60 * dayMs, () => calls.push('in sixty days'));
    const cancel = processTimers.after(40 * dayMs, () => calls.push('never'));
    vi.advanceTimersByTime(1);
    expect(calls).toEqual(['now']);
    vi.advanceTimersByTime(39 * dayMs);
    cancel();
    cancel();
    vi.advanceTimersByTime(21 * dayMs - 2);
    expect(calls).toEqual(['now']);
    vi.advanceTimersByTime(100 * dayMs);
    expect(calls).toEqual(['now', 'in sixty days']);
  });

  it('has a clock since 1970, and a monotonic one', () => {
    expect(processClock.nowMs()).toBeGreaterThan(Date.parse('2020-01-01'));
    const earlier = processClock.monotonicMs();
    expect(processClock.monotonicMs()).toBeGreaterThanOrEqual(earlier);
  });

  it('draws different numbers of at least 0 and below 1', () => {
    const drawn = Array.from({ length: 1000 }, processRandom);
    expect(drawn.every((number) => number >= 0 && number < 1)).toBe(true);
    expect(new Set(drawn).size).toBe(1000);
    expect(drawn.filter((number) => number < 0.5).length).toBeGreaterThan(300);
  });
});
