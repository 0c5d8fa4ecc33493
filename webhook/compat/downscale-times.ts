// Where the times of downscales are kept, for the endpoint that reads and writes them: annotations, or the ConfigMap of the zone tracker.
import type { StatefulSetView } from '../../engine/snapshot.ts';
import type { LastOf } from './prepare/members.ts';

/** One downscale that is to be recorded. */
export interface Downscale {
  /** The StatefulSet that shrinks, as it is now. */
  readonly set: StatefulSetView;
  readonly from: number;
  readonly to: number;
  /** The other StatefulSets of its group. */
  readonly others: readonly StatefulSetView[];
  /** Of the next request, in milliseconds; throws when there is no time for one. */
  readonly timeoutMs: () => number;
}

/** `overtaken`: another zone shrank since the times were read, in this process or in another one, and nothing is recorded. */
export type Recorded = { readonly kind: 'recorded' } | { readonly kind: 'overtaken'; readonly problem: string };

/** The times of one group. */
export interface LoadedTimes {
  readonly lastOf: LastOf;
  /** Records that the StatefulSet shrinks now. Rejects when that was not stored, or cannot be told. */
  readonly record: (downscale: Downscale) => Promise<Recorded>;
}

export interface DownscaleTimes {
  /** What is said of a failure of `load` and of `record`. */
  readonly problems: { readonly load: string; readonly record: string };
  /** Whether every downscale takes the group's lock; otherwise only those of groups whose zones wait for one another. */
  readonly alwaysLocks: boolean;
  /** `members` are those of the group; of a StatefulSet without a group, itself. Rejects when the times cannot be read. */
  readonly load: (namespace: string, members: readonly StatefulSetView[], timeoutMs: () => number) => Promise<LoadedTimes>;
}
