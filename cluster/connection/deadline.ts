// Limits the whole time of one request with one timer.
import type { Timers } from '../env.ts';

/** The time of a request is over. */
export class DeadlineOver extends Error {
  override readonly name = 'DeadlineOver';
}

/** AbortSignal.any and a signal per request would be simpler, but Node.js 20 keeps them until their timers fire. */
export class Deadline {
  readonly timeoutMs: number;
  readonly cancel: () => void;
  #isOver = false;
  #onOver: () => void = () => undefined;

  constructor(timers: Timers, timeoutMs: number) {
    this.timeoutMs = timeoutMs;
    this.cancel = timers.after(timeoutMs, () => {
      this.#isOver = true;
      this.#onOver();
    });
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Replaces the reaction to the end of the time. Calls it at once if the time is already over. */
  whenOver(react: () => void): void {
    this.#onOver = react;
    if (this.#isOver) react();
  }

  /** Rejects with DeadlineOver if the work takes longer. The work continues: other callers may wait for it. */
  during<Result>(work: Promise<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.whenOver(() => reject(new DeadlineOver()));
      work.then(resolve, reject);
    });
  }
}
