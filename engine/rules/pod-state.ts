// Classifies pods for rules and strategies: available, claimed, below the partition, or stuck (crashing, or unready for too long).
import { holdingPartition, traitsOf } from '../../policies/strategies.ts';
import type { GroupContext } from '../context.ts';
import { isAvailable, isCrashing, partitionOrdinal, type ZoneView } from '../observe/view.ts';
import { profileOf } from '../profiles.ts';
import type { Claim, PodView, StatefulSetView } from '../snapshot.ts';

type Moment = Pick<GroupContext, 'group' | 'nowMs'>;

/**
 * Reports whether an outdated pod is stuck and may be replaced outside the budget. A pod on an unready node is never stuck. With the strategy
 * `partition`, a pod that would come back unchanged is not stuck.
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

/** Reports whether no outdated pod has a higher ordinal, so that a lower partition exposes this pod first. */
export function isNextDown({ outdated }: ZoneView, pod: PodView): boolean {
  return outdated.every(({ ordinal }) => ordinal <= pod.ordinal);
}

/** Reports whether the StatefulSet controller would create the pod at the current revision instead of the update revision. */
export function isBelowPartition(set: Pick<StatefulSetView, 'firstOrdinal' | 'partition'>, pod: PodView): boolean {
  return pod.ordinal < partitionOrdinal(set);
}

/**
 * Returns the partition that stops the StatefulSet controller while it replaces pods that neither a run nor a claim exposed, for example
 * because the group was defined during a rollout. Returns undefined if no such partition is higher than the current one.
 */
export function freezingPartition({ view: { ledger } }: Pick<GroupContext, 'view'>, zone: ZoneView): number | undefined {
  const { set, claims, exposedByPartition } = zone;
  const { run } = ledger;
  const isOfRun = run !== undefined && run.outcome !== 'completed' && run.target[zone.zone.name] !== undefined;
  if (set === undefined || exposedByPartition.length === 0 || isOfRun || claims.some(({ verb }) => verb === 'setPartition'))
    return undefined;
  const lowest = lowestMoved(zone, set);
  const to = lowest === undefined ? holdingPartition : lowest - set.firstOrdinal;
  return to > set.partition ? to : undefined;
}

/**
 * Returns the lowest ordinal whose pod runs the update revision or is being replaced: every higher pod is updated, missing or terminating.
 * Below a partition these pods would come back at the current revision. Undefined if no pod has this state, or both revisions are equal.
 */
function lowestMoved({ pods, surplus, replicas }: ZoneView, { firstOrdinal, status }: StatefulSetView): number | undefined {
  const { currentRevision, updateRevision } = status;
  if (currentRevision === updateRevision) return undefined;
  const members = pods.filter((pod) => !surplus.includes(pod));
  const updated = members.filter(({ revision }) => revision === updateRevision).map(({ ordinal }) => ordinal);
  const staying = members.filter(({ revision, isTerminating }) => revision !== updateRevision && !isTerminating);
  const lowest = Math.min(...updated, Math.max(firstOrdinal - 1, ...staying.map(({ ordinal }) => ordinal)) + 1);
  return lowest < firstOrdinal + replicas ? lowest : undefined;
}

/**
 * Reports whether stuck pods of the zone may be repaired, one at a time, although other zones are not available. Otherwise two zones with a
 * broken image would wait for each other. The claims of other zones must end first, except a claim whose successor is stuck too. Drop-in
 * groups always wait for other zones.
 */
export function mayRepairDespiteOthers({ group, nowMs, view }: Moment & Pick<GroupContext, 'view'>, zone: ZoneView): boolean {
  const others = view.zones.filter((other) => other !== zone);
  return (
    profileOf(group).repairsStuckPodsAcrossZones &&
    others.some((other) => !other.isReady) &&
    others.every(
      (other) => other.unknown === undefined && other.claims.every((claim) => hasStuckSuccessor({ group, nowMs }, other, claim)),
    ) &&
    zone.outdated.some((pod) => isStuck({ group, nowMs }, zone, pod))
  );
}

/** Reports whether the successor of the claimed pod is stuck, so that the claim ends only by a repair. */
function hasStuckSuccessor(moment: Moment, view: ZoneView, { ordinal, uid }: Claim): boolean {
  return view.outdated.some((pod) => pod.ordinal === ordinal && pod.uid !== uid && isStuck(moment, view, pod));
}

/**
 * Reports whether surplus pods stay until a stuck pod is repaired: OrderedReady deletes no pod before every lower ordinal is ready
 * (kubernetes.io, StatefulSet, "Deployment and Scaling Guarantees"). Always false for drop-in groups: a shrinking zone does not block their
 * replacements anyway.
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

/**
 * Reports whether the StatefulSet controller replaces the pods that the partition exposes only after a stuck pod is repaired: OrderedReady
 * updates no pod before every pod is ready (kubernetes.io, StatefulSet, "Forced rollback").
 */
export function isUpdateHeld(moment: Moment, view: ZoneView): boolean {
  const { set, claims, outdated, exposedByPartition } = view;
  return (
    set?.podManagementPolicy === 'OrderedReady' &&
    exposedByPartition.every(({ isTerminating }) => !isTerminating) &&
    claims.every(({ verb }) => verb !== 'setPartition') &&
    outdated.some((pod) => isStuck(moment, view, pod))
  );
}

/** Reports whether a pod would be replaced while the StatefulSet controller deletes surplus pods of the zone. */
export function isMixed(moment: Moment, view: ZoneView, { because }: { readonly because: 'outdated' | 'stuck' }): boolean {
  return view.surplus.length > 0 && !(because === 'stuck' && isShrinkHeld(moment, view));
}

/**
 * Returns the number of pods in flight that must finish before a stuck pod is repaired. Exposed pods count only while they terminate. With
 * OrderedReady, missing pods above the stuck pod do not count: the controller waits for the stuck pod (kubernetes.io, "Forced rollback").
 */
export function inFlightBefore({ set, inFlight: all, pods, exposedByPartition }: ZoneView, stuck: PodView): number {
  const inFlight = all - exposedByPartition.filter(({ isTerminating }) => !isTerminating).length;
  if (set?.podManagementPolicy !== 'OrderedReady') return inFlight;
  const end = set.firstOrdinal + set.replicas;
  const above = pods.filter(({ ordinal }) => ordinal > stuck.ordinal && ordinal < end);
  return inFlight - (end - 1 - stuck.ordinal - above.length);
}

/** Reports whether a successor of the pod would wait: OrderedReady creates no pod before every lower ordinal is available. */
export function waitsForLower(view: ZoneView, { ordinal }: Pick<PodView, 'ordinal'>): boolean {
  return view.set?.podManagementPolicy === 'OrderedReady' && lowestUnavailable(view) < ordinal;
}

/** Returns the lowest ordinal that is not available. It may be the end of the ordinals. */
export function lowestUnavailable({ set, available }: ZoneView): number {
  let ordinal = set?.firstOrdinal ?? 0;
  while (available.has(ordinal)) ordinal += 1;
  return ordinal;
}

/**
 * Returns the future instants at which outdated pods become stuck if nothing changes. A decision is due then. A wait for pods names no such
 * instant: a pod that starts becomes ready long before.
 */
export function stuckInstants({ group, nowMs }: Moment, view: ZoneView, pods: readonly PodView[] = view.outdated): readonly number[] {
  const { when, afterMs } = group.rollout.replaceUnready;
  if (when !== 'any') return [];
  return pods
    .filter((pod) => !pod.isTerminating && pod.nodeReady && !isUp({ group, nowMs }, view, pod))
    .map((pod) => pod.readyChangedMs + afterMs)
    .filter((instant) => instant > nowMs);
}

/** Reports whether the pod is available as the profile of its group defines it. */
export function isUp({ group, nowMs }: Moment, view: ZoneView, pod: PodView): boolean {
  return isAvailable(pod, group, view.set?.minReadySeconds ?? 0, nowMs);
}

export function isClaimed({ claims }: ZoneView, { uid }: PodView): boolean {
  return claims.some((claim) => claim.uid === uid);
}
