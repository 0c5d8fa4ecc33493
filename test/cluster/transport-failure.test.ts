import { describe, expect, it } from 'vitest';
import { connectionProblem } from '../../cluster/connection/connection.ts';
import { createCertificateAuthority } from '../control-plane/certificates.ts';
import { ask, authority, connectionTo, failure, ManualTimers, serveHttps, serveTcp, transportTo } from './loopback.ts';

describe('a failure says whether the request may have been carried out', () => {
  const write = ask('/', { method: 'POST', body: '{}' });

  it('no: no server listens', async () => {
    const server = await serveTcp(() => undefined);
    server.close();
    const error = await failure(transportTo(connectionTo(`https://127.0.0.1:${server.port}`)).request(write));
    expect(error.message).toBe(
      `the API server at https://127.0.0.1:${server.port} (a test) refuses connections. Check that the cluster runs and the address is right`,
    );
    expect([error.mayBeApplied, error.site, connectionProblem(error)]).toEqual([false, 'test.ask', 'unreachable']);
  });

  it('no: the server is not trusted', async () => {
    const server = await serveHttps((_, response) => response.end(), createCertificateAuthority('somebody else'));
    let forgotten = 0;
    const forget = () => {
      forgotten += 1;
      return true;
    };
    const error = await failure(transportTo(connectionTo(server.url, { forget })).request(write));
    expect(error.message).toMatch(
      /^the certificate of the API server at \S+ \(a test\) is not trusted: .*; check the certificate authority/,
    );
    expect([error.mayBeApplied, connectionProblem(error), server.seen, forgotten]).toEqual([false, 'configuration', [], 1]);
  });

  it('no: the certificate is for another name, unless the expected name is the other one', async () => {
    const server = await serveHttps((_, response) => response.end('ok'), authority(), ['api.example']);
    const named = (serverName: string) => transportTo(connectionTo(server.url, { tls: { serverName } })).request(ask('/'));
    expect((await named('api.example')).body).toBe('ok');
    expect((await failure(named('other.example'))).mayBeApplied).toBe(false);
  });

  it('no: the handshake does not end in time', async () => {
    const timers = new ManualTimers();
    const server = await serveTcp(() => setImmediate(() => timers.fire()));
    const error = await failure(transportTo(connectionTo(`https://127.0.0.1:${server.port}`), { timers }).request(write));
    expect(error.message).toMatch(/could not be reached within 30000 ms$/);
    expect(error.mayBeApplied).toBe(false);
  });

  it('no: the credentials did not arrive in time', async () => {
    const timers = new ManualTimers();
    const authorize = () => {
      setImmediate(() => timers.fire());
      return new Promise<never>(() => undefined);
    };
    const error = await failure(transportTo(connectionTo('https://127.0.0.1:1', { authorize }), { timers }).request(write));
    expect([error.mayBeApplied, error.message]).toEqual([
      false,
      'the API server at https://127.0.0.1:1 (a test) could not be reached within 30000 ms',
    ]);
  });

  it('no: an invalid certificate', async () => {
    const error = await failure(
      transportTo(
        connectionTo('https://127.0.0.1:1', { tls: { ca: Buffer.from('no PEM'), cert: Buffer.from('x'), key: Buffer.from('y') } }),
      ).request(write),
    );
    expect(error.message).toMatch(/^a certificate or key of a test cannot be used: /);
    expect([error.mayBeApplied, connectionProblem(error)]).toEqual([false, 'configuration']);
  });

  it('yes: the connection broke before or during the answer, or the answer took too long', async () => {
    const timers = new ManualTimers();
    const server = await serveHttps(({ url, socket }, response) => {
      if (url === '/before') socket.destroy();
      if (url === '/slow') response.writeHead(200, { 'Content-Length': 100 }).write('half', () => setTimeout(() => timers.fire(), 1));
      if (url === '/middle') response.writeHead(200, { 'Content-Length': 100 }).write('half', () => socket.destroy());
      if (url === '/chunked') response.writeHead(200).write('half', () => socket.destroy());
    });
    for (const path of ['/before', '/middle', '/chunked', '/slow']) {
      const error = await failure(transportTo(connectionTo(server.url), { timers }).request(ask(path, { method: 'POST', body: '{}' })));
      expect([path, error.mayBeApplied, connectionProblem(error)]).toEqual([path, true, 'unreachable']);
      expect(error.message).toMatch(path === '/slow' ? /gave no complete answer within 30000 ms$/ : /gave no complete answer: /);
    }
    expect(server.seen).toHaveLength(4);
  });

  it('within the shorter time: of the request or of --request-timeout', async () => {
    const timers = new ManualTimers();
    const server = await serveHttps(() => timers.fire());
    const http = transportTo(connectionTo(server.url, { requestTimeoutMs: 1500 }), { timers });
    expect((await failure(http.request(ask('/')))).message).toMatch(/within 1500 ms$/);
    expect((await failure(http.request(ask('/', { timeoutMs: 700 })))).message).toMatch(/within 700 ms$/);
  });

  it('and leaves no timer behind', async () => {
    const timers = new ManualTimers();
    const server = await serveHttps((_, response) => response.end('ok'));
    const http = transportTo(connectionTo(server.url), { timers });
    await http.request(ask('/'));
    await http.stream(ask('/'), () => undefined);
    expect(timers.delaysMs).toEqual([]);
  });
});
