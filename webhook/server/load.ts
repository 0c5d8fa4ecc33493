// Reports whether the process can take another request: requests under way, and the delay of the event loop.
import type { Clock, Timers } from '../../cluster/env.ts';

export interface Load {
  /** Begins a request and returns its end. Returns undefined if too many requests are under way or the process is late. */
  readonly begin: () => (() => void) | undefined;
  readonly inHandling: () => number;
  readonly stop: () => void;
}

interface LoadOptions {
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly timers: Timers;
  readonly maxInHandling: number;
  readonly maxLoopDelayMs: number;
}

const probeEveryMs = 100;

/**
 * Counts requests, and measures whether a timer fires on time. Two late timers in a row mean an overloaded process; a single one is a
 * garbage collection or a big body.
 */
export function watchLoad({ clock, timers, maxInHandling, maxLoopDelayMs }: LoadOptions): Load {
  let inHandling = 0;
  let lateInARow = 0;
  let cancel: () => void;
  const probe = (): void => {
    const dueMs = clock.monotonicMs() + probeEveryMs;
    cancel = timers.after(probeEveryMs, () => {
      lateInARow = clock.monotonicMs() - dueMs > maxLoopDelayMs ? lateInARow + 1 : 0;
      probe();
    });
  };
  probe();
  return {
    begin: () => {
      if (inHandling >= maxInHandling || lateInARow > 1) return undefined;
      inHandling++;
      let isOver = false;
      return () => {
        if (isOver) return;
        isOver = true;
        inHandling--;
      };
    },
    inHandling: () => inHandling,
    stop: () => cancel(),
  };
}
