import { describe, expect, it } from 'vitest';
import { createScheduler } from '../../simulation/scheduler.ts';

describe('the scheduler', () => {
  it('calls back in the order of the instants', async () => {
    const scheduler = createScheduler(1);
    const seen: number[] = [];
    for (const delayMs of [500, 3, 77, 12, 500, 0]) scheduler.after(delayMs, () => seen.push(scheduler.nowMs()));
    expect(scheduler.pendingCount()).toBe(6);
    await scheduler.runUntil(499);
    expect(seen).toEqual([0, 3, 12, 77]);
    expect([scheduler.nowMs(), scheduler.pendingCount(), scheduler.eventCount()]).toEqual([499, 2, 4]);
    await scheduler.runUntil(1000);
    expect(seen).toEqual([0, 3, 12, 77, 500, 500]);
  });

  it('does what follows from one event before the next', async () => {
    const scheduler = createScheduler(1);
    const seen: string[] = [];
    const chain = async (name: string): Promise<void> => {
      for (let step = 1; step <= 50; step += 1) await Promise.resolve();
      seen.push(name);
    };
    scheduler.after(10, () => void chain('first'));
    scheduler.after(11, () => seen.push('second'));
    await scheduler.runUntil(20);
    expect(seen).toEqual(['first', 'second']);
  });

  it('orders events of one instant by the seed', async () => {
    const orderOf = async (seed: number): Promise<string> => {
      const scheduler = createScheduler(seed);
      const seen: string[] = [];
      for (const name of ['a', 'b', 'c']) scheduler.after(5, () => seen.push(name));
      await scheduler.runUntil(5);
      return seen.join('');
    };
    const orders = new Set<string>();
    for (let seed = 1; seed <= 60; seed += 1) orders.add(await orderOf(seed));
    expect(orders.size).toBe(6);
    expect(await orderOf(7)).toBe(await orderOf(7));
  });

  it('calls back nothing that was cancelled, and ends when it is told that it is over', async () => {
    const scheduler = createScheduler(1);
    const seen: string[] = [];
    const cancel = scheduler.after(5, () => seen.push('cancelled'));
    cancel();
    cancel();
    expect(scheduler.pendingCount()).toBe(0);
    scheduler.after(6, () => seen.push('one'));
    scheduler.after(7, () => seen.push('two'));
    await scheduler.runUntil(100, () => seen.length > 0);
    expect(seen).toEqual(['one']);
    expect(scheduler.nowMs()).toBe(6);
  });

  it('keeps its order with many events', async () => {
    const scheduler = createScheduler(3);
    const seen: number[] = [];
    for (let index = 0; index < 2000; index += 1) scheduler.after((index * 7919) % 1009, () => seen.push(scheduler.nowMs()));
    await scheduler.runUntil(2000);
    expect(seen).toEqual([...seen].sort((one, other) => one - other));
    expect(seen).toHaveLength(2000);
  });
});
