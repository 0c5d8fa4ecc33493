// What is written of partitions without a pod going: the one that holds every pod back, and one that keeps pods at the revision they have.
import { holdingPartition, isPartitioned, isPinned } from '../../../policies/strategies.ts';
import { pods } from '../../amount.ts';
import type { GroupContext } from '../../context.ts';
import type { Action, RuleResult } from '../../decision.ts';
import { partitionOrdinal, type ZoneView } from '../../observe/view.ts';
import { result } from '../../rule.ts';
import { oldStatusOf } from '../../rules/roll.ts';
import type { Claim, PodView, RunState, Snapshot, StatefulSetView } from '../../snapshot.ts';

type SetPartition = Extract<Action, { readonly kind: 'setPartition' }>;

/** Pods that the StatefulSet controllers of the group may replace, as claims of this instant, for budgets that know claims alone. */
export function releasedClaims({ view, nowMs }: Pick<GroupContext, 'view' | 'nowMs'>): readonly Claim[] {
  return view.zones.flatMap(({ zone, released }) =>
    released.map(({ uid, ordinal }): Claim => ({ verb: 'deletePod', zone: zone.name, uid, ordinal, atMs: nowMs })),
  );
}

/** The write of the partition `to`, after which the pods `going` are replaced, in their order. */
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

/** A snapshot of manifests as the agent would have it: they leave the partition out, for it writes it, and members at rest are held. */
export function heldPartitions(snapshot: Snapshot): Snapshot {
  const members = new Set(
    snapshot.groups
      .filter((group) => isPartitioned(group) || isPinned(group))
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

/**
 * Writes by which no pod goes. A zone whose pods all run the update revision is held, so that the next template waits for its turn; not before
 * the StatefulSet itself takes that revision for the current one, since a pod below the partition comes back at the current revision. And pods
 * from the highest ordinal down that run the update revision without having been let go are taken in, so that they keep it over a restart.
 */
export function settlePartitions(context: GroupContext, isScaling: boolean): readonly SetPartition[] {
  if (isScaling || !(isPartitioned(context.group) || isPinned(context.group))) return [];
  return context.view.zones.flatMap((view) => {
    const { set, claims, unknown } = view;
    if (set === undefined || unknown !== undefined || set.updateStrategy !== 'RollingUpdate' || oldStatusOf(view) !== undefined) return [];
    // Somebody else is about to write the same StatefulSet.
    if (claims.some(({ verb }) => verb === 'setPartition' || verb === 'scaleDown')) return [];
    // Every pod that runs another revision than the current one is pinned to it by then, so nothing changes its version by this write.
    if (isPinned(context.group))
      return set.partition === holdingPartition ? [] : setPartition(context, view, { to: holdingPartition, because: 'pinned' });
    if (view.updated === view.replicas) {
      const isCurrent = set.status.currentRevision === set.status.updateRevision;
      return isCurrent && set.partition !== holdingPartition
        ? setPartition(context, view, { to: holdingPartition, because: 'complete' })
        : [];
    }
    const lowest = lowestUpdated(view, set);
    return lowest < partitionOrdinal(set) && lowest < set.firstOrdinal + set.replicas
      ? setPartition(context, view, { to: lowest - set.firstOrdinal, because: 'updated' })
      : [];
  });
}

/** The lowest ordinal of the pods at the update revision that stand without a gap at the top. */
function lowestUpdated({ pods: members }: ZoneView, { firstOrdinal, replicas, status }: StatefulSetView): number {
  const updated = new Set(members.filter(({ revision }) => revision === status.updateRevision).map(({ ordinal }) => ordinal));
  let lowest = firstOrdinal + replicas;
  while (updated.has(lowest - 1)) lowest -= 1;
  return lowest;
}

/**
 * What a partition does that nobody decided: pods that would change their revision by a mere restart, and a zone whose rollout Kubernetes took
 * for complete when it had no pods. Told, and no reason to hold anything.
 */
export function partitionWarnings(context: GroupContext, run: RunState | undefined): readonly RuleResult[] {
  if (!isPartitioned(context.group) && !isPinned(context.group)) return [];
  return context.view.zones.flatMap((view) => {
    const { set, zone, unknown } = view;
    if (set === undefined || unknown !== undefined || set.updateStrategy !== 'RollingUpdate') return [];
    const source = { object: `StatefulSet ${set.namespace}/${set.name}`, field: 'spec.updateStrategy.rollingUpdate.partition' };
    const warn = (fact: string): readonly RuleResult[] => [result('restart-version', 'wait', fact, { source })];
    if (view.replicas === 0 && run?.outcome === 'running') {
      return warn(
        `zone ${zone.name} has no pods, which Kubernetes takes for a complete rollout: they will come back at the update revision`,
      );
    }
    // Pinned pods come back as they are.
    if (isPinned(context.group)) return [];
    const below = view.pods.filter(
      ({ ordinal, revision, isTerminating }) =>
        ordinal < partitionOrdinal(set) && revision !== set.status.currentRevision && !isTerminating && ordinal >= set.firstOrdinal,
    );
    if (below.length === 0) return [];
    const names = below.length > 3 ? `${pods(below.length)} of zone ${zone.name}` : below.map(({ name }) => name).join(', ');
    return warn(
      `${names} would come back at ${set.status.currentRevision || 'an unknown revision'} when restarted, below partition ${set.partition}`,
    );
  });
}
