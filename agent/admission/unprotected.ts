// Remembers which StatefulSets certainly left no group lately. Nothing protects them while departures cannot be read.
import type { Clock } from '../../cluster/env.ts';
import { groupOf } from '../../engine/judge/admission-claims.ts';
import { departureMs, protectiveLabels } from '../../engine/judge/protection.ts';
import { type Departure, isUnknown, type Known, type Snapshot } from '../../engine/snapshot.ts';

export interface UnprotectedSets {
  /**
   * Takes in what is known of a namespace now, with the departures that were read before it, and answers the UIDs of the StatefulSets that no
   * policy is about, and that no departure can be about either: seen free before departures were read that do not name them, or free for longer
   * than a departure lasts.
   */
  readonly look: (
    namespace: string,
    seen: Pick<Snapshot, 'groups' | 'statefulSets'>,
    departures: Known<readonly Departure[]>,
  ) => readonly string[];
}

interface Free {
  readonly sinceMs: number;
  readonly isCertain: boolean;
}

/** Remembers, by namespace and UID, since when a StatefulSet has belonged to no group. */
export function unprotectedSets(clock: Pick<Clock, 'monotonicMs'>): UnprotectedSets {
  const known = new Map<string, ReadonlyMap<string, Free>>();
  return {
    look: (namespace, seen, departures) => {
      const nowMs = clock.monotonicMs();
      const before = known.get(namespace);
      const isNotNamed = (uid: string): boolean => !isUnknown(departures) && !departures.some((departure) => departure.uid === uid);
      const free = seen.statefulSets
        .filter((set) => set.namespace === namespace && !protectiveLabels.some((label) => set.labels[label] !== undefined))
        .filter(({ name }) => groupOf(seen, namespace, name) === undefined)
        .map(({ uid }): readonly [string, Free] => {
          const last = before?.get(uid);
          // A StatefulSet that left its group between the two reads is in neither, so it must have been free before.
          if (last === undefined) return [uid, { sinceMs: nowMs, isCertain: false }];
          return [uid, { ...last, isCertain: last.isCertain || isNotNamed(uid) || nowMs - last.sinceMs > departureMs }];
        });
      known.set(namespace, new Map(free));
      return free.filter(([, { isCertain }]) => isCertain).map(([uid]) => uid);
    },
  };
}
