// Models the clocks and timers of one process: wrong speed, jumps of the wall clock, suspension and death.

import type { Clock, Timers } from '../../cluster/env.ts';
import { draw } from '../random.ts';
import type { Scheduler } from '../scheduler.ts';

/** 2026-01-15T12:00:00Z, the default. */
const usualStartMs: number = Date.UTC(2026, 0, 15, 12);

/** Wall clock at the start of the run, in milliseconds since 1970. One run at a time per Node process. */
export let runStartMs: number = usualStartMs;

/** Sets the start of the next run. */
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

/** Creates a correct clock. */
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

/** Keeps the timers of one process, and what arrives while the process is paused. */
export class ProcessTime {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly #options: ProcessTimeOptions;
  readonly #offsetMs: number;
  readonly #timers = new Set<Timer>();
  readonly #inbox: Arrival[] = [];
  #state: 'running' | 'paused' | 'catchingUp' | 'over' = 'running';
  #floorMs = 0;
  #pauses = 0;
  #pausedUntilMs = 0;
  #cancelResume = (): void => undefined;
  readonly #forgetMachine: () => void;

  constructor(options: ProcessTimeOptions) {
    const { machine, seed, name } = options;
    this.#options = options;
    this.#offsetMs = Math.floor(draw(seed, `${name} monotonic`) * 1e9) - machine.elapsedMs();
    this.clock = { nowMs: machine.wallMs, monotonicMs: () => this.#monotonicMs() };
    this.timers = { after: (delayMs, callback) => this.#after(delayMs, callback) };
    this.#forgetMachine = machine.onRate(() => {
      for (const timer of this.#timers) {
        timer.cancel();
        this.#schedule(timer, Math.max(0, timer.dueMs - this.#monotonicMs()));
      }
    });
  }

  #after(delayMs: number, callback: () => void): () => void {
    if (this.#state === 'over') return () => undefined;
    const restMs = Math.max(0, delayMs);
    const timer: Timer = { dueMs: this.#monotonicMs() + restMs, callback, cancel: () => undefined };
    this.#timers.add(timer);
    this.#schedule(timer, restMs);
    return () => {
      timer.cancel();
      this.#timers.delete(timer);
    };
  }

  /** Suspends for these milliseconds, or for the rest of a longer suspension; clocks continue. `resumeWith` runs first afterwards. */
  pause(durationMs: number, resumeWith?: () => void): void {
    if (this.#state === 'over') return;
    if (resumeWith !== undefined) this.#inbox.unshift({ kind: 'middle', run: resumeWith });
    const untilMs = this.#options.scheduler.nowMs() + durationMs;
    if (this.#state === 'paused' && untilMs <= this.#pausedUntilMs) return;
    const wasPaused = this.#state === 'paused';
    this.#state = 'paused';
    this.#pausedUntilMs = untilMs;
    this.#cancelResume();
    this.#cancelResume = this.#options.holds.after(durationMs, () => this.#resume());
    if (wasPaused) return;
    this.#pauses += 1;
    this.#options.onPaused?.();
  }

  /** Delivers an external event: at once, after a suspension, or never to a dead process. */
  take(callback: () => void): void {
    this.#arrive({ kind: 'outside', run: callback });
  }

  /** Delivers nothing from now on, and drops all timers. */
  end(): void {
    if (this.#state === 'over') return;
    this.#state = 'over';
    this.#inbox.length = 0;
    this.#cancelResume();
    this.#forgetMachine();
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
  }

  isAlive(): boolean {
    return this.#state !== 'over';
  }

  isPaused(): boolean {
    return this.#state === 'paused';
  }

  /** Returns the number of pending timers. */
  timerCount(): number {
    return this.#timers.size;
  }

  #monotonicMs(): number {
    this.#floorMs = Math.max(this.#floorMs, this.#offsetMs + this.#options.machine.elapsedMs());
    return this.#floorMs;
  }

  #arrive(arrival: Arrival): void {
    if (this.#state === 'running') arrival.run();
    else if (this.#state !== 'over') this.#inbox.push(arrival);
  }

  #schedule(timer: Timer, delayMs: number): void {
    // In whole milliseconds, as Node's timers; never early by the process's own clock.
    timer.cancel = this.#options.scheduler.after(Math.ceil(delayMs / this.#options.machine.rate()), () =>
      this.#arrive({ kind: 'timer', run: () => this.#fire(timer) }),
    );
  }

  #fire(timer: Timer): void {
    // An earlier event after a suspension may have cancelled it.
    if (!this.#timers.delete(timer)) return;
    this.#floorMs = Math.max(this.#floorMs, timer.dueMs);
    timer.callback();
  }

  #resume(): void {
    if (this.#state !== 'paused') return;
    this.#state = 'catchingUp';
    inOrderOfResume(this.#inbox, draw(this.#options.seed, `${this.#options.name} resume ${this.#pauses}`));
    this.#options.onResumed?.();
    this.#catchUp();
  }

  // Runs as separate events: consequences of one finish before the next.
  #catchUp(): void {
    if (this.#state !== 'catchingUp') return;
    const arrival = this.#inbox.shift();
    if (arrival === undefined) {
      this.#state = 'running';
      return;
    }
    arrival.run();
    this.#options.scheduler.after(0, () => this.#catchUp());
  }
}

const ranks = [
  { middle: 0, timer: 1, outside: 1 },
  // A process suspended during its turn continues with timers; one suspended while waiting, with its input.
  { middle: 0, timer: 1, outside: 2 },
  { middle: 0, timer: 2, outside: 1 },
] as const;

/** Orders the input that arrived during a suspension: as it arrived, timers first, or timers last. */
function inOrderOfResume(inbox: Arrival[], lot: number): void {
  const rank = ranks[Math.floor(lot * ranks.length)] ?? ranks[0];
  inbox.sort((one, other) => rank[one.kind] - rank[other.kind]);
}

export interface Holds {
  /** Calls back once, after `delayMs` or on release. Returns a function that cancels; cancelling twice has no effect. */
  readonly after: (delayMs: number, callback: () => void) => () => void;
  /** Releases everything in the order in which it began to wait. */
  readonly release: () => void;
}

interface Held {
  readonly callback: () => void;
  cancel: () => void;
}

export function createHolds(scheduler: Pick<Scheduler, 'after'>): Holds {
  const waiting = new Set<Held>();
  const arm = (held: Held, delayMs: number): void => {
    held.cancel = scheduler.after(delayMs, () => {
      if (waiting.delete(held)) held.callback();
    });
  };
  return {
    after: (delayMs, callback) => {
      const held: Held = { callback, cancel: () => undefined };
      waiting.add(held);
      arm(held, delayMs);
      return () => {
        held.cancel();
        waiting.delete(held);
      };
    },
    release: () => {
      for (const held of waiting) {
        held.cancel();
        arm(held, 0);
      }
    },
  };
}
