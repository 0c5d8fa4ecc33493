// Reads the certificates in a Secret and plans them: create, repair, renew or keep. Without clock and I/O.
import { asJsonObject } from '../../cluster/request/json.ts';
import type { KubernetesObject } from '../../cluster/request/resource.ts';
import type { EncodedObject } from '../../cluster/shared/shared-object.ts';
import { messageOf } from '../../policies/error-message.ts';
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
  validityOf,
} from './pair.ts';

/** No more names are copied from a certificate that lacks one. */
const maxNames = 100;
/** The previous certificate is kept at least this long after the new one was created, and at most for this share of its life. */
const overlapMs = 86_400_000;
const overlapShare = 0.1;

/** The certificate that this process serves, and the authorities that it is trusted by. */
export interface ServedPair {
  readonly pair: Pair;
  readonly ca: string;
}

/** Input of the plan. */
export interface Moment {
  /** Wall clock, in milliseconds since 1970. */
  readonly nowMs: number;
  /** The required names, and all names of a new certificate. */
  readonly needed: readonly string[];
  readonly names: readonly string[];
  /** The part of its life after which a certificate is renewed, 0 to 1. */
  readonly renewShare: number;
  readonly served?: ServedPair | undefined;
  /** Clients may not trust the current certificate yet, so another one is still served. */
  readonly keepsServed: boolean;
  /** Clients have trusted the current certificate for a while. */
  readonly isSettled: boolean;
  readonly issue: (names: readonly string[]) => IssuedPair;
}

interface SecretPlan {
  /** Equal to the previous value if nothing is written. */
  readonly state: UsableCertificates;
  /** Why the Secret is written; absent otherwise. */
  readonly reason?: string;
}

/** Thrown if the Secret contains something else. Nothing was written. */
export class ForeignSecret extends Error {
  override readonly name = 'ForeignSecret';
}

/** Returns the plan. Throws ForeignSecret for a Secret with foreign content. */
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
    // Keep existing names: replicas with other settings, as during an update, would otherwise replace the certificate in turns.
    const all = [...new Set([...names, ...alternativeNamesOf(current)])].slice(0, maxNames);
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
    return { state: withPrevious(state, served), reason: 'another certificate replaced the one in use' };
  }
  if (state.hasRemains) {
    const { hasRemains: _, ...rest } = state;
    return { state: { ...rest, ca: state.authority }, reason: 'the previous certificate is unusable' };
  }
  if (previous !== undefined && moment.isSettled && nowMs >= settledMs(current)) {
    return { state: withoutPrevious(state, previous), reason: 'the previous certificate is no longer in use' };
  }
  return { state };
}

/** Returns when the certificate is due, on the wall clock; the end of its authority counts too. */
export function renewalMs({ current, authority }: UsableCertificates, renewShare: number): number {
  const ends = readAuthorities(authority).map((one) => Date.parse(one.validTo));
  const endMs = Math.min(current.notAfterMs, ...ends);
  return current.notBeforeMs + (endMs - current.notBeforeMs) * renewShare;
}

/** Returns when the previous certificate may be removed. */
function settledMs({ notBeforeMs, notAfterMs }: Pair): number {
  return notBeforeMs + Math.min(overlapMs, (notAfterMs - notBeforeMs) * overlapShare);
}

export function isSamePair(one: Pair, other: Pair): boolean {
  return isSameBundle(one.cert, other.cert) && one.leaf.fingerprint256 === other.leaf.fingerprint256;
}

/** Returns a new pair under a new authority. The served pair stays next to it until clients trust the new one. */
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

/** The certificates that all replicas serve and trust. */
export interface UsableCertificates {
  readonly kind: 'usable';
  /** Authorities of both pairs, PEM. */
  readonly ca: string;
  readonly current: Pair;
  /** The authority of `current`, PEM. */
  readonly authority: string;
  /** The previous pair, until clients trust the authority of `current`. */
  readonly previous?: Pair;
  /** An unusable previous pair exists. */
  readonly hasRemains?: boolean;
}

export type SecretState =
  | { readonly kind: 'absent' }
  /** The Secret has no data. */
  | { readonly kind: 'empty' }
  /** The Secret contains something else; `reason` says what. */
  | { readonly kind: 'foreign'; readonly reason: string }
  /** The Secret is ours but unusable; `reason` says why. */
  | { readonly kind: 'broken'; readonly reason: string }
  | UsableCertificates;

const ownKeys = ['ca', 'cert', 'key'] as const;
/** The original ignores these keys. */
const previousKeys = { cert: 'previous-cert', key: 'previous-key' } as const;

/** Reads the Secret; undefined without one. `nowMs`: wall clock, in milliseconds since 1970. */
export function secretStateOf(secret: KubernetesObject | undefined, nowMs: number): SecretState {
  if (secret === undefined) return { kind: 'absent' };
  const data = dataOf(secret);
  const keys = [...data.keys()];
  if (keys.length === 0) return { kind: 'empty' };
  if (!ownKeys.some((key) => data.has(key))) {
    const type = typeof secret['type'] === 'string' ? secret['type'] : 'Opaque';
    return { kind: 'foreign', reason: `it is of type ${type} and holds ${keys.sort().slice(0, 10).join(', ')}, but not ca, cert or key` };
  }
  const missing = ownKeys.filter((key) => !data.has(key));
  if (missing.length > 0) return { kind: 'broken', reason: `it has no ${missing.join(' and no ')}` };
  try {
    return usable(data, nowMs);
  } catch (error) {
    return { kind: 'broken', reason: messageOf(error) };
  }
}

function usable(data: ReadonlyMap<string, string>, nowMs: number): UsableCertificates {
  const ca = data.get('ca') ?? '';
  const current = readPair({ cert: data.get('cert') ?? '', key: data.get('key') ?? '' });
  const authorities = readAuthorities(ca);
  const authority = authorityOf(current, authorities);
  if (authority === undefined) throw new Error('the certificate was not issued by the authority in ca');
  if (current.notAfterMs <= nowMs) throw new Error(`the certificate expired at ${instantOf(current.notAfterMs)}`);
  const { notAfterMs } = validityOf(authority);
  if (notAfterMs <= nowMs) throw new Error(`the authority expired at ${instantOf(notAfterMs)}`);
  const previous = previousOf(data);
  const isOfUse = previous !== undefined && previous.notAfterMs > nowMs && authorityOf(previous, authorities) !== undefined;
  const hasRemains = !isOfUse && (data.has(previousKeys.cert) || data.has(previousKeys.key));
  return {
    kind: 'usable',
    ca,
    current,
    authority: authority.toString(),
    ...(isOfUse ? { previous } : {}),
    ...(hasRemains ? { hasRemains } : {}),
  };
}

/** Returns undefined if the previous pair cannot be read. */
function previousOf(data: ReadonlyMap<string, string>): Pair | undefined {
  const [cert, key] = [data.get(previousKeys.cert), data.get(previousKeys.key)];
  if (cert === undefined || key === undefined) return undefined;
  try {
    return readPair({ cert, key });
  } catch {
    return undefined;
  }
}

/** Returns the Secret with these certificates. Other data stays. */
export function secretOf({ ca, current, previous }: UsableCertificates, existing: KubernetesObject | undefined): EncodedObject {
  const { [previousKeys.cert]: _, [previousKeys.key]: __, ...others } = asJsonObject(existing?.['data']);
  const texts: Record<string, string> = { ca, cert: current.cert, key: current.key };
  if (previous !== undefined) {
    texts[previousKeys.cert] = previous.cert;
    texts[previousKeys.key] = previous.key;
  }
  const data = Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, Buffer.from(text, 'utf8').toString('base64')]));
  return { data: { ...others, ...data } };
}

function dataOf(secret: KubernetesObject): ReadonlyMap<string, string> {
  const data = new Map<string, string>();
  for (const [key, value] of Object.entries(asJsonObject(secret['data']))) {
    if (typeof value === 'string') data.set(key, Buffer.from(value, 'base64').toString('utf8'));
  }
  return data;
}

/** As RFC 3339 in UTC. */
export function instantOf(atMs: number): string {
  return new Date(atMs).toISOString();
}
