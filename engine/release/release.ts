// Releases a group whose definition was deleted: the StatefulSet controller may replace its pods again, zone by zone.
import { counted } from '../../policies/wording.ts';
import { claimsOf, openClaims } from '../ledger/ledger.ts';
import { isAvailable } from '../observe/view.ts';
import { releasedGroup } from '../profiles.ts';
import { isWithinClockSkew, type Ledger, type ReleaseTerms, type Snapshot } from '../snapshot.ts';
import { partitionWrite, type SetPartition } from '../strategies/partition.ts';
import { type Definitions, definitionStateOf, type Member, outdatedOf, viewMember, withTerms } from './terms.ts';

/** The time before a release starts, in milliseconds, because a tool may delete a definition and create it again. */
export const releaseGraceMs = 60_000;

interface ReleaseQuestion {
  readonly snapshot: Pick<Snapshot, 'nowMs' | 'groups' | 'statefulSets' | 'pods' | 'unread'>;
  readonly ledger: Ledger;
  readonly sources: Definitions['sources'];
  /** The time for which the caller has seen no definition, without interruption, in milliseconds of a monotonic clock. */
  readonly goneForMs: number;
  /** The number of the leadership that carries out the release. */
  readonly epoch: number;
}

/** The next step of a release. `over`: no StatefulSet is left to release. The caller stores `ledger` before `action`. */
export type ReleaseDecision = { readonly ledger: Ledger } & (
  | { readonly kind: 'none' | 'over' }
  | { readonly kind: 'wait'; readonly because: string; readonly earliestMs?: number }
  | { readonly kind: 'release'; readonly action: SetPartition }
);

/**
 * Decides the next step of a release: sets the partition of one zone to 0 if all other zones are available and all released zones are
 * updated. A broken zone comes first. Each zone is released once: a partition that a user raises later stays and delays the next zones.
 */
export function decideRelease({ snapshot, ledger, sources, goneForMs, epoch }: ReleaseQuestion): ReleaseDecision {
  const { nowMs, groups } = snapshot;
  const { release } = ledger;
  if (release === undefined) return { kind: 'none', ledger };
  const definition = definitionStateOf(ledger, release, { groups, sources });
  // While the group is defined, its own turn stores in the ledger what a later release needs.
  if (definition.kind === 'defined') return { kind: 'none', ledger };
  // Another group names a member now. That group decides about the members, even if it is deleted later.
  if (definition.kind === 'elsewhere') return { kind: 'none', ledger: withTerms(ledger, undefined) };
  const { goneMs, ...terms } = release;
  if (definition.kind === 'unsure') return { kind: 'wait', because: definition.because, ledger: withTerms(ledger, terms) };
  const sinceMs = goneMs !== undefined && isWithinClockSkew(snapshot, goneMs) ? goneMs : nowMs;
  const gone = { ...terms, goneMs: sinceMs };
  // The shorter time counts: the stored time may come from another clock, and the definition may have existed while no agent was leader.
  const leftMs = releaseGraceMs - Math.min(goneForMs, nowMs - sinceMs);
  if (leftMs <= 0) return releaseZone(ledger, gone, { snapshot, epoch });
  return { kind: 'wait', because: 'the definition may be created again', earliestMs: nowMs + leftMs, ledger: withTerms(ledger, gone) };
}

function releaseZone(
  ledger: Ledger,
  terms: ReleaseTerms,
  { snapshot, epoch }: Pick<ReleaseQuestion, 'snapshot' | 'epoch'>,
): ReleaseDecision {
  const members = terms.zones.map((zone) => viewMember(snapshot, ledger.namespace, zone));
  const unread = members.find(({ unknown }) => unknown !== undefined)?.unknown;
  if (unread !== undefined) return { kind: 'wait', because: unread, ledger: withTerms(ledger, terms) };
  const released = members.filter((member) => terms.released?.includes(member.zone) === true || partitionOf(member) === 0);
  const unreleased = members.filter((member) => !released.includes(member) && (partitionOf(member) ?? 0) > 0);
  if (unreleased.length === 0) return { kind: 'over', ledger: ledgerAfterRelease(ledger) };
  const noted = released.length === 0 ? terms : { ...terms, released: released.map(({ zone }) => zone) };
  const known = withTerms(ledger, noted);
  const shortfalls = new Map(members.map((member) => [member, shortfallOf(member, released.includes(member), snapshot.nowMs)]));
  const lackOfOthers = (member: Member): string | undefined =>
    [...shortfalls].find(([other, lacks]) => other !== member && lacks !== undefined)?.[1];
  const next = unreleased.find((member) => lackOfOthers(member) === undefined);
  const action = next && partitionZero(ledger.namespace, next);
  if (action === undefined) return { kind: 'wait', because: unreleased.map(lackOfOthers)[0] ?? '', ledger: known };
  // If the group is defined again, the claim shows that this request may still arrive.
  const announced = openClaims({ ...ledgerAfterRelease(ledger), release: noted }, claimsOf([action], snapshot.nowMs, epoch));
  return announced === undefined
    ? { kind: 'wait', because: 'the ledger is full', ledger: known }
    : { kind: 'release', action, ledger: announced };
}

/** Returns the parts of the ledger that protect data also without a group: downscales with their claims, and preparations. */
function ledgerAfterRelease({ namespace, group, claims, downscales, preparations, epoch }: Ledger): Ledger {
  const kept = claims.filter(({ verb }) => verb === 'scaleDown');
  return { namespace, group, claims: kept, downscales, preparations, ...(epoch === undefined ? {} : { epoch }) };
}

/** Returns the partition, below which the StatefulSet controller replaces no pod; undefined without a StatefulSet under RollingUpdate. */
function partitionOf({ set }: Member): number | undefined {
  return set?.updateStrategy === 'RollingUpdate' ? set.partition : undefined;
}

/** Returns as a clause what a zone lacks before another zone may be released; undefined if it lacks nothing. */
function shortfallOf({ zone, statefulSet, set, pods }: Member, isReleased: boolean, nowMs: number): string | undefined {
  if (set === undefined) return undefined;
  if (set.status.observedGeneration < set.generation)
    return `the StatefulSet controller has not observed the last change of ${statefulSet}`;
  const up = pods.filter((pod) => isAvailable(pod, releasedGroup, set.minReadySeconds, nowMs));
  if (up.length < set.replicas) return `zone ${zone} has ${up.length} of ${counted(set.replicas, 'pod')} available`;
  const old = isReleased && set.updateStrategy === 'RollingUpdate' ? outdatedOf({ set, pods }) : [];
  return old.length === 0 ? undefined : `zone ${zone} still has ${counted(old.length, 'pod')} to replace`;
}

function partitionZero(namespace: string, { zone, statefulSet, set, pods }: Member): SetPartition | undefined {
  if (set === undefined) return undefined;
  const replaced = outdatedOf({ set, pods }).toSorted((a, b) => b.ordinal - a.ordinal);
  return partitionWrite({ namespace, zone, statefulSet, set }, { to: 0, because: 'released', replaced });
}
