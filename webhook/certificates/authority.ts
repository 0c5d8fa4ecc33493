// Issues the server certificate of the webhook and the CA certificate that verifies it.
import { createHash, generateKeyPairSync, type KeyObject, sign, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import type { asn1 as Asn1Types } from 'node-forge';
import asn1 from 'node-forge/lib/asn1.js';
import util from 'node-forge/lib/util.js';

/** The validity starts this long before the creation, at most a tenth of the lifetime, because clocks of API servers may be slow. */
const backdateMs = 5 * 60_000;
/** The length of serial numbers. RFC 5280 allows at most 20 bytes. The CA/Browser Forum requires at least 8 random bytes. */
const serialBytes = 16;

export interface IssueOptions {
  /** DNS names or IP addresses of the server; at least one. */
  readonly names: readonly string[];
  /** The organization in the subjects of both certificates; may be empty. */
  readonly organization: string;
  /** Wall clock, in milliseconds since 1970. */
  readonly nowMs: number;
  readonly lifetimeMs: number;
  /** Returns `count` cryptographically secure random bytes, for a serial number. */
  readonly randomBytes: (count: number) => Uint8Array;
}

/** A server certificate, its key and the CA certificate that verifies it, each as PEM. */
export interface IssuedPair {
  readonly cert: string;
  /** PKCS#8. */
  readonly key: string;
  readonly ca: string;
}

/**
 * Issues a CA certificate and a server certificate with P-256 keys, valid for `lifetimeMs`. Discards the key of the CA, so the CA signs no
 * other certificate. Throws Error if `names` is empty.
 */
export function issuePair({ names, organization, nowMs, lifetimeMs, randomBytes }: IssueOptions): IssuedPair {
  if (names.length === 0) throw new Error('a server certificate needs at least one name');
  const serial = (): Uint8Array => positive(randomBytes(serialBytes));
  const authority = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const server = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const authoritySerial = serial();
  const validity = { notBeforeMs: nowMs - Math.min(backdateMs, lifetimeMs / 10), notAfterMs: nowMs + lifetimeMs };
  // Two CA certificates in one bundle need different names, because some clients look up an issuer by name alone.
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
        extension(oids.extendedKeyUsage, sequence(oid(oids.serverAuth))),
        alternativeNames(names),
        subjectKeyIdentifier(server.publicKey),
        authorityKeyIdentifier(authority.publicKey),
      ],
    },
    authority.privateKey,
  );
  return { cert, key: server.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(), ca };
}

/** Returns a positive integer of the same length. The highest bit is the sign, and DER allows no leading zeros. */
function positive(bytes: Uint8Array): Uint8Array {
  const [first = 0, ...rest] = bytes;
  return Uint8Array.from([(first & 0x7f) | 0x40, ...rest]);
}

export interface ServiceNames {
  readonly service: string;
  readonly namespace: string;
  /** For example `cluster.local.`, with or without the last dot. */
  readonly clusterDomain: string;
  /** Value of `-server-tls.self-signed-cert.dns-name`. Absent: `<service>.<namespace>.svc`. */
  readonly dnsName?: string | undefined;
}

/** Returns every name of the server without duplicates. The first is the required name: the configured `dnsName`, or that of the Service. */
export function namesOf({ service, namespace, clusterDomain, dnsName }: ServiceNames): readonly string[] {
  const inside = `${service}.${namespace}`;
  const domain = clusterDomain.replace(/\.$/, '');
  const names = [dnsName ?? '', `${inside}.svc`, inside, service, domain === '' ? '' : `${inside}.svc.${domain}`];
  return [...new Set(names.filter((name) => name !== ''))];
}

type Der = Asn1Types.Asn1;

const { Class, Type } = asn1;

/** Object identifiers from RFC 5280 and RFC 5758. */
const oids = {
  commonName: '2.5.4.3',
  organization: '2.5.4.10',
  subjectKeyIdentifier: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKeyIdentifier: '2.5.29.35',
  extendedKeyUsage: '2.5.29.37',
  serverAuth: '1.3.6.1.5.5.7.3.1',
  ecdsaWithSha256: '1.2.840.10045.4.3.2',
} as const;

/** X.520 limits a name attribute to 64 characters. */
const longestName = 64;
/** Times from 2050 on need GeneralizedTime, because UTCTime has two-digit years. */
const firstGeneralizedMs = Date.UTC(2050, 0, 1);

interface Subject {
  readonly commonName: string;
  /** Omitted from the name if empty. */
  readonly organization: string;
}

interface CertificateFields {
  /** Positive, of at most 20 bytes. */
  readonly serial: Uint8Array;
  readonly issuer: Subject;
  readonly subject: Subject;
  /** Milliseconds since 1970; certificates store whole seconds. */
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  /** P-256. */
  readonly publicKey: KeyObject;
  readonly extensions: readonly Der[];
}

function signedCertificate(fields: CertificateFields, issuerKey: KeyObject): string {
  const algorithm = (): Der => sequence(oid(oids.ecdsaWithSha256));
  const signed = sequence(
    tagged(0, primitive(Type.INTEGER, '\x02')),
    primitive(Type.INTEGER, Buffer.from(fields.serial).toString('latin1')),
    algorithm(),
    nameOf(fields.issuer),
    sequence(instant(fields.notBeforeMs), instant(fields.notAfterMs)),
    nameOf(fields.subject),
    asn1.fromDer(subjectPublicKey(fields.publicKey)),
    tagged(3, sequence(...fields.extensions)),
  );
  const signature = sign('sha256', bytesOf(signed), { key: issuerKey, dsaEncoding: 'der' });
  const unusedBits = '\0';
  const signatureBits = primitive(Type.BITSTRING, unusedBits + signature.toString('latin1'));
  return new X509Certificate(bytesOf(sequence(signed, algorithm(), signatureBits))).toString();
}

/** Encodes basic constraints. The path length 0 forbids that our CA certificate verifies other CA certificates. */
function basicConstraints(isAuthority: boolean): Der {
  return extension(oids.basicConstraints, isAuthority ? sequence(yes(), primitive(Type.INTEGER, '\0')) : sequence(), true);
}

function keyUsage(usage: 'digitalSignature' | 'keyCertSign'): Der {
  // A bit string starts with the count of unused bits in its last byte.
  return extension(oids.keyUsage, primitive(Type.BITSTRING, usage === 'digitalSignature' ? '\x07\x80' : '\x02\x04'), true);
}

function alternativeNames(names: readonly string[]): Der {
  const entries = names.map((name) => {
    const address = addressBytes(name);
    return address === undefined ? context(2, name) : context(7, address);
  });
  return extension(oids.subjectAltName, sequence(...entries));
}

function subjectKeyIdentifier(key: KeyObject): Der {
  return extension(oids.subjectKeyIdentifier, primitive(Type.OCTETSTRING, keyIdentifier(key)));
}

function authorityKeyIdentifier(key: KeyObject): Der {
  return extension(oids.authorityKeyIdentifier, sequence(context(0, keyIdentifier(key))));
}

/** Returns the leftmost 160 bits of the SHA-256 of the key (RFC 7093, method 1). */
function keyIdentifier(key: KeyObject): string {
  // A P-256 key ends with its uncompressed point: one byte and two coordinates of 32 bytes.
  const point = subjectPublicKey(key).slice(-65);
  return createHash('sha256').update(point, 'latin1').digest().toString('latin1', 0, 20);
}

function subjectPublicKey(key: KeyObject): string {
  return key.export({ type: 'spki', format: 'der' }).toString('latin1');
}

function nameOf({ commonName, organization }: Subject): Der {
  const attributes: readonly (readonly [string, string])[] = [
    [oids.organization, organization],
    [oids.commonName, commonName],
  ];
  const parts = attributes.filter(([, value]) => value !== '');
  return sequence(...parts.map(([key, value]) => set(sequence(oid(key), text(value)))));
}

function instant(atMs: number): Der {
  const at = new Date(Math.floor(atMs / 1000) * 1000);
  return atMs < firstGeneralizedMs
    ? primitive(Type.UTCTIME, asn1.dateToUtcTime(at))
    : primitive(Type.GENERALIZEDTIME, asn1.dateToGeneralizedTime(at));
}

function extension(id: string, value: Der, isCritical = false): Der {
  const critical = isCritical ? [yes()] : [];
  return sequence(oid(id), ...critical, primitive(Type.OCTETSTRING, asn1.toDer(value).getBytes()));
}

/** Returns the bytes of an IP address; undefined for a name. */
function addressBytes(name: string): string | undefined {
  if (isIP(name) === 0) return undefined;
  // The URL parser writes every group in hexadecimal, also the last four bytes of an IPv4-mapped address.
  return util.bytesFromIP(isIP(name) === 6 ? new URL(`http://[${name}]`).hostname.slice(1, -1) : name);
}

function sequence(...parts: readonly Der[]): Der {
  return asn1.create(Class.UNIVERSAL, Type.SEQUENCE, true, [...parts]);
}

function set(part: Der): Der {
  return asn1.create(Class.UNIVERSAL, Type.SET, true, [part]);
}

function tagged(tag: number, value: Der): Der {
  return asn1.create(Class.CONTEXT_SPECIFIC, tag, true, [value]);
}

function context(tag: number, bytes: string): Der {
  return asn1.create(Class.CONTEXT_SPECIFIC, tag, false, bytes);
}

/** Encodes bytes, which node-forge represents as a text with one character per byte. */
function primitive(type: Asn1Types.Type, bytes: string): Der {
  return asn1.create(Class.UNIVERSAL, type, false, bytes);
}

function yes(): Der {
  return primitive(Type.BOOLEAN, '\xff');
}

function text(value: string): Der {
  return primitive(Type.UTF8, Buffer.from(value.slice(0, longestName), 'utf8').toString('latin1'));
}

function oid(id: string): Der {
  return primitive(Type.OID, asn1.oidToDer(id).getBytes());
}

function bytesOf(value: Der): Buffer {
  return Buffer.from(asn1.toDer(value).getBytes(), 'latin1');
}
