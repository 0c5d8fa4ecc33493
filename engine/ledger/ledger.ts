// Updates the ledger of a group, which stores its state between turns: run, pins, claims, preparations, and downscales with their time.

import type { GroupDefinition, PolicyDefinition } from '../../policies/definition.ts';
import { extended } from '../../policies/values/defined.ts';
import type { GroupContext } from '../context.ts';
import { withEndedCancels } from '../decide/replicas.ts';
import { type Action, type GroupDecision, isReplacement } from '../decision.ts';
import { isAvailable } from '../observe/view.ts';
import { withMembers } from '../release/left.ts';
import { termsOf, withTerms } from '../release/terms.ts';
import {
  type Claim,
  claimEndMs,
  isUnknown,
  type Ledger,
  type PodView,
  podsNamed,
  type Snapshot,
  type StatefulSetView,
  setNamed,
  unappliedClaimMs,
} from '../snapshot.ts';
import { withPins } from '../strategies/pinned/pins.ts';
import { createdPods } from './created.ts';

/** Maximum number of open claims. A group that needs more claims waits. */
export const openClaimLimit = 100;

/**
 * Returns the ledger that is stored before `actions` are carried out, with the run, the pins and the release terms of the decision, and with
 * the cancelled downscales that have ended. If `actions` contains only some of the decided actions, the stored run stays.
 */
export function decidedLedger(
  ledger: Ledger,
  decision: Pick<GroupDecision, 'run' | 'pinned' | 'actions'>,
  { snapshot, group, actions = decision.actions }: Pick<GroupContext, 'snapshot' | 'group'> & { readonly actions?: readonly Action[] },
): Ledger {
  const { run, pinned } = decision;
  // A defined group is not being released: its release terms replace the stored ones.
  const known = withEndedCancels(withMembers(withTerms(ledger, termsOf(group)), { snapshot, group }), { snapshot, group });
  const moved = run === undefined || run === known.run || actions.length < decision.actions.length ? known : { ...known, run };
  return pinned === undefined ? moved : withPins({ ...moved, ...pinned }, actions, { snapshot, group });
}

/** Returns a claim for each action that disrupts. `epoch` is the number of the current leadership. */
export function claimsOf(actions: readonly Action[], nowMs: number, epoch?: number): readonly Claim[] {
  const announced = { atMs: nowMs, ...(epoch === undefined ? {} : { epoch }) };
  return actions.flatMap((action): readonly Claim[] => {
    if (isReplacement(action)) {
      const { kind: verb, zone, uid, ordinal } = action;
      const version = action.kind === 'deletePod' ? { resourceVersion: action.resourceVersion } : {};
      return [{ verb, zone, uid, ordinal, ...version, ...announced }];
    }
    if (action.kind !== 'scaleStatefulSet' && action.kind !== 'setPartition') return [];
    const { kind, zone, uid, from, to, resourceVersion } = action;
    const isDisruption = kind === 'setPartition' ? action.pods.length > 0 : to < from;
    const verb = kind === 'setPartition' ? kind : 'scaleDown';
    return isDisruption ? [{ verb, zone, uid, from, to, resourceVersion, ...announced }] : [];
  });
}

/**
 * Returns the ledger with these claims open; undefined above `openClaimLimit`. An open claim with the same verb, object and `to` stays,
 * with its time. Only a claim with a newer resource version, or a later claim for the same scale-down, replaces it.
 */
export function openClaims(ledger: Ledger, claims: readonly Claim[]): Ledger | undefined {
  const open = [...ledger.claims];
  for (const claim of claims) {
    const index = open.findIndex((known) => known.verb === claim.verb && known.uid === claim.uid && known.to === claim.to);
    const known = open[index];
    if (known === undefined) open.push(claim);
    else if (isRenewed(claim, known)) open[index] = claim;
  }
  return isSameList(open, ledger.claims) ? ledger : withClaims(ledger, open);
}

/** Returns the ledger with these claims; undefined if they are more than before and more than `openClaimLimit`. */
export function withClaims(ledger: Ledger, claims: readonly Claim[]): Ledger | undefined {
  return claims.length > openClaimLimit && claims.length > ledger.claims.length ? undefined : { ...ledger, claims };
}

function isRenewed(claim: Claim, known: Claim): boolean {
  if (known.resourceVersion !== undefined && isLater(claim.resourceVersion, known.resourceVersion)) return true;
  return claim.verb === 'scaleDown' && claim.resourceVersion === known.resourceVersion && claim.atMs > known.atMs;
}

/** Returns the ledger with this epoch; undefined if a later leadership has written the ledger. Epochs never decrease. */
export function ledgerOfEpoch(ledger: Ledger, epoch: number): Ledger | undefined {
  if (ledger.epoch === epoch) return ledger;
  return (ledger.epoch ?? epoch) > epoch ? undefined : { ...ledger, epoch };
}

/**
 * Returns the epoch with which the holder of the Lease writes this ledger. A new Lease counts its epochs from 0 again, but the epoch of a
 * ledger must never decrease.
 */
export function writingEpoch({ epoch }: Pick<Ledger, 'epoch'>, leaseEpoch: number): number {
  return epoch !== undefined && epoch >= leaseEpoch ? epoch + 1 : leaseEpoch;
}

/** A pod that the agent writes, so that a late DELETE of an earlier leader with the old resource version fails. */
export interface Revocation {
  readonly namespace: string;
  readonly pod: string;
  readonly uid: string;
  /** The version in the DELETE request, and the precondition of the write. */
  readonly resourceVersion: string;
}

/**
 * Returns the unchanged pods of open claims of earlier leaderships: their DELETE may still arrive. A write to the pod makes that DELETE fail.
 * An eviction names no resource version, so no write can make it fail.
 */
export function revocationsOf(ledger: Ledger, seen: ObservedObjects, epoch: number): readonly Revocation[] {
  const zones = zonesOf(ledger, seen);
  return ledger.claims
    .filter((claim) => claim.verb === 'deletePod' && (claim.epoch ?? Number.NEGATIVE_INFINITY) < epoch)
    .flatMap((claim) => {
      const pod = zones.get(claim.zone)?.pods?.find((candidate) => candidate.uid === claim.uid);
      if (pod === undefined || pod.isTerminating || pod.resourceVersion !== claim.resourceVersion) return [];
      return [{ namespace: ledger.namespace, pod: pod.name, uid: pod.uid, resourceVersion: pod.resourceVersion }];
    });
}

/**
 * Returns the longest `delayed.after` or `betweenZones` of zones and policies, in milliseconds. `keepDownscalesMs` is at least as long. `policies`
 * contains the policies that bind the group.
 */
export function longestDelayMs(group: GroupDefinition, policies: readonly PolicyDefinition[]): number {
  return Math.max(
    0,
    ...group.zones.map((zone) => zone.betweenZonesMs ?? 0),
    ...group.zones.map((zone) => zone.delayed?.afterMs ?? 0),
    ...policies.map((policy) => policy.limits.betweenZonesMs ?? 0),
  );
}

export type ObservedObjects = Pick<Snapshot, 'nowMs' | 'groups' | 'statefulSets' | 'pods'>;

interface KeepOptions {
  /** The time for which dated downscales are kept, in milliseconds: at least `longestDelayMs`. */
  readonly keepDownscalesMs: number;
  /** Returns for how many milliseconds this reader has known the claim, by a monotonic clock. Absent: the times of the claims count. */
  readonly openForMs?: (claim: Claim) => number;
}

/**
 * Returns the ledger after an observation. A claim on a pod ends when the successor pod is available. A claim on replicas adds a dated
 * downscale when the replicas are lowered, and ends when the surplus pods are gone. A claim on a partition ends when the partition is lowered.
 * A claim with a resource version ends at once if another write changed the object, because its request must fail. A claim on an unchanged
 * object or on a zone that left the group ends after 120 s. A claim on an unreadable object stays. Preparations always stay, even without
 * their pods, because databases store them on the volume. The created ordinals are those of `createdPods`.
 */
export function observeLedger(stored: Ledger, seen: ObservedObjects, options: KeepOptions): Ledger {
  const { openForMs = ({ atMs }: Claim) => Math.abs(seen.nowMs - atMs) } = options;
  const isOverdue = (claim: Claim): boolean => openForMs(claim) > unappliedClaimMs;
  const group = groupOf(stored, seen);
  if (group === undefined) return stored;
  const ledger = inPresentZones(stored, group);
  const zones = zonesOf(ledger, seen);
  const applied = ledger.claims.flatMap((claim) => datedDownscale(ledger, claim, zones.get(claim.zone), seen.nowMs));
  const isOfNoZone = (claim: Claim): boolean => !group.zones.some((zone) => zone.name === claim.zone);
  const claims = ledger.claims.filter((claim) =>
    isOfNoZone(claim) ? !isOverdue(claim) : isOpen(claim, zones.get(claim.zone), { nowMs: seen.nowMs, isOverdue: isOverdue(claim) }),
  );
  const downscales = [...ledger.downscales, ...applied].filter(({ atMs }) => seen.nowMs - atMs <= options.keepDownscalesMs);
  const created = createdPods(ledger, group, seen);
  const lists = { claims, downscales, preparations: ledger.preparations };
  const isSame = (['claims', 'downscales', 'preparations'] as const).every((name) => isSameList(lists[name], stored[name]));
  if (isSame && isSameList(created, stored.created ?? [])) return stored;
  const { created: _created, ...rest } = stored;
  return extended(rest, { ...lists, ...(created.length === 0 ? {} : { created }) });
}

/**
 * Returns the ledger with the present names of the zones. The name of an adopted zone is that of its StatefulSet without the common prefix
 * of all members, so it changes with the members: the zone `a` is called `ingester-zone-a` while the group has no other member.
 */
function inPresentZones(ledger: Ledger, { zones }: GroupDefinition): Ledger {
  const { claims, downscales, preparations, created, ...rest } = ledger;
  const isPresent = (entry: { readonly zone: string }): boolean => zones.some(({ name }) => name === entry.zone);
  if ([claims, downscales, preparations, created ?? []].every((entries) => entries.every(isPresent))) return ledger;
  const inPresent = <Entry extends { readonly zone: string }>(entry: Entry): Entry => {
    if (isPresent(entry)) return entry;
    const [zone, ...others] = zones.filter(({ statefulSet }) => `-${statefulSet}`.endsWith(`-${entry.zone}`));
    return zone === undefined || others.length > 0 ? entry : { ...entry, zone: zone.name };
  };
  return {
    ...rest,
    claims: claims.map(inPresent),
    downscales: downscales.map(inPresent),
    preparations: preparations.map(inPresent),
    ...(created && { created: created.map(inPresent) }),
  };
}

function isSameList(one: readonly unknown[], other: readonly unknown[]): boolean {
  return one.length === other.length && one.every((entry, index) => entry === other[index]);
}

/** Returns the snapshot with its ledgers observed at the time of the snapshot, so that an ended claim blocks no step. */
export function withObservedLedgers(snapshot: Snapshot): Snapshot {
  const ledgers = snapshot.ledgers.map((ledger) => observeLedger(ledger, snapshot, { keepDownscalesMs: Number.POSITIVE_INFINITY }));
  return isSameList(ledgers, snapshot.ledgers) ? snapshot : { ...snapshot, ledgers };
}

/** Returns the next time at which an open claim on an unchanged object ends; undefined if no such time is in the future. */
export function nextClaimEndMs({ ledgers, nowMs }: Snapshot): number | undefined {
  const ends = ledgers.flatMap(({ claims }) => claims.map(claimEndMs)).filter((atMs) => atMs > nowMs);
  return ends.length === 0 ? undefined : Math.min(...ends);
}

interface SeenZone {
  readonly group: GroupDefinition;
  readonly set: StatefulSetView;
  /** Absent if the pods could not be read. */
  readonly pods?: readonly PodView[];
}

function zonesOf(ledger: Ledger, seen: ObservedObjects): ReadonlyMap<string, SeenZone> {
  const group = groupOf(ledger, seen);
  const zones = new Map<string, SeenZone>();
  for (const zone of group?.zones ?? []) {
    const set = setNamed(seen, ledger.namespace, zone.statefulSet);
    const pods = podsNamed(seen, ledger.namespace, zone.statefulSet);
    if (set === undefined || group === undefined) continue;
    zones.set(zone.name, pods === undefined || isUnknown(pods) ? { group, set } : { group, set, pods });
  }
  return zones;
}

function groupOf(ledger: Ledger, seen: ObservedObjects): GroupDefinition | undefined {
  return seen.groups.find((candidate) => candidate.namespace === ledger.namespace && candidate.name === ledger.group);
}

/** Reports whether an object was written after the version. Versions that are not decimal numbers show only that they differ. */
function isLater(seen: string | undefined, before: string): boolean {
  if (seen === undefined || seen === before) return false;
  if (!isNumber(seen) || !isNumber(before)) return true;
  return seen.length === before.length ? seen > before : seen.length > before.length;
}

function isNumber(resourceVersion: string): boolean {
  return /^[1-9]\d*$/.test(resourceVersion);
}

/** Reports whether the request of the claim must fail because its object was written since. */
function isVoid(claim: Pick<Claim, 'resourceVersion'>, object: { readonly resourceVersion: string }): boolean {
  return claim.resourceVersion !== undefined && isLater(object.resourceVersion, claim.resourceVersion);
}

interface Elapsed {
  readonly nowMs: number;
  /** True if the claim has been open for longer than any request lasts. */
  readonly isOverdue: boolean;
}

function isOpen(claim: Claim, zone: SeenZone | undefined, elapsed: Elapsed): boolean {
  if (zone === undefined) return true;
  return claim.verb === 'scaleDown' || claim.verb === 'setPartition' ? isSetOpen(claim, zone, elapsed) : isPodOpen(claim, zone, elapsed);
}

/** Reports whether a claim on a StatefulSet is open. The claim ends when a new StatefulSet has the same name. */
function isSetOpen({ verb, uid, to = 0, ...claim }: Claim, { set, pods }: SeenZone, { isOverdue }: Elapsed): boolean {
  if (set.uid !== uid) return false;
  const isLowered = (verb === 'scaleDown' ? set.replicas : set.partition) <= to;
  if (!isLowered) return !isOverdue && !isVoid(claim, set);
  if (verb === 'setPartition') return false;
  if (pods === undefined || pods.some((pod) => pod.ordinal >= set.firstOrdinal + to)) return true;
  return !isOverdue && hasUnseenPods(set, pods);
}

/** Reports whether there may be pods that were not observed, because the watch of pods can be behind that of StatefulSets. */
function hasUnseenPods({ generation, status }: StatefulSetView, pods: readonly PodView[]): boolean {
  return status.observedGeneration < generation || pods.length < status.replicas;
}

function isPodOpen(claim: Claim, zone: SeenZone, { nowMs, isOverdue }: Elapsed): boolean {
  if (zone.pods === undefined) return true;
  const claimed = zone.pods.find((pod) => pod.uid === claim.uid);
  if (claimed !== undefined) return claimed.isTerminating || !(isOverdue || isVoid(claim, claimed));
  return !hasSuccessor(claim, zone, zone.pods, nowMs);
}

/** Reports whether the successor of the pod is available, or the StatefulSet no longer has the ordinal. */
function hasSuccessor(claim: Claim, { group, set }: SeenZone, pods: readonly PodView[], nowMs: number): boolean {
  const ordinal = claim.ordinal ?? -1;
  if (ordinal < set.firstOrdinal || ordinal >= set.firstOrdinal + set.replicas) return true;
  const successor = pods.find((pod) => pod.ordinal === ordinal);
  return successor !== undefined && isAvailable(successor, group, set.minReadySeconds, nowMs);
}

/** Returns the dated downscale of a claim whose replicas were lowered; [] if the ledger already has the downscale. */
function datedDownscale(ledger: Ledger, claim: Claim, zone: SeenZone | undefined, seenMs: number): Ledger['downscales'] {
  if (claim.verb !== 'scaleDown' || claim.from === undefined || claim.to === undefined) return [];
  if (zone === undefined || zone.set.uid !== claim.uid || zone.set.replicas > claim.to) return [];
  const isDated = ledger.downscales.some((known) => known.zone === claim.zone && known.atMs >= claim.atMs && known.to === claim.to);
  if (isDated) return [];
  // The arrival time of the request is unknown. The latest possible time is now or the end of the request's lifetime, whichever is earlier.
  const atMs = Math.max(claim.atMs, Math.min(seenMs, claim.atMs + unappliedClaimMs));
  return [{ zone: claim.zone, atMs, from: claim.from, to: claim.to }];
}
