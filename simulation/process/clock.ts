// The clocks and timers of one process: they may run too fast or too slow, the wall clock may jump, and the process may stand still or be over.
import type { Clock, Timers } from '../../cluster/env.ts';
import { draw } from '../random.ts';
import type { Scheduler } from '../scheduler.ts';
import type { Holds } from './holds.ts';

/** 2026-01-15T12:00:00Z, where the scenario says nothing else. */
const usualStartMs: number = Date.UTC(2026, 0, 15, 12);

/** The wall clock when the run begins, in milliseconds since 1970. One run at a time in a process of Node. */
export let runStartMs: number = usualStartMs;

/** The next run begins then. */
export function beginRunAt(startMs: number = usualStartMs): void {
  runStartMs = startMs;
}

/** The clock of the machine on which each life of a process runs. */
export interface MachineClock {
  /** Milliseconds since the run began, as this clock counts them. Never goes back. */
  readonly elapsedMs: () => number;
  /** Whole milliseconds since 1970. */
  readonly wallMs: () => number;
  readonly jumpWallClock: (byMs: number) => void;
  /** How many of its milliseconds pass in a true one. */
  readonly rate: () => number;
  /** From now on it runs true, and the wall clock is right. */
  readonly mend: () => void;
  /** Calls back after the rate has changed; the answer ends that. */
  readonly onRate: (listener: () => void) => () => void;
}

/** A clock that was right when the run began. */
export function createMachineClock(scheduler: Pick<Scheduler, 'nowMs'>, rate = 1): MachineClock {
  let current = rate;
  let anchor = { nowMs: scheduler.nowMs(), elapsedMs: scheduler.nowMs() * rate };
  let jumpedMs = 0;
  const listeners = new Set<() => void>();
  const elapsedMs = (): number => anchor.elapsedMs + (scheduler.nowMs() - anchor.nowMs) * current;
  return {
    elapsedMs,
    // What is a whole millisecond must not become the one before it by a rounding error.
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
  /** Something comes from outside: taken in at once, or when the process goes on if it stands still, or never when it is over. */
  readonly take: (callback: () => void) => void;
  /**
   * Stands still for so many milliseconds on the scheduler's clock, or for what is left of a longer pause; clocks go on. `resumeWith` is the
   * first thing afterwards: what the process was in the middle of.
   */
  readonly pause: (durationMs: number, resumeWith?: () => void) => void;
  /** Nothing is taken in from now on, and no timer is left. */
  readonly end: () => void;
  readonly isAlive: () => boolean;
  readonly isPaused: () => boolean;
  /** Timers that are still to fire. */
  readonly timerCount: () => number;
}

interface ProcessTimeOptions {
  readonly scheduler: Scheduler;
  readonly machine: MachineClock;
  readonly holds: Holds;
  readonly seed: number;
  /** Such as `a1`; the offset of the monotonic clock, and what comes first after a pause, are drawn by it. */
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

/** Time as a process that begins now sees it. */
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
    // In whole milliseconds, as Node's timers; never too early by the process's own clock.
    timer.cancel = scheduler.after(Math.ceil(delayMs / machine.rate()), () => arrive({ kind: 'timer', run: () => fire(timer) }));
  };
  const fire = (timer: Timer): void => {
    // It may have been cancelled by what came before it after a pause.
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
  // One after the other, as events of their own: what follows from one is done before the next.
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
  // A process that slept in the middle of its turn goes on with timers; one that slept while it waited, with what it waited for.
  { middle: 0, timer: 1, outside: 2 },
  { middle: 0, timer: 2, outside: 1 },
] as const;

/** What has come in while a process stood still is taken in as it came, or timers first, or timers last. */
function inOrderOfResume(inbox: Arrival[], lot: number): void {
  const rank = ranks[Math.floor(lot * ranks.length)] ?? ranks[0];
  inbox.sort((one, other) => rank[one.kind] - rank[other.kind]);
}
