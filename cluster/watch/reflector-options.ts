// Defines the options and the interface of a reflector.
import type { ClusterEnv } from '../env.ts';
import type { KubernetesObject, Resource } from '../request/resource.ts';
import type { Change, Store } from './store.ts';

export type ReflectorState =
  /** Nothing is known yet. */
  | { readonly kind: 'starting' }
  /** The store follows the server. `atMs`: wall clock when it became so. */
  | { readonly kind: 'synced'; readonly atMs: number }
  | {
      readonly kind: 'failing';
      /**
       * `forbidden` and `missing` are tried again slowly. `unreachable`, soon: no answer, an error, or a list of the past. `invalid`: the store
       * follows the server, but for the objects in it that were not understood (`store.invalid()`).
       */
      readonly reason: FailureReason;
      readonly message: string;
      /** The store holds what was there at the last contact. */
      readonly hasSynced: boolean;
      /** Wall clock of the last sign of life from the server; of the start when there was none. */
      readonly lastContactMs: number;
    };

export type FailureReason = 'forbidden' | 'missing' | 'unreachable' | 'invalid';

/** A fault that the reflector handled, for metrics. */
export type ReflectorFault = 'unparsable-line' | 'stale-event' | 'stale-list' | 'expired' | 'stalled' | 'missed-change' | 'callback';

export interface ReflectorOptions<View> {
  readonly env: ClusterEnv;
  readonly resource: Resource;
  /** Every namespace when left out. */
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  /** Returns the kept part of an object. If it throws, the object is invalid; other objects are not affected. */
  readonly project: (object: KubernetesObject) => View;
  /** Called once for each change, after the store has it. Must only take note: what it throws is counted and dropped. */
  readonly onChange: (change: Change<View>) => void;
  /** Called after each change of the state. */
  readonly onState?: (state: ReflectorState) => void;
  readonly onFault?: (fault: ReflectorFault, message: string) => void;
  /** The place in the code that asks; `.list` and `.watch` are appended. */
  readonly site: string;
  /** Maximum age of a list when its watch ends, in milliseconds; 30 minutes by default. */
  readonly relistMs?: number | undefined;
}

export interface Reflector<View> {
  readonly store: Store<View>;
  readonly state: () => ReflectorState;
  /** Up to where the store is complete; undefined before the first list. */
  readonly resourceVersion: () => string | undefined;
  /** Reports whether the store includes that version, such as that of our own last write. */
  readonly hasSeen: (resourceVersion: string) => boolean;
  /** Milliseconds on the monotonic clock since the last sign of life from the server; undefined before the first. */
  readonly silentMs: () => number | undefined;
  /** Returns the maximum age of the store in milliseconds on the monotonic clock; infinite before the first list. */
  readonly ageMs: () => number;
  /**
   * The store is known to be wrong, as when something else was read past it: the watch has swallowed a change. Lists at once instead of when the
   * list is old; nothing when the last list is younger than ten seconds.
   */
  readonly relist: () => void;
  /** Ends it: nothing is called back any more, and no timer and no watch is left. The answer to a list under way is dropped. */
  readonly stop: () => void;
}
