import { connect } from 'node:tls';
import { afterEach, describe, expect, it } from 'vitest';
import { createCertificateAuthority } from '../../control-plane/certificates.ts';
import {
  ask,
  authority,
  changingSource,
  closeAll,
  endpoint,
  keepAliveAgent,
  newMaterial,
  rawConnection,
  responseOf,
  serve,
} from './served.ts';

afterEach(closeAll);

/** The serial number of the certificate that a new connection is shown. */
function shown(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, ca: authority.certificate }, () => {
      resolve(socket.getPeerCertificate().serialNumber);
      socket.destroy();
    });
    socket.once('error', reject);
  });
}

describe('the certificate', () => {
  it('may arrive after the server starts: until then it is not ready and accepts no client', async () => {
    const tls = changingSource(undefined);
    const { webhook, port, lines } = await serve({ tls });
    expect(webhook.isReady()).toBe(false);
    await expect(ask(port)).rejects.toThrow();
    tls.change(newMaterial());
    expect(webhook.isReady()).toBe(true);
    expect(responseOf(await ask(port))).toMatchObject({ allowed: true });
    expect(lines.map(({ message }) => message)).toContain('certificate is served');
  });

  it('is replaced for new connections, and open ones continue', async () => {
    const tls = changingSource(newMaterial());
    const { port } = await serve({ tls });
    const before = await shown(port);
    const { socket, text } = await rawConnection(port);
    tls.change(newMaterial());
    expect(await shown(port)).not.toBe(before);
    socket.end('GET /none HTTP/1.1\r\nHost: x\r\n\r\n');
    await new Promise((resolve) => socket.once('close', resolve));
    expect(text()).toMatch(/^HTTP\/1\.1 404 /);
  });

  it('stays if the new one cannot be served, and the log has the reason without the key', async () => {
    const first = newMaterial();
    const tls = changingSource(first);
    const { webhook, port, lines } = await serve({ tls });
    const before = await shown(port);
    const bad = [
      { ...first, key: newMaterial().key },
      { ...first, cert: 'no PEM' },
      { ...first, key: '' },
      { ...first, cert: '' },
    ];
    for (const material of bad) tls.change(material);
    expect(await shown(port)).toBe(before);
    expect(webhook.isReady()).toBe(true);
    const errors = lines.filter(({ level }) => level === 'error');
    expect(errors.map(({ message }) => message)).toEqual(bad.map(() => 'the certificate cannot be served'));
    expect(JSON.stringify(lines)).not.toContain('PRIVATE');
  });

  it('is not updated after the end', async () => {
    const tls = changingSource(newMaterial());
    await serve({ tls });
    expect(tls.listenerCount()).toBe(1);
    await closeAll();
    expect(tls.listenerCount()).toBe(0);
  });

  it('is rotated under load without a failed request', async () => {
    const tls = changingSource(newMaterial());
    const { port } = await serve({ tls, endpoints: [endpoint(async ({ uid }) => ({ allowed: true, warnings: [uid] }))] });
    const serials = new Set<string>();
    let isRotating = true;
    let answered = 0;
    // Half of the clients keep their connections, the others make a handshake for each request.
    const client = async (index: number): Promise<void> => {
      const agent = index % 2 === 0 ? keepAliveAgent(1) : false;
      while (isRotating) {
        expect(responseOf(await ask(port, { agent }))).toMatchObject({ allowed: true });
        answered++;
      }
      if (agent !== false) agent.destroy();
    };
    const clients = Array.from({ length: 6 }, (_, index) => client(index));
    for (let rotation = 0; rotation < 20; rotation++) {
      tls.change(newMaterial());
      serials.add(await shown(port));
    }
    isRotating = false;
    await Promise.all(clients);
    expect(serials.size).toBe(20);
    expect(answered).toBeGreaterThan(20);
  });
});

describe('clients with certificates', () => {
  const clients = createCertificateAuthority('clients');
  const known = clients.issueForClient({ user: 'api-server', groups: [] });
  const unknown = createCertificateAuthority('clients').issueForClient({ user: 'api-server', groups: [] });
  const withKey = ({ certificate, privateKey }: typeof known) => ({ cert: certificate, key: privateKey });

  it('are accepted, and no others', async () => {
    const { port } = await serve({ config: { clientCa: clients.certificate } });
    expect(responseOf(await ask(port, withKey(known)))).toMatchObject({ allowed: true });
    await expect(ask(port, withKey(unknown))).rejects.toThrow();
    await expect(ask(port)).rejects.toThrow();
  });

  it('are not requested by default', async () => {
    const { port } = await serve();
    expect(responseOf(await ask(port))).toMatchObject({ allowed: true });
    expect(responseOf(await ask(port, withKey(unknown)))).toMatchObject({ allowed: true });
  });

  it('are rejected if the file of the authority is empty', async () => {
    const { webhook, port, lines } = await serve({ config: { clientCa: '' } });
    expect(webhook.isReady()).toBe(false);
    await expect(ask(port, withKey(known))).rejects.toThrow();
    expect(lines[0]).toMatchObject({
      level: 'error',
      fields: { error: 'client certificates are required, but their CA certificate is empty' },
    });
  });
});
