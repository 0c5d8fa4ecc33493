// Issues a certificate authority and the one server certificate that it signs.
import { generateKeyPairSync } from 'node:crypto';
import {
  alternativeNames,
  authorityKeyIdentifier,
  basicConstraints,
  keyUsage,
  serverUsage,
  signedCertificate,
  subjectKeyIdentifier,
} from './der.ts';

/**
 * Clocks of API servers may be behind ours: a certificate is valid from this long before its creation, or a tenth of its life if that is
 * less.
 */
const backdateMs = 5 * 60_000;
/** RFC 5280 allows 20 bytes; browsers' rules ask for 8 random ones. */
const serialBytes = 16;

export interface IssueOptions {
  /** DNS names or IP addresses that the server is reached by; at least one. */
  readonly names: readonly string[];
  /** Organization of both subjects; may be empty. */
  readonly organization: string;
  /** Wall clock, in milliseconds since 1970. */
  readonly nowMs: number;
  readonly lifetimeMs: number;
  /** Returns that many random bytes for the serial numbers. */
  readonly randomBytes: (count: number) => Uint8Array;
}

/** A server certificate with its key and the authority that signed it, each as PEM. */
export interface IssuedPair {
  readonly cert: string;
  /** PKCS#8. */
  readonly key: string;
  readonly ca: string;
}

/**
 * Issues a new authority and a server certificate, both with P-256 keys and valid from five minutes ago to `lifetimeMs` from now. The
 * authority's key is discarded, so it signs nothing else. Throws Error without a name.
 */
export function issuePair({ names, organization, nowMs, lifetimeMs, randomBytes }: IssueOptions): IssuedPair {
  if (names.length === 0) throw new Error('a server certificate needs at least one name');
  const serial = (): Uint8Array => positive(randomBytes(serialBytes));
  const authority = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const server = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const authoritySerial = serial();
  const validity = { notBeforeMs: nowMs - Math.min(backdateMs, lifetimeMs / 10), notAfterMs: nowMs + lifetimeMs };
  // Two authorities in one bundle need different names, because some clients look up an issuer by name alone.
  const issuer = { commonName: `webhook authority ${Buffer.from(authoritySerial).toString('hex').slice(0, 16)}`, organization };
  const ca = signedCertificate(
    {
      ...validity,
      serial: authoritySerial,
      issuer,
      subject: issuer,
      publicKey: authority.publicKey,
      extensions: [
        basicConstraints(true),
        keyUsage('keyCertSign'),
        subjectKeyIdentifier(authority.publicKey),
        authorityKeyIdentifier(authority.publicKey),
      ],
    },
    authority.privateKey,
  );
  const cert = signedCertificate(
    {
      ...validity,
      serial: serial(),
      issuer,
      subject: { commonName: 'rollout-operator', organization },
      publicKey: server.publicKey,
      extensions: [
        basicConstraints(false),
        keyUsage('digitalSignature'),
        serverUsage(),
        alternativeNames(names),
        subjectKeyIdentifier(server.publicKey),
        authorityKeyIdentifier(authority.publicKey),
      ],
    },
    authority.privateKey,
  );
  return { cert, key: server.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(), ca };
}

/** Returns a positive number of as many bytes: the highest bit would be a sign, and DER writes no leading zeros. */
function positive(bytes: Uint8Array): Uint8Array {
  const [first = 0, ...rest] = bytes;
  return Uint8Array.from([(first & 0x7f) | 0x40, ...rest]);
}

interface ServiceNames {
  /** The Service in front of the webhook. */
  readonly service: string;
  readonly namespace: string;
  /** Such as `cluster.local.`, with or without the last dot. */
  readonly clusterDomain: string;
  /** Flag `-server-tls.self-signed-cert.dns-name`; left out, `<service>.<namespace>.svc`. */
  readonly dnsName?: string | undefined;
}

/** Returns every name of the server without duplicates. The name that API servers use comes first. */
export function namesOf({ service, namespace, clusterDomain, dnsName }: ServiceNames): readonly string[] {
  const inside = `${service}.${namespace}`;
  const domain = clusterDomain.replace(/\.$/, '');
  const names = [dnsName ?? '', `${inside}.svc`, inside, service, domain === '' ? '' : `${inside}.svc.${domain}`];
  return [...new Set(names.filter((name) => name !== ''))];
}

/** Returns the required names: the requested names, and the names by which API servers reach a Service. */
export function neededNames({ service, namespace, dnsName }: ServiceNames): readonly string[] {
  return [...new Set([dnsName ?? '', `${service}.${namespace}.svc`].filter((name) => name !== ''))];
}
