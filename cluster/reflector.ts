// Follows one collection of the API server: lists it, watches it, and keeps a store that is never silently out of date.
import type { ClusterEnv } from './env.ts';
import type { KubernetesObject, Resource } from './resource.ts';
import type { Store } from './store.ts';

export type ReflectorState =
  /** Nothing is known yet. */
  | { readonly kind: 'starting' }
  /** The store follows the server. `atMs`: wall clock when it became so. */
  | { readonly kind: 'synced'; readonly atMs: number }
  | {
      readonly kind: 'failing';
      /** `forbidden` and `missing` are tried again slowly, `unreachable` soon. `invalid`: an object or an answer was not understood. */
      readonly reason: 'forbidden' | 'missing' | 'unreachable' | 'invalid';
      readonly message: string;
      /** The store holds what was there at the last contact. */
      readonly hasSynced: boolean;
      /** Wall clock of the last sign of life from the server; of the start when there was none. */
      readonly lastContactMs: number;
    };

export interface Change<View> {
  /** An object that takes the name of another (a new UID) is `deleted`, then `added`. */
  readonly kind: 'added' | 'modified' | 'deleted';
  readonly namespace: string;
  readonly name: string;
  /** Absent when it was deleted, or cannot be understood. */
  readonly view?: View;
  /** What was known before. */
  readonly before?: View;
}

/** Something that was survived and that somebody may want to count. */
export type ReflectorFault = 'unparsable-line' | 'stale-event' | 'stale-list' | 'expired' | 'stalled' | 'callback' | 'missed-change';

export interface ReflectorOptions<View> {
  readonly env: ClusterEnv;
  readonly resource: Resource;
  /** Every namespace when left out. */
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  /** What is kept of an object. When it throws, the object is invalid; the others are not touched. */
  readonly project: (object: KubernetesObject) => View;
  /** Called once for each change, after the store has it. Must only take note: what it throws is counted and dropped. */
  readonly onChange: (change: Change<View>) => void;
  /** Called after each change of the state. */
  readonly onState?: (state: ReflectorState) => void;
  readonly onFault?: (fault: ReflectorFault, message: string) => void;
  /** The resource version that an earlier process is known to have seen; an older list is not believed. */
  readonly notBefore?: string | undefined;
  /** The place in the code that asks; `.list` and `.watch` are appended. */
  readonly site: string;
}

export interface Reflector<View> {
  readonly store: Store<View>;
  readonly state: () => ReflectorState;
  /** Up to where the store is complete; undefined before the first list. */
  readonly resourceVersion: () => string | undefined;
  /** Whether the store includes that version, such as that of our own last write. */
  readonly hasSeen: (resourceVersion: string) => boolean;
  /** Milliseconds on the monotonic clock since the last sign of life from the server; undefined before the first. */
  readonly silentMs: () => number | undefined;
  /** Ends it: nothing is called back any more, no timer and no watch is left. */
  readonly stop: () => void;
}

/** Starts at once. Never gives up by itself, and never throws. */
export function startReflector<View>(_options: ReflectorOptions<View>): Reflector<View> {
  throw new Error('not there yet');
}
