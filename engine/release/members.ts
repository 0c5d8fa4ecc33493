// The StatefulSets of a group that nothing defines any more, with their pods, as a snapshot has them.

import { unreadReasonOf } from '../observe/view.ts';
import { isUnknown, type PodView, type ReleaseTerms, type Snapshot, type StatefulSetView } from '../snapshot.ts';

/** A StatefulSet of a group that nothing defines any more. */
export interface Member {
  readonly zone: string;
  readonly statefulSet: string;
  /** Why nothing can be said of it. */
  readonly unknown?: string;
  /** Absent if the StatefulSet does not exist or is terminating. */
  readonly set?: StatefulSetView;
  /** Within `spec.replicas`. */
  readonly pods: readonly PodView[];
}

/** As the snapshot has it. */
export function viewMember(
  snapshot: Pick<Snapshot, 'statefulSets' | 'pods' | 'unread'>,
  namespace: string,
  { zone, statefulSet }: ReleaseTerms['zones'][number],
): Member {
  const named = { zone, statefulSet, pods: [] };
  const unread = unreadReasonOf(snapshot, 'StatefulSet', namespace, statefulSet);
  if (unread !== undefined) return { ...named, unknown: unread };
  const set = snapshot.statefulSets.find((one) => one.namespace === namespace && one.name === statefulSet);
  if (set === undefined || set.isTerminating) return named;
  const pods = snapshot.pods.find((one) => one.namespace === namespace && one.statefulSet === statefulSet)?.pods;
  if (pods === undefined || isUnknown(pods)) return { ...named, set, unknown: pods?.unknown ?? `the pods of ${statefulSet} are not known` };
  const end = set.firstOrdinal + set.replicas;
  return { ...named, set, pods: pods.filter(({ ordinal }) => ordinal >= set.firstOrdinal && ordinal < end) };
}

/** Its pods that are not at the update revision. */
export function outdatedOf({ set, pods }: Pick<Member, 'set' | 'pods'>): readonly PodView[] {
  return set === undefined ? [] : pods.filter(({ revision }) => revision !== set.status.updateRevision);
}
