// What is remembered of a group between turns, as a value: disruptions that were announced, dated downscales, prepared pods.
import type { GroupDefinition } from '../policies/definition.ts';
import type { Action } from './decision.ts';
import { type Claim, isUnknown, type Ledger, type PodView, type Preparation, type Snapshot, type StatefulSetView } from './snapshot.ts';
import { isAvailable } from './view.ts';

/** The most claims that may be open at once; beyond it a group waits. */
export const openClaimLimit = 100;

/** A claim whose object is unchanged is dropped after this long: twice what the API server gives a request. */
const unappliedClaimMs = 120_000;

/** The claims that announce these actions; actions that disturb nothing need none. */
export function claimsOf(actions: readonly Action[], nowMs: number): readonly Claim[] {
  return actions.flatMap((action): readonly Claim[] => {
    switch (action.kind) {
      case 'deletePod':
      case 'evictPod':
        return [{ verb: action.kind, zone: action.zone, uid: action.uid, ordinal: action.ordinal, atMs: nowMs }];
      case 'scaleStatefulSet':
        if (action.to >= action.from) return [];
        return [{ verb: 'scaleDown', zone: action.zone, uid: action.uid, from: action.from, to: action.to, atMs: nowMs }];
      default:
        return [];
    }
  });
}

/**
 * The ledger with these claims open, or undefined when more than `openClaimLimit` would be. A claim of the same verb on the same object is
 * open already and keeps its instant, unless a scale-down asks for another number.
 */
export function openClaims(ledger: Ledger, claims: readonly Claim[]): Ledger | undefined {
  const added = claims.filter((claim, index) => !isKnown(ledger.claims, claim) && !isKnown(claims.slice(0, index), claim));
  if (added.length === 0) return ledger;
  if (ledger.claims.length + added.length > openClaimLimit) return undefined;
  return { ...ledger, claims: [...ledger.claims, ...added] };
}

/** What was seen of the group's objects. */
export type ObservedObjects = Pick<Snapshot, 'nowMs' | 'groups' | 'statefulSets' | 'pods'>;

export interface KeepOptions {
  /** How long dated downscales are kept: the longest delay that could ask for one. */
  readonly keepDownscalesMs: number;
}

/**
 * The ledger after a look at the objects. A claim ends only by what is seen: its pod is gone and the successor is available, or its replicas
 * were lowered, which becomes a dated record, and the surplus pods are gone. A claim on an object that is unchanged ends after 120 s. Time
 * alone never ends one that was carried out, and what could not be read ends nothing. Preparations outlive their pods: databases store them on
 * the volume, so whoever takes the pod's place must be asked again, or told to stay.
 */
export function observeLedger(ledger: Ledger, seen: ObservedObjects, options: KeepOptions): Ledger {
  const zones = zonesOf(ledger, seen);
  const applied = ledger.claims.flatMap((claim) => datedDownscale(ledger, claim, zones.get(claim.zone)));
  const claims = ledger.claims.filter((claim) => isOpen(claim, zones.get(claim.zone), seen.nowMs));
  const downscales = [...ledger.downscales, ...applied].filter((downscale) => seen.nowMs - downscale.atMs <= options.keepDownscalesMs);
  const isSame = claims.length === ledger.claims.length && applied.length === 0 && downscales.length === ledger.downscales.length;
  return isSame ? ledger : { ...ledger, claims, downscales };
}

interface SeenZone {
  readonly group: GroupDefinition;
  readonly set: StatefulSetView;
  /** Absent when they could not be read. */
  readonly pods?: readonly PodView[];
}

function zonesOf(ledger: Ledger, seen: ObservedObjects): ReadonlyMap<string, SeenZone> {
  const group = seen.groups.find((candidate) => candidate.namespace === ledger.namespace && candidate.name === ledger.group);
  const zones = new Map<string, SeenZone>();
  for (const zone of group?.zones ?? []) {
    const set = seen.statefulSets.find((candidate) => candidate.namespace === ledger.namespace && candidate.name === zone.statefulSet);
    const pods = seen.pods.find((view) => view.namespace === ledger.namespace && view.statefulSet === zone.statefulSet)?.pods;
    if (set === undefined || group === undefined) continue;
    zones.set(zone.name, pods === undefined || isUnknown(pods) ? { group, set } : { group, set, pods });
  }
  return zones;
}

function isKnown(claims: readonly Claim[], claim: Claim): boolean {
  return claims.some((known) => known.verb === claim.verb && known.uid === claim.uid && known.to === claim.to);
}

function isOpen(claim: Claim, zone: SeenZone | undefined, nowMs: number): boolean {
  if (zone === undefined) return true;
  const isOverdue = nowMs - claim.atMs > unappliedClaimMs;
  if (claim.verb === 'scaleDown') {
    // Another StatefulSet of the name has none of the pods that this was about.
    if (zone.set.uid !== claim.uid) return false;
    if (zone.set.replicas > (claim.to ?? 0)) return !isOverdue;
    return zone.pods === undefined || zone.pods.some((pod) => pod.ordinal >= zone.set.firstOrdinal + (claim.to ?? 0));
  }
  if (zone.pods === undefined) return true;
  const claimed = zone.pods.find((pod) => pod.uid === claim.uid);
  if (claimed !== undefined) return claimed.isTerminating || !isOverdue;
  return !hasSuccessor(claim, zone, zone.pods, nowMs);
}

/** The pod that takes the place is available; or there is no such place any more. */
function hasSuccessor(claim: Claim, { group, set }: SeenZone, pods: readonly PodView[], nowMs: number): boolean {
  const ordinal = claim.ordinal ?? -1;
  if (ordinal < set.firstOrdinal || ordinal >= set.firstOrdinal + set.replicas) return true;
  const successor = pods.find((pod) => pod.ordinal === ordinal);
  return successor !== undefined && isAvailable(successor, group, set.minReadySeconds, nowMs);
}

/** A decrease that was seen to be carried out counts from the instant at which it was announced, once. */
function datedDownscale(ledger: Ledger, claim: Claim, zone: SeenZone | undefined): Ledger['downscales'] {
  if (claim.verb !== 'scaleDown' || claim.from === undefined || claim.to === undefined) return [];
  if (zone === undefined || zone.set.uid !== claim.uid || zone.set.replicas > claim.to) return [];
  const isDated = ledger.downscales.some((known) => known.zone === claim.zone && known.atMs >= claim.atMs && known.to === claim.to);
  return isDated ? [] : [{ zone: claim.zone, atMs: claim.atMs, from: claim.from, to: claim.to }];
}

/**
 * Since when an answer to `prepare` has been known, when it was known before: the same pod, or its successor reporting the same timestamp,
 * which it can only have kept. So a pod that is rolled while it waits to leave does not begin its delay again. undefined when it is news.
 */
export function preparedSince(before: Preparation | undefined, answer: Omit<Preparation, 'seenMs'>): number | undefined {
  if (before?.state !== 'prepared') return undefined;
  const isSamePod = before.podUid === answer.podUid;
  const isSameReport = answer.reportedMs !== undefined && answer.reportedMs === before.reportedMs;
  return isSamePod || isSameReport ? before.seenMs : undefined;
}
