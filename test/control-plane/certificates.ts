// Writes certificate authorities and certificates in DER, so that tests need neither openssl nor a package.
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';

const oneHourMs = 3_600_000;
const validForMs = 30 * 24 * oneHourMs;

/** The subject of a certificate. Kubernetes reads the common name as the user, and each organisation as a group. */
export interface Subject {
  readonly user: string;
  readonly groups: readonly string[];
}

/** A certificate with its private key, both PEM. */
export interface Certificate {
  readonly certificate: string;
  readonly privateKey: string;
}

export interface CertificateAuthority {
  /** The certificate of the authority, PEM. */
  readonly certificate: string;
  /** Issues a client certificate for the subject. */
  readonly issueForClient: (subject: Subject) => Certificate;
  /** Issues a server certificate for 127.0.0.1 and the given names. The API server and the webhooks of a test need one. */
  readonly issueForServer: (names?: readonly string[]) => Certificate;
}

/** Creates an authority for one test: P-256 keys, valid from an hour ago (clocks may differ) for 30 days. */
export function createCertificateAuthority(name: string): CertificateAuthority {
  const issuer = { subject: { user: name, groups: [] }, keys: newKeys() };
  const issue = (subject: Subject, extensions: readonly Buffer[]): Certificate => {
    const keys = newKeys();
    return { certificate: certify(issuer, { subject, publicKey: keys.publicKey, extensions }), privateKey: pem(keys.privateKey) };
  };
  return {
    certificate: certify(issuer, {
      subject: issuer.subject,
      publicKey: issuer.keys.publicKey,
      extensions: [isAuthority, maySignCertificates],
    }),
    issueForClient: (subject) => issue(subject, [maySign, extendedUsage('1.3.6.1.5.5.7.3.2')]),
    issueForServer: (names = []) =>
      issue({ user: 'server', groups: [] }, [maySign, extendedUsage('1.3.6.1.5.5.7.3.1'), alternativeNames(['localhost', ...names])]),
  };
}

/** Creates a P-256 key pair, for certificates and for the signatures of service account tokens. */
export function newKeys(): { readonly publicKey: KeyObject; readonly privateKey: KeyObject } {
  return generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
}

interface Issuer {
  readonly subject: Subject;
  readonly keys: { readonly privateKey: KeyObject };
}

interface Request {
  readonly subject: Subject;
  readonly publicKey: KeyObject;
  readonly extensions: readonly Buffer[];
}

/** RFC 5280, section 4.1. */
function certify(issuer: Issuer, request: Request): string {
  const now = Date.now();
  const signed = sequence(
    tagged(0xa0, integer(Buffer.from([2]))),
    // The first byte is 0x40: DER would shorten a number that starts with a zero byte.
    integer(Buffer.concat([Buffer.from([0x40]), randomBytes(12)])),
    ecdsaWithSha256,
    distinguishedName(issuer.subject),
    sequence(time(now - oneHourMs), time(now + validForMs)),
    distinguishedName(request.subject),
    request.publicKey.export({ type: 'spki', format: 'der' }),
    tagged(0xa3, sequence(...request.extensions)),
  );
  const certificate = sequence(signed, ecdsaWithSha256, bits(sign('sha256', signed, issuer.keys.privateKey)));
  const lines = certificate.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}

function pem(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString();
}

function distinguishedName({ user, groups }: Subject): Buffer {
  const attribute = (id: string, value: string) => tagged(0x31, sequence(identifier(id), tagged(0x0c, Buffer.from(value))));
  return sequence(...groups.map((group) => attribute('2.5.4.10', group)), attribute('2.5.4.3', user));
}

function extension(id: string, isCritical: boolean, value: Buffer): Buffer {
  return sequence(identifier(id), ...(isCritical ? [tagged(0x01, Buffer.from([0xff]))] : []), tagged(0x04, value));
}

function extendedUsage(purpose: string): Buffer {
  return extension('2.5.29.37', false, sequence(identifier(purpose)));
}

function alternativeNames(names: readonly string[]): Buffer {
  const loopback = tagged(0x87, Buffer.from([127, 0, 0, 1]));
  return extension('2.5.29.17', false, sequence(...names.map((name) => tagged(0x82, Buffer.from(name))), loopback));
}

/** A length below 128 is one byte. A longer one starts with the number of its bytes. */
function tagged(tag: number, content: Buffer): Buffer {
  const { length } = content;
  if (length < 0x80) return Buffer.concat([Buffer.from([tag, length]), content]);
  const size = Buffer.from(length.toString(16).padStart(length > 0xff ? 4 : 2, '0'), 'hex');
  return Buffer.concat([Buffer.from([tag, 0x80 | size.length]), size, content]);
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return tagged(0x30, Buffer.concat(parts));
}

/** The leading zero keeps a number positive. It does not change the value of the small numbers here. */
function integer(bytes: Buffer): Buffer {
  const [first = 0] = bytes;
  return tagged(0x02, first >= 0x80 ? Buffer.concat([Buffer.from([0]), bytes]) : bytes);
}

function bits(content: Buffer): Buffer {
  return tagged(0x03, Buffer.concat([Buffer.from([0]), content]));
}

function time(ms: number): Buffer {
  return tagged(0x17, Buffer.from(new Date(ms).toISOString().replace(/^..|[-:T]|\.\d+/g, '')));
}

/** The first two numbers share a byte. Each further number has groups of seven bits, and all but the last group are marked. */
function identifier(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  const groups = (value: number): readonly number[] =>
    value < 0x80 ? [value] : [...groups(value >> 7).map((part) => part | 0x80), value & 0x7f];
  return tagged(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(groups)]));
}

const ecdsaWithSha256 = sequence(identifier('1.2.840.10045.4.3.2'));
const isAuthority = extension('2.5.29.19', true, sequence(tagged(0x01, Buffer.from([0xff]))));
const maySignCertificates = extension('2.5.29.15', true, tagged(0x03, Buffer.from([0x02, 0x04])));
const maySign = extension('2.5.29.15', true, tagged(0x03, Buffer.from([0x07, 0x80])));
