// What waits only because of a fault: requests on their way, stalled watches, pauses, restarts. All of it is let go when faults are over.
import type { Scheduler } from '../scheduler.ts';

export interface Holds {
  /** Calls back once, `delayMs` from now or when everything is released. The answer cancels; cancelling twice does nothing. */
  readonly after: (delayMs: number, callback: () => void) => () => void;
  /** Everything that waits comes now, in the order in which it began to wait. */
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
