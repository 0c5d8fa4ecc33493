// The end of one request's time: one timer, whatever the request waits for at the moment.
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

  /** What to do when the time is over; it takes the place of what was to be done before. At once, if the time is over already. */
  whenOver(react: () => void): void {
    this.#onOver = react;
    if (this.#isOver) react();
  }

  /** Rejects with DeadlineOver when the work takes longer. The work is not stopped: somebody else may wait for it too. */
  during<Result>(work: Promise<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.whenOver(() => reject(new DeadlineOver()));
      work.then(resolve, reject);
    });
  }
}
