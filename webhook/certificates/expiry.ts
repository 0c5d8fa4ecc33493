// How long the certificate that is served is still good for, as a metric and as a warning.
import { X509Certificate } from 'node:crypto';
import { certificatesIn, validityOf } from './pair.ts';
import type { CertificateSource } from './source.ts';

/** People need this long to do something about it. */
const warnBeforeMs = 14 * 86_400_000;
/** Of a certificate that lives shorter: it is renewed when a third of its life is left, and a quarter is later than that. */
const warnBeforeShare = 0.25;

export interface Expiry {
  /** The end of the server's certificate, in milliseconds since 1970. */
  readonly notAfterMs: number;
  /** Below zero after the end. */
  readonly remainingMs: number;
  /** For people; absent while all is well. */
  readonly degradation?: string;
}

/** Of what the source gives now; undefined while it gives nothing. `nowMs`: wall clock, in milliseconds since 1970. */
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
