// The strategy `partition`: which pods the next lowering of the partition lets go, and whether the partition stands where the run has put it.
import { holdingPartition, isPartitioned, isPinned } from '../../policies/strategies.ts';
import { waveTarget } from '../amount.ts';
import type { RuleResult } from '../decision.ts';
import { isAvailable, partitionOrdinal, type ZoneView } from '../observe/view.ts';
import { result } from '../rule.ts';
import type { PodView, StatefulSetView } from '../snapshot.ts';
import type { ChosenPod } from './budget.ts';
import type { RollQuestion } from './roll.ts';
import { inFlightBefore, isBelowPartition, isStuck } from './stuck.ts';

/** How many pods may go. */
export interface Allowance {
  /** What the budget of the zone has left. */
  readonly free: number;
  /** The most in flight at once. */
  readonly cap: number;
}

/** The outdated pods in the order of the StatefulSet controller, from the highest ordinal down; before them those that it does not replace by itself. */
export function queueFromTop({ context, zone }: RollQuestion): readonly PodView[] {
  const { view } = zone;
  const rank = (pod: PodView): number => (isStuck(context, view, pod) ? 0 : 1);
  return [...view.outdated]
    .sort((a, b) => rank(a) - rank(b) || (rank(a) === 0 ? 1 : -1) * (a.ordinal - b.ordinal))
    .slice(0, zone.remaining);
}

/**
 * A stuck pod that is the next one down is let go, and one that was let go, or that comes back at the current revision, is deleted, lowest first:
 * under OrderedReady the controller waits for it for ever (kubernetes.io, StatefulSet, "Forced rollback"). Otherwise the next pods below the
 * partition, as many as the budget leaves, and under OrderedReady one, since more would only be down for longer. Pods that are unready themselves
 * cost nothing.
 */
export function pickFromTop(question: RollQuestion, queue: readonly PodView[], { free, cap }: Allowance): readonly ChosenPod[] {
  const { context, zone } = question;
  const { view } = zone;
  const { set } = view;
  if (set === undefined) return [];
  const stuck = queue.find((pod) => isStuck(context, view, pod));
  // One that has been let go is on its way itself.
  const own = stuck !== undefined && isBelowPartition(set, stuck) ? 0 : 1;
  if (stuck !== undefined) return inFlightBefore(view, stuck) - own < cap ? [{ pod: stuck, because: 'stuck' }] : [];
  const released = new Set(view.released.map(({ uid }) => uid));
  const most = set.podManagementPolicy === 'OrderedReady' || isPaced(question) ? 1 : queue.length;
  const chosen: ChosenPod[] = [];
  let left = free;
  for (const pod of queue) {
    if (released.has(pod.uid)) continue;
    const isUp = isAvailable(pod, context.group, set.minReadySeconds, context.nowMs);
    const isTaken = view.unavailable.has(pod.ordinal);
    // The next one down goes, or none: whatever lies below the partition stays.
    if (chosen.length >= most || chosen.length + view.inFlight >= cap || (!isTaken && left <= 0) || pod.isTerminating) break;
    chosen.push({ pod, because: 'outdated' });
    if (isUp && !isTaken) left -= 1;
  }
  return chosen;
}

function isPaced({ context }: RollQuestion): boolean {
  return Math.max(context.group.rollout.minIntervalMs, context.limits.minIntervalMs ?? 0) > 0;
}

/** As many of the picked pods as may go without a gap: those before the first that a budget keeps. */
export function withoutGap(picked: readonly ChosenPod[], allowed: readonly ChosenPod[]): readonly ChosenPod[] {
  const kept = new Set(allowed);
  const gap = picked.findIndex((one) => !kept.has(one));
  return gap === -1 ? picked : picked.slice(0, gap);
}

/**
 * Whether more pods are on their way to the update revision than the wave asks for, as after a partition that somebody lowered by hand, or a new
 * template in the middle of a rollout. The StatefulSet controller replaces them one after the other and asks nobody, so the group waits.
 */
export function partitionKept({ context, run, zone }: RollQuestion): RuleResult | undefined {
  const { view } = zone;
  const { set } = view;
  if (set === undefined || set.updateStrategy !== 'RollingUpdate') return undefined;
  if (isPinned(context.group)) return heldByPartition(view, set);
  if (!isPartitioned(context.group)) return undefined;
  const wave = context.group.rollout.waves[run.wave];
  const asked = wave?.zones.includes(view.zone.name) === true ? waveTarget(wave.amount, view.replicas) : 0;
  const source = { object: `StatefulSet ${set.namespace}/${set.name}`, field: 'spec.updateStrategy.rollingUpdate.partition' };
  const details = { limit: `${Math.max(0, view.replicas - asked)} or more`, source };
  const beyond = view.released.filter(({ ordinal }) => ordinal < set.firstOrdinal + view.replicas - asked);
  if (
    view.updated + view.released.length > asked &&
    beyond.length > 0 &&
    partitionOrdinal(set) < set.firstOrdinal + view.replicas - asked
  ) {
    const names = beyond.map(({ name }) => name).join(', ');
    const fact = `partition ${set.partition} lets the StatefulSet controller replace ${names}, which the wave does not ask for`;
    return result('partition-kept', 'wait', fact, details);
  }
  return result('partition-kept', 'ok', `the partition is ${set.partition}`, details);
}

/** Under the strategy `pinned` the StatefulSet controller replaces no pod at all; a partition that lets it is raised first. */
function heldByPartition({ pods, surplus }: ZoneView, set: StatefulSetView): RuleResult {
  const source = { object: `StatefulSet ${set.namespace}/${set.name}`, field: 'spec.updateStrategy.rollingUpdate.partition' };
  const details = { limit: `${holdingPartition}`, source };
  const free = pods.filter((pod) => pod.revision !== set.status.updateRevision && !surplus.includes(pod) && !isBelowPartition(set, pod));
  if (free.length === 0) return result('partition-kept', 'ok', `the partition is ${set.partition}`, details);
  const names = free.map(({ name }) => name).join(', ');
  return result('partition-kept', 'wait', `partition ${set.partition} lets the StatefulSet controller replace ${names}`, details);
}
