// Reads and writes certificates in a Secret, with the keys `ca`, `cert` and `key` of grafana/rollout-operator.
import { asJsonObject } from '../../cluster/request/json.ts';
import type { KubernetesObject } from '../../cluster/request/resource.ts';
import type { EncodedObject } from '../../cluster/shared/shared-object.ts';
import { messageOf } from '../../policies/error-message.ts';
import { authorityOf, type Pair, readAuthorities, readPair, validityOf } from './pair.ts';

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
