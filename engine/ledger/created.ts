// Remembers the ordinals whose pods were created, so that a pod that is lost while it leaves must still prepare.
import type { GroupDefinition } from '../../policies/definition.ts';
import { keptByObject } from '../../policies/values/map.ts';
import { ordinalRanges, ordinalsOf } from '../amount.ts';
import { absentOrdinals } from '../observe/view.ts';
import {
  type CreatedPods,
  isUnknown,
  type Ledger,
  type PodView,
  podsNamed,
  type Snapshot,
  type StatefulSetView,
  setNamed,
} from '../snapshot.ts';

/** The maximum number of absent ordinals of a zone that are added at once: a status may count any number of pods. */
const maxAbsent = 1_000;

/**
 * Returns the created ordinals of the zones whose pods prepare. An ordinal stays until the StatefulSet no longer has it. A zone that cannot
 * be read keeps its ordinals.
 */
export function createdPods(ledger: Ledger, group: GroupDefinition, seen: Pick<Snapshot, 'statefulSets' | 'pods'>): readonly CreatedPods[] {
  return group.zones.flatMap(({ name: zone, statefulSet, delayed, prepare }): readonly CreatedPods[] => {
    if (delayed === undefined && prepare === undefined) return [];
    const known = ledger.created?.find((one) => one.zone === zone);
    const set = setNamed(seen, group.namespace, statefulSet);
    const pods = podsNamed(seen, group.namespace, statefulSet);
    if (set === undefined || pods === undefined || isUnknown(pods)) return known === undefined ? [] : [known];
    const before = known?.uid === set.uid ? createdOrdinals(known) : firstKnown(ledger, zone, set, pods);
    const isInSet = (ordinal: number): boolean => ordinal >= set.firstOrdinal && ordinal < set.firstOrdinal + set.replicas;
    const ordinals = ordinalRanges([...new Set([...before, ...pods.map(({ ordinal }) => ordinal)])].filter(isInSet));
    return [known?.uid === set.uid && known.ordinals === ordinals ? known : { zone, uid: set.uid, ordinals }];
  });
}

/** Returns the created ordinals; [] for more than a zone can have, which another client may have written. Most turns add no ordinal. */
export const createdOrdinals = keptByObject(({ ordinals }: CreatedPods): readonly number[] => ordinalsOf(ordinals));

/**
 * Returns the ordinals whose pods were created before the first observation of the StatefulSet. The ordinals of a predecessor with the same
 * name stay, because the new pods get the volumes of its pods.
 */
function firstKnown(
  { preparations, claims, created = [] }: Ledger,
  zone: string,
  set: StatefulSetView,
  pods: readonly PodView[],
): readonly number[] {
  // An entry without a UID names a pod that another operator may have asked, and that may not exist.
  const entries = [...preparations.filter(({ podUid }) => podUid !== ''), ...claims].filter((entry) => entry.zone === zone);
  const present = new Set(pods.map(({ ordinal }) => ordinal));
  const end = Math.min(createdEnd(set, pods), set.firstOrdinal + set.replicas);
  const earlier = created.filter((one) => one.zone === zone).flatMap(createdOrdinals);
  return [
    ...earlier,
    ...entries.flatMap(({ ordinal }) => ordinal ?? []),
    ...absentOrdinals(present, set.firstOrdinal, { end, most: maxAbsent }),
  ];
}

/**
 * Returns the end of the ordinals whose pods were certainly created. The number `status.replicas` counts the pods that exist: if fewer are
 * seen, a pod was lost since. It drops when the lost pod cannot be created again. OrderedReady creates every lower pod first.
 */
export function createdEnd({ firstOrdinal, status, podManagementPolicy }: StatefulSetView, pods: readonly PodView[]): number {
  const counted = status.replicas > pods.length ? firstOrdinal + status.replicas : firstOrdinal;
  if (podManagementPolicy !== 'OrderedReady') return counted;
  return pods.reduce((end, { ordinal }) => Math.max(end, ordinal), counted);
}
