// What becomes of the certificates in a Secret: made, repaired, renewed, or left alone. No clock and no I/O of its own.
import type { IssuedPair } from './authority.ts';
import {
  alternativeNamesOf,
  authorityOf,
  certificatesIn,
  isSameBundle,
  isWithin,
  missingNames,
  type Pair,
  readAuthorities,
  readPair,
} from './pair.ts';
import type { SecretState, UsableCertificates } from './secret-state.ts';

/** More names are not taken over from a certificate that lacks one. */
const mostNames = 100;
/** What was served before is kept at least this long after the new certificate was made, and at most for this share of its life. */
const overlapMs = 86_400_000;
const overlapShare = 0.1;

/** What this process serves, and the authorities by which it is trusted. */
export interface ServedPair {
  readonly pair: Pair;
  readonly ca: string;
}

/** What the plan rests on. */
export interface Moment {
  /** Wall clock, in milliseconds since 1970. */
  readonly nowMs: number;
  /** Names without which a certificate is of no use, and all that a new one gets. */
  readonly needed: readonly string[];
  readonly names: readonly string[];
  /** At which part of its life a certificate is renewed, between 0 and 1. */
  readonly renewShare: number;
  readonly served?: ServedPair | undefined;
  /** Whether clients may not trust the current certificate yet, so that another one is still served. */
  readonly keepsServed: boolean;
  /** Whether clients have trusted the current certificate for a while. */
  readonly isSettled: boolean;
  readonly issue: (names: readonly string[]) => IssuedPair;
}

interface SecretPlan {
  /** The same value as before when nothing is to be written. */
  readonly state: UsableCertificates;
  /** Why it is written; absent when it is not. */
  readonly reason?: string;
}

/** Something else is kept in the Secret. Nothing was written. */
export class ForeignSecret extends Error {
  override readonly name = 'ForeignSecret';
}

/** Throws ForeignSecret for a Secret of somebody else. */
export function planSecret(state: SecretState, moment: Moment): SecretPlan {
  switch (state.kind) {
    case 'foreign':
      throw new ForeignSecret(state.reason);
    case 'absent':
      return { state: renewed(moment, moment.names), reason: 'there is no Secret' };
    case 'empty':
      return { state: renewed(moment, moment.names), reason: 'the Secret has no data' };
    case 'broken':
      return { state: renewed(moment, moment.names), reason: state.reason };
    case 'usable':
      return planUsable(state, moment);
    default:
      return state satisfies never;
  }
}

function planUsable(state: UsableCertificates, moment: Moment): SecretPlan {
  const { nowMs, needed, names, served } = moment;
  const { current, previous } = state;
  const missing = missingNames(current, needed);
  if (missing.length > 0) {
    // With the names that it has: replicas with other settings, as during an update, would otherwise replace it by turns.
    const all = [...new Set([...names, ...alternativeNamesOf(current)])].slice(0, mostNames);
    return { state: renewed(moment, all, state), reason: `the certificate is not valid for ${missing.join(', ')}` };
  }
  if (nowMs >= renewalMs(state, moment.renewShare)) {
    return { state: renewed(moment, names, state), reason: `the certificate ends at ${new Date(current.notAfterMs).toISOString()}` };
  }
  if (
    previous === undefined &&
    served !== undefined &&
    moment.keepsServed &&
    isLeft(served.pair, nowMs) &&
    !isSamePair(served.pair, current)
  ) {
    return { state: withPrevious(state, served), reason: 'another certificate has taken the place of the one that is served' };
  }
  if (state.hasRemains) {
    const { hasRemains: _, ...rest } = state;
    return { state: { ...rest, ca: state.authority }, reason: 'the certificate before is of no use any more' };
  }
  if (previous !== undefined && moment.isSettled && nowMs >= settledMs(current)) {
    return { state: withoutPrevious(state, previous), reason: 'the certificate before is served no more' };
  }
  return { state };
}

/** When the certificate is due, on the wall clock; the end of its authority counts too. */
export function renewalMs({ current, authority }: UsableCertificates, renewShare: number): number {
  const ends = readAuthorities(authority).map((one) => Date.parse(one.validTo));
  const endMs = Math.min(current.notAfterMs, ...ends);
  return current.notBeforeMs + (endMs - current.notBeforeMs) * renewShare;
}

/** From when on the certificate before it may be dropped. */
function settledMs({ notBeforeMs, notAfterMs }: Pair): number {
  return notBeforeMs + Math.min(overlapMs, (notAfterMs - notBeforeMs) * overlapShare);
}

export function isSamePair(one: Pair, other: Pair): boolean {
  return isSameBundle(one.cert, other.cert) && one.leaf.fingerprint256 === other.leaf.fingerprint256;
}

/** A new pair under a new authority; what is served now stays beside it until clients trust that. */
function renewed({ issue, nowMs, served }: Moment, names: readonly string[], before?: UsableCertificates): UsableCertificates {
  const issued = issue(names);
  const state: UsableCertificates = { kind: 'usable', ca: issued.ca, current: readPair(issued), authority: issued.ca };
  const last = served ?? (before === undefined ? undefined : { pair: before.current, ca: before.ca });
  return last !== undefined && isLeft(last.pair, nowMs) ? withPrevious(state, last) : state;
}

function withPrevious(state: UsableCertificates, { pair, ca }: ServedPair): UsableCertificates {
  const authority = authorityOf(pair, readAuthorities(ca))?.toString();
  if (authority === undefined) return state;
  return { ...state, ca: isWithin(authority, state.ca) ? state.ca : `${state.ca.trimEnd()}\n${authority}`, previous: pair };
}

function withoutPrevious({ previous: _, ...state }: UsableCertificates, previous: Pair): UsableCertificates {
  const authority = authorityOf(previous, readAuthorities(state.ca))?.toString();
  if (authority === undefined || isWithin(authority, state.authority)) return state;
  return {
    ...state,
    ca: certificatesIn(state.ca)
      .filter((one) => !isWithin(one, authority))
      .join(''),
  };
}

function isLeft({ notAfterMs }: Pair, nowMs: number): boolean {
  return notAfterMs > nowMs;
}
