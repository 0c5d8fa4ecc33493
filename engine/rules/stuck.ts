// Stuck pods: outdated and unready for long enough, or for a cause that waiting does not end.
import { traitsOf } from '../../policies/strategies.ts';
import type { GroupContext } from '../context.ts';
import { isAvailable, isCrashing, partitionOrdinal, type ZoneView } from '../observe/view.ts';
import { profileOf } from '../profiles.ts';
import type { PodView, StatefulSetView } from '../snapshot.ts';

type Moment = Pick<GroupContext, 'group' | 'nowMs'>;

/**
 * Whether an outdated pod may be replaced outside the budget. Never on a node that is not ready itself: the pod is not what is broken. Below the
 * partition of the strategy `partition` the next one down, which is let go with the partition, and one that the StatefulSet controller would make
 * at the current revision instead of its own, as a run in between leaves it: any other would come back as it is.
 */
export function isStuck({ group, nowMs }: Moment, view: ZoneView, pod: PodView): boolean {
  const { when, afterMs } = group.rollout.replaceUnready;
  if (wouldComeBackAsItIs(group, view, pod)) return false;
  if (when === 'none' || pod.isTerminating || !pod.nodeReady || isUp({ group, nowMs }, view, pod)) return false;
  return isCrashing(pod) || (when === 'any' && !pod.isReady && nowMs - pod.readyChangedMs >= afterMs);
}

function wouldComeBackAsItIs(group: Moment['group'], view: ZoneView, pod: PodView): boolean {
  const { set } = view;
  if (!traitsOf(group).lowersPartition || set === undefined || !isBelowPartition(set, pod) || isNextDown(view, pod)) return false;
  return set.status.currentRevision === '' || set.status.currentRevision === pod.revision;
}

/** Reports whether the next lowering of the partition exposes this outdated pod. */
export function isNextDown({ outdated }: ZoneView, pod: PodView): boolean {
  return outdated.every(({ ordinal }) => ordinal <= pod.ordinal);
}

/** Reports whether the StatefulSet controller would create the pod at the current revision instead of the update revision. */
export function isBelowPartition(set: Pick<StatefulSetView, 'firstOrdinal' | 'partition'>, pod: PodView): boolean {
  return pod.ordinal < partitionOrdinal(set);
}

/**
 * Whether stuck pods of the zone, one at a time, may be cured although other zones are not whole. When an image that never starts has got into
 * several zones, as by a scale-up or by pods that were lost meanwhile, each of them would otherwise wait for the others for ever. A pod that is
 * down already takes nothing away from anybody; but what was announced in another zone has to settle first. Adopted groups wait, as the
 * original does.
 */
export function mayCureBeside({ group, nowMs, view }: Moment & Pick<GroupContext, 'view'>, zone: ZoneView): boolean {
  const others = view.zones.filter((other) => other !== zone);
  return (
    profileOf(group).repairsStuckPodsAcrossZones &&
    others.some((other) => !other.isReady) &&
    others.every((other) => other.unknown === undefined && other.claims.length === 0) &&
    zone.outdated.some((pod) => isStuck({ group, nowMs }, zone, pod))
  );
}

/**
 * Whether the pods that a smaller zone has left over stay until a stuck pod is cured: under OrderedReady the StatefulSet controller takes none away
 * before every lower ordinal is ready (kubernetes.io, StatefulSet, "Deployment and Scaling Guarantees"). A rollout that waited for them would wait
 * for ever. Only stuck pods are replaced meanwhile, one at a time, and nothing in adopted groups, which do not wait.
 */
export function isShrinkHeld({ group, nowMs }: Moment, view: ZoneView): boolean {
  const { set, surplus, claims, outdated } = view;
  return (
    profileOf(group).repairsStuckPodsAcrossZones &&
    set?.podManagementPolicy === 'OrderedReady' &&
    surplus.length > 0 &&
    surplus.every(({ isTerminating }) => !isTerminating) &&
    claims.every(({ verb }) => verb !== 'scaleDown') &&
    outdated.some((pod) => isStuck({ group, nowMs }, view, pod))
  );
}

/** Reports whether a replacement would happen while the zone shrinks. */
export function isMixed(moment: Moment, view: ZoneView, { because }: { readonly because: 'outdated' | 'stuck' }): boolean {
  return view.surplus.length > 0 && !(because === 'stuck' && isShrinkHeld(moment, view));
}

/**
 * The pods in flight that the cure of a stuck pod waits for. Pods that the StatefulSet controller may replace, and has not begun to, are none: it
 * waits for the stuck one. Under OrderedReady the controller makes no pod while a lower ordinal is not
 * available, so what is missing above the stuck pod waits for its cure, and must not hold it back (kubernetes.io, StatefulSet, "Forced
 * rollback").
 */
export function inFlightBefore({ set, inFlight: all, unavailable, pods, exposedByPartition }: ZoneView, stuck: PodView): number {
  const inFlight = all - exposedByPartition.filter(({ isTerminating }) => !isTerminating).length;
  if (set?.podManagementPolicy !== 'OrderedReady') return inFlight;
  const present = new Set(pods.map(({ ordinal }) => ordinal));
  const held = [...unavailable].filter((ordinal) => ordinal > stuck.ordinal && !present.has(ordinal));
  return inFlight - held.length;
}

/** Returns the future instants at which pods become stuck without a change. */
export function stuckInstants({ group, nowMs }: Moment, view: ZoneView, pods: readonly PodView[]): readonly number[] {
  const { when, afterMs } = group.rollout.replaceUnready;
  if (when !== 'any') return [];
  return pods
    .filter((pod) => !pod.isTerminating && pod.nodeReady && !isUp({ group, nowMs }, view, pod))
    .map((pod) => pod.readyChangedMs + afterMs)
    .filter((instant) => instant > nowMs);
}

function isUp({ group, nowMs }: Moment, view: ZoneView, pod: PodView): boolean {
  return isAvailable(pod, group, view.set?.minReadySeconds ?? 0, nowMs);
}
