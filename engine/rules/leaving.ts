// Finds the pods that leave when a zone shrinks: the existing pods, and the pods that were created and are absent now.
import { lostLimit, showsCreation } from '../decide/preparations.ts';
import { absentOrdinals, type ZoneView } from '../observe/view.ts';
import type { Ledger, PodView, StatefulSetView } from '../snapshot.ts';

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
  /** The lowest lost ordinals; at most `lostLimit`. */
  readonly lost: readonly number[];
}

/** Reports whether an ordinal leaves when the zone shrinks. */
export function isLeaving({ set }: Pick<ZoneView, 'set'>, { from, to }: Shrinkage, ordinal: number): boolean {
  const first = set?.firstOrdinal ?? 0;
  return ordinal >= first + to && ordinal < first + from;
}

/**
 * Returns the pods that leave. An ordinal whose pod was never created has nothing to prepare, so it does not count. The pod of an absent
 * ordinal was created if the ordinal is below `createdEnd`, or if the ledger has a preparation or a claim of the ordinal.
 */
export function leavingPods(zone: ZoneView, { preparations }: Pick<Ledger, 'preparations'>, change: Shrinkage): LeavingPods {
  const { set, claims } = zone;
  const pods = zone.pods.filter(({ ordinal }) => isLeaving(zone, change, ordinal));
  if (set === undefined) return { pods, lostCount: 0, lost: [] };
  const first = set.firstOrdinal + Math.max(0, change.to);
  const end = Math.max(first, Math.min(set.firstOrdinal + change.from, createdEnd(set, zone.pods)));
  const present = new Set(pods.map(({ ordinal }) => ordinal));
  const known = preparations.filter((entry) => entry.zone === zone.zone.name && showsCreation(entry));
  const remembered = new Set([...known, ...claims].flatMap(({ ordinal }) => ordinal ?? []));
  const above = [...remembered].filter((ordinal) => ordinal >= end && isLeaving(zone, change, ordinal) && !present.has(ordinal));
  const lostCount = end - first - pods.filter(({ ordinal }) => ordinal < end).length + above.length;
  return { pods, lostCount, lost: [...absentOrdinals(present, first, { end, most: lostLimit }), ...above.sort((a, b) => a - b)] };
}

/**
 * Returns the end of the ordinals whose pods were certainly created. `status.replicas` counts the pods that exist, so it drops when a lost
 * pod cannot be created again. With OrderedReady, every ordinal below an existing pod was created before that pod.
 */
function createdEnd({ firstOrdinal, status, podManagementPolicy }: StatefulSetView, pods: readonly PodView[]): number {
  const counted = firstOrdinal + status.replicas;
  return podManagementPolicy === 'OrderedReady' ? Math.max(counted, (pods.at(-1)?.ordinal ?? -1) + 1) : counted;
}
