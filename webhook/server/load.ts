// Whether the process can take one more request: how many are in hand, and whether the event loop keeps up.
import type { Clock, Timers } from '../../cluster/env.ts';

export interface Load {
  /** Begins a request; the answer ends it. undefined when there are too many already, or when the process is behind. */
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
 * Counts requests, and looks whether a timer comes when it should. Two late ones in a row are a process that has more to compute than time; a
 * single one is a collection of garbage, or a big body.
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
