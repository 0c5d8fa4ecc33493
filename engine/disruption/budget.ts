// The common form of a ZoneAwarePodDisruptionBudget and of a group's own `disruption` block.
import type { DisruptionDefinition, GroupDefinition } from '../../policies/definition.ts';
import { matchesSelector } from '../../policies/label-selector.ts';
import type { PartitionPattern } from '../../policies/text/partition-pattern.ts';
import type { PodView, Snapshot, StatefulSetView, ZoneBudgetView } from '../snapshot.ts';

export interface DisruptionBudget {
  /** `kind namespace/name` of the object; undefined for a group's own budget. */
  readonly object?: string;
  readonly maxUnavailable: number;
  readonly maxUnavailablePercent: number;
  /** The StatefulSets whose pods are counted, by name. */
  readonly members: readonly StatefulSetView[];
  /** With fewer members the budget denies every disruption. */
  readonly leastMembers: number;
  readonly partition?: PartitionPattern;
  readonly crossZoneDelayMs: number;
}

type Objects = Pick<Snapshot, 'statefulSets'>;

/**
 * Returns the budgets that select a pod with these labels, by name; in every namespace if none is given. More than one budget is an error.
 */
export function zoneBudgetsFor(
  budgets: readonly ZoneBudgetView[],
  namespace: string | undefined,
  labels: PodView['labels'],
): readonly ZoneBudgetView[] {
  return budgets
    .filter((budget) => (namespace === undefined || budget.namespace === namespace) && matchesSelector(budget, labels))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/**
 * Returns the budget of an object. Its members are the StatefulSets that its selector matches. It needs two members, so that another zone
 * stays available.
 */
export function zoneBudget(budget: ZoneBudgetView, { statefulSets }: Objects): DisruptionBudget {
  const members = statefulSets.filter((set) => set.namespace === budget.namespace && matchesSelector(budget, set.labels)).sort(byName);
  return {
    object: `ZoneAwarePodDisruptionBudget ${budget.namespace}/${budget.name}`,
    members,
    leastMembers: 2,
    crossZoneDelayMs: budget.crossZoneDelayMs,
    ...amountOf(budget),
    ...(budget.partition === undefined ? {} : { partition: budget.partition }),
  };
}

/** Returns the budget of a group. Its members are the zones of the group; a group of one zone may have a budget too. */
export function groupBudget(group: GroupDefinition, disruption: DisruptionDefinition, { statefulSets }: Objects): DisruptionBudget {
  const names = new Set(group.zones.map((zone) => zone.statefulSet));
  const members = statefulSets.filter((set) => set.namespace === group.namespace && names.has(set.name)).sort(byName);
  return {
    members,
    leastMembers: 1,
    crossZoneDelayMs: disruption.crossZoneDelayMs,
    ...amountOf(disruption),
    ...(disruption.partition === undefined ? {} : { partition: disruption.partition }),
  };
}

/**
 * Returns the number of pods that may be unavailable. A positive count applies as it is. A percentage is taken of the smaller of desired
 * and present replicas of the pod's zone, rounded down to at least 1. If the limit is 0, the override of a rollout applies, or 1 if the
 * budget counts partitions. An override never changes a positive limit.
 */
export function effectiveLimit(budget: DisruptionBudget, set: StatefulSetView, override: number | undefined): number {
  const limit = ownLimit(budget, set);
  if (limit > 0 || override === undefined) return limit;
  return budget.partition === undefined ? override : 1;
}

function ownLimit({ maxUnavailable, maxUnavailablePercent }: DisruptionBudget, set: StatefulSetView): number {
  if (maxUnavailable > 0) return maxUnavailable;
  const replicas = Math.min(set.replicas, set.status.replicas);
  if (maxUnavailablePercent <= 0 || replicas === 0) return 0;
  return Math.max(1, Math.floor((maxUnavailablePercent * replicas) / 100));
}

/** Returns the limit of a budget; one pod if it has neither number. */
function amountOf(limits: Pick<ZoneBudgetView, 'maxUnavailable' | 'maxUnavailablePercent'>): {
  readonly maxUnavailable: number;
  readonly maxUnavailablePercent: number;
} {
  const { maxUnavailable, maxUnavailablePercent } = limits;
  if (maxUnavailable === undefined && maxUnavailablePercent === undefined) return { maxUnavailable: 1, maxUnavailablePercent: 0 };
  return { maxUnavailable: maxUnavailable ?? 0, maxUnavailablePercent: maxUnavailablePercent ?? 0 };
}

function byName(a: StatefulSetView, b: StatefulSetView): number {
  return a.name < b.name ? -1 : 1;
}
