// Implements the strategy `partition`: the agent lowers the partition, and the StatefulSet controller replaces the exposed pods.

import type { Source } from '../../policies/definition.ts';
import { holdingPartition, traitsOf } from '../../policies/strategies.ts';
import { counted } from '../../policies/wording.ts';
import { type GroupContext, minIntervalOf } from '../context.ts';
import type { Action, RuleResult } from '../decision.ts';
import { partitionOrdinal, type ZoneView } from '../observe/view.ts';
import { blocks, result } from '../rule.ts';
import {
  freezingPartition,
  inFlightBefore,
  isBelowPartition,
  isNextDown,
  isStuck,
  isUp,
  isUpdateHeld,
  waitsForLower,
} from '../rules/pod-state.ts';
import { oldStatusOf, type RollQuestion } from '../rules/roll.ts';
import { includedPods } from '../run/included.ts';
import type { RunState } from '../run/run-state.ts';
import type { Claim, PodView, Snapshot, StatefulSetView } from '../snapshot.ts';
import { replacePods } from './on-delete.ts';
import type { Allowance, ChosenPod, Strategy } from './strategy.ts';

export const partition: Strategy = {
  queuePods: queueFromTop,
  choosePods: chooseFromTop,
  withoutDenied: withoutGap,
  replacePods: lowerPartition,
  checkStep: (question) => partitionKept(question),
  settlePartitions: (context) => settleZones(context, settlePartition),
  warnOfRestarts: (context, run) => restartWarnings(context, run, podsToChangeOnRestart),
};

/** Returns the stuck pods, lowest first, then the other outdated pods as the StatefulSet controller replaces them, highest ordinal first. */
function queueFromTop({ context, zone }: RollQuestion): readonly PodView[] {
  const { view } = zone;
  const rank = (pod: PodView): number => (isStuck(context, view, pod) ? 0 : 1);
  return [...view.outdated]
    .sort((a, b) => rank(a) - rank(b) || (rank(a) === 0 ? 1 : -1) * (a.ordinal - b.ordinal))
    .slice(0, zone.remaining);
}

/** Chooses the lowest stuck pod, for which OrderedReady waits (kubernetes.io, StatefulSet, "Forced rollback"), else the highest pods. */
function chooseFromTop(question: RollQuestion, queue: readonly PodView[], allowance: Allowance): readonly ChosenPod[] {
  const { view } = question.zone;
  const stuck = queue.find((pod) => isStuck(question.context, view, pod));
  if (stuck === undefined) return chooseNextDown(question, queue, allowance);
  return inFlightBefore(view, stuck) < allowance.cap ? [{ pod: stuck, because: 'stuck' }] : [];
}

/** Chooses the next pods below the partition while the budget lasts. Unready pods cost no budget. */
function chooseNextDown(question: RollQuestion, queue: readonly PodView[], { free, cap }: Allowance): readonly ChosenPod[] {
  const { view } = question.zone;
  const exposed = new Set(view.exposedByPartition.map(({ uid }) => uid));
  const most = minIntervalOf(question.context) > 0 ? 1 : queue.length;
  const chosen: ChosenPod[] = [];
  let left = free;
  for (const pod of queue) {
    if (exposed.has(pod.uid)) continue;
    const isUnavailable = !view.available.has(pod.ordinal);
    // A partition exposes pods from the top without a gap, so the first pod that cannot be chosen ends the loop.
    if (chosen.length >= most || chosen.length + view.inFlight >= cap || (!isUnavailable && left <= 0)) break;
    if (pod.isTerminating || waitsForLower(view, pod)) break;
    chosen.push({ pod, because: 'outdated' });
    if (isUp(question.context, view, pod) && !isUnavailable) left -= 1;
  }
  return chosen;
}

/** Returns the chosen pods above the first denied pod, because a partition cannot leave a gap. */
function withoutGap(chosen: readonly ChosenPod[], allowed: readonly ChosenPod[]): readonly ChosenPod[] {
  const kept = new Set(allowed);
  const gap = chosen.findIndex((one) => !kept.has(one));
  return gap === -1 ? chosen : chosen.slice(0, gap);
}

/** Returns the write of the partition at the lowest chosen pod, or the deletion of a stuck pod if that write would not replace it. */
function lowerPartition(context: GroupContext, view: ZoneView, chosen: readonly ChosenPod[]): readonly Action[] {
  const { set } = view;
  const lowest = chosen.at(-1)?.pod.ordinal;
  // The write replaces a stuck pod only if the pod is below the partition and no pod above it is outdated.
  const isDeleted = ({ pod, because }: ChosenPod): boolean =>
    because === 'stuck' && set !== undefined && !(isBelowPartition(set, pod) && isNextDown(view, pod));
  if (lowest === undefined || chosen.some(isDeleted)) return replacePods(context, view, chosen);
  const to = lowest - (set?.firstOrdinal ?? 0);
  const because = chosen.some((one) => one.because === 'stuck') ? 'stuck' : 'outdated';
  return setPartition(context, view, { to, because, replaced: chosen.map(({ pod }) => pod) });
}

/**
 * Blocks while the partition of a zone exposes pods outside the wave, for example after a manual change. The controller replaces these
 * pods. A stuck pod does not block: the agent itself exposes or deletes it, also outside its wave. With OrderedReady the controller waits for
 * the stuck pod, so the agent does not wait for the controller.
 */
function partitionKept({ context, run, zone }: RollQuestion): readonly RuleResult[] {
  const others = context.view.zones.filter((view) => view.zone.name !== zone.view.zone.name);
  return [...partitionKeptIn(context, run, zone.view), ...others.flatMap((view) => partitionKeptIn(context, run, view)).filter(blocks)];
}

function partitionKeptIn(context: GroupContext, run: RunState, view: ZoneView): readonly RuleResult[] {
  const { set } = view;
  if (set === undefined || set.updateStrategy !== 'RollingUpdate') return [];
  const unfrozen = partitionFrozen(context, view);
  if (unfrozen !== undefined) return [unfrozen];
  const asked = includedPods(context.group, run, view);
  const details = { limit: `${Math.max(0, view.replicas - asked)} or more`, source: partitionSource(set) };
  const beyond = view.exposedByPartition.filter(
    (pod) => pod.ordinal < set.firstOrdinal + view.replicas - asked && !isStuck(context, view, pod),
  );
  if (
    view.updated + view.exposedByPartition.length > asked &&
    beyond.length > 0 &&
    partitionOrdinal(set) < set.firstOrdinal + view.replicas - asked
  ) {
    const names = beyond.map(({ name }) => name).join(', ');
    const fact = `partition ${set.partition} lets the StatefulSet controller replace ${names}, which the wave does not include`;
    if (isUpdateHeld(context, view)) return [result('partition-kept', 'ok', `${fact}, when its stuck pods are replaced`, details)];
    return [result('partition-kept', 'wait', fact, details)];
  }
  return [result('partition-kept', 'ok', `the partition is ${set.partition}`, details)];
}

/** Returns the result that blocks the zone until the agent has frozen it; undefined if the zone needs no freeze. */
export function partitionFrozen(context: Pick<GroupContext, 'view'>, view: ZoneView): RuleResult | undefined {
  const { set, exposedByPartition } = view;
  const to = freezingPartition(context, view);
  if (set === undefined || to === undefined) return undefined;
  const names = exposedByPartition.map(({ name }) => name).join(', ');
  const fact = `partition ${set.partition} lets the StatefulSet controller replace ${names}, which no run includes`;
  return result('partition-kept', 'wait', fact, { limit: `${to} or more`, source: partitionSource(set) });
}

/**
 * Returns the write that freezes a zone. When every pod is updated and the update revision has become the current revision, raises the
 * partition to 1000000: pods below the partition come back at the current revision. While pods are outdated, lowers the partition to the
 * lowest updated pod, so that updated pods come back at the update revision.
 */
function settlePartition(context: GroupContext, view: ZoneView, set: StatefulSetView): readonly SetPartition[] {
  const frozen = freezingPartition(context, view);
  if (frozen !== undefined) return setPartition(context, view, { to: frozen, because: 'frozen' });
  if (set.status.currentRevision === set.status.updateRevision) {
    // While pods are missing, the partition stays: if it were lower, the controller would replace pods as soon as the template changes.
    const isDone = view.updated === view.replicas && set.partition !== holdingPartition;
    return isDone ? setPartition(context, view, { to: holdingPartition, because: 'complete' }) : [];
  }
  if (view.updated === view.replicas) return [];
  const lowest = lowestUpdated(view, set);
  return lowest < partitionOrdinal(set) && lowest < set.firstOrdinal + set.replicas
    ? setPartition(context, view, { to: lowest - set.firstOrdinal, because: 'updated' })
    : [];
}

/** Returns the lowest ordinal of the pods that run the update revision without a gap from the top. */
function lowestUpdated({ pods: members }: ZoneView, { firstOrdinal, replicas, status }: StatefulSetView): number {
  const updated = new Set(members.filter(({ revision }) => revision === status.updateRevision).map(({ ordinal }) => ordinal));
  let lowest = firstOrdinal + replicas;
  while (updated.has(lowest - 1)) lowest -= 1;
  return lowest;
}

/** Returns a clause with the pods below the partition that would come back at another revision after a restart. */
function podsToChangeOnRestart(view: ZoneView, set: StatefulSetView): string | undefined {
  const below = view.pods.filter(
    ({ ordinal, revision, isTerminating }) =>
      ordinal < partitionOrdinal(set) && revision !== set.status.currentRevision && !isTerminating && ordinal >= set.firstOrdinal,
  );
  if (below.length === 0) return undefined;
  const names = below.length > 3 ? `${counted(below.length, 'pod')} of zone ${view.zone.name}` : below.map(({ name }) => name).join(', ');
  return `${names} would come back at ${set.status.currentRevision || 'an unknown revision'} when restarted, below partition ${set.partition}`;
}

export type SetPartition = Extract<Action, { readonly kind: 'setPartition' }>;

/** A pod that the StatefulSet controller replaces. The UID is empty if the pod is gone. */
export type ExposedPod = Pick<PodView, 'name' | 'ordinal' | 'uid'>;

/** Returns a claim of this instant for each pod that a partition exposes, for budgets that count only claims. */
export function exposedClaims({ view, nowMs }: Pick<GroupContext, 'view' | 'nowMs'>): readonly Claim[] {
  return view.zones.flatMap(({ zone, exposedByPartition }) =>
    exposedByPartition.map(({ uid, ordinal }): Claim => ({ verb: 'deletePod', zone: zone.name, uid, ordinal, atMs: nowMs })),
  );
}

/** Returns the write of the partition `to` of a zone; [] without a StatefulSet. */
export function setPartition(
  { group: { namespace } }: Pick<GroupContext, 'group'>,
  { zone, set }: ZoneView,
  { to, because, replaced = [] }: Pick<SetPartition, 'to' | 'because'> & { readonly replaced?: readonly ExposedPod[] },
): readonly SetPartition[] {
  if (set === undefined) return [];
  const target = { namespace, zone: zone.name, statefulSet: zone.statefulSet, set };
  return [partitionWrite(target, { to, because, replaced })];
}

/** Returns the write of the partition `to` of one StatefulSet, after which the controller replaces the pods `replaced`, in their order. */
export function partitionWrite(
  { set, ...target }: Pick<SetPartition, 'namespace' | 'zone' | 'statefulSet'> & { readonly set: StatefulSetView },
  { to, because, replaced }: Pick<SetPartition, 'to' | 'because'> & { readonly replaced: readonly ExposedPod[] },
): SetPartition {
  const { uid, resourceVersion, partition: from } = set;
  const pods = replaced.map((pod) => ({ pod: pod.name, ordinal: pod.ordinal, uid: pod.uid }));
  return { kind: 'setPartition', ...target, uid, resourceVersion, from, to, because, pods };
}

export function partitionSource({ namespace, name }: Pick<StatefulSetView, 'namespace' | 'name'>): Source {
  return { object: `StatefulSet ${namespace}/${name}`, field: 'spec.updateStrategy.rollingUpdate.partition' };
}

/** Returns a snapshot of manifests in which members have the agent's partition of 1000000, because manifests omit the partition. */
export function withHoldingPartitions(snapshot: Snapshot): Snapshot {
  const members = new Set(
    snapshot.groups
      .filter((group) => traitsOf(group).holdsPartition)
      .flatMap(({ namespace, zones }) => zones.map(({ statefulSet }) => `${namespace}/${statefulSet}`)),
  );
  if (members.size === 0) return snapshot;
  const isAtRest = ({ namespace, name, updateStrategy, partition }: StatefulSetView): boolean =>
    members.has(`${namespace}/${name}`) && updateStrategy === 'RollingUpdate' && partition === 0;
  return {
    ...snapshot,
    statefulSets: snapshot.statefulSets.map((set) => (isAtRest(set) ? { ...set, partition: holdingPartition } : set)),
  };
}

/** Calls `settle` for each zone whose partition may be written now: its status is current, and no claim announces another write. */
export function settleZones(
  context: GroupContext,
  settle: (context: GroupContext, view: ZoneView, set: StatefulSetView) => readonly SetPartition[],
): readonly SetPartition[] {
  return context.view.zones.flatMap((view) => {
    const { set, claims, unknown } = view;
    if (set === undefined || unknown !== undefined || set.updateStrategy !== 'RollingUpdate' || oldStatusOf(view) !== undefined) return [];
    if (claims.some(({ verb }) => verb === 'setPartition' || verb === 'scaleDown')) return [];
    return settle(context, view, set);
  });
}

/** Returns warnings about zones that Kubernetes counts as complete because they have no pods, and the facts of `factOf` for other zones. */
export function restartWarnings(
  context: GroupContext,
  run: RunState | undefined,
  factOf: (view: ZoneView, set: StatefulSetView) => string | undefined,
): readonly RuleResult[] {
  return context.view.zones.flatMap((view) => {
    const { set, zone, unknown } = view;
    if (set === undefined || unknown !== undefined || set.updateStrategy !== 'RollingUpdate') return [];
    const isEmpty = view.replicas === 0 && run?.outcome === 'running';
    const fact = isEmpty
      ? `zone ${zone.name} has no pods, so Kubernetes counts its rollout as complete: new pods start at the update revision`
      : factOf(view, set);
    return fact === undefined ? [] : [result('restart-version', 'wait', fact, { source: partitionSource(set) })];
  });
}
