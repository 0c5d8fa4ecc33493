// Implements the strategy `onDelete`: the agent evicts or deletes pods, and the StatefulSet controller creates successors at the update
// revision. The strategy `pinned` uses the same functions to order, choose and replace pods.

import { counted } from '../../policies/wording.ts';
import { type GroupContext, minIntervalOf } from '../context.ts';
import type { Action, RuleResult } from '../decision.ts';
import { isCrashing, type ZoneView } from '../observe/view.ts';
import { profileOf } from '../profiles.ts';
import { result } from '../rule.ts';
import { inFlightBefore, isClaimed, isStuck, isUp, waitsForLower } from '../rules/pod-state.ts';
import { isProtected } from '../rules/protected.ts';
import type { RollQuestion } from '../rules/roll.ts';
import { includedPods, keepsPod } from '../run/included.ts';
import type { RunState } from '../run/run-state.ts';
import { hasReplacedSince } from '../run/states.ts';
import type { PodView } from '../snapshot.ts';
import type { Allowance, ChosenPod, Strategy } from './strategy.ts';

export const onDelete: Strategy = {
  queuePods: (question) => queuePods(question),
  choosePods,
  withoutDenied: (_chosen, allowed) => allowed,
  replacePods: (context, view, chosen) => replacePods(context, view, chosen),
  checkStep: () => [],
  settlePartitions: () => [],
  warnOfRestarts: updatedByRestart,
};

/**
 * Returns the outdated pods that the wave replaces next, in order. Adopted groups: by ordinal. Native groups: `first`, stuck pods (lowest
 * first with OrderedReady), pods in flight, other unready pods, ready pods, pods prepared for removal, and unready pods on unready nodes.
 */
export function queuePods(question: RollQuestion, first: readonly PodView[] = []): readonly PodView[] {
  const { context, zone } = question;
  const { order } = context.group.rollout;
  const direction = order === 'descending' ? -1 : 1;
  const isByOrdinal = !profileOf(context.group).replacesUnreadyPodsFirst;
  const isOrdered = !isByOrdinal && zone.view.set?.podManagementPolicy === 'OrderedReady';
  const leaving = new Set(
    context.view.ledger.preparations.filter((entry) => entry.zone === zone.view.zone.name).map((entry) => entry.podUid),
  );
  const rank = (pod: PodView): number => {
    if (isByOrdinal || first.includes(pod)) return 0;
    if (isStuck(context, zone.view, pod)) return 1;
    // A pod in flight keeps its place in the queue, even if its node is not ready.
    if (pod.isTerminating || isClaimed(zone.view, pod)) return 2;
    if (isUp(context, zone.view, pod)) return leaving.has(pod.uid) ? 5 : 4;
    return pod.nodeReady ? 3 : 6;
  };
  const isLast = (pod: PodView): boolean => isProtected(context, zone.view, pod.ordinal) || keepsPod(question.run, zone.view, pod);
  // Protected pods and pods that a return leaves come last, so that a wave with only some pods of the zone replaces other pods.
  const ranked = zone.view.outdated.map((pod) => ({ pod, rank: rank(pod) + (isLast(pod) ? 10 : 0) }));
  ranked.sort((a, b) => a.rank - b.rank || (isOrdered && a.rank === 1 ? 1 : direction) * (a.pod.ordinal - b.pod.ordinal));
  return ranked.slice(0, zone.remaining).map(({ pod }) => pod);
}

export function choosePods(question: RollQuestion, queue: readonly PodView[], allowance: Allowance): readonly ChosenPod[] {
  if (!profileOf(question.context.group).replacesUnreadyPodsFirst) return chooseFirst(question, queue, allowance.free);
  return chooseUnreadyFirst(question, queue, allowance);
}

/** Chooses the first pods by ordinal, for adopted groups. A terminating pod uses up the budget of one pod; crashing pods need no budget. */
function chooseFirst(question: RollQuestion, queue: readonly PodView[], free: number): readonly ChosenPod[] {
  const replacesCrashing = question.context.group.rollout.replaceUnready.when !== 'none';
  return queue.flatMap((pod, index): ChosenPod[] => {
    if (pod.isTerminating) return [];
    if (replacesCrashing && isCrashing(pod)) return [{ pod, because: 'stuck' }];
    return index < free ? [{ pod, because: 'outdated' }] : [];
  });
}

/** Chooses stuck pods outside the budget, then other pods while the budget lasts, up to `cap` in flight. Unready pods cost no budget. */
function chooseUnreadyFirst(question: RollQuestion, queue: readonly PodView[], { free, cap }: Allowance): readonly ChosenPod[] {
  const chosen: ChosenPod[] = [];
  const { view } = question.zone;
  const most = minIntervalOf(question.context) > 0 ? 1 : queue.length;
  let left = Math.min(most, free);
  for (const pod of queue) {
    const isRepair = isStuck(question.context, view, pod);
    const inFlight = isRepair ? inFlightBefore(view, pod) : view.inFlight;
    if (chosen.length + inFlight >= cap) break;
    const because = reasonToReplace(question, pod, left);
    if (because === undefined) continue;
    chosen.push({ pod, because });
    if (because === 'outdated' && isUp(question.context, view, pod)) left -= 1;
  }
  return chosen.slice(0, most);
}

/** Returns why the pod is replaced while the budget has room for `left` pods, or undefined if the pod is not replaced now. */
function reasonToReplace(question: RollQuestion, pod: PodView, left: number): ChosenPod['because'] | undefined {
  if (pod.isTerminating || isClaimed(question.zone.view, pod) || waitsForLower(question.zone.view, pod)) return undefined;
  if (isStuck(question.context, question.zone.view, pod)) return 'stuck';
  return left > 0 && pod.nodeReady ? 'outdated' : undefined;
}

/** Returns one eviction or deletion for each chosen pod. `pinTo` is the revision of the successors under `pinned`. */
export function replacePods(context: GroupContext, view: ZoneView, chosen: readonly ChosenPod[], pinTo?: string): readonly Action[] {
  const { namespace, rollout } = context.group;
  const { name: zone, statefulSet } = view.zone;
  return chosen.map(({ pod, because }): Action => {
    const { name, ordinal, uid, resourceVersion } = pod;
    const target = { namespace, zone, statefulSet, pod: name, ordinal, uid, ...(pinTo === undefined ? {} : { pinTo }) };
    // A PodDisruptionBudget can deny the eviction of a stuck pod.
    if (because === 'stuck' || rollout.rotateBy === 'delete') return { kind: 'deletePod', ...target, resourceVersion, because };
    return { kind: 'evictPod', ...target, because };
  });
}

/**
 * Returns a warning for each zone with more updated pods than the waves so far include, or with an updated pod that started while the change
 * had replaced no pod. Returns no warning in a run back to the revision from before an unfinished run, because its pods may never have left
 * this revision.
 */
function updatedByRestart({ view, group }: GroupContext, run: RunState | undefined): readonly RuleResult[] {
  if (run === undefined || run.outcome === 'completed') return [];
  const { startedMs } = run.joined ?? run;
  return view.zones.flatMap((member) => {
    const { zone, updated, unknown, pods, surplus } = member;
    const target = run.target[zone.name];
    if (unknown !== undefined || target === undefined || target === run.previous[zone.name]) return [];
    const isNew = (pod: PodView): boolean => pod.revision === target && pod.readyChangedMs > startedMs && !surplus.includes(pod);
    const restarted = hasReplacedSince(run, startedMs) ? 0 : pods.filter(isNew).length;
    const included = includedPods(group, run, member);
    if (restarted === 0 && updated <= included) return [];
    const limit = restarted > 0 ? 'the rollout has replaced no pod' : `the waves so far include ${included}`;
    const why = 'under onDelete, a pod that is created again starts at the update revision';
    const fact = `zone ${zone.name} has ${counted(updated, 'pod')} at revision ${target}, but ${limit}: ${why}`;
    return [result('updated-by-restart', 'wait', fact)];
  });
}
