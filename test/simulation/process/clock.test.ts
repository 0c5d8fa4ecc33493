import { describe, expect, it } from 'vitest';
import { placedFaults } from '../../../simulation/faults/source.ts';
import { createMachineClock, runStartMs } from '../../../simulation/process/clock.ts';
import { createScheduler } from '../../../simulation/scheduler.ts';
import { newLife } from './lives.ts';

const noFaults = placedFaults([]);

describe('the clocks of a process', () => {
  it('begin somewhere, and the wall clock at the instant at which the run begins', async () => {
    const scheduler = createScheduler(1);
    const { time } = newLife(scheduler, noFaults).life;
    const { time: other } = newLife(scheduler, noFaults, { name: 'b1' }).life;
    expect(time.clock.nowMs()).toBe(runStartMs);
    expect(time.clock.monotonicMs()).not.toBe(other.clock.monotonicMs());
    await scheduler.runUntil(1234);
    expect(time.clock.nowMs()).toBe(runStartMs + 1234);
  });

  it('run too fast or too slow together, and timers with them', async () => {
    for (const rate of [0.4, 1, 2.2]) {
      const scheduler = createScheduler(1);
      const { time } = newLife(scheduler, noFaults, { rate }).life;
      const beganMs = time.clock.monotonicMs();
      let seenMs = 0;
      time.timers.after(10_000, () => {
        seenMs = scheduler.nowMs();
        expect(time.clock.monotonicMs() - beganMs).toBeGreaterThanOrEqual(10_000);
      });
      await scheduler.runUntil(30_000);
      expect(seenMs).toBe(Math.ceil(10_000 / rate));
      expect(time.clock.nowMs() - runStartMs).toBe(Math.floor(30_000 * rate));
    }
  });

  it('keep the monotonic clock when the wall clock jumps', async () => {
    const scheduler = createScheduler(1);
    const { life, machine } = newLife(scheduler, noFaults);
    const beganMs = life.time.clock.monotonicMs();
    machine.jumpWallClock(-3_600_000);
    await scheduler.runUntil(1000);
    expect(life.time.clock.nowMs()).toBe(runStartMs + 1000 - 3_600_000);
    expect(life.time.clock.monotonicMs() - beganMs).toBe(1000);
  });

  it('are right once they are mended, also for timers that were set before', async () => {
    const scheduler = createScheduler(1);
    const { life, machine } = newLife(scheduler, noFaults, { rate: 2 });
    const fired: number[] = [];
    life.time.timers.after(10_000, () => fired.push(scheduler.nowMs()));
    machine.jumpWallClock(777);
    await scheduler.runUntil(1000);
    machine.mend();
    expect(life.time.clock.nowMs()).toBe(runStartMs + 1000);
    await scheduler.runUntil(20_000);
    // 2,000 of its milliseconds had passed, 8,000 true ones are left.
    expect(fired).toEqual([9000]);
    expect([0, 400, 1000, 5000].map(machine.elapsedSinceMs)).toEqual([21_000, 20_200, 19_000, 15_000]);
  });
});

describe('a process that stands still', () => {
  it('takes nothing in until it goes on, while its clocks do', async () => {
    const scheduler = createScheduler(1);
    const { life, changes } = newLife(scheduler, noFaults);
    const { time } = life;
    const seen: string[] = [];
    const beganMs = time.clock.monotonicMs();
    const note = (what: string) => () => seen.push(`${what} at ${time.clock.monotonicMs() - beganMs}`);
    time.timers.after(500, note('timer 500'));
    time.timers.after(3000, note('timer 3000'));
    scheduler.after(700, () => time.take(note('reply')));
    scheduler.after(100, () => time.pause(2000));
    await scheduler.runUntil(1000);
    expect(seen).toEqual([]);
    await scheduler.runUntil(5000);
    expect([...seen].sort()).toEqual(['reply at 2100', 'timer 3000 at 3000', 'timer 500 at 2100']);
    expect(changes).toEqual(['paused at 100', 'resumed at 2100']);
  });

  it('goes on with what it was in the middle of, then with what was due in its order', async () => {
    const orders = new Set<string>();
    for (let seed = 1; seed <= 30; seed += 1) {
      const scheduler = createScheduler(seed);
      const { time } = newLife(scheduler, noFaults, { seed }).life;
      const seen: string[] = [];
      time.timers.after(10, () => seen.push('t1'));
      scheduler.after(20, () => time.take(() => seen.push('r1')));
      time.timers.after(30, () => seen.push('t2'));
      scheduler.after(40, () => time.take(() => seen.push('r2')));
      time.pause(100, () => seen.push('middle'));
      await scheduler.runUntil(200);
      expect(seen[0]).toBe('middle');
      orders.add(seen.slice(1).join(' '));
    }
    expect([...orders].sort()).toEqual(['r1 r2 t1 t2', 't1 r1 t2 r2', 't1 t2 r1 r2']);
  });

  it('does not fire a timer that what came before it has cancelled', async () => {
    const scheduler = createScheduler(1);
    const { time } = newLife(scheduler, noFaults).life;
    const seen: string[] = [];
    const cancel = time.timers.after(20, () => seen.push('second'));
    time.timers.after(10, () => {
      seen.push('first');
      cancel();
    });
    time.pause(100);
    await scheduler.runUntil(500);
    expect(seen).toEqual(['first']);
  });

  it('stands still for the longer of two pauses', async () => {
    const scheduler = createScheduler(1);
    const { life, changes } = newLife(scheduler, noFaults);
    life.time.pause(1000);
    life.time.pause(5000);
    life.time.pause(200);
    await scheduler.runUntil(10_000);
    expect(changes).toEqual(['paused at 0', 'resumed at 5000']);
  });

  it('continues when its blocked calls are released', async () => {
    const scheduler = createScheduler(1);
    const { life, holds, changes } = newLife(scheduler, noFaults);
    life.time.pause(60_000);
    await scheduler.runUntil(1000);
    holds.release();
    await scheduler.runUntil(2000);
    expect(changes).toEqual(['paused at 0', 'resumed at 1000']);
    expect(scheduler.pendingCount()).toBe(0);
  });
});

describe('the clock of a machine', () => {
  it('tells how long it took to count a duration, also before its rate changed', () => {
    let nowMs = 0;
    const machine = createMachineClock({ nowMs: () => nowMs }, 2);
    nowMs = 10_000;
    expect([machine.trueMs(4_000, nowMs), machine.trueMs(4_000, 8_000)]).toEqual([2_000, 2_000]);
    machine.mend();
    nowMs = 13_000;
    expect([machine.trueMs(3_000, nowMs), machine.trueMs(5_000, nowMs), machine.trueMs(4_000, 9_000)]).toEqual([3_000, 4_000, 2_000]);
  });
});

describe('a process that is over', () => {
  it('takes nothing in any more and leaves nothing to come', async () => {
    const scheduler = createScheduler(1);
    const { time } = newLife(scheduler, noFaults).life;
    const seen: string[] = [];
    time.timers.after(10, () => seen.push('timer'));
    time.pause(20);
    time.take(() => seen.push('reply'));
    time.end();
    time.timers.after(5, () => seen.push('later timer'));
    await scheduler.runUntil(1000);
    expect(seen).toEqual([]);
    expect([time.timerCount(), time.isAlive(), scheduler.pendingCount()]).toEqual([0, false, 0]);
  });
});
