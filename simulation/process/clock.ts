// Models the clocks and timers of one process with a wrong rate, jumps of the wall clock, suspension and crash.

import type { Clock, Timers } from '../../cluster/env.ts';
import { draw } from '../random.ts';
import type { Scheduler } from '../scheduler.ts';

/** The default wall-clock time at the start of a simulation: 2026-01-15T12:00:00Z. */
const usualStartMs: number = Date.UTC(2026, 0, 15, 12);

/** The wall-clock time at the start of the simulation. A Node.js process can play one simulation at a time. */
export let runStartMs: number = usualStartMs;

/** Sets the wall-clock time at the start of the next simulation. */
export function beginRunAt(startMs: number = usualStartMs): void {
  runStartMs = startMs;
}

/** The clock of a machine. It continues while the process on the machine is dead. */
export type MachineClock = ReturnType<typeof createMachineClock>;

/** Creates a clock with this rate. Its wall clock is correct at the start of the simulation. */
export function createMachineClock(scheduler: Pick<Scheduler, 'nowMs'>, rate = 1) {
  let era = { fromMs: scheduler.nowMs(), countedMs: scheduler.nowMs() * rate, rate };
  /** The times with different rates, oldest first. */
  const eras = [era];
  let jumpedMs = 0;
  let jumpedAtMs = 0;
  const listeners = new Set<() => void>();
  /** Returns the milliseconds that this clock has counted since the simulation began. Never decreases. */
  const elapsedMs = (): number => era.countedMs + (scheduler.nowMs() - era.fromMs) * era.rate;
  return {
    elapsedMs,
    // Without the addition, a rounding error could turn a whole millisecond into the millisecond before it.
    wallMs: (): number => Math.floor(runStartMs + elapsedMs() + jumpedMs + 1e-6),
    jumpWallClock: (byMs: number): void => {
      jumpedMs += byMs;
      jumpedAtMs = scheduler.nowMs();
    },
    /** Returns the time of the last jump of the wall clock, on the scheduler's clock. */
    jumpedAtMs: () => jumpedAtMs,
    /** Returns the milliseconds of this clock per true millisecond. */
    rate: () => era.rate,
    /** Returns the milliseconds that this clock has counted since `fromMs` on the scheduler's clock. */
    elapsedSinceMs: (fromMs: number): number => {
      const then = eras.findLast((one) => one.fromMs <= fromMs) ?? era;
      return elapsedMs() - then.countedMs - (fromMs - then.fromMs) * then.rate;
    },
    /** Returns the true milliseconds before `untilMs` (scheduler clock) in which this clock counted `countedMs`. */
    trueMs: (countedMs: number, untilMs: number): number => {
      let left = countedMs;
      let endMs = untilMs;
      for (const { fromMs, rate: ofEra } of [...eras].reverse()) {
        const inEraMs = Math.max(0, endMs - fromMs) * ofEra;
        if (inEraMs >= left || fromMs === eras[0]?.fromMs) return untilMs - endMs + left / ofEra;
        left -= inEraMs;
        endMs = Math.min(endMs, fromMs);
      }
      return untilMs - endMs + left;
    },
    /** Corrects the rate and the wall clock from now on. */
    mend: (): void => {
      const nowMs = scheduler.nowMs();
      jumpedMs = nowMs - elapsedMs();
      jumpedAtMs = nowMs;
      if (era.rate === 1) return;
      era = { fromMs: nowMs, countedMs: elapsedMs(), rate: 1 };
      eras.push(era);
      for (const listener of [...listeners]) listener();
    },
    /** Calls the listener after each change of the rate. Returns a function that removes the listener. */
    onRate: (listener: () => void): (() => void) => {
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
  /** The name of the process, for example `a1`. It seeds the offset of the monotonic clock, and the order after a suspension. */
  readonly name: string;
  readonly onPaused?: () => void;
  readonly onResumed?: () => void;
}

interface Timer {
  /** The due time on the monotonic clock of the process. */
  readonly dueMs: number;
  readonly callback: () => void;
  cancel: () => void;
}

/** An input of a suspended process: the rest of the suspended call (`middle`), a due timer, or an answer or watch line (`outside`). */
interface Arrival {
  readonly kind: 'middle' | 'timer' | 'outside';
  readonly run: () => void;
}

/** The clocks and timers of one process, and the events that arrive while the process is suspended. */
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
  /** The start of the last suspension, on the scheduler's clock. */
  pausedAtMs = 0;
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

  /** Suspends the process, unless it is already suspended for longer. Clocks continue. `resumeWith` runs first after the suspension. */
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
    this.pausedAtMs = this.#options.scheduler.nowMs();
    this.#pauses += 1;
    this.#options.onPaused?.();
  }

  /** The end of the last suspension, on the scheduler's clock. */
  get pausedUntilMs(): number {
    return this.#pausedUntilMs;
  }

  /** Delivers an external event at once, or after a suspension. A dead process receives nothing. */
  take(callback: () => void): void {
    this.#arrive({ kind: 'outside', run: callback });
  }

  /** Ends the process: drops all timers and all further events. */
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
    // Timers have whole milliseconds, as in Node.js, and are never early by the clock of the process.
    timer.cancel = this.#options.scheduler.after(Math.ceil(delayMs / this.#options.machine.rate()), () =>
      this.#arrive({ kind: 'timer', run: () => this.#fire(timer) }),
    );
  }

  #fire(timer: Timer): void {
    // An earlier event after the suspension may have cancelled the timer.
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

  // Each arrival is a separate event of the scheduler, so that its consequences finish before the next arrival.
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
  // After a suspension, Node.js can run timers before input, or input before timers. The lot selects one order.
  { middle: 0, timer: 1, outside: 2 },
  { middle: 0, timer: 2, outside: 1 },
] as const;

/** Orders the input that arrived during a suspension: as it arrived, timers first, or timers last. */
function inOrderOfResume(inbox: Arrival[], lot: number): void {
  const rank = ranks[Math.floor(lot * ranks.length)] ?? ranks[0];
  inbox.sort((one, other) => rank[one.kind] - rank[other.kind]);
}

/** The delays that faults cause. The end of the faults releases them. */
export interface Holds {
  /** Calls back once, after `delayMs` or at `release`. Returns a function that cancels the call. */
  readonly after: (delayMs: number, callback: () => void) => () => void;
  /** Calls back for all waiting calls at once, in the order in which they began to wait. */
  readonly release: () => void;
}

interface Held {
  readonly callback: () => void;
  cancel: () => void;
}

export function createHolds(scheduler: Pick<Scheduler, 'after'>): Holds {
  const waiting = new Set<Held>();
  let isReleased = false;
  const arm = (held: Held, delayMs: number): void => {
    held.cancel = scheduler.after(delayMs, () => {
      if (waiting.delete(held)) held.callback();
    });
  };
  return {
    after: (delayMs, callback) => {
      const held: Held = { callback, cancel: () => undefined };
      waiting.add(held);
      // A fault that was drawn before the end of the faults can take effect after it.
      arm(held, isReleased ? 0 : delayMs);
      return () => {
        held.cancel();
        waiting.delete(held);
      };
    },
    release: () => {
      isReleased = true;
      for (const held of waiting) {
        held.cancel();
        arm(held, 0);
      }
    },
  };
}
