// Finds the pods that leave when a zone shrinks: the existing pods, and the pods that were created and are absent now.
import { createdEnd, createdOrdinals } from '../ledger/created.ts';
import { absentOrdinals, type ZoneView } from '../observe/view.ts';
import type { Ledger, PodView } from '../snapshot.ts';

/** A change of the replicas of a zone. */
interface Shrinkage {
  readonly from: number;
  readonly to: number;
}

interface LeavingPods {
  /** The existing pods that leave, by ordinal. */
  readonly pods: readonly PodView[];
  /** The number of leaving ordinals whose pod was created and is absent now. */
  readonly lostCount: number;
  /** One of these ordinals. */
  readonly lost?: number;
}

/** Reports whether an ordinal leaves when the zone shrinks. */
export function isLeaving({ set }: Pick<ZoneView, 'set'>, { from, to }: Shrinkage, ordinal: number): boolean {
  const first = set?.firstOrdinal ?? 0;
  return ordinal >= first + to && ordinal < first + from;
}

/**
 * Returns the pods that leave. An ordinal whose pod was never created has nothing to prepare, so it does not count. The pod of an absent
 * ordinal was created if the ledger names the ordinal, or if the ordinal is below `createdEnd`.
 */
export function leavingPods(zone: ZoneView, { created = [] }: Pick<Ledger, 'created'>, change: Shrinkage): LeavingPods {
  const { set } = zone;
  const pods = zone.pods.filter(({ ordinal }) => isLeaving(zone, change, ordinal));
  if (set === undefined) return { pods, lostCount: 0 };
  const present = new Set(pods.map(({ ordinal }) => ordinal));
  const first = set.firstOrdinal + Math.max(0, change.to);
  const end = Math.max(first, Math.min(set.firstOrdinal + change.from, createdEnd(set, zone.pods)));
  const known = created.find((one) => one.zone === zone.zone.name && one.uid === set.uid);
  const above = (known === undefined ? [] : createdOrdinals(known)).filter(
    (ordinal) => ordinal >= end && isLeaving(zone, change, ordinal) && !present.has(ordinal),
  );
  const lostCount = end - first - pods.filter(({ ordinal }) => ordinal < end).length + above.length;
  const lost = above.at(-1) ?? absentOrdinals(present, first, { end, most: 1 })[0];
  return { pods, lostCount, ...(lost === undefined ? {} : { lost }) };
}
