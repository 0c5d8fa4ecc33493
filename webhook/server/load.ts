// Limits the load of the webhook server: concurrent requests, the delay of the event loop, and big bodies in memory.
import type { Clock, Timers } from '../../cluster/env.ts';

export interface Load {
  /** Counts a request and returns a function that ends the request. Returns undefined during an overload. */
  readonly begin: () => (() => void) | undefined;
  readonly stop: () => void;
}

interface LoadOptions {
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly timers: Timers;
  readonly maxInHandling: number;
  readonly maxLoopDelayMs: number;
}

const probeEveryMs = 100;

/** Counts requests and late timers. Two late timers in a row mean an overload; a garbage collection may delay a single timer. */
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
    stop: () => cancel(),
  };
}

/** A limited number of slots. Waiting callers get slots in order of arrival. */
export interface Slots {
  /** Waits for a slot. Resolves with a function that frees the slot, or with undefined if `signal` is aborted or `waitMs` passed. */
  readonly take: (signal: AbortSignal) => Promise<(() => void) | undefined>;
}

export function slots({ count, waitMs, timers }: { readonly count: number; readonly waitMs: number; readonly timers: Timers }): Slots {
  let free = count;
  const waiting = new Set<() => void>();
  const release = (): (() => void) => {
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      const [next] = waiting;
      if (next === undefined) free++;
      else next();
    };
  };
  return {
    take: async (signal) => {
      if (signal.aborted) return undefined;
      if (free > 0) {
        free--;
        return release();
      }
      return new Promise((resolve) => {
        const end = (result: (() => void) | undefined): void => {
          waiting.delete(give);
          cancel();
          signal.removeEventListener('abort', leave);
          resolve(result);
        };
        const leave = (): void => end(undefined);
        const give = (): void => end(release());
        waiting.add(give);
        const cancel = timers.after(waitMs, leave);
        signal.addEventListener('abort', leave, { once: true });
      });
    },
  };
}
