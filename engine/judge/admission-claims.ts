// Makes the claims of admitted requests, and checks whether the agent announced the same disruption.

import type { GroupDefinition } from '../../policies/definition.ts';
import { extended } from '../../policies/values/defined.ts';
import type { AdmissionRequest, RuleResult } from '../decision.ts';
import { withClaims } from '../ledger/ledger.ts';
import { result } from '../rule.ts';
import {
  type Claim,
  isUnknown,
  type Ledger,
  ledgerOf,
  type PodView,
  type Snapshot,
  type StatefulSetView,
  setNamed,
  unappliedClaimMs,
} from '../snapshot.ts';

export type RequestOf<Kind extends AdmissionRequest['kind']> = Extract<AdmissionRequest, { readonly kind: Kind }>;

/** The disruption of a request, without the instant of its claim. */
interface Disruption {
  readonly group: GroupDefinition;
  readonly claim: Omit<Claim, 'atMs'>;
}

/** Returns the group of a StatefulSet; the first by name if several match. */
export function groupOf(snapshot: Pick<Snapshot, 'groups'>, namespace: string, statefulSet: string): GroupDefinition | undefined {
  return snapshot.groups
    .filter((group) => group.namespace === namespace && group.zones.some((zone) => zone.statefulSet === statefulSet))
    .sort((a, b) => (a.name < b.name ? -1 : 1))[0];
}

/** Returns a pod by name with the StatefulSet that owns it. */
export function podNamed(
  snapshot: Pick<Snapshot, 'pods' | 'statefulSets'>,
  namespace: string,
  name: string,
): { readonly set: StatefulSetView; readonly pod: PodView } | undefined {
  for (const view of snapshot.pods) {
    if (view.namespace !== namespace || isUnknown(view.pods)) continue;
    const pod = view.pods.find((candidate) => candidate.name === name);
    const set = pod === undefined ? undefined : setNamed(snapshot, namespace, view.statefulSet);
    if (pod !== undefined && set !== undefined) return { set, pod };
  }
  return undefined;
}

/** Returns the claims that must be open before the request passes. The claims have no resource version, because many requests have none. */
export function claimsFor(snapshot: Snapshot, request: AdmissionRequest): readonly Claim[] {
  const disruption = request.dryRun ? undefined : disruptionOf(snapshot, request);
  if (disruption === undefined) return [];
  return [{ ...disruption.claim, atMs: snapshot.nowMs, ...claimant(request.user) }];
}

/** The longest stored user name in characters; the audit log of the API server has the whole name. */
const longestUser = 128;

/** Returns the requester as a claim stores it. */
export function claimant(user: string | undefined): Pick<Claim, 'user'> {
  const kept = [...(user ?? '')].slice(0, longestUser).join('');
  return kept === '' ? {} : { user: kept };
}

function disruptionOf(snapshot: Snapshot, request: AdmissionRequest): Disruption | undefined {
  if (request.kind === 'restart') return undefined;
  return request.kind === 'deletePod' || request.kind === 'evictPod' ? disruptedPod(snapshot, request) : shrunkSet(snapshot, request);
}

function disruptedPod(snapshot: Snapshot, { kind, namespace, pod: name }: RequestOf<'deletePod' | 'evictPod'>): Disruption | undefined {
  const found = podNamed(snapshot, namespace, name);
  const zone = found === undefined ? undefined : memberIn(snapshot, namespace, found.set.name);
  if (found === undefined || zone === undefined || found.pod.isTerminating) return undefined;
  return { group: zone.group, claim: { verb: kind, zone: zone.name, uid: found.pod.uid, ordinal: found.pod.ordinal } };
}

function shrunkSet(snapshot: Snapshot, request: RequestOf<'scale' | 'update' | 'deleteStatefulSet'>): Disruption | undefined {
  const set = setNamed(snapshot, request.namespace, request.statefulSet);
  const zone = memberIn(snapshot, request.namespace, request.statefulSet);
  if (set === undefined || zone === undefined) return undefined;
  const isDeletion = request.kind === 'deleteStatefulSet';
  const from = isDeletion ? Math.max(set.replicas, request.pods ?? 0) : (request.from ?? 1);
  const to = isDeletion ? 0 : (request.to ?? 1);
  return to >= from ? undefined : { group: zone.group, claim: { verb: 'scaleDown', zone: zone.name, uid: set.uid, from, to } };
}

function memberIn(snapshot: Snapshot, namespace: string, statefulSet: string) {
  const group = groupOf(snapshot, namespace, statefulSet);
  const zone = group?.zones.find((candidate) => candidate.statefulSet === statefulSet);
  return group === undefined || zone === undefined ? undefined : { group, name: zone.name };
}

/** The time in which a user may repeat an allowed request: the two minutes of its claim, less 60 s for the request and 30 s for clock skew. */
export const repeatMs = 30_000;

/**
 * Returns the ledger with the claims of admitted requests open; undefined above `openClaimLimit`. A repeated claim keeps its time, so that
 * retries block other requests for two minutes only. A claim of admission replaces the agent's claim, which may end earlier.
 */
export function reserve(ledger: Ledger, claims: readonly Claim[]): Ledger | undefined {
  const added = claims.filter((claim) => !ledger.claims.some((known) => isSame(known, claim) && isOfAdmission(known)));
  if (added.length === 0) return ledger;
  const open = [...ledger.claims.filter((known) => !added.some((claim) => isSame(known, claim))), ...added];
  return withClaims(ledger, open);
}

function isSame(a: Claim, b: Claim): boolean {
  return a.verb === b.verb && a.uid === b.uid && a.to === b.to;
}

/** Reports whether admission made the claim. A claim of the agent has an epoch, or the resource version of its request. */
function isOfAdmission({ epoch, resourceVersion }: Claim): boolean {
  return epoch === undefined && resourceVersion === undefined;
}

/** Blocks a request that was allowed more than `repeatMs` ago and not carried out, for example because another webhook denied it. */
export function grantedBefore(snapshot: Snapshot, request: AdmissionRequest): readonly RuleResult[] {
  const disruption = disruptionOf(snapshot, request);
  if (disruption === undefined) return [];
  const claim: Claim = extended(disruption.claim, { atMs: snapshot.nowMs });
  const known = ledgerOf(snapshot, disruption.group).claims.find((open) => isSame(open, claim) && isOfAdmission(open));
  if (known === undefined || Math.abs(snapshot.nowMs - known.atMs) <= repeatMs) return [];
  const fact = 'the same request was allowed earlier, and its claim is still open';
  return [result('granted-before', 'wait', fact, { earliestMs: known.atMs + unappliedClaimMs })];
}

/** The time in which an announced request of the agent may arrive, in milliseconds. The agent's own timeouts are shorter. */
const announcedForMs = 60_000;

/** Returns the exemption of a request that the agent announced exactly: the agent has decided by the same rules. */
export function announcedByAgent(snapshot: Snapshot, request: AdmissionRequest): RuleResult | undefined {
  const disruption = loweredPartition(snapshot, request) ?? disruptionOf(snapshot, request);
  if (disruption === undefined || request.kind === 'deleteStatefulSet' || changesMore(snapshot, request, disruption)) return undefined;
  const { group, claim } = disruption;
  const found = ledgerOf(snapshot, group).claims.find(
    ({ epoch, verb, uid, from, to, atMs }) =>
      epoch !== undefined &&
      verb === claim.verb &&
      uid === claim.uid &&
      to === claim.to &&
      // A request that starts from a higher number would remove more pods than the claim announced.
      (claim.from ?? 0) <= (from ?? claim.from ?? 0) &&
      Math.abs(snapshot.nowMs - atMs) <= announcedForMs,
  );
  return found === undefined ? undefined : result('announced', 'ok', 'the agent opened a claim for this request');
}

function loweredPartition(snapshot: Snapshot, request: AdmissionRequest): Disruption | undefined {
  if (request.kind !== 'update' || request.partition === undefined || request.from !== request.to) return undefined;
  const set = setNamed(snapshot, request.namespace, request.statefulSet);
  const zone = memberIn(snapshot, request.namespace, request.statefulSet);
  if (set === undefined || zone === undefined || request.partition >= set.partition) return undefined;
  const { partition: to } = request;
  return { group: zone.group, claim: { verb: 'setPartition', zone: zone.name, uid: set.uid, from: set.partition, to } };
}

/** Reports whether a write changes more than the claim announces: the agent changes only the replicas or only the partition. */
function changesMore(snapshot: Snapshot, request: AdmissionRequest, { claim }: Disruption): boolean {
  if (request.kind !== 'update') return false;
  const { isTemplateChanged, strategy, relabels = [] } = request;
  const set = setNamed(snapshot, request.namespace, request.statefulSet);
  const { partition = set?.partition, firstOrdinal = set?.firstOrdinal } = request;
  const isPartition = claim.verb === 'setPartition' || set?.partition === partition;
  const isSame = set?.updateStrategy === strategy && isPartition && set.firstOrdinal === firstOrdinal;
  return isTemplateChanged || relabels.length > 0 || !isSame;
}
