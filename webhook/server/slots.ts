// Limits concurrent use: waiting callers are served in order of arrival.
import type { Timers } from '../../cluster/env.ts';

export interface Slots {
  /** Resolves with a function that frees the slot, as soon as one is free; with undefined if `signal` is aborted or the wait is over. */
  readonly take: (signal: AbortSignal) => Promise<(() => void) | undefined>;
}

interface Waiting {
  readonly given: () => void;
}

export function slots({ count, waitMs, timers }: { readonly count: number; readonly waitMs: number; readonly timers: Timers }): Slots {
  let free = count;
  const waiting = new Set<Waiting>();
  const release = (): (() => void) => {
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      const [next] = waiting;
      if (next === undefined) free++;
      else next.given();
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
          waiting.delete(waiter);
          cancel();
          signal.removeEventListener('abort', leave);
          resolve(result);
        };
        const leave = (): void => end(undefined);
        const waiter: Waiting = { given: () => end(release()) };
        waiting.add(waiter);
        const cancel = timers.after(waitMs, leave);
        signal.addEventListener('abort', leave, { once: true });
      });
    },
  };
}
