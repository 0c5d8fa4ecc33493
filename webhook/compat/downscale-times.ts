// Stores the times of downscales for the prepare-downscale endpoint: in annotations, or in the ConfigMap of the zone tracker.
import type { StatefulSetView } from '../../engine/snapshot.ts';
import type { LastOf } from './prepare/members.ts';

/** One downscale to record. */
export interface Downscale {
  /** The StatefulSet that shrinks, in its current state. */
  readonly set: StatefulSetView;
  readonly from: number;
  readonly to: number;
  /** The other StatefulSets of its group. */
  readonly others: readonly StatefulSetView[];
  /** Returns the timeout of the next request in milliseconds; throws if no time is left. */
  readonly timeoutMs: () => number;
}

/** `overtaken`: another zone shrank after the times were read, in this or another process. Nothing is recorded. */
export type Recorded = { readonly kind: 'recorded' } | { readonly kind: 'overtaken'; readonly problem: string };

/** The downscale times of one group. */
export interface LoadedTimes {
  readonly lastOf: LastOf;
  /** Records that the StatefulSet shrinks now. Rejects if the record was not stored or its state is unknown. */
  readonly record: (downscale: Downscale) => Promise<Recorded>;
}

export interface DownscaleTimes {
  /** Prefixes of the messages about a failed `load` or `record`. */
  readonly problems: { readonly load: string; readonly record: string };
  /** True if every downscale takes the lock of its group; otherwise only downscales in groups with a time between zones. */
  readonly alwaysLocks: boolean;
  /** Loads the times of the members of the group, or of the StatefulSet itself without a group. Rejects if the times cannot be read. */
  readonly load: (namespace: string, members: readonly StatefulSetView[], timeoutMs: () => number) => Promise<LoadedTimes>;
}
