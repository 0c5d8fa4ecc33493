import { connect as connectTcp } from 'node:net';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import type { Answer } from '../../../webhook/review/review.ts';
import { reviewText } from '../review/reviews.ts';
import { ask, authority, closeAll, endpoint, gate, keepAliveAgent, rawConnection, responseOf, serve, until } from './served.ts';

afterEach(closeAll);

const mebibyte = 1024 * 1024;
const headOf = (more: string): string => `POST /admission/test HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${more}\r\n`;

describe('a body over the limit', () => {
  it('is rejected by its length header, and the sender can read the reason', async () => {
    const { port } = await serve();
    const { status, headers, body } = await ask(port, { body: Buffer.alloc(8 * mebibyte, 'x') });
    expect({ status, body }).toEqual({ status: 413, body: `the body is longer than ${7 * mebibyte} bytes\n` });
    expect(headers['connection']).toBe('close');
  });

  it('is rejected when its chunks exceed the limit', async () => {
    const { port } = await serve();
    const parts = Array.from({ length: 32 }, () => Buffer.alloc(256 * 1024, 'x'));
    expect((await ask(port, { body: parts })).status).toBe(413);
  });

  it('is cut if it does not end', async () => {
    const { port } = await serve({ limits: { maxBodyBytes: 100_000 } });
    const { socket, text, closed } = await rawConnection(port);
    socket.write(headOf('Transfer-Encoding: chunked\r\n'));
    const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`;
    const send = (): void => {
      while (!socket.destroyed && socket.write(chunk));
      socket.once('drain', send);
    };
    send();
    await closed;
    expect(text()).toMatch(/^HTTP\/1\.1 413 /);
  });

  it('cannot be hidden in a compressed one', async () => {
    const { port } = await serve();
    const bomb = gzipSync(Buffer.alloc(64 * mebibyte, ' '));
    expect((await ask(port, { body: bomb, headers: { 'Content-Encoding': 'gzip' } })).status).toBe(415);
    // Without saying so it is no JSON.
    expect((await ask(port, { body: bomb })).status).toBe(400);
    const { socket, text, closed } = await rawConnection(port);
    socket.write(headOf('Transfer-Encoding: gzip, chunked\r\n'));
    socket.end(`${bomb.length.toString(16)}\r\n`);
    await closed;
    expect(text()).toMatch(/^HTTP\/1\.1 4\d\d /);
  });
});

describe('large bodies', () => {
  const big = reviewText({ object: { text: 'x'.repeat(100_000) } });
  const limits = { bigBodyBytes: 50_000, maxBigBodies: 2 };

  it('wait for one another, and small ones do not wait for them', async () => {
    const { passed, open } = gate();
    let inHand = 0;
    let most = 0;
    const holding = endpoint(async ({ object }) => {
      if (object?.['text'] === undefined) return { allowed: true };
      most = Math.max(most, ++inHand);
      await passed;
      inHand--;
      return { allowed: true };
    });
    const { port } = await serve({ endpoints: [holding], limits: { ...limits, bigBodyWaitMs: 60_000 } });
    const asked = Array.from({ length: 6 }, () => ask(port, { body: big }));
    await until(() => inHand === 2);
    expect(responseOf(await ask(port))).toMatchObject({ allowed: true });
    open();
    for (const reply of await Promise.all(asked)) expect(responseOf(reply)).toMatchObject({ allowed: true });
    expect(most).toBe(2);
  });

  it('are rejected if no other one ends', async () => {
    const { passed, open } = gate();
    const holding = endpoint(async () => {
      await passed;
      return { allowed: true };
    });
    const { port, inflight } = await serve({ endpoints: [holding], limits: { ...limits, maxBigBodies: 1, bigBodyWaitMs: 50 } });
    const first = ask(port, { body: big });
    await until(() => inflight.length === 1);
    const second = await ask(port, { body: big });
    open();
    const statuses = [(await first).status, second.status].sort();
    expect(statuses).toEqual([200, 429]);
  });

  it('release their slot if their sender disconnects', async () => {
    const { port, answered } = await serve({ limits: { ...limits, maxBigBodies: 1, bigBodyWaitMs: 60_000 } });
    const { socket, closed } = await rawConnection(port);
    socket.write(headOf(`Content-Length: ${big.length}\r\n`) + big.slice(0, 80_000));
    const waiting = ask(port, { body: big });
    await until(() => socket.bytesWritten > 80_000);
    socket.destroy();
    await closed;
    expect(responseOf(await waiting)).toMatchObject({ allowed: true });
    await until(() => answered.length === 2);
    expect(answered.map(({ status }) => status).sort()).toEqual([0, 200]);
  });
});

describe('a slow client', () => {
  const hurried = { headersTimeoutMs: 100, receiveTimeoutMs: 200, checkEveryMs: 20 };

  it('is disconnected if its headers do not end, and if it sends nothing', async () => {
    const { port } = await serve({ limits: hurried });
    for (const sent of ['', 'POST /admission/test HTTP/1.1\r\nHost: x\r\n']) {
      const { socket, text, closed } = await rawConnection(port);
      if (sent !== '') socket.write(sent);
      await closed;
      expect(text()).toMatch(/^HTTP\/1\.1 408 /);
    }
  });

  it('is disconnected if its body does not arrive in time', async () => {
    const { port } = await serve({ config: { requestTimeoutMs: 100 } });
    const { socket, text, closed } = await rawConnection(port);
    socket.write(`${headOf('Content-Length: 100000\r\n')}{`);
    await closed;
    expect(text()).toMatch(/^HTTP\/1\.1 408 [\s\S]*the body did not arrive in time/);
  });

  it('is disconnected without a handshake', async () => {
    const { port, refusedConnections } = await serve({ limits: { handshakeTimeoutMs: 100 } });
    const socket = connectTcp(port, '127.0.0.1');
    await new Promise((resolve) => socket.once('close', resolve));
    expect(refusedConnections).toEqual(['handshake']);
  });

  it('is disconnected without progress, in any state', async () => {
    const never = (): Promise<Answer> => new Promise(() => undefined);
    const { port, decided } = await serve({ endpoints: [endpoint(never)], limits: { stalledMs: 300 } });
    await expect(ask(port)).rejects.toThrow('socket hang up');
    await until(() => decided.length === 1);
    expect(decided).toMatchObject([{ failure: 'client-gone' }]);
  });

  it('does not delay the answers to others', async () => {
    const { port } = await serve();
    const slow = await Promise.all(Array.from({ length: 50 }, () => rawConnection(port)));
    for (const { socket } of slow) socket.write(`${headOf('Content-Length: 1000\r\n')}{`);
    for (let count = 0; count < 20; count++) expect(responseOf(await ask(port))).toMatchObject({ allowed: true });
    for (const { socket } of slow) socket.destroy();
  });
});

describe('connections', () => {
  it('are limited for each address, before a handshake', async () => {
    const { port, refusedConnections } = await serve({ limits: { maxConnectionsPerPeer: 2 } });
    const [first] = await Promise.all([rawConnection(port), rawConnection(port)]);
    await expect(rawConnection(port)).rejects.toThrow();
    expect(refusedConnections).toContain('peer-limit');
    first?.socket.destroy();
    await first?.closed;
    let reply: number | undefined;
    while (reply === undefined) {
      reply = await ask(port).then(
        ({ status }) => status,
        () => undefined,
      );
    }
    expect(reply).toBe(200);
  });

  it('are limited in total', async () => {
    const { port, refusedConnections } = await serve({ limits: { maxConnections: 1 } });
    const { socket, closed } = await rawConnection(port);
    await expect(rawConnection(port)).rejects.toThrow();
    await until(() => refusedConnections.includes('limit'));
    socket.destroy();
    await closed;
  });

  it('end with an answer after a number of requests', async () => {
    const { port } = await serve({ limits: { maxRequestsPerConnection: 3 } });
    const agent = keepAliveAgent(1);
    const replies: (string | string[] | undefined)[] = [];
    for (let count = 0; count < 6; count++) replies.push((await ask(port, { agent })).headers['connection']);
    agent.destroy();
    expect(replies).toEqual(['keep-alive', 'keep-alive', 'close', 'keep-alive', 'keep-alive', 'close']);
  });

  it('only speak HTTP/1.1 over TLS 1.2 or later', async () => {
    const { port } = await serve();
    const attempt = (options: ConnectionOptions): Promise<string> =>
      new Promise((resolve) => {
        const socket = connectTls({ host: '127.0.0.1', port, ca: authority.certificate, ...options }, () => {
          resolve(`${socket.getProtocol()} ${socket.alpnProtocol}`);
          socket.destroy();
        });
        socket.once('error', () => resolve('refused'));
      });
    // Clients that still speak 1.1 must lower their own security level to do so.
    const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const;
    expect(await attempt(old)).toBe('refused');
    expect(await attempt({ maxVersion: 'TLSv1.2' })).toBe('TLSv1.2 false');
    expect(await attempt({ ALPNProtocols: ['h2', 'http/1.1'] })).toBe('TLSv1.3 http/1.1');
    expect(await attempt({ ALPNProtocols: ['h2'] })).toBe('refused');
  });
});

describe('invalid HTTP', () => {
  it('is rejected without an address', async () => {
    const { port } = await serve({ limits: { maxHeaderBytes: 4096 } });
    const attempts = [
      'nonsense\r\n\r\n',
      'POST /admission/test HTTP/1.1\r\n\r\n',
      headOf('Content-Length: 5\r\nContent-Length: 6\r\n'),
      headOf('Content-Length: 5\r\nTransfer-Encoding: chunked\r\n'),
      headOf('Content-Length: -1\r\n'),
      `${headOf('Transfer-Encoding: chunked\r\n')}zz\r\n`,
      headOf(`X-Long: ${'x'.repeat(10_000)}\r\n`),
      'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    ];
    for (const sent of attempts) {
      const { socket, text, closed } = await rawConnection(port);
      socket.end(sent);
      await closed;
      expect(text()).toMatch(/^(?:HTTP\/1\.1 (?:4\d\d|505) [\s\S]*)?$/);
      expect(text()).not.toMatch(/node:|\.ts|\bat /);
    }
    expect((await ask(port)).status).toBe(200);
  });
});
