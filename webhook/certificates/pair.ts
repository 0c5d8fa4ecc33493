// Reads certificates and keys: parses them, checks that they match, and returns their names, validity and CA certificate.
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';

interface PairText {
  /** The server certificate first, then the intermediate certificates. */
  readonly cert: string;
  readonly key: string;
}

export interface Pair extends PairText {
  readonly leaf: X509Certificate;
  /** Milliseconds since 1970. */
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

const block = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g;
/** The maximum number of certificates that are read from a bundle, because each one costs time at every check. */
const maxCertificates = 100;

/** Returns the certificates of a PEM text, one text each. Empty for a text without a certificate. */
export function certificatesIn(pem: string): readonly string[] {
  return [...pem.matchAll(block)].slice(0, maxCertificates).map(([text]) => `${text}\n`);
}

/** Parses the pair. Throws Error with the problem; the message contains no key material. */
export function readPair({ cert, key }: PairText): Pair {
  const [first] = certificatesIn(cert);
  if (first === undefined) throw new Error('the certificate is not PEM');
  const leaf = parseCertificate(first, 'the certificate');
  let privateKey: KeyObject;
  try {
    privateKey = createPrivateKey(key);
  } catch {
    throw new Error('the key is not PEM, or is encrypted');
  }
  if (!leaf.checkPrivateKey(privateKey)) throw new Error('the key does not match the certificate');
  return { cert, key, leaf, ...validityOf(leaf) };
}

/** Returns the CA certificates of a bundle. Throws Error for an empty or unreadable bundle. */
export function readAuthorities(pem: string): readonly X509Certificate[] {
  const texts = certificatesIn(pem);
  if (texts.length === 0) throw new Error('the CA certificate is not PEM');
  return texts.map((text) => parseCertificate(text, 'the CA certificate'));
}

/** Returns the CA certificate that verifies the pair through the intermediate certificates; undefined without such a CA. Ignores dates. */
export function authorityOf(pair: Pair, authorities: readonly X509Certificate[]): X509Certificate | undefined {
  const between = certificatesIn(pair.cert)
    .slice(1)
    .map((text) => parseCertificate(text, 'a certificate of the chain'));
  let current = pair.leaf;
  for (;;) {
    const found = authorities.find((one) => isIssuer(one, current));
    if (found !== undefined) return found;
    const index = between.findIndex((one) => isIssuer(one, current));
    const next = index === -1 ? undefined : between.splice(index, 1)[0];
    if (next === undefined) return undefined;
    current = next;
  }
}

export function missingNames({ leaf }: Pair, names: readonly string[]): readonly string[] {
  return names.filter((name) => (isIP(name) === 0 ? leaf.checkHost(name, { subject: 'never' }) : leaf.checkIP(name)) === undefined);
}

export function alternativeNamesOf({ leaf }: Pair): readonly string[] {
  const entries = (leaf.subjectAltName ?? '').split(', ').map((entry) => /^(?:DNS|IP Address):([^"]+)$/.exec(entry)?.[1]);
  return entries.filter((name) => name !== undefined);
}

/** Returns start and end of the validity, in milliseconds since 1970. */
export function validityOf(certificate: X509Certificate): { readonly notBeforeMs: number; readonly notAfterMs: number } {
  return { notBeforeMs: Date.parse(certificate.validFrom), notAfterMs: Date.parse(certificate.validTo) };
}

/** Returns whether `other` contains every certificate of `bundle`. Ignores line breaks and text around certificates. */
export function isWithin(bundle: string, other: string): boolean {
  const there = new Set(certificatesIn(other).map(withoutWhitespace));
  return certificatesIn(bundle).every((text) => there.has(withoutWhitespace(text)));
}

export function isSameBundle(bundle: string, other: string): boolean {
  return isWithin(bundle, other) && isWithin(other, bundle);
}

function withoutWhitespace(text: string): string {
  return text.replaceAll(/\s+/g, '');
}

function isIssuer(authority: X509Certificate, certificate: X509Certificate): boolean {
  return certificate.checkIssued(authority) && certificate.verify(authority.publicKey);
}

function parseCertificate(text: string, what: string): X509Certificate {
  try {
    return new X509Certificate(text);
  } catch {
    throw new Error(`${what} is not readable`);
  }
}
