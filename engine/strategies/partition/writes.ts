// Writes of `spec.updateStrategy.rollingUpdate.partition`, and what follows from the number that stands there.
import type { Source } from '../../../policies/definition.ts';
import { holdingPartition, traitsOf } from '../../../policies/strategies.ts';
import type { GroupContext } from '../../context.ts';
import type { Action, RuleResult } from '../../decision.ts';
import type { ZoneView } from '../../observe/view.ts';
import { result } from '../../rule.ts';
import { oldStatusOf } from '../../rules/roll.ts';
import type { Claim, PodView, RunState, Snapshot, StatefulSetView } from '../../snapshot.ts';

export type SetPartition = Extract<Action, { readonly kind: 'setPartition' }>;

/** Returns the pods that the StatefulSet controllers of the group may replace as claims of this instant, for budgets that count claims alone. */
export function releasedClaims({ view, nowMs }: Pick<GroupContext, 'view' | 'nowMs'>): readonly Claim[] {
  return view.zones.flatMap(({ zone, exposedByPartition }) =>
    exposedByPartition.map(({ uid, ordinal }): Claim => ({ verb: 'deletePod', zone: zone.name, uid, ordinal, atMs: nowMs })),
  );
}

/** Returns the write of the partition `to`, after which the controller replaces the pods `going`, in their order. */
export function setPartition(
  context: GroupContext,
  { zone, set }: ZoneView,
  { to, because, going = [] }: Pick<SetPartition, 'to' | 'because'> & { readonly going?: readonly PodView[] },
): readonly SetPartition[] {
  if (set === undefined) return [];
  const { uid, resourceVersion, partition: from } = set;
  return [
    {
      kind: 'setPartition',
      namespace: context.group.namespace,
      zone: zone.name,
      statefulSet: zone.statefulSet,
      uid,
      resourceVersion,
      from,
      to,
      because,
      pods: going.map((pod) => ({ pod: pod.name, ordinal: pod.ordinal, uid: pod.uid })),
    },
  ];
}

/** Returns where the partition of a StatefulSet stands. */
export function partitionSource({ namespace, name }: Pick<StatefulSetView, 'namespace' | 'name'>): Source {
  return { object: `StatefulSet ${namespace}/${name}`, field: 'spec.updateStrategy.rollingUpdate.partition' };
}

/**
 * Returns a snapshot of manifests with the partitions that the agent would have written: manifests leave the partition out, and members at rest
 * have 1000000.
 */
export function heldPartitions(snapshot: Snapshot): Snapshot {
  const members = new Set(
    snapshot.groups
      .filter((group) => traitsOf(group).holdsPartition)
      .flatMap(({ namespace, zones }) => zones.map(({ statefulSet }) => `${namespace}/${statefulSet}`)),
  );
  if (members.size === 0) return snapshot;
  const isHeld = ({ namespace, name, updateStrategy, partition }: StatefulSetView): boolean =>
    members.has(`${namespace}/${name}`) && updateStrategy === 'RollingUpdate' && partition === 0;
  return {
    ...snapshot,
    statefulSets: snapshot.statefulSets.map((set) => (isHeld(set) ? { ...set, partition: holdingPartition } : set)),
  };
}

/** Asks `settle` for each zone whose partition the agent may write now: its status is new and no other write of the StatefulSet is announced. */
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

/**
 * Warns of zones whose rollout Kubernetes counts as complete because they have no pods, and of pods for which `factOf` returns a fact. These
 * results block nothing.
 */
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
