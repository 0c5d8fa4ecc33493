// Collects everything that waits because of a fault: requests, watches, suspensions, restarts. Releases it when faults end.
import type { Scheduler } from '../scheduler.ts';

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
