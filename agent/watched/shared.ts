// A watch that others in the process follow too: one list and one stream of events of a kind, however many have a use for it.
import type { Change } from '../../cluster/watch/store.ts';
import type { Unknown } from '../../engine/snapshot.ts';
import { type Watched, type WatchedOptions, watch } from './watched.ts';

/** A watch as its followers see it. */
export interface Shared<View> {
  readonly get: (namespace: string, name: string) => View | undefined;
  readonly list: (namespace?: string) => readonly View[];
  /** Returns why a namespace was never read; undefined from the first list on, and if the kind is not installed. */
  readonly neverRead: (namespace: string) => Unknown | undefined;
  /** Reports whether everything is known, or known not to be readable. */
  readonly isSettled: () => boolean;
  /** Calls back after each change, in their order. The answer ends that. */
  readonly onChange: (listener: (change: Change<View>) => void) => () => void;
}

export interface SharedWatch<View> {
  readonly watched: Watched<View>;
  readonly shared: Shared<View>;
}

/** Starts to watch; `onChange` of the options hears of each change before those who follow. */
export function watchShared<View>(options: WatchedOptions<View>): SharedWatch<View> {
  const listeners = new Set<(change: Change<View>) => void>();
  const watched = watch<View>({
    ...options,
    onChange: (change) => {
      options.onChange(change);
      for (const listener of listeners) listener(change);
    },
  });
  return {
    watched,
    shared: {
      get: watched.get,
      list: watched.list,
      neverRead: watched.neverRead,
      isSettled: watched.isSettled,
      onChange: (listener) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
    },
  };
}
