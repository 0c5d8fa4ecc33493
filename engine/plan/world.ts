// The state in which a plan begins: what runs, with everything that was asked for judged and, where it passed, applied.
import type { GroupDefinition } from '../../policies/definition.ts';
import { canonicalJson } from '../../policies/values/canonical-json.ts';
import { snapshotFromManifests } from '../observe/manifests.ts';
import { readsTime } from '../rules/condition-time.ts';
import { isUnknown, type Snapshot } from '../snapshot.ts';
import { heldPartitions } from '../strategies/partition/writes.ts';
import { createWorld, type Quantile } from '../world/world.ts';
import { withAssumedMetrics } from './forward.ts';
import type { PlanInput } from './plan.ts';
import { type RequestedChanges, requestChanges } from './request.ts';

/** The manifests of a plan, read. */
export interface PlanSnapshots {
  /** True if the input names an instant. Without one the plan has no place in the calendar. */
  readonly usesCalendar: boolean;
  readonly nowMs: number;
  readonly before: Snapshot;
  readonly after: Snapshot;
  /** Replica sources that are asked for with another number than they have; only where a cluster says what they have. */
  readonly changedSources?: Snapshot['replicaSources'];
}

/** A plan that nothing binds to the calendar begins here, so that two runs of it give the same bytes. */
const nowhereMs = 0;

export function readPlanSnapshots(input: PlanInput): PlanSnapshots {
  const usesCalendar = input.running !== undefined || dependsOnCalendar(input);
  const nowMs = usesCalendar ? input.nowMs : nowhereMs;
  const after = snapshotFromManifests(input.desired, { nowMs, groups: input.groups, pods: 'none' }).snapshot;
  if (input.running !== undefined) return seenSnapshots(input, input.running, nowMs, after);
  const before = heldPartitions(snapshotFromManifests(input.current, { nowMs, groups: input.groups }).snapshot);
  return { usesCalendar, nowMs, before, after };
}

/** A cluster was seen; its objects as manifests only tell which sources are asked for with another number. */
function seenSnapshots(input: PlanInput, running: Snapshot, nowMs: number, after: Snapshot): PlanSnapshots {
  const before = snapshotFromManifests(input.current, { nowMs, groups: input.groups, pods: 'none' }).snapshot;
  const replicasOf = ({ replicaSources }: Snapshot, wanted: Snapshot['replicaSources'][number]) =>
    replicaSources.find((source) => source.namespace === wanted.namespace && source.kind === wanted.kind && source.name === wanted.name)
      ?.replicas;
  const changedSources = after.replicaSources.filter(
    (source) => canonicalJson(replicasOf(before, source)) !== canonicalJson(source.replicas),
  );
  return { usesCalendar: true, nowMs, before: { ...running, nowMs, groups: input.groups }, after, changedSources };
}

/** Reports whether the input names an instant of the calendar: windows, exceptions, conditions on the time, recorded downscales. */
function dependsOnCalendar(input: PlanInput): boolean {
  const { policies, exceptions, current, desired } = input;
  if (exceptions.length > 0 || policies.some((policy) => policy.windows.length > 0)) return true;
  if (policies.some((policy) => policy.rules.some((rule) => readsTime(rule.when)))) return true;
  return /grafana\.com\/(?:last-downscale|ready-time)|"lastTransitionTime"/.test(JSON.stringify([current, desired]));
}

/** The inputs of one group before the change. */
function snapshotBefore(input: PlanInput, { before }: PlanSnapshots, group: GroupDefinition): Snapshot {
  const { policies, exceptions, policyDigest, agentNamespace = before.agentNamespace } = input;
  const part = { ...groupPart(before, group), policies, exceptions, policyDigest };
  return agentNamespace === undefined ? part : { ...part, agentNamespace };
}

/** The same with the budgets and replica sources that are asked for; they are applied before any member. */
export function snapshotAsked(input: PlanInput, snapshots: PlanSnapshots, group: GroupDefinition): Snapshot {
  const before = snapshotBefore(input, snapshots, group);
  const { zoneBudgets, podBudgets, replicaSources } = snapshots.after;
  const { changedSources } = snapshots;
  if (changedSources === undefined) return { ...before, zoneBudgets, podBudgets, replicaSources };
  const isChanged = (source: Snapshot['replicaSources'][number]): boolean =>
    changedSources.some((one) => one.namespace === source.namespace && one.kind === source.kind && one.name === source.name);
  return {
    ...before,
    // An object that could not be read stays unknown, also if the change includes it.
    zoneBudgets: isUnknown(before.zoneBudgets) ? before.zoneBudgets : zoneBudgets,
    podBudgets: isUnknown(before.podBudgets) ? before.podBudgets : podBudgets,
    replicaSources: [...before.replicaSources.filter((source) => !isChanged(source)), ...changedSources],
  };
}

interface WorldOptions {
  /** The quantile of the assumed durations: `p50` unless given. */
  readonly quantile?: Quantile;
  /** False if the changes are judged without the assumed metrics. */
  readonly hasMetrics?: boolean;
}

/** Returns the model of one group after the requested changes of its members are judged and the allowed ones are applied. */
export function requestedWorld(
  input: PlanInput,
  snapshots: PlanSnapshots,
  group: GroupDefinition,
  { quantile = 'p50', hasMetrics = true }: WorldOptions = {},
): RequestedChanges {
  const world = createWorld(snapshotAsked(input, snapshots, group), input.assumptions, quantile);
  return requestChanges({
    group,
    groupsBefore: input.groupsBefore ?? [],
    world: hasMetrics ? withAssumedMetrics(world, group) : world,
    after: snapshots.after,
    desired: input.desired,
  });
}

/** The part of a snapshot that one group depends on, so that a hundred groups cost a hundred times one. */
export function groupPart(snapshot: Snapshot, group: GroupDefinition): Snapshot {
  const names = new Set(group.zones.map((zone) => zone.statefulSet));
  const isShared = (list: Snapshot['zoneBudgets'] | Snapshot['podBudgets']): boolean =>
    !Array.isArray(list) || list.some((budget) => budget.namespace === group.namespace);
  const keepsAll = isShared(snapshot.zoneBudgets) || isShared(snapshot.podBudgets);
  const isPart = (namespace: string, name: string): boolean => namespace === group.namespace && (keepsAll || names.has(name));
  return {
    ...snapshot,
    groups: [group],
    statefulSets: snapshot.statefulSets.filter((set) => isPart(set.namespace, set.name)),
    pods: snapshot.pods.filter((pods) => isPart(pods.namespace, pods.statefulSet)),
  };
}
