// Collects the degradations of all parts of this process in one list for logs and metrics.
import type { Degradation, TurnListener } from '../report.ts';

export interface Degradations {
  /** One more who hears of it, from the next change on. */
  readonly listen: (listener: Pick<TurnListener, 'degraded'>) => void;
  /** Returns the function with which a part reports its complete list. */
  readonly of: (part: string) => (missing: readonly Degradation[]) => void;
}

/** One list of all parts; of two that say the same the first one counts. Listeners hear of it each time when it has changed. */
export function degradationsOf(given: readonly Pick<TurnListener, 'degraded'>[]): Degradations {
  const listeners = [...given];
  const parts = new Map<string, readonly Degradation[]>();
  let told = '[]';
  return {
    listen: (listener) => void listeners.push(listener),
    of: (part) => (missing) => {
      parts.set(part, missing);
      const byId = new Map(
        [...parts.values()]
          .flat()
          .toReversed()
          .map((one) => [one.id, one]),
      );
      const all = [...byId.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
      const text = JSON.stringify(all);
      if (text === told) return;
      told = text;
      for (const listener of listeners) listener.degraded?.(all);
    },
  };
}
