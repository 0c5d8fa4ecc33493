// Finds the pods that the StatefulSet controller replaces when the template changes, because they are at or above the partition.
import type { GroupDefinition } from '../../policies/definition.ts';
import { instantMs } from '../../policies/instant.ts';
import type { RolloutRun } from '../../policies/schema/kinds.ts';
import { traitsOf } from '../../policies/strategies.ts';
import { ordinalsOf } from '../amount.ts';
import { partitionOrdinal, viewGroup, type ZoneView } from '../observe/view.ts';
import type { RunState } from '../run/run-state.ts';
import type { PodView, Snapshot } from '../snapshot.ts';
import { type ExposedPod, setPartition } from '../strategies/partition.ts';
import type { TakenAction } from './published.ts';

interface Moment {
  readonly snapshot: Snapshot;
  readonly group: GroupDefinition;
}

/** Returns the replacements of the StatefulSet controller at or above the partitions, without the known pods. */
export function exposedActions(
  { snapshot, group }: Moment,
  isKnown: (zone: string, pod: PodView) => boolean = () => false,
): readonly TakenAction[] {
  return viewGroup(snapshot, group).zones.flatMap((view) =>
    replacements(
      group,
      view,
      view.exposedByPartition.filter((pod) => !isKnown(view.zone.name, pod)),
    ),
  );
}

/**
 * Returns the replacements of the StatefulSet controller between the last recorded run and the run that follows it. Members are written one by
 * one, and a failed run stays until the last write. Until then, the controller may have replaced the exposed pods of the other zones.
 */
export function earlierReplacements(
  { snapshot, group }: Moment,
  last: RolloutRun['spec'],
  { target }: Pick<RunState, 'target'>,
): readonly TakenAction[] {
  if (!traitsOf(group).lowersPartition) return [];
  return viewGroup(snapshot, group).zones.flatMap((view) => {
    const { name } = view.zone;
    const before = last.zones.find(({ zone }) => zone === name)?.toRevision;
    return before === undefined || before === target[name] ? [] : replacements(group, view, replacedSince(view, last, target[name]));
  });
}

/** Returns the pods at the revision of the last run that the controller replaced since: they are absent, or at the target. */
function replacedSince(view: ZoneView, last: RolloutRun['spec'], target: string | undefined): readonly ExposedPod[] {
  const startedMs = instantMs(last.startedAt) ?? 0;
  return ordinalsAtLast(view, last).flatMap((ordinal) => {
    const pod = view.pods.find((one) => one.ordinal === ordinal);
    // Below the partition, a person or a drain deleted the pod: the controller creates it at the current revision.
    if (pod === undefined) return isExposed(view, ordinal) ? [{ name: `${view.zone.statefulSet}-${ordinal}`, ordinal, uid: '' }] : [];
    // If the last run exposed a pod that the controller did not replace, then its readiness is older than that run.
    return pod.revision === target && pod.readyChangedMs >= startedMs ? [pod] : [];
  });
}

function isExposed({ set }: ZoneView, ordinal: number): boolean {
  return set !== undefined && ordinal >= partitionOrdinal(set);
}

/**
 * Returns the ordinals whose pods ran the revision of the last run, or were exposed to it: its replaced pods, and the pods at or above the
 * partition. The agent raises the partition when the zone has returned.
 */
function ordinalsAtLast({ zone, set }: ZoneView, { zones, steps }: RolloutRun['spec']): readonly number[] {
  if (set === undefined) return [];
  const { pods = 0 } = zones.find((one) => one.zone === zone.name) ?? {};
  const ofZone = steps.filter((step) => step.zone === zone.name && step.action === 'replace');
  const replaced = ofZone.flatMap((step) => ordinalsOf(step.pods ?? ''));
  // An ordinal that a scale-up added since has no earlier pod.
  const last = set.firstOrdinal + Math.min(set.replicas, pods) - 1;
  const exposed = partitionOrdinal(set) <= last ? ordinalsOf(`${partitionOrdinal(set)}-${last}`) : [];
  return [...new Set([...replaced, ...exposed])].filter((ordinal) => ordinal < set.firstOrdinal + set.replicas).sort((a, b) => a - b);
}

function replacements(group: GroupDefinition, view: ZoneView, replaced: readonly ExposedPod[]): readonly TakenAction[] {
  if (replaced.length === 0) return [];
  const actions = setPartition({ group }, view, { to: view.set?.partition ?? 0, because: 'outdated', replaced });
  return actions.map((action): TakenAction => ({ action, result: 'done' }));
}
