import { execFileSync, spawnSync } from 'node:child_process';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type DetailedPeerCertificate, type TLSSocket } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { issuePair, namesOf } from '../../../webhook/certificates/authority.ts';
import { countingBytes } from './given.ts';

const names = ['operator.one.svc', 'operator.one', 'operator', 'operator.one.svc.cluster.local'];
const given = () => ({ names, organization: 'Example', nowMs: Date.now(), lifetimeMs: 86_400_000, randomBytes: countingBytes() });
const hasOpenssl = spawnSync('openssl', ['version']).status === 0;

/** What a client sees that asks the server by this name; rejects when it does not trust the server. */
async function handshake(pair: { cert: string; key: string }, ca: string, servername: string): Promise<DetailedPeerCertificate> {
  const server = createServer({ cert: pair.cert, key: pair.key }, (_, response) => response.end());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  try {
    return await new Promise((resolve, reject) => {
      const socket: TLSSocket = connect({ host: '127.0.0.1', port, ca, servername }, () => {
        resolve(socket.getPeerCertificate(true));
        socket.end();
      });
      socket.on('error', reject);
    });
  } finally {
    server.close();
  }
}

describe('an authority and its server', () => {
  it('the certificate has its subject, names, duration and issuer', () => {
    const nowMs = Date.UTC(2026, 0, 15, 12);
    const pair = issuePair({ ...given(), nowMs });
    const [cert, ca] = [new X509Certificate(pair.cert), new X509Certificate(pair.ca)];
    expect({
      subject: cert.subject,
      names: cert.subjectAltName,
      usage: cert.keyUsage,
      isAuthority: [cert.ca, ca.ca],
      from: [cert.validFrom, ca.validFrom],
      to: [cert.validTo, ca.validTo],
      isIssued: cert.checkIssued(ca) && cert.verify(ca.publicKey) && ca.checkIssued(ca) && ca.verify(ca.publicKey),
      isKey: cert.checkPrivateKey(createPrivateKey(pair.key)),
    }).toEqual({
      subject: 'O=Example\nCN=rollout-operator',
      names: names.map((name) => `DNS:${name}`).join(', '),
      usage: ['1.3.6.1.5.5.7.3.1'],
      isAuthority: [false, true],
      from: ['Jan 15 11:55:00 2026 GMT', 'Jan 15 11:55:00 2026 GMT'],
      to: ['Jan 16 12:00:00 2026 GMT', 'Jan 16 12:00:00 2026 GMT'],
      isIssued: true,
      isKey: true,
    });
  });

  it('serial numbers are positive, of 16 bytes, and drawn from the given source', () => {
    const drawn = [Uint8Array.from([0xff, ...Array(15).fill(1)]), new Uint8Array(16)];
    const pair = issuePair({ ...given(), randomBytes: () => drawn.shift() ?? new Uint8Array(16) });
    expect(new X509Certificate(pair.ca).serialNumber).toBe(`7F${'01'.repeat(15)}`);
    expect(new X509Certificate(pair.cert).serialNumber).toBe(`40${'00'.repeat(15)}`);
  });

  it('the key of the authority is in no part of the answer', () => {
    const pair = issuePair(given());
    const keys = [pair.cert, pair.key, pair.ca].join('').match(/BEGIN [A-Z ]*KEY/g);
    expect(keys).toEqual(['BEGIN PRIVATE KEY']);
    expect(new X509Certificate(pair.ca).checkPrivateKey(createPrivateKey(pair.key))).toBe(false);
  });

  it('two authorities have different names, so a bundle may contain both', () => {
    const randomBytes = countingBytes();
    const [one, other] = [issuePair({ ...given(), randomBytes }), issuePair({ ...given(), randomBytes })];
    expect(new X509Certificate(one.ca).subject).not.toBe(new X509Certificate(other.ca).subject);
    expect(new X509Certificate(one.cert).verify(new X509Certificate(other.ca).publicKey)).toBe(false);
  });

  it('may be valid beyond 2050, has no organisation, and contains addresses', () => {
    const far = 40 * 365 * 86_400_000;
    const pair = issuePair({
      ...given(),
      nowMs: Date.UTC(2026, 0, 1),
      lifetimeMs: far,
      organization: '',
      names: ['127.0.0.1', 'fd00::12:1'],
    });
    const cert = new X509Certificate(pair.cert);
    expect([cert.validTo, cert.subject, cert.checkIP('127.0.0.1'), cert.checkIP('fd00::12:1')]).toEqual([
      'Dec 22 00:00:00 2065 GMT',
      'CN=rollout-operator',
      '127.0.0.1',
      'fd00::12:1',
    ]);
  });

  it('is rejected without a name', () => {
    expect(() => issuePair({ ...given(), names: [] })).toThrow('needs at least one name');
  });

  it.each(names)('a TLS client that trusts the authority accepts the server as %s', async (name) => {
    const pair = issuePair(given());
    expect((await handshake(pair, pair.ca, name)).subject.O).toBe('Example');
  });

  it('a TLS client rejects it under another name, with another authority, or after its end', async () => {
    const [pair, other] = [issuePair(given()), issuePair(given())];
    await expect(handshake(pair, pair.ca, 'operator.two.svc')).rejects.toThrow('altnames');
    await expect(handshake(pair, other.ca, 'operator.one.svc')).rejects.toThrow('certificate');
    const old = issuePair({ ...given(), nowMs: Date.now() - 172_800_000 });
    await expect(handshake(old, old.ca, 'operator.one.svc')).rejects.toThrow('expired');
  });

  it('a TLS client that trusts a bundle of old and new authority accepts both', async () => {
    const [one, other] = [issuePair(given()), issuePair({ ...given(), randomBytes: countingBytes(7) })];
    for (const pair of [one, other]) {
      expect((await handshake(pair, one.ca + other.ca, 'operator.one.svc')).subject.O).toBe('Example');
    }
  });

  it.skipIf(!hasOpenssl)(`openssl verifies it strictly${hasOpenssl ? '' : ' (SKIPPED: openssl is not installed)'}`, () => {
    const folder = mkdtempSync(join(tmpdir(), 'certificates-'));
    try {
      const pair = issuePair(given());
      for (const name of ['cert', 'key', 'ca'] as const) writeFileSync(join(folder, name), pair[name]);
      const openssl = (...args: readonly string[]): string => execFileSync('openssl', args, { cwd: folder, encoding: 'utf8' });
      const strict = ['-x509_strict', '-purpose', 'sslserver', '-CAfile', 'ca'];
      expect(openssl('verify', ...strict, '-verify_hostname', 'operator.one.svc', 'cert')).toBe('cert: OK\n');
      expect(openssl('pkey', '-in', 'key', '-noout', '-check')).toContain('valid');
      const extensions = openssl('x509', '-in', 'ca', '-noout', '-ext', 'basicConstraints,keyUsage');
      expect(extensions.replace(/\s+/g, ' ')).toBe(
        'X509v3 Basic Constraints: critical CA:TRUE, pathlen:0 X509v3 Key Usage: critical Certificate Sign ',
      );
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe('the names of a server', () => {
  it('are the names of its Service, and the requested one', () => {
    const service = { service: 'operator', namespace: 'one', clusterDomain: 'cluster.local.' };
    expect(namesOf(service)).toEqual(['operator.one.svc', 'operator.one', 'operator', 'operator.one.svc.cluster.local']);
    expect(namesOf({ ...service, dnsName: 'hook.example.com' })[0]).toBe('hook.example.com');
    expect(namesOf({ ...service, dnsName: 'operator.one.svc' })).toEqual(namesOf(service));
    expect(namesOf({ ...service, clusterDomain: '' })).toEqual(['operator.one.svc', 'operator.one', 'operator']);
  });
});
