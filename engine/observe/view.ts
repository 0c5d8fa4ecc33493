// Builds the view of one group for the rules: zones with sorted pods, outdated and unavailable pods, and claims.

import type { GroupDefinition, ZoneDefinition } from '../../policies/definition.ts';
import { traitsOf } from '../../policies/strategies.ts';
import { groupBy } from '../../policies/values/group-by.ts';
import { keptByObject } from '../../policies/values/map.ts';
import { counted, listed, zonesText } from '../../policies/wording.ts';
import { profileOf } from '../profiles.ts';
import { earliest } from '../rule.ts';
import { restoredRevision } from '../run/states.ts';
import {
  type Claim,
  claimEndMs,
  isUnknown,
  type Ledger,
  ledgerOf,
  type PodView,
  podsNamed,
  type Snapshot,
  type StatefulSetView,
  setNamed,
  type UnreadObject,
} from '../snapshot.ts';

export interface ZoneView {
  readonly zone: ZoneDefinition;
  /** Absent if the StatefulSet does not exist. */
  readonly set?: StatefulSetView;
  /** The reason why the zone cannot be evaluated. */
  readonly unknown?: string;
  /** True if the zone cannot be evaluated because its StatefulSet does not exist. */
  readonly isMissing?: true;
  /** True if the zone cannot be evaluated because another zone has the same StatefulSet. Only a person ends this. */
  readonly isShared?: true;
  /** The update revision; after a rollback, the revision to which the zone was rolled back. Empty while unknown. */
  readonly desiredRevision: string;
  /** `spec.replicas`. */
  readonly replicas: number;
  /** Owned pods, by ordinal. */
  readonly pods: readonly PodView[];
  /** Pods beyond `spec.replicas`, which the StatefulSet controller deletes. */
  readonly surplus: readonly PodView[];
  /** Pods within `spec.replicas` at another revision than `desiredRevision`, by ordinal. */
  readonly outdated: readonly PodView[];
  /** Outdated pods at or above the partition, or at or above a lower partition in a claim. Empty except with the strategy `partition`. */
  readonly exposedByPartition: readonly PodView[];
  /** Number of pods within `spec.replicas` at `desiredRevision`. */
  readonly updated: number;
  /** Number of ordinals within `spec.replicas` without a pod, whose next pod is created at `desiredRevision`. */
  readonly pendingPods: number;
  /** Pods within `spec.replicas` that would be available without their claim, which allows their eviction or deletion, by ordinal. */
  readonly claimedPods: readonly PodView[];
  /** Ordinals within `spec.replicas` with an available pod that has no claim and that the partition does not expose. */
  readonly available: ReadonlySet<number>;
  /** Number of ordinals within `spec.replicas` that are not in `available`; 0 while unknown. */
  readonly unavailable: number;
  /** Number of pods that count against the budget of the zone. */
  readonly unavailableCount: number;
  /** Number of pods that are claimed, terminating, missing, exposed by the partition, or at `desiredRevision` and not yet available. */
  readonly inFlight: number;
  /** True if no pod is unavailable or surplus. */
  readonly isReady: boolean;
  readonly claims: readonly Claim[];
  /** The earliest instant at which time alone makes a pod available: a ready pod, or a pod whose claim ends. */
  readonly availableAtMs?: number;
}

export interface GroupView {
  readonly group: GroupDefinition;
  readonly zones: readonly ZoneView[];
  readonly ledger: Ledger;
}

/** The waiting reasons that count as crashing (grafana/rollout-operator 0.39). */
const crashReasons: ReadonlySet<string> = new Set([
  'CrashLoopBackOff',
  'ImagePullBackOff',
  'ErrImagePull',
  'InvalidImageName',
  'CreateContainerConfigError',
  'CreateContainerError',
]);

/** Reports whether a container of the pod waits with a reason that counts as crashing. */
export function isCrashing(pod: PodView): boolean {
  return pod.waitingReasons.some((reason) => crashReasons.has(reason));
}

/** Reports whether grafana/rollout-operator counts a pod as ready: it runs, does not terminate, and all its containers are ready. */
export function isServing({
  phase,
  isTerminating,
  containersReady,
}: Pick<PodView, 'phase' | 'isTerminating' | 'containersReady'>): boolean {
  return phase === 'Running' && !isTerminating && containersReady;
}

/** Reports whether a pod is available: running, not terminating, and ready as the profile of the group defines it. */
export function isAvailable(pod: PodView, group: Pick<GroupDefinition, 'profile'>, minReadySeconds: number, nowMs: number): boolean {
  if (pod.phase !== 'Running' || pod.isTerminating) return false;
  if (profileOf(group).podReadiness === 'containers') return pod.containersReady;
  // Without minReadySeconds, Kubernetes compares no times. A pod is then available even if its ready time is ahead of this clock.
  return pod.isReady && pod.nodeReady && (minReadySeconds === 0 || nowMs - pod.readyChangedMs >= minReadySeconds * 1000);
}

/** Returns a clause on the readiness of the zone: its available pods, or why they are unknown. */
export function describeReadiness(view: ZoneView): string {
  const { zone, unknown, replicas, unavailable, surplus, exposedByPartition, claims } = view;
  if (unknown !== undefined) return unknown;
  const decrease = claims.find(({ verb }) => verb === 'scaleDown');
  if (decrease !== undefined && unavailable === 0 && surplus.length === 0)
    return `zone ${zone.name} shrinks from ${replicas} to ${decrease.to === undefined ? 'fewer replicas' : counted(decrease.to, 'replica')}`;
  const available = `zone ${zone.name} has ${replicas - unavailable} of ${replicas} pods available`;
  const exposed = exposedByPartition.length === 0 ? '' : `, ${exposedByPartition.length} exposed by the partition`;
  const leaving = surplus.length === 0 ? '' : ` and ${surplus.length} surplus ${surplus.length === 1 ? 'pod' : 'pods'} to delete`;
  return `${available}${exposed}${leaving}${claimNote(view)}`;
}

/** The number of claimed pods that a fact names. */
const namedClaims = 2;

/**
 * Returns the reason why ready pods count as unavailable, for the end of a fact: the disruptions that were allowed and have not started,
 * after a colon if they explain every unavailable pod, otherwise after a semicolon. Returns an empty string without such pods.
 */
export function claimNote({ claimedPods, claims, unavailable }: Pick<ZoneView, 'claimedPods' | 'claims' | 'unavailable'>): string {
  const count = claimedPods.length;
  if (count === 0) return '';
  const named = claimedPods.slice(0, namedClaims).map(({ name, uid }) => {
    const isEviction = claims.some((claim) => claim.uid === uid && claim.verb === 'evictPod');
    return `the ${isEviction ? 'eviction' : 'deletion'} of ${name}`;
  });
  const more = count > named.length ? [`${count - named.length} more`] : [];
  return `${count === unavailable ? ':' : ';'} ${listed([...named, ...more], 'and')} ${count === 1 ? 'was' : 'were'} allowed and may still be carried out`;
}

/** Returns the lowest ordinals from `first` up to `end`, `end` not included, that `present` lacks; at most `most`. */
export function absentOrdinals(
  present: ReadonlySet<number>,
  first: number,
  { end, most }: { readonly end: number; readonly most: number },
): readonly number[] {
  const absent: number[] = [];
  for (let ordinal = first; ordinal < end && absent.length < most; ordinal += 1) if (!present.has(ordinal)) absent.push(ordinal);
  return absent;
}

/** Returns the view of one group. A zone whose StatefulSet or pods could not be read stays in the view, with `unknown`. */
export function viewGroup(snapshot: Snapshot, group: GroupDefinition): GroupView {
  const ledger = ledgerOf(snapshot, group);
  return { group, ledger, zones: group.zones.map((zone) => viewZone(snapshot, group, zone, ledger)) };
}

/** Returns why an object could not be read; undefined if it was read or does not exist. */
export function unreadReasonOf(
  { unread }: Pick<Snapshot, 'unread'>,
  kind: UnreadObject['kind'],
  namespace: string,
  name: string,
): string | undefined {
  return unread?.find((object) => object.kind === kind && (object.namespace ?? namespace) === namespace && (object.name ?? name) === name)
    ?.unknown;
}

function viewZone(snapshot: Snapshot, group: GroupDefinition, zone: ZoneDefinition, ledger: Ledger): ZoneView {
  const set = setNamed(snapshot, group.namespace, zone.statefulSet);
  const claims = ledger.claims.filter((claim) => claim.zone === zone.name);
  const known = podsNamed(snapshot, group.namespace, zone.statefulSet);
  const gap = gapOf(snapshot, group, zone, set);
  if (set === undefined || known === undefined || isUnknown(known) || gap !== undefined) {
    const why = gap ?? { unknown: unreadPodsText(zone, known) };
    return { zone, ...(set === undefined ? {} : { set }), claims, ...emptyView(set?.replicas ?? 0), ...why };
  }
  const seen: SeenZone = {
    nowMs: snapshot.nowMs,
    group,
    zone,
    set,
    desiredRevision: desiredRevisionOf(group, ledger, zone, set),
    claims,
    pins: ledger.pins,
  };
  const cached = views.get(known);
  if (cached !== undefined && isCurrent(cached, seen)) return cached.view;
  const pods = sortMembers(known, group, set);
  const { desiredRevision, pins } = seen;
  const view: ZoneView = { zone, set, desiredRevision, claims, replicas: set.replicas, pods, ...countPods(seen, pods) };
  if (claims.length === 0) views.set(known, { group, fromMs: snapshot.nowMs, view, pins });
  return view;
}

function emptyView(replicas: number): Omit<ZoneView, 'zone' | 'set' | 'claims' | 'unknown'> {
  return {
    desiredRevision: '',
    replicas,
    pods: [],
    surplus: [],
    outdated: [],
    exposedByPartition: [],
    updated: 0,
    pendingPods: 0,
    claimedPods: [],
    available: new Set<number>(),
    unavailable: 0,
    unavailableCount: 0,
    inFlight: 0,
    isReady: false,
  };
}

/** Returns why a zone cannot be evaluated: an absent or unread object, or a StatefulSet in two groups, in deletion or without revision. */
function gapOf(
  snapshot: Snapshot,
  group: GroupDefinition,
  { statefulSet }: ZoneDefinition,
  set: StatefulSetView | undefined,
): Pick<ZoneView, 'unknown' | 'isMissing' | 'isShared'> | undefined {
  if (set === undefined) {
    const unread = unreadReasonOf(snapshot, 'StatefulSet', group.namespace, statefulSet);
    if (unread === undefined) return { unknown: `StatefulSet ${statefulSet} does not exist`, isMissing: true };
    return { unknown: `StatefulSet ${statefulSet} could not be read: ${unread}` };
  }
  const unreadLedger = unreadReasonOf(snapshot, 'Ledger', group.namespace, group.name);
  if (unreadLedger !== undefined) return { unknown: unreadLedger };
  const shared = sharedReasonOf(snapshot, group, set);
  if (shared !== undefined) return { unknown: shared, isShared: true };
  if (set.isTerminating) return { unknown: `StatefulSet ${set.name} is being deleted` };
  if (set.status.updateRevision === '') return { unknown: `StatefulSet ${set.name} has no status.updateRevision` };
  const lacksCurrent = profileOf(group).advancesCurrentRevision && set.status.currentRevision === '';
  return lacksCurrent ? { unknown: `StatefulSet ${set.name} has no status.currentRevision` } : undefined;
}

/** Names the StatefulSets of the group that have several owners, if this one has. The reason is the same for all of these zones. */
function sharedReasonOf(snapshot: Snapshot, group: GroupDefinition, set: StatefulSetView): string | undefined {
  if (ownersOf(snapshot, set).length < 2) return undefined;
  const { namespace } = group;
  const names = [...new Set(group.zones.map(({ statefulSet }) => statefulSet))];
  const shared = names.filter((name) => ownersOf(snapshot, { namespace, name }).length > 1);
  const owners = groupBy(
    shared.flatMap((name) => ownersOf(snapshot, { namespace, name })),
    (owner) => owner.group.name,
  );
  const texts = [...owners].map(([name, zones]) => `${zonesText([...new Set(zones.map(({ zone }) => zone.name))])} of group ${name}`);
  const subject = shared.length === 1 ? `StatefulSet ${shared[0]} has` : `StatefulSets ${listed(shared, 'and')} have`;
  return `${subject} several owners: ${texts.sort().join(', ')}`;
}

function ownersOf({ groups }: Snapshot, { namespace, name }: Pick<StatefulSetView, 'namespace' | 'name'>): readonly Owner[] {
  return ownersIn(groups).get(`${namespace}/${name}`) ?? [];
}

/** Returns the groups of `all` that have a StatefulSet of the group, without the group itself. */
export function otherOwners(group: GroupDefinition, all: readonly GroupDefinition[]): readonly GroupDefinition[] {
  const owners = group.zones.flatMap((zone) => ownersIn(all).get(`${group.namespace}/${zone.statefulSet}`) ?? []);
  const isOther = ({ namespace, name }: GroupDefinition): boolean => namespace !== group.namespace || name !== group.name;
  return [...new Set(owners.map((owner) => owner.group).filter(isOther))];
}

function unreadPodsText({ statefulSet }: ZoneDefinition, pods: Snapshot['pods'][number]['pods'] | undefined): string {
  return `the pods of ${statefulSet} could not be read${isUnknown(pods) ? `: ${pods.unknown}` : ''}`;
}

/** Returns the groups and zones that name each StatefulSet (`namespace/name`). A list of groups never changes in place. */
const ownersIn = keptByObject((groups: readonly GroupDefinition[]): ReadonlyMap<string, readonly Owner[]> => {
  const owners = groups.flatMap((group) => group.zones.map((zone) => ({ group, zone })));
  return groupBy(owners, ({ group, zone }) => `${group.namespace}/${zone.statefulSet}`);
});

interface Owner {
  readonly group: GroupDefinition;
  readonly zone: ZoneDefinition;
}

interface CachedView {
  readonly group: GroupDefinition;
  readonly fromMs: number;
  readonly view: ZoneView;
  readonly pins: Ledger['pins'];
}

/** The latest view for each list of pods. Lists never change in place, so the views of unchanged zones stay valid. */
const views: WeakMap<readonly PodView[], CachedView> = new WeakMap();

function isCurrent({ group, fromMs, view, pins }: CachedView, seen: SeenZone): boolean {
  if (seen.claims.length > 0 || view.desiredRevision !== seen.desiredRevision || pins !== seen.pins) return false;
  if (group !== seen.group || view.zone !== seen.zone || view.set !== seen.set || seen.nowMs < fromMs) return false;
  return view.availableAtMs === undefined || seen.nowMs < view.availableAtMs;
}

/** Returns the pods of the zone by ordinal. Most lists are sorted already and are returned without a copy. */
function sortMembers(pods: readonly PodView[], group: GroupDefinition, set: StatefulSetView): readonly PodView[] {
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

/** Returns the update revision, or the target of the rollback as long as the rolled-back revision is still the update revision. */
function desiredRevisionOf(group: GroupDefinition, { run }: Ledger, { name }: ZoneDefinition, { status }: StatefulSetView): string {
  const restored = traitsOf(group).canRollBack ? restoredRevision(run, name, status.updateRevision) : undefined;
  return restored ?? status.updateRevision;
}

interface SeenZone {
  readonly nowMs: number;
  readonly group: GroupDefinition;
  readonly zone: ZoneDefinition;
  readonly set: StatefulSetView;
  readonly desiredRevision: string;
  readonly claims: readonly Claim[];
  readonly pins: Ledger['pins'];
}

/**
 * Returns the number of missing pods that the StatefulSet controller creates at the desired revision. It creates pods at the update
 * revision from the partition on, and at the current or pinned revision below. `present` has the ordinals with a pod.
 */
function countPending({ group, zone, set, desiredRevision, claims, pins = [] }: SeenZone, present: ReadonlySet<number>): number {
  const { currentRevision, updateRevision } = set.status;
  const { pinsPods, lowersPartition } = traitsOf(group);
  const isPinned = pinsPods && set.updateStrategy === 'RollingUpdate';
  const end = set.firstOrdinal + set.replicas;
  const pinned = isPinned ? pins.filter((pin) => pin.zone === zone.name && !present.has(pin.ordinal)) : [];
  const others = [...present, ...pinned.map(({ ordinal }) => ordinal)];
  // Every pod without a pin is created at the desired revision if the update revision was rolled back (`placedRevision`).
  const isRolledBack = isPinned && desiredRevision !== updateRevision;
  const isDesired = (made: string): boolean => isRolledBack || made === desiredRevision;
  const missingIn = (from: number, to: number): number => to - from - others.filter((one) => one >= from && one < to).length;
  const lowest = isPinned ? end : lowersPartition ? lowestExposedOrdinal(group, set, claims) : partitionOrdinal(set);
  const split = set.updateStrategy === 'RollingUpdate' ? Math.min(Math.max(lowest, set.firstOrdinal), end) : set.firstOrdinal;
  return (
    (isDesired(currentRevision) ? missingIn(set.firstOrdinal, split) : 0) +
    (isDesired(updateRevision) ? missingIn(split, end) : 0) +
    pinned.filter(({ ordinal, revision }) => ordinal >= set.firstOrdinal && ordinal < end && isDesired(revision)).length
  );
}

function countPods(seen: SeenZone, pods: readonly PodView[]) {
  const { group, set } = seen;
  const { surplus, outdated, exposedByPartition, members, claimedPods, available, starting, readyAtMs, notReadyCount } = sortPods(
    seen,
    pods,
  );
  const missing = set.replicas - members.length;
  const unavailable = set.replicas - available.size;
  const gap = countDownByStatus(group, set, pods.length, notReadyCount);
  const releasedAtMs = claimedPods.flatMap((pod) => releasedLater(pod, seen));
  const availableAtMs = earliest([...(profileOf(group).podReadiness === 'condition' ? readyAtMs : []), ...releasedAtMs]);
  return {
    surplus,
    outdated,
    exposedByPartition,
    updated: pods.length - surplus.length - outdated.length,
    pendingPods: missing === 0 ? 0 : countPending(seen, new Set(members.map(({ ordinal }) => ordinal))),
    claimedPods,
    available,
    unavailable,
    unavailableCount: Math.max(unavailable, gap),
    inFlight: starting + missing,
    isReady: unavailable === 0 && surplus.length === 0 && gap === 0,
    ...(availableAtMs === undefined ? {} : { availableAtMs }),
  };
}

function sortPods({ nowMs, group, set, desiredRevision, claims }: SeenZone, pods: readonly PodView[]) {
  const isSurplus = ({ ordinal }: PodView) => ordinal < set.firstOrdinal || ordinal >= set.firstOrdinal + set.replicas;
  const claimed = new Set(claims.map((claim) => claim.uid));
  const lowestExposed = lowestExposedOrdinal(group, set, claims);
  const surplus = pods.filter(isSurplus);
  const members = surplus.length === 0 ? pods : pods.filter((pod) => !isSurplus(pod));
  const outdated = members.filter(({ revision }) => revision !== desiredRevision);
  const exposedByPartition = outdated.filter(({ ordinal }) => ordinal >= lowestExposed);
  const exposed = new Set(exposedByPartition);
  const down = new Set(pods.filter((pod) => !isAvailable(pod, group, set.minReadySeconds, nowMs)));
  const available = new Set<number>();
  let starting = 0;
  for (const pod of members) {
    const isBeingReplaced = claimed.has(pod.uid) || exposed.has(pod);
    if (!down.has(pod) && !isBeingReplaced) available.add(pod.ordinal);
    else if (isBeingReplaced || pod.isTerminating || pod.revision === desiredRevision) starting += 1;
  }
  return {
    surplus,
    members,
    outdated,
    exposedByPartition,
    claimedPods: members.filter((pod) => claimed.has(pod.uid) && !down.has(pod) && !exposed.has(pod)),
    available,
    starting,
    readyAtMs: [...down].flatMap((pod) => (isSurplus(pod) ? [] : availableLater(pod, set, nowMs))),
    notReadyCount: down.size,
  };
}

/** Returns the future instant at which a ready pod becomes available; [] if time alone does not make it available. */
function availableLater(pod: PodView, { minReadySeconds }: StatefulSetView, nowMs: number): readonly number[] {
  const atMs = pod.readyChangedMs + minReadySeconds * 1000;
  return pod.isReady && !pod.isTerminating && atMs > nowMs ? [atMs] : [];
}

/** Returns the future instant at which the last claim on the pod ends; [] if the times of the claims do not tell the instant. */
function releasedLater({ uid }: PodView, { claims, nowMs }: Pick<SeenZone, 'claims' | 'nowMs'>): readonly number[] {
  const atMs = Math.max(...claims.filter((claim) => claim.uid === uid).map(claimEndMs));
  return atMs > nowMs ? [atMs] : [];
}

/** Returns the lowest ordinal exposed by the partition or by a lower value in a claim; infinity except with the strategy `partition`. */
function lowestExposedOrdinal(group: GroupDefinition, set: StatefulSetView, claims: readonly Claim[]): number {
  if (!traitsOf(group).lowersPartition || set.updateStrategy !== 'RollingUpdate') return Number.POSITIVE_INFINITY;
  const announced = claims.flatMap(({ verb, uid, to }) => (verb === 'setPartition' && uid === set.uid && to !== undefined ? [to] : []));
  return set.firstOrdinal + Math.min(set.partition, ...announced);
}

/**
 * Returns the last instant up to `nowMs` at which time alone made a ready pod of the group available (`minReadySeconds`); undefined
 * without such an instant. A view from before that instant does not prove that the pod is still ready.
 */
export function lastAvailableByTime({ group, zones }: GroupView, nowMs: number): number | undefined {
  if (profileOf(group).podReadiness !== 'condition') return undefined;
  const instants = zones.flatMap(({ set, pods }) => {
    const waitMs = (set?.minReadySeconds ?? 0) * 1000;
    return waitMs === 0 ? [] : pods.filter(({ isReady }) => isReady).map(({ readyChangedMs }) => readyChangedMs + waitMs);
  });
  const passed = instants.filter((instant) => instant <= nowMs);
  return passed.length === 0 ? undefined : passed.reduce((last, instant) => Math.max(last, instant));
}

/** Returns the highest of three counts of unavailable pods, two of them from the status; 0 if the profile does not read the status. */
function countDownByStatus(group: GroupDefinition, set: StatefulSetView, found: number, notReadyCount: number): number {
  if (!profileOf(group).countsPodsFromStatus) return 0;
  return Math.max(set.status.replicas - set.status.readyReplicas, set.status.replicas - found, notReadyCount, 0);
}

/** Returns the lowest ordinal that the StatefulSet controller updates. The partition counts from `spec.ordinals.start`. */
export function partitionOrdinal({ firstOrdinal, partition }: Pick<StatefulSetView, 'firstOrdinal' | 'partition'>): number {
  return firstOrdinal + partition;
}
