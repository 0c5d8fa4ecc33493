// One group as the rules see it: its zones with their pods sorted, what is outdated, what is unavailable, what is announced.

import type { GroupDefinition, ZoneDefinition } from '../../policies/definition.ts';
import { traitsOf } from '../../policies/strategies.ts';
import { profileOf } from '../profiles.ts';
import { earliest } from '../rule.ts';
import { type Claim, isUnknown, type Ledger, type PodView, type Snapshot, type StatefulSetView, type UnreadObject } from '../snapshot.ts';

export interface ZoneView {
  readonly zone: ZoneDefinition;
  /** Absent when there is no such StatefulSet. */
  readonly set?: StatefulSetView;
  /** Why the zone cannot be judged. */
  readonly unknown?: string;
  /** The revision that pods are to have: the update revision, unless it failed and was rolled back. Empty while it is not known. */
  readonly target: string;
  /** `spec.replicas`. */
  readonly replicas: number;
  /** Owned pods, by ordinal. */
  readonly pods: readonly PodView[];
  /** Pods beyond `spec.replicas`, which are on their way out. */
  readonly surplus: readonly PodView[];
  /** Pods within `spec.replicas` whose revision is not `target`, by ordinal. */
  readonly outdated: readonly PodView[];
  /**
   * Of the outdated pods those that the StatefulSet controller replaces as soon as it likes, since the partition does not hold them back or is
   * about to be lowered below them. None but under the strategy `partition`.
   */
  readonly released: readonly PodView[];
  /** Pods within `spec.replicas` at `target`. */
  readonly updated: number;
  /** Places within `spec.replicas` that have no pod now, and whose next one is made at `target`. */
  readonly coming: number;
  /** Ordinals within `spec.replicas` that have no available pod, or whose disruption is announced, or that the controller may replace. */
  readonly unavailable: ReadonlySet<number>;
  /** How many pods count against the budget of the zone. */
  readonly unavailableCount: number;
  /** Pods that are terminating, missing, released, or at `target` and not yet available. */
  readonly inFlight: number;
  /** Whether nothing is unavailable and nothing is on its way out. */
  readonly isReady: boolean;
  readonly claims: readonly Claim[];
  /** When a pod that is ready becomes available by time alone. */
  readonly availableAtMs?: number;
}

export interface GroupView {
  readonly group: GroupDefinition;
  /** In the order of the group. */
  readonly zones: readonly ZoneView[];
  readonly ledger: Ledger;
}

/** The reasons for which a waiting container counts as crashing (grafana/rollout-operator 0.39). */
const crashReasons: ReadonlySet<string> = new Set([
  'CrashLoopBackOff',
  'ImagePullBackOff',
  'ErrImagePull',
  'InvalidImageName',
  'CreateContainerConfigError',
  'CreateContainerError',
]);

/** Whether a container of the pod waits for a reason that waiting does not cure. */
export function isCrashing(pod: PodView): boolean {
  return pod.waitingReasons.some((reason) => crashReasons.has(reason));
}

/**
 * Whether a pod counts as available: running, not terminating, and ready. What ready means is a setting of the group: the Ready condition for
 * `minReadySeconds` on a node that is ready, or, for adopted groups, running containers alone.
 */
export function isAvailable(pod: PodView, group: Pick<GroupDefinition, 'profile'>, minReadySeconds: number, nowMs: number): boolean {
  if (pod.phase !== 'Running' || pod.isTerminating) return false;
  if (profileOf(group).podReadiness === 'containers') return pod.containersReady;
  // Where no time is asked for, no clock is: as in Kubernetes, a pod is available that became ready at an instant ahead of the clock here.
  return pod.isReady && pod.nodeReady && (minReadySeconds === 0 || nowMs - pod.readyChangedMs >= minReadySeconds * 1000);
}

/** How far the zone is from being whole, as a sentence part: its pods, or why they are not known. */
export function describeReadiness({ zone, unknown, replicas, unavailable, surplus, released, claims }: ZoneView): string {
  if (unknown !== undefined) return unknown;
  const decrease = claims.find(({ verb }) => verb === 'scaleDown');
  if (decrease !== undefined && unavailable.size === 0 && surplus.length === 0)
    return `zone ${zone.name} is about to have ${decrease.to ?? 'fewer'} replicas instead of ${replicas}`;
  const leaving = surplus.length === 0 ? '' : ` and ${surplus.length} more on the way out`;
  if (released.length > 0)
    return `zone ${zone.name} has ${replicas - unavailable.size} of ${replicas} pods that stay, ${released.length} for its StatefulSet to replace${leaving}`;
  return `zone ${zone.name} has ${replicas - unavailable.size} of ${replicas} pods available${leaving}`;
}

/** The view of one group. Zones whose StatefulSet or pods could not be read are marked, never left out. */
export function viewGroup(snapshot: Snapshot, group: GroupDefinition): GroupView {
  const ledger = snapshot.ledgers.find((candidate) => candidate.namespace === group.namespace && candidate.group === group.name) ?? {
    namespace: group.namespace,
    group: group.name,
    claims: [],
    downscales: [],
    preparations: [],
  };
  return { group, ledger, zones: group.zones.map((zone) => viewZone(snapshot, group, zone, ledger)) };
}

/** Why an object could not be read; undefined for one that was, and for one that is not there. */
export function whyUnread(
  { unread }: Pick<Snapshot, 'unread'>,
  kind: UnreadObject['kind'],
  namespace: string,
  name: string,
): string | undefined {
  return unread?.find((object) => object.kind === kind && (object.namespace ?? namespace) === namespace && (object.name ?? name) === name)
    ?.unknown;
}

function viewZone(snapshot: Snapshot, group: GroupDefinition, zone: ZoneDefinition, ledger: Ledger): ZoneView {
  const set = snapshot.statefulSets.find((candidate) => candidate.namespace === group.namespace && candidate.name === zone.statefulSet);
  const claims = ledger.claims.filter((claim) => claim.zone === zone.name);
  const nothing = {
    target: '',
    replicas: 0,
    pods: [],
    surplus: [],
    outdated: [],
    released: [],
    updated: 0,
    coming: 0,
    unavailable: new Set<number>(),
    unavailableCount: 0,
    inFlight: 0,
    isReady: false,
  };
  if (set === undefined) {
    const unread = whyUnread(snapshot, 'StatefulSet', group.namespace, zone.statefulSet);
    const unknown = `StatefulSet ${zone.statefulSet} ${unread === undefined ? 'does not exist' : `could not be read: ${unread}`}`;
    return { zone, claims, ...nothing, unknown };
  }
  // Without the ledger nobody knows what is announced already.
  const why = whyUnread(snapshot, 'Ledger', group.namespace, group.name) ?? whyNotJudged(snapshot, group, set);
  if (why !== undefined) return { zone, set, claims, ...nothing, replicas: set.replicas, unknown: why };
  const known = snapshot.pods.find(
    (candidate) => candidate.namespace === group.namespace && candidate.statefulSet === zone.statefulSet,
  )?.pods;
  if (known === undefined || isUnknown(known)) {
    return {
      zone,
      set,
      claims,
      ...nothing,
      replicas: set.replicas,
      unknown: `the pods of ${zone.statefulSet} could not be read${known ? `: ${known.unknown}` : ''}`,
    };
  }
  const target = targetRevision(group, ledger, zone, set);
  const remembered = views.get(known);
  const isSame = remembered?.view.target === target && remembered.pins === ledger.pins;
  const isKept = remembered !== undefined && isSame && claims.length === 0 && isStillTrue(remembered, group, zone, set, snapshot.nowMs);
  if (isKept) return remembered.view;
  const pods = membersInOrder(known, group, set);
  const counted = countPods({ nowMs: snapshot.nowMs, group, set, target, pods, claims, pins: pinsOf(ledger, zone) });
  const view: ZoneView = { zone, set, target, claims, replicas: set.replicas, pods, ...counted };
  if (claims.length === 0) views.set(known, { group, fromMs: snapshot.nowMs, view, pins: ledger.pins });
  return view;
}

/**
 * Two groups would each spend the whole budget of a StatefulSet that both name; without an update revision every pod would seem outdated; and
 * what a StatefulSet under deletion loses does not come back. Whose current revision is kept up is not touched before it has one.
 */
function whyNotJudged({ groups }: Snapshot, group: GroupDefinition, set: StatefulSetView): string | undefined {
  const owners = ownersIn(groups).get(`${set.namespace}/${set.name}`) ?? [];
  if (owners.length > 1) return `StatefulSet ${set.name} has several owners: ${owners.join(', ')}`;
  if (set.isTerminating) return `StatefulSet ${set.name} is being deleted`;
  if (set.status.updateRevision === '') return `the status of ${set.name} names no update revision`;
  const isMissed = profileOf(group).advancesCurrentRevision && set.status.currentRevision === '';
  return isMissed ? `the status of ${set.name} names no current revision` : undefined;
}

const ownersByGroups: WeakMap<readonly GroupDefinition[], ReadonlyMap<string, readonly string[]>> = new WeakMap();

/** The zones that name each StatefulSet (`namespace/name`), sorted. Made once for each list of groups, which are never changed in place. */
function ownersIn(groups: readonly GroupDefinition[]): ReadonlyMap<string, readonly string[]> {
  const known = ownersByGroups.get(groups);
  if (known !== undefined) return known;
  const found = new Map<string, string[]>();
  for (const group of groups) {
    for (const zone of group.zones) {
      const key = `${group.namespace}/${zone.statefulSet}`;
      found.set(key, [...(found.get(key) ?? []), `zone ${zone.name} of group ${group.name}`].sort());
    }
  }
  ownersByGroups.set(groups, found);
  return found;
}

interface RememberedView {
  readonly group: GroupDefinition;
  readonly fromMs: number;
  readonly view: ZoneView;
  readonly pins: Ledger['pins'];
}

/**
 * The last view of each list of pods. A turn changes the pods of one zone at most, and lists are never changed in place, so the views of the
 * other zones are still true; the answer is the same with and without.
 */
const views: WeakMap<readonly PodView[], RememberedView> = new WeakMap();

function isStillTrue(
  { group: before, fromMs, view }: RememberedView,
  group: GroupDefinition,
  zone: ZoneDefinition,
  set: StatefulSetView,
  nowMs: number,
): boolean {
  if (before !== group || view.zone !== zone || view.set !== set || nowMs < fromMs) return false;
  return view.availableAtMs === undefined || nowMs < view.availableAtMs;
}

/** Copying and sorting cost more than looking, and observers keep their lists sorted. */
function membersInOrder(pods: readonly PodView[], group: GroupDefinition, set: StatefulSetView): readonly PodView[] {
  const nameLabel = set.podLabels['name'];
  const isByLabel = profileOf(group).matchesPodsByNameLabel;
  let before = Number.NEGATIVE_INFINITY;
  for (const pod of pods) {
    if (pod.ordinal < before || (isByLabel && pod.labels['name'] !== nameLabel)) {
      const members = isByLabel ? pods.filter(({ labels }) => labels['name'] === nameLabel) : [...pods];
      return members.sort((a, b) => a.ordinal - b.ordinal);
    }
    before = pod.ordinal;
  }
  return pods;
}

/** A revision that failed and was rolled back is asked for no more, for as long as the StatefulSet names it. */
function targetRevision(group: GroupDefinition, { run }: Ledger, { name }: ZoneDefinition, { status }: StatefulSetView): string {
  const isRolledBack = traitsOf(group).canRollBack && run?.rolledBack?.revisions[name] === status.updateRevision;
  return (isRolledBack ? run?.target[name] : undefined) ?? status.updateRevision;
}

interface CountedPods {
  readonly nowMs: number;
  readonly group: GroupDefinition;
  readonly set: StatefulSetView;
  readonly target: string;
  readonly pods: readonly PodView[];
  readonly claims: readonly Claim[];
  readonly pins: NonNullable<Ledger['pins']>;
}

function pinsOf({ pins = [] }: Ledger, { name }: ZoneDefinition): NonNullable<Ledger['pins']> {
  return pins.filter(({ zone }) => zone === name);
}

/** The revision at which a pod of the ordinal is made. */
function madeAt({ group, set, target, claims, pins }: Omit<CountedPods, 'nowMs' | 'pods'>, ordinal: number): string {
  const { currentRevision, updateRevision } = set.status;
  if (set.updateStrategy !== 'RollingUpdate') return updateRevision;
  if (traitsOf(group).pinsPods) {
    const made = pins.find((one) => one.ordinal === ordinal)?.revision ?? currentRevision;
    // What was rolled back is not made, though Kubernetes may take it for the current revision.
    return target !== updateRevision && made === updateRevision ? target : made;
  }
  const heldBelow = traitsOf(group).lowersPartition ? heldBelowOrdinal(group, set, claims) : set.firstOrdinal + set.partition;
  return ordinal < heldBelow ? currentRevision : updateRevision;
}

function countPods({ nowMs, group, set, target, pods, claims, pins }: CountedPods) {
  const end = set.firstOrdinal + set.replicas;
  const claimed = new Set(claims.map((claim) => claim.uid));
  const heldBelow = heldBelowOrdinal(group, set, claims);
  const surplus: PodView[] = [];
  const outdated: PodView[] = [];
  const released: PodView[] = [];
  const available = new Set<number>();
  const waking: number[] = [];
  let updated = 0;
  const present = new Set<number>();
  let starting = 0;
  let notReadyPods = 0;
  for (const pod of pods) {
    const isUp = isAvailable(pod, group, set.minReadySeconds, nowMs);
    if (!isUp) notReadyPods += 1;
    if (pod.ordinal < set.firstOrdinal || pod.ordinal >= end) {
      surplus.push(pod);
      continue;
    }
    present.add(pod.ordinal);
    const isReleased = pod.revision !== target && pod.ordinal >= heldBelow;
    if (pod.revision !== target) outdated.push(pod);
    else updated += 1;
    if (isReleased) released.push(pod);
    const isGoing = claimed.has(pod.uid) || isReleased;
    if (isUp && !isGoing) available.add(pod.ordinal);
    else if (pod.isTerminating || pod.revision === target || isGoing) starting += 1;
    if (!isUp && pod.isReady && !pod.isTerminating) waking.push(pod.readyChangedMs + set.minReadySeconds * 1000);
  }
  const unavailable = new Set<number>();
  let coming = 0;
  for (let ordinal = set.firstOrdinal; ordinal < end; ordinal += 1) {
    if (!available.has(ordinal)) unavailable.add(ordinal);
    if (!present.has(ordinal) && madeAt({ group, set, target, claims, pins }, ordinal) === target) coming += 1;
  }
  const gap = statusGap(group, set, pods.length, notReadyPods);
  const availableAtMs = profileOf(group).podReadiness === 'condition' ? earliest(waking.filter((instant) => instant > nowMs)) : undefined;
  return {
    surplus,
    outdated,
    released,
    updated,
    coming,
    unavailable,
    unavailableCount: Math.max(unavailable.size, gap),
    inFlight: starting + (set.replicas - present.size),
    isReady: unavailable.size === 0 && surplus.length === 0 && gap === 0,
    ...(availableAtMs === undefined ? {} : { availableAtMs }),
  };
}

/**
 * The ordinal below which the StatefulSet controller leaves outdated pods alone: what the partition says, or what it is about to say. Under the
 * other engines every pod counts as left alone, and a rule holds a group whose strategy says otherwise.
 */
function heldBelowOrdinal(group: GroupDefinition, set: StatefulSetView, claims: readonly Claim[]): number {
  if (!traitsOf(group).lowersPartition || set.updateStrategy !== 'RollingUpdate') return Number.POSITIVE_INFINITY;
  const announced = claims.flatMap(({ verb, uid, to }) => (verb === 'setPartition' && uid === set.uid && to !== undefined ? [to] : []));
  return set.firstOrdinal + Math.min(set.partition, ...announced);
}

/**
 * Adopted groups also believe the counters of the StatefulSet: whichever of the status, the number of pods and the pods themselves says
 * that more are down counts.
 */
function statusGap(group: GroupDefinition, set: StatefulSetView, found: number, notReadyPods: number): number {
  if (!profileOf(group).countsPodsFromStatus) return 0;
  return Math.max(set.status.replicas - set.status.readyReplicas, set.status.replicas - found, notReadyPods, 0);
}

/** The lowest ordinal that the StatefulSet controller brings to the update revision: the partition counts from `spec.ordinals.start`. */
export function partitionOrdinal({ firstOrdinal, partition }: Pick<StatefulSetView, 'firstOrdinal' | 'partition'>): number {
  return firstOrdinal + partition;
}
