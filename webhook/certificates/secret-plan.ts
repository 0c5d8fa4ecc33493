// Reads the certificates in a Secret and decides for the keeper: create, repair, renew or keep them. Has no clock and no I/O.
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

/** The maximum number of names in a certificate that keeps the names of its predecessor. */
const maxNames = 100;
/** The age of a certificate at which its predecessor may be removed: `overlapMs`, or `overlapShare` of the lifetime if that is shorter. */
const overlapMs = 86_400_000;
const overlapShare = 0.1;

/** The certificate that this process serves, and the CA certificates that clients must trust. */
export interface ServedPair {
  readonly pair: Pair;
  readonly ca: string;
}

export interface PlanInput {
  /** Wall clock, in milliseconds since 1970. */
  readonly nowMs: number;
  /** The names of a new certificate. A valid certificate without the first name is replaced; other names are added at the renewal. */
  readonly names: readonly string[];
  /** The share of its lifetime after which a certificate is renewed, from 0 to 1. */
  readonly renewShare: number;
  readonly served?: ServedPair | undefined;
  /** True if this process still serves another certificate, because clients may not trust the current one yet. */
  readonly keepsServed: boolean;
  /** True if this process has served the current certificate for 10 minutes. */
  readonly isSettled: boolean;
  readonly issue: (names: readonly string[]) => IssuedPair;
}

interface SecretPlan {
  /** The same object as before if nothing is written. */
  readonly state: UsableCertificates;
  /** The reason for a write; absent if nothing is written. */
  readonly reason?: string;
}

/** The error for a Secret that belongs to another tool. Nothing was written. */
export class ForeignSecret extends Error {
  override readonly name = 'ForeignSecret';
}

/** Decides what to write into the Secret. Throws ForeignSecret for the state `foreign`. */
export function planSecret(state: SecretState, moment: PlanInput): SecretPlan {
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

function planUsable(state: UsableCertificates, moment: PlanInput): SecretPlan {
  const { nowMs, names, served } = moment;
  const { current, previous } = state;
  const missing = missingNames(current, names.slice(0, 1));
  if (missing.length > 0) {
    // Keep existing names. Otherwise replicas with different settings, as during an update, would replace each other's certificate.
    const all = [...new Set([...names, ...alternativeNamesOf(current)])].slice(0, maxNames);
    return { state: renewed(moment, all, state), reason: `the certificate is not valid for ${missing.join(', ')}` };
  }
  if (nowMs >= renewalMs(state, moment.renewShare)) {
    return { state: renewed(moment, names, state), reason: `the certificate ends at ${instantOf(current.notAfterMs)}` };
  }
  if (
    previous === undefined &&
    served !== undefined &&
    moment.keepsServed &&
    isUnexpired(served.pair, nowMs) &&
    !isSamePair(served.pair, current)
  ) {
    return { state: withPrevious(state, served), reason: 'another certificate replaced the one in use' };
  }
  if (state.hasUnusablePrevious) {
    const { hasUnusablePrevious: _, ...rest } = state;
    return { state: { ...rest, ca: state.authority }, reason: 'the previous certificate is unusable' };
  }
  if (previous !== undefined && moment.isSettled && nowMs >= settledMs(current)) {
    return { state: withoutPrevious(state, previous), reason: 'the previous certificate is no longer in use' };
  }
  return { state };
}

/** Returns the time of the renewal on the wall clock. The lifetime ends when the certificate or its CA certificate expires. */
export function renewalMs({ current, authority }: UsableCertificates, renewShare: number): number {
  const ends = readAuthorities(authority).map((one) => Date.parse(one.validTo));
  const endMs = Math.min(current.notAfterMs, ...ends);
  return current.notBeforeMs + (endMs - current.notBeforeMs) * renewShare;
}

/** Returns the earliest time at which the previous certificate may be removed. */
function settledMs({ notBeforeMs, notAfterMs }: Pair): number {
  return notBeforeMs + Math.min(overlapMs, (notAfterMs - notBeforeMs) * overlapShare);
}

export function isSamePair(one: Pair, other: Pair): boolean {
  return isSameBundle(one.cert, other.cert) && one.leaf.fingerprint256 === other.leaf.fingerprint256;
}

/** Returns a new pair with a new CA. Keeps the served pair as `previous`, because clients do not trust the new CA yet. */
function renewed({ issue, nowMs, served }: PlanInput, names: readonly string[], before?: UsableCertificates): UsableCertificates {
  const issued = issue(names);
  const state: UsableCertificates = { kind: 'usable', ca: issued.ca, current: readPair(issued), authority: issued.ca };
  const last = served ?? (before === undefined ? undefined : { pair: before.current, ca: before.ca });
  return last !== undefined && isUnexpired(last.pair, nowMs) ? withPrevious(state, last) : state;
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

function isUnexpired({ notAfterMs }: Pair, nowMs: number): boolean {
  return notAfterMs > nowMs;
}

/** The content of a Secret whose certificates replicas can serve. */
export interface UsableCertificates {
  readonly kind: 'usable';
  /** The CA certificates of `current` and `previous`, PEM. */
  readonly ca: string;
  readonly current: Pair;
  /** The CA certificate of `current`, PEM. */
  readonly authority: string;
  /** The previous pair. Replicas serve it until clients trust the CA certificate of `current`. */
  readonly previous?: Pair;
  /** True if the Secret contains a previous pair that cannot be used. */
  readonly hasUnusablePrevious?: boolean;
}

export type SecretState =
  | { readonly kind: 'absent' }
  /** The Secret has no data. */
  | { readonly kind: 'empty' }
  /** The Secret belongs to another tool; `reason` lists the keys that it has. */
  | { readonly kind: 'foreign'; readonly reason: string }
  /** The Secret is ours but unusable; `reason` says why. */
  | { readonly kind: 'broken'; readonly reason: string }
  | UsableCertificates;

const ownKeys = ['ca', 'cert', 'key'] as const;
/** The keys of Secrets of the type kubernetes.io/tls, which other tools write, some of them next to `ca`. */
const tlsKeys = ['tls.crt', 'tls.key'] as const;
/** The keys of the previous pair. grafana/rollout-operator ignores them. */
const previousKeys = { cert: 'previous-cert', key: 'previous-key' } as const;

/** Reads the Secret; `secret` is undefined if it does not exist. `nowMs`: wall clock, in milliseconds since 1970. */
export function secretStateOf(secret: KubernetesObject | undefined, nowMs: number): SecretState {
  if (secret === undefined) return { kind: 'absent' };
  const data = dataOf(secret);
  const keys = [...data.keys()];
  if (keys.length === 0) return { kind: 'empty' };
  const missing = ownKeys.filter((key) => !data.has(key));
  const lack = `no ${missing.join(' and no ')}`;
  if (missing.length === ownKeys.length || (missing.length > 0 && tlsKeys.some((key) => data.has(key)))) {
    const type = typeof secret['type'] === 'string' ? secret['type'] : 'Opaque';
    return { kind: 'foreign', reason: `it is of type ${type} and holds ${keys.sort().slice(0, 10).join(', ')}, but ${lack}` };
  }
  if (missing.length > 0) return { kind: 'broken', reason: `it has ${lack}` };
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
  if (authority === undefined) throw new Error('the certificate was not issued by the CA in ca');
  if (current.notAfterMs <= nowMs) throw new Error(`the certificate expired at ${instantOf(current.notAfterMs)}`);
  const { notAfterMs } = validityOf(authority);
  if (notAfterMs <= nowMs) throw new Error(`the CA certificate expired at ${instantOf(notAfterMs)}`);
  const previous = previousOf(data);
  const isPreviousUsable = previous !== undefined && previous.notAfterMs > nowMs && authorityOf(previous, authorities) !== undefined;
  const hasUnusablePrevious = !isPreviousUsable && (data.has(previousKeys.cert) || data.has(previousKeys.key));
  return {
    kind: 'usable',
    ca,
    current,
    authority: authority.toString(),
    ...(isPreviousUsable ? { previous } : {}),
    ...(hasUnusablePrevious ? { hasUnusablePrevious } : {}),
  };
}

/** Returns the previous pair; undefined if it is missing or cannot be parsed. */
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

/** Returns the time as RFC 3339 in UTC. */
export function instantOf(atMs: number): string {
  return new Date(atMs).toISOString();
}
