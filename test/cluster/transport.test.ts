import { gzipSync } from 'node:zlib';
import { describe, expect, it, vi } from 'vitest';
import type { Authorization } from '../../cluster/connection/connection.ts';
import type { Answered } from '../../cluster/connection/transport.ts';
import { ask, authority, connectionTo, failure, serveHttp, serveHttps, transportTo } from './loopback.ts';

describe('a request', () => {
  it('returns the answer of the server, also errors and redirects', async () => {
    const server = await serveHttps(({ url }, response) => {
      const status = Number(url?.slice(1));
      response.writeHead(status, { Location: '/200', 'X-Twice': ['a', 'b'] }).end(`said ${status}`);
    });
    const http = transportTo(connectionTo(server.url));
    for (const status of [200, 302, 409, 503]) {
      const answer = await http.request(ask(`/${status}`));
      expect([answer.status, answer.body, answer.headers['x-twice']]).toEqual([status, `said ${status}`, 'a, b']);
    }
    expect(server.seen.map(({ path }) => path)).toEqual(['/200', '/302', '/409', '/503']);
  });

  it('has the given parts, below the path of the server', async () => {
    const bodies: string[] = [];
    const server = await serveHttp(async (request, response) => {
      for await (const chunk of request) bodies.push(String(chunk));
      response.end();
    });
    const authorization: Authorization = {
      headers: { Authorization: 'Bearer t', 'Impersonate-Group': ['a', 'b'] },
      tls: { isVerified: true },
    };
    const connection = connectionTo(`${server.url}/k8s/clusters/c-1`, { authorize: async () => authorization });
    const http = transportTo(connection, { extraHeaders: { 'X-Cluster': 'mimir' } });
    await http.request(ask('/api/v1/pods?limit=1'));
    await http.request(ask('/api', { accept: 'application/json;g=x' }));
    await http.request(ask('/api', { method: 'PATCH', body: '{"a":"ü"}', contentType: 'application/merge-patch+json' }));
    expect(server.seen.map(({ method, path }) => [method, path])).toEqual([
      ['GET', '/k8s/clusters/c-1/api/v1/pods?limit=1'],
      ['GET', '/k8s/clusters/c-1/api'],
      ['PATCH', '/k8s/clusters/c-1/api'],
    ]);
    const [get, accepting, patch] = server.seen.map(({ headers }) => headers);
    expect(get).toMatchObject({
      accept: 'application/json',
      'user-agent': 'test/1',
      authorization: 'Bearer t',
      'impersonate-group': 'a, b',
      'x-cluster': 'mimir',
    });
    expect(get).not.toHaveProperty('content-type');
    expect(accepting).toMatchObject({ accept: 'application/json;g=x' });
    expect(patch).toMatchObject({ 'content-type': 'application/merge-patch+json', 'content-length': '10' });
    expect(bodies).toEqual(['{"a":"ü"}']);
  });

  it('cuts the text of an error only', async () => {
    const text = 'x'.repeat(3 * 1024 * 1024);
    const server = await serveHttps(({ url }, response) => response.writeHead(url === '/error' ? 500 : 200).end(text));
    const http = transportTo(connectionTo(server.url));
    expect((await http.request(ask('/error'))).body).toHaveLength(1024 * 1024);
    expect((await http.request(ask('/list'))).body).toHaveLength(text.length);
  });

  it('accepts compressed answers if configured', async () => {
    const server = await serveHttps(({ headers }, response) => {
      const isAsked = headers['accept-encoding'] === 'gzip';
      response.writeHead(200, isAsked ? { 'Content-Encoding': 'gzip' } : {}).end(isAsked ? gzipSync('small, ü') : 'plain');
    });
    expect((await transportTo(connectionTo(server.url), { isCompressed: true }).request(ask('/'))).body).toBe('small, ü');
    expect((await transportTo(connectionTo(server.url)).request(ask('/'))).body).toBe('plain');
  });

  it('is not sent if its turn at the rate limiter comes after its deadline', async () => {
    const server = await serveHttps((_, response) => response.end());
    const http = transportTo(connectionTo(server.url), { rateLimit: { qps: 0.001, burst: 1 } });
    await http.request(ask('/api/1'));
    await expect(http.request(ask('/api/2'))).rejects.toThrow('it was not sent');
    expect(server.seen.map(({ path }) => path)).toEqual(['/api/1']);
  });

  it('reports each exchange, and each wait for the rate limiter', async () => {
    const server = await serveHttps(({ url, socket }, response) => (url === '/broken' ? socket.destroy() : response.end()));
    const answered: Answered[] = [];
    const throttled: string[] = [];
    const http = transportTo(connectionTo(server.url), {
      rateLimit: { qps: 0.001, burst: 1 },
      onAnswer: (each) => answered.push(each),
      onThrottled: (group) => throttled.push(group),
    });
    await http.request(ask('/api/v1/pods?limit=1'));
    await failure(http.request(ask('/broken', { method: 'POST' })));
    const refused = await failure(http.request(ask('/api/v1/nodes')));
    expect(answered.map(({ method, path, status }) => [method, path, status])).toEqual([
      ['GET', '/api/v1/pods?limit=1', 200],
      ['POST', '/broken', 'error'],
    ]);
    expect(throttled).toEqual(['core']);
    expect([refused.mayBeApplied, refused.message]).toEqual([
      false,
      'the client-side rate limiter of API group "core" has no capacity for the request within 30000 ms; it was not sent',
    ]);
    expect(server.seen).toHaveLength(2);
  });
});

describe('connections', () => {
  it('are kept: one for a hundred sequential requests, a few for parallel ones', async () => {
    const server = await serveHttps((_, response) => response.end('ok'));
    const http = transportTo(connectionTo(server.url));
    for (let index = 0; index < 100; index += 1) await http.request(ask('/'));
    expect(server.connectionCount()).toBe(1);
    await Promise.all([1, 2, 3].map(() => http.request(ask('/'))));
    expect(server.connectionCount()).toBe(3);
  });

  it('are opened again with a new client certificate, and only then', async () => {
    const server = await serveHttps((_, response) => response.end('ok'));
    const issued = ['first', 'second'].map((user) => authority().issueForClient({ user, groups: [] }));
    const material = (index: number) => ({
      ca: Buffer.from(authority().certificate),
      cert: Buffer.from(issued[index]?.certificate ?? ''),
      key: Buffer.from(issued[index]?.privateKey ?? ''),
      isVerified: true,
    });
    let authorization: Authorization = { headers: {}, tls: material(0) };
    const http = transportTo(connectionTo(server.url, { authorize: async () => authorization }));
    await http.request(ask('/'));
    authorization = { ...authorization, headers: { Authorization: 'Bearer new' } };
    await http.request(ask('/'));
    authorization = { headers: {}, tls: material(1) };
    await http.request(ask('/'));
    await http.request(ask('/'));
    expect(server.seen.map(({ user, connection }) => [user, connection])).toEqual([
      ['first', 1],
      ['first', 1],
      ['second', 2],
      ['second', 2],
    ]);
  });

  it('are shared by parallel requests from the start', async () => {
    const server = await serveHttps((_, response) => response.end('ok'));
    const http = transportTo(connectionTo(server.url));
    await Promise.all([1, 2, 3].map(() => http.request(ask('/'))));
    await Promise.all([1, 2, 3].map(() => http.request(ask('/'))));
    expect(server.connectionCount()).toBe(3);
  });

  it('are made with the key of a certificate as soon as both exist', async () => {
    const server = await serveHttps((_, response) => response.end('ok'));
    const [old, young] = ['old', 'young'].map((user) => authority().issueForClient({ user, groups: [] }));
    const material = (key: string | undefined) => ({
      headers: {},
      tls: {
        ca: Buffer.from(authority().certificate),
        cert: Buffer.from(young?.certificate ?? ''),
        key: Buffer.from(key ?? ''),
        isVerified: true,
      },
    });
    let authorization: Authorization = material(old?.privateKey);
    const forget = () => {
      authorization = material(young?.privateKey);
      return true;
    };
    const http = transportTo(connectionTo(server.url, { authorize: async () => authorization, forget }));
    expect((await failure(http.request(ask('/')))).message).toMatch(
      /^a certificate or key of a test cannot be used: .*key values mismatch/,
    );
    await http.request(ask('/'));
    expect(server.seen.map(({ user }) => user)).toEqual(['young']);
  });

  it('that were closed meanwhile fail a write, and give a GET another connection, once', async () => {
    // As a server that closes an idle connection in the moment in which it is used again.
    let isClosing = true;
    const server = await serveHttps(({ socket, url }, response) => {
      const isFirst = !knownSockets.has(socket);
      knownSockets.add(socket);
      if ((isFirst && url !== '/never') || !isClosing) response.end('ok');
      else socket.destroy();
    });
    const knownSockets = new Set<unknown>();
    const http = transportTo(connectionTo(server.url));
    await http.request(ask('/'));
    expect((await http.request(ask('/'))).body).toBe('ok');
    expect(server.seen.map(({ connection }) => connection)).toEqual([1, 1, 2]);

    const write = await failure(http.request(ask('/', { method: 'POST', body: '{}' })));
    expect(write.mayBeApplied).toBe(true);
    expect(server.seen.slice(3).map(({ method, connection }) => [method, connection])).toEqual([['POST', 2]]);

    isClosing = false;
    await http.request(ask('/'));
    isClosing = true;
    const never = await failure(http.request(ask('/never')));
    expect(never.mayBeApplied).toBe(true);
    expect(server.seen.slice(5).map(({ connection }) => connection)).toEqual([3, 4]);
  });

  it('are all closed if one of them was found closed', async () => {
    const known = new Set<unknown>();
    const server = await serveHttps(({ socket }, response) => {
      if (known.has(socket)) socket.destroy();
      else response.end('ok');
      known.add(socket);
    });
    const http = transportTo(connectionTo(server.url));
    await Promise.all([1, 2, 3].map(() => http.request(ask('/'))));
    expect((await http.request(ask('/'))).body).toBe('ok');
    expect(server.connectionCount()).toBe(4);
  });

  it('with an old certificate finish their requests, and are closed then', async () => {
    const closed: number[] = [];
    let finish: () => void = () => undefined;
    const slow = new Promise<void>((arrived) => {
      finish = arrived;
    });
    let end: () => void = () => undefined;
    const server = await serveHttps(({ url, socket }, response) => {
      const { connection } = server.seen.at(-1) ?? { connection: 0 };
      if (url === '/slow') {
        socket.on('close', () => closed.push(connection));
        end = () => response.end('ok');
        finish();
      } else response.end('ok');
    });
    const tls = (user: string) => {
      const { certificate, privateKey } = authority().issueForClient({ user, groups: [] });
      return { ca: Buffer.from(authority().certificate), cert: Buffer.from(certificate), key: Buffer.from(privateKey), isVerified: true };
    };
    let authorization: Authorization = { headers: {}, tls: tls('old') };
    const http = transportTo(connectionTo(server.url, { authorize: async () => authorization }));
    const underWay = http.request(ask('/slow'));
    await slow;
    authorization = { headers: {}, tls: tls('new') };
    await http.request(ask('/'));
    expect(closed).toEqual([]);
    end();
    expect((await underWay).body).toBe('ok');
    await vi.waitFor(() => expect(closed).toEqual([1]));
  });

  it('of a closed client end, with their requests', async () => {
    const server = await serveHttps(({ url }, response) => {
      if (url !== '/') response.writeHead(200).write('{"type":"ADDED"}\n');
      if (url === '/slow') arrived();
    });
    let arrived: () => void = () => undefined;
    const http = transportTo(connectionTo(server.url));
    const watch = await http.stream(ask('/watch'), () => undefined);
    const slow = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    const request = failure(http.request(ask('/slow')));
    await slow;
    http.close();
    expect((await request).mayBeApplied).toBe(true);
    expect(await watch.ended).toBe('closed');
    const later = await failure(http.request(ask('/')));
    expect([later.message, later.mayBeApplied]).toEqual(['the client was closed', false]);
  });
});

describe('credentials that the server rejects', () => {
  it('are renewed for a GET, once, and for requests after a denied write', async () => {
    let token = 1;
    let accepted = 1;
    const tls = { ca: Buffer.from(authority().certificate), isVerified: true };
    const server = await serveHttps(({ headers }, response) => {
      response.writeHead(headers.authorization === `Bearer ${accepted}` ? 200 : 401).end();
    });
    const connection = connectionTo(server.url, {
      authorize: async () => ({ headers: { Authorization: `Bearer ${token}` }, tls }),
      forget: () => {
        token += 1;
        return true;
      },
    });
    const http = transportTo(connection);
    const statuses = async (...methods: readonly ('GET' | 'POST')[]) => {
      const before = server.seen.length;
      const answers: number[] = [];
      for (const method of methods) answers.push((await http.request(ask('/', { method }))).status);
      return [answers, server.seen.slice(before).map(({ headers }) => headers.authorization)];
    };
    accepted = 2;
    expect(await statuses('GET')).toEqual([[200], ['Bearer 1', 'Bearer 2']]);
    accepted = 3;
    expect(await statuses('POST', 'POST')).toEqual([
      [401, 200],
      ['Bearer 2', 'Bearer 3'],
    ]);
    accepted = 99;
    expect(await statuses('GET')).toEqual([[401], ['Bearer 3', 'Bearer 4']]);
    accepted = 4;
    expect((await http.stream(ask('/watch'), () => undefined)).status).toBe(200);
    accepted = 5;
    expect((await http.stream(ask('/watch'), () => undefined)).status).toBe(200);
  });
});
