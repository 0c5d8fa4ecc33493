// Computes how long the served certificate stays valid, as a metric and a warning.
import { X509Certificate } from 'node:crypto';
import { certificatesIn, validityOf } from './pair.ts';
import type { CertificateSource } from './source.ts';

/** Gives people two weeks to act. */
const warnBeforeMs = 14 * 86_400_000;
/** For shorter-lived certificates: renewal happens with a third of the life left, so a quarter means that renewal failed. */
const warnBeforeShare = 0.25;

export interface Expiry {
  /** End of the server certificate, in milliseconds since 1970. */
  readonly notAfterMs: number;
  /** Negative after expiry. */
  readonly remainingMs: number;
  /** A sentence for people; absent without a problem. */
  readonly degradation?: string;
}

/** Returns the expiry of the current certificate; undefined without one. `nowMs`: wall clock, in milliseconds since 1970. */
export function expiryOf(source: Pick<CertificateSource, 'current'>, nowMs: number): Expiry | undefined {
  const served = source.current();
  const leaf = served === undefined ? undefined : certificatesIn(served.cert)[0];
  if (served === undefined || leaf === undefined) return undefined;
  const { notBeforeMs, notAfterMs } = validityOf(new X509Certificate(leaf));
  const remainingMs = notAfterMs - nowMs;
  const degradation = degradationOf(remainingMs, notAfterMs - notBeforeMs);
  return { notAfterMs, remainingMs, ...(degradation === undefined ? {} : { degradation }) };
}

function degradationOf(remainingMs: number, lifetimeMs: number): string | undefined {
  if (remainingMs <= 0) return 'the certificate of the webhook has expired: API servers refuse to call it';
  if (remainingMs > Math.min(warnBeforeMs, lifetimeMs * warnBeforeShare)) return undefined;
  const left = remainingMs < 172_800_000 ? `${Math.floor(remainingMs / 3_600_000)} hours` : `${Math.floor(remainingMs / 86_400_000)} days`;
  return `the certificate of the webhook expires in ${left} and has not been renewed; afterwards API servers refuse to call it`;
}
