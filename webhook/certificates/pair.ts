// Reads certificates and keys: whether they belong together, whom they serve, and until when.
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';

/** PEM that may be served. */
interface PairText {
  /** The server's certificate first, then those between it and the authority. */
  readonly cert: string;
  readonly key: string;
}

/** A certificate and its key that belong together. */
export interface Pair extends PairText {
  readonly leaf: X509Certificate;
  /** Milliseconds since 1970. */
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

const block = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g;
/** A bundle that is longer was not made for one server, and each certificate costs time at every look. */
const mostCertificates = 100;

/** The certificates of a PEM text, each as a text of its own. Empty for text without one. */
export function certificatesIn(pem: string): readonly string[] {
  return [...pem.matchAll(block)].slice(0, mostCertificates).map(([text]) => `${text}\n`);
}

/** The pair. Throws Error that says what is wrong with it, without a word of what is in it. */
export function readPair({ cert, key }: PairText): Pair {
  const [first] = certificatesIn(cert);
  if (first === undefined) throw new Error('the certificate is not PEM');
  const leaf = parsed(first, 'the certificate');
  let privateKey: KeyObject;
  try {
    privateKey = createPrivateKey(key);
  } catch {
    throw new Error('the key is not PEM, or is encrypted');
  }
  if (!leaf.checkPrivateKey(privateKey)) throw new Error('the key is not that of the certificate');
  return { cert, key, leaf, ...validityOf(leaf) };
}

/** The authorities of a bundle. Throws Error when there is none, or one is not readable. */
export function readAuthorities(pem: string): readonly X509Certificate[] {
  const texts = certificatesIn(pem);
  if (texts.length === 0) throw new Error('the authority is not PEM');
  return texts.map((text) => parsed(text, 'the authority'));
}

/**
 * The authority of the bundle under which the pair verifies, through the certificates that are served with it; undefined when there is none.
 * Looks at names and signatures, not at dates.
 */
export function authorityOf(pair: Pair, authorities: readonly X509Certificate[]): X509Certificate | undefined {
  const between = certificatesIn(pair.cert)
    .slice(1)
    .map((text) => parsed(text, 'a certificate of the chain'));
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

/** Which of the names the certificate is not valid for. */
export function missingNames({ leaf }: Pair, names: readonly string[]): readonly string[] {
  return names.filter((name) => (isIP(name) === 0 ? leaf.checkHost(name, { subject: 'never' }) : leaf.checkIP(name)) === undefined);
}

/** The DNS names and addresses that the certificate is valid for. */
export function alternativeNamesOf({ leaf }: Pair): readonly string[] {
  const entries = (leaf.subjectAltName ?? '').split(', ').map((entry) => /^(?:DNS|IP Address):([^"]+)$/.exec(entry)?.[1]);
  return entries.filter((name) => name !== undefined);
}

/** From when and until when, in milliseconds since 1970. */
export function validityOf(certificate: X509Certificate): { readonly notBeforeMs: number; readonly notAfterMs: number } {
  return { notBeforeMs: Date.parse(certificate.validFrom), notAfterMs: Date.parse(certificate.validTo) };
}

/** Whether every certificate of the one bundle is in the other; line breaks and whatever stands around the certificates do not count. */
export function isWithin(bundle: string, other: string): boolean {
  const there = new Set(certificatesIn(other).map(bare));
  return certificatesIn(bundle).every((text) => there.has(bare(text)));
}

/** Whether two bundles hold the same certificates. */
export function isSameBundle(bundle: string, other: string): boolean {
  return isWithin(bundle, other) && isWithin(other, bundle);
}

function bare(text: string): string {
  return text.replaceAll(/\s+/g, '');
}

function isIssuer(authority: X509Certificate, certificate: X509Certificate): boolean {
  return certificate.checkIssued(authority) && certificate.verify(authority.publicKey);
}

function parsed(text: string, what: string): X509Certificate {
  try {
    return new X509Certificate(text);
  } catch {
    throw new Error(`${what} is not readable`);
  }
}
