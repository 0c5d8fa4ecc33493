// Decides which turns count as failed. In adopted groups, these are the failed reconciles of grafana/rollout-operator.
import type { GroupDefinition } from '../../policies/definition.ts';
import { matchesSelector } from '../../policies/label-selector.ts';
import { unavailableLimit } from '../amount.ts';
import { isAvailable } from '../observe/view.ts';
import { profileOf } from '../profiles.ts';
import { isUnknown, type PodView, podsNamed, type Snapshot, type StatefulSetView, setNamed } from '../snapshot.ts';
import type { TakenAction } from './published.ts';

interface Pass {
  readonly group: GroupDefinition;
  readonly snapshot: Snapshot;
  readonly performed: readonly TakenAction[];
  readonly error?: string;
}

/**
 * Reports whether the turn failed: an error ended it, or a write on a pod, partition or status failed. In adopted groups, a turn also fails
 * on a member that is not OnDelete, a status without a revision, a pod with several ZoneAwarePodDisruptionBudgets, or a failed read. After
 * a write of replicas, grafana/rollout-operator visits no member. Otherwise it visits members up to the first unfinished member.
 */
export function isFailedPass({ group, snapshot, performed, error }: Pass): boolean {
  if (error !== undefined || performed.some(hasFailed)) return true;
  if (!profileOf(group).countsFailedReconciles) return false;
  if (performed.some(({ action, result }) => action.kind === 'scaleStatefulSet' && result === 'done')) return false;
  const members = membersOf(group, snapshot);
  if (members === undefined) return true;
  if (members.some(({ set }) => set.updateStrategy !== 'OnDelete')) return true;
  return stopsAtMember(members, snapshot, group.namespace);
}

/** Reports whether the visit of the members, the unready one first, ends at a member that makes the reconcile fail. */
function stopsAtMember(members: readonly Member[], snapshot: Snapshot, namespace: string): boolean {
  const down = members.filter(({ isReady }) => !isReady);
  if (down.length > 1) return false;
  for (const member of [...down, ...members.filter(({ isReady }) => isReady)]) {
    if (member.isPaused) continue;
    const { currentRevision, updateRevision } = member.set.status;
    if (currentRevision === '' || updateRevision === '') return true;
    if (member.outdated !== undefined) return member.hasRoom && isBudgetUnclear(snapshot, namespace, member.outdated);
    if (!member.isReady) return false;
  }
  return false;
}

/** Reports whether the action makes the turn fail. A conflict counts only for a status write: the operator has no other preconditions. */
function hasFailed({ action, result }: TakenAction): boolean {
  if (result === 'done') return false;
  if (action.kind === 'advanceCurrentRevision') return true;
  return (action.kind === 'deletePod' || action.kind === 'evictPod' || action.kind === 'setPartition') && result !== 'conflict';
}

interface Member {
  readonly set: StatefulSetView;
  readonly isPaused: boolean;
  readonly isReady: boolean;
  readonly outdated?: PodView['labels'];
  /** True if the counters of the status leave room in the budget. */
  readonly hasRoom: boolean;
}

/** Returns the members by name; undefined if a member or its pods could not be read. */
function membersOf(group: GroupDefinition, snapshot: Snapshot): readonly Member[] | undefined {
  const members: Member[] = [];
  for (const { statefulSet, paused, maxUnavailable } of group.zones) {
    const set = setNamed(snapshot, group.namespace, statefulSet);
    const pods = podsNamed(snapshot, group.namespace, statefulSet);
    if (set === undefined || pods === undefined || isUnknown(pods)) return undefined;
    const { replicas, readyReplicas, updateRevision } = set.status;
    const isReady =
      replicas === readyReplicas && pods.length >= replicas && pods.every((pod) => isAvailable(pod, group, 0, snapshot.nowMs));
    const [first] = pods.filter(({ revision }) => revision !== updateRevision).sort((a, b) => a.ordinal - b.ordinal);
    const limit = maxUnavailable === 'fromBudget' ? 1 : unavailableLimit(maxUnavailable, set.replicas);
    members.push({
      set,
      isPaused: paused,
      isReady,
      hasRoom: limit > replicas - readyReplicas,
      ...(first === undefined ? {} : { outdated: first.labels }),
    });
  }
  return members.sort((a, b) => (a.set.name < b.set.name ? -1 : 1));
}

function isBudgetUnclear({ zoneBudgets }: Snapshot, namespace: string, labels: PodView['labels']): boolean {
  if (isUnknown(zoneBudgets)) return true;
  return zoneBudgets.filter((budget) => budget.namespace === namespace && matchesSelector(budget, labels)).length > 1;
}
