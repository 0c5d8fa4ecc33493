// The one form of a disruption budget that is asked: out of a ZoneAwarePodDisruptionBudget, or out of a group's own `disruption` block.
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
  /** With fewer members nothing is allowed. */
  readonly leastMembers: number;
  readonly partition?: PartitionPattern;
  readonly crossZoneDelayMs: number;
}

type Objects = Pick<Snapshot, 'statefulSets'>;

/** The budgets of the namespace (of any, when none is named) that select a pod with these labels, by name. More than one is an error. */
export function zoneBudgetsFor(
  budgets: readonly ZoneBudgetView[],
  namespace: string | undefined,
  labels: PodView['labels'],
): readonly ZoneBudgetView[] {
  return budgets
    .filter((budget) => (namespace === undefined || budget.namespace === namespace) && matchesSelector(budget, labels))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Its members are the StatefulSets that its selector matches; it needs two, so that there is another zone to rely on. */
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

/** Its members are the zones of the group; a group of one zone may have a budget too. */
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
 * The pods that may be unavailable: the count when it is positive, else the percentage of the smaller of wanted and present replicas of the
 * pod's own zone, rounded down, at least 1. When that allows nothing, the override of a rollout; 1 where partitions are counted. An override
 * never changes a limit that is not 0.
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

/** One pod when neither number is given. */
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
