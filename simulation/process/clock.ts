// Models the clocks and timers of one process: wrong speed, jumps of the wall clock, suspension and death.
import type { Clock, Timers } from '../../cluster/env.ts';
import { draw } from '../random.ts';
import type { Scheduler } from '../scheduler.ts';
import type { Holds } from './holds.ts';

/** 2026-01-15T12:00:00Z, the default. */
const usualStartMs: number = Date.UTC(2026, 0, 15, 12);

/** Wall clock at the start of the run, in milliseconds since 1970. One run at a time per Node process. */
export let runStartMs: number = usualStartMs;

/** The start of the next run. */
export function beginRunAt(startMs: number = usualStartMs): void {
  runStartMs = startMs;
}

/** The machine clock of all lives of a process. */
export interface MachineClock {
  /** Milliseconds since the run began by this clock. Never decreases. */
  readonly elapsedMs: () => number;
  /** Whole milliseconds since 1970. */
  readonly wallMs: () => number;
  readonly jumpWallClock: (byMs: number) => void;
  /** Speed: its milliseconds per true millisecond. */
  readonly rate: () => number;
  /** Corrects speed and wall clock from now on. */
  readonly mend: () => void;
  /** Calls back after a change of speed; returns a function that ends it. */
  readonly onRate: (listener: () => void) => () => void;
}

/** A correct clock. */
export function createMachineClock(scheduler: Pick<Scheduler, 'nowMs'>, rate = 1): MachineClock {
  let current = rate;
  let anchor = { nowMs: scheduler.nowMs(), elapsedMs: scheduler.nowMs() * rate };
  let jumpedMs = 0;
  const listeners = new Set<() => void>();
  const elapsedMs = (): number => anchor.elapsedMs + (scheduler.nowMs() - anchor.nowMs) * current;
  return {
    elapsedMs,
    // Avoids that rounding turns a whole millisecond into the previous one.
    wallMs: () => Math.floor(runStartMs + elapsedMs() + jumpedMs + 1e-6),
    jumpWallClock: (byMs) => {
      jumpedMs += byMs;
    },
    rate: () => current,
    mend: () => {
      anchor = { nowMs: scheduler.nowMs(), elapsedMs: elapsedMs() };
      jumpedMs = anchor.nowMs - anchor.elapsedMs;
      if (current === 1) return;
      current = 1;
      for (const listener of [...listeners]) listener();
    },
    onRate: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

export interface ProcessTime {
  readonly clock: Clock;
  readonly timers: Timers;
  /** Delivers an external event: at once, after a suspension, or never to a dead process. */
  readonly take: (callback: () => void) => void;
  /**
   * Suspends for these milliseconds on the scheduler's clock, or for the rest of a longer suspension; clocks continue. `resumeWith` runs
   * first afterwards, as the interrupted work.
   */
  readonly pause: (durationMs: number, resumeWith?: () => void) => void;
  /** Delivers nothing from now on, and drops all timers. */
  readonly end: () => void;
  readonly isAlive: () => boolean;
  readonly isPaused: () => boolean;
  /** Number of pending timers. */
  readonly timerCount: () => number;
}

interface ProcessTimeOptions {
  readonly scheduler: Scheduler;
  readonly machine: MachineClock;
  readonly holds: Holds;
  readonly seed: number;
  /** For example `a1`; seeds the offset of the monotonic clock, and the order after a suspension. */
  readonly name: string;
  readonly onPaused?: () => void;
  readonly onResumed?: () => void;
}

interface Timer {
  /** On the process's monotonic clock. */
  readonly dueMs: number;
  readonly callback: () => void;
  cancel: () => void;
}

interface Arrival {
  readonly kind: 'middle' | 'timer' | 'outside';
  readonly run: () => void;
}

/** Time for a process that begins now. */
export function createProcessTime(options: ProcessTimeOptions): ProcessTime {
  const { scheduler, machine, holds, seed, name } = options;
  const offsetMs = Math.floor(draw(seed, `${name} monotonic`) * 1e9) - machine.elapsedMs();
  const timers = new Set<Timer>();
  const inbox: Arrival[] = [];
  let state: 'running' | 'paused' | 'catchingUp' | 'over' = 'running';
  let floorMs = 0;
  let pauses = 0;
  let pausedUntilMs = 0;
  let cancelResume = (): void => undefined;

  const monotonicMs = (): number => {
    floorMs = Math.max(floorMs, offsetMs + machine.elapsedMs());
    return floorMs;
  };
  const arrive = (arrival: Arrival): void => {
    if (state === 'running') arrival.run();
    else if (state !== 'over') inbox.push(arrival);
  };
  const schedule = (timer: Timer, delayMs: number): void => {
    // In whole milliseconds, as Node's timers; never early by the process's own clock.
    timer.cancel = scheduler.after(Math.ceil(delayMs / machine.rate()), () => arrive({ kind: 'timer', run: () => fire(timer) }));
  };
  const fire = (timer: Timer): void => {
    // An earlier event after a suspension may have cancelled it.
    if (!timers.delete(timer)) return;
    floorMs = Math.max(floorMs, timer.dueMs);
    timer.callback();
  };
  const forgetMachine = machine.onRate(() => {
    for (const timer of timers) {
      timer.cancel();
      schedule(timer, Math.max(0, timer.dueMs - monotonicMs()));
    }
  });

  const resume = (): void => {
    if (state !== 'paused') return;
    state = 'catchingUp';
    inOrderOfResume(inbox, draw(seed, `${name} resume ${pauses}`));
    options.onResumed?.();
    catchUp();
  };
  // Runs as separate events: consequences of one finish before the next.
  const catchUp = (): void => {
    if (state !== 'catchingUp') return;
    const arrival = inbox.shift();
    if (arrival === undefined) {
      state = 'running';
      return;
    }
    arrival.run();
    scheduler.after(0, catchUp);
  };
  const pause = (durationMs: number, resumeWith?: () => void): void => {
    if (state === 'over') return;
    if (resumeWith !== undefined) inbox.unshift({ kind: 'middle', run: resumeWith });
    const untilMs = scheduler.nowMs() + durationMs;
    if (state === 'paused' && untilMs <= pausedUntilMs) return;
    const wasPaused = state === 'paused';
    state = 'paused';
    pausedUntilMs = untilMs;
    cancelResume();
    cancelResume = holds.after(durationMs, resume);
    if (wasPaused) return;
    pauses += 1;
    options.onPaused?.();
  };

  return {
    clock: { nowMs: machine.wallMs, monotonicMs },
    timers: {
      after: (delayMs, callback) => {
        if (state === 'over') return () => undefined;
        const restMs = Math.max(0, delayMs);
        const timer: Timer = { dueMs: monotonicMs() + restMs, callback, cancel: () => undefined };
        timers.add(timer);
        schedule(timer, restMs);
        return () => {
          timer.cancel();
          timers.delete(timer);
        };
      },
    },
    take: (callback) => arrive({ kind: 'outside', run: callback }),
    pause,
    end: () => {
      if (state === 'over') return;
      state = 'over';
      inbox.length = 0;
      cancelResume();
      forgetMachine();
      for (const timer of timers) timer.cancel();
      timers.clear();
    },
    isAlive: () => state !== 'over',
    isPaused: () => state === 'paused',
    timerCount: () => timers.size,
  };
}

const ranks = [
  { middle: 0, timer: 1, outside: 1 },
  // A process suspended during its turn continues with timers; one suspended while waiting, with its input.
  { middle: 0, timer: 1, outside: 2 },
  { middle: 0, timer: 2, outside: 1 },
] as const;

/** Input of a suspension is delivered in order, or timers first, or timers last. */
function inOrderOfResume(inbox: Arrival[], lot: number): void {
  const rank = ranks[Math.floor(lot * ranks.length)] ?? ranks[0];
  inbox.sort((one, other) => rank[one.kind] - rank[other.kind]);
}
