import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type { AgentEnv, PodRequest } from '../../agent/env.ts';
import { createPodHttp, type PodHttpClient } from '../../agent/process/http-clients.ts';
import { askToPrepare, cancelPreparation } from '../../agent/turn/pod-calls.ts';
import { virtualEnv } from '../kit/virtual-env.ts';

const servers: Server[] = [];
const clients: PodHttpClient[] = [];
afterEach(async () => {
  for (const client of clients.splice(0)) client.close();
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/** A server on a free port of this machine; the answer is `127.0.0.1:port`. */
async function serve(handler: Handler, prepare: (server: Server) => void = () => undefined): Promise<string> {
  const server = createServer(handler);
  prepare(server);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function setup(env: Readonly<Record<string, string>> = {}) {
  const answered: unknown[] = [];
  const wrongCluster: string[] = [];
  const client = createPodHttp({
    env,
    userAgent: 'rollout-group-agent/1',
    cluster: 'mimir',
    clock: { monotonicMs: () => 0 },
    onAnswer: ({ method, path, status }) => answered.push([method, path, status]),
    onWrongCluster: (route) => wrongCluster.push(route),
  });
  clients.push(client);
  const call = (url: string, overrides: { method?: 'GET' | 'POST' | 'DELETE'; timeoutMs?: number } = {}) =>
    client.call({ method: 'POST', url, timeoutMs: 5000, maxBodyBytes: 100, site: 'pods.call', ...overrides });
  return { call, answered, wrongCluster };
}

describe('calls to pods', () => {
  it('send the method, the path, the query, our headers and the content type of grafana/rollout-operator, without a body', async () => {
    const seen: unknown[] = [];
    const at = await serve((request, response) => {
      const { method, url, headers } = request;
      const names = [headers['x-cluster'], headers['user-agent'], headers['host']];
      seen.push([method, url, headers['content-type'], headers['content-length'], ...names]);
      response.end('{"timestamp":5}');
    });
    const { call, answered } = setup();
    expect(await call(`http://${at}/prepare?x=1`)).toEqual({ status: 200, body: '{"timestamp":5}' });
    expect(await call(`http://${at}/prepare`, { method: 'DELETE' })).toMatchObject({ status: 200 });
    expect(await call(`http://${at}/ready`, { method: 'GET' })).toMatchObject({ status: 200 });
    const names = ['mimir', 'rollout-group-agent/1', at];
    expect(seen).toEqual([
      ['POST', '/prepare?x=1', 'application/json', '0', ...names],
      ['DELETE', '/prepare', 'application/json', '0', ...names],
      ['GET', '/ready', undefined, '0', ...names],
    ]);
    expect(answered).toEqual([
      ['POST', '/prepare', 200],
      ['DELETE', '/prepare', 200],
      ['GET', '/ready', 200],
    ]);
  });

  it('follow no redirect', async () => {
    const paths: (string | undefined)[] = [];
    const at = await serve((request, response) => {
      paths.push(request.url);
      response.writeHead(307, { Location: `http://${request.headers.host}/elsewhere` }).end();
    });
    expect(await setup().call(`http://${at}/prepare`)).toEqual({ status: 307, body: '' });
    expect(paths).toEqual(['/prepare']);
  });

  it('fail on a body over the limit that arrived at once, without an error outside the call', async () => {
    const at = await serve((_, response) => response.end('x'.repeat(3_000)));
    const { call } = setup();
    // Whatever else breaks ends the process, here as in a test.
    for (let time = 0; time < 20; time += 1) await expect(call(`http://${at}/prepare`)).rejects.toThrow('longer than 100 bytes');
    await new Promise((resolve) => setImmediate(resolve));
  });

  it('fail on a body over the limit, without reading it', async () => {
    let isCut = false;
    const at = await serve((_, response) => {
      // Without an end: only the other side can cut it off.
      const flood = setInterval(() => response.write(Buffer.alloc(65_536)), 1);
      response.on('close', () => {
        clearInterval(flood);
        isCut = true;
      });
    });
    const { call, answered } = setup();
    await expect(call(`http://${at}/prepare`)).rejects.toThrow('the answer is longer than 100 bytes');
    await expect.poll(() => isCut).toBe(true);
    expect(answered).toEqual([['POST', '/prepare', 'error']]);
  });

  it('accept a body of exactly the limit', async () => {
    const at = await serve((_, response) => void response.end('x'.repeat(100)));
    expect(await setup().call(`http://${at}/`)).toEqual({ status: 200, body: 'x'.repeat(100) });
  });

  it('end at their timeout, also if the answer arrives slowly', async () => {
    const at = await serve((_, response) => {
      const drip = setInterval(() => response.write('x'), 5);
      response.on('close', () => clearInterval(drip));
    });
    await expect(setup().call(`http://${at}/`, { timeoutMs: 100 })).rejects.toThrow('no complete answer within 100 ms');
  });

  it('end at their timeout if no answer arrives', async () => {
    const at = await serve(() => undefined);
    await expect(setup().call(`http://${at}/`, { timeoutMs: 50 })).rejects.toThrow('no complete answer within 50 ms');
  });

  it('fail if the answer ends early', async () => {
    const at = await serve((_, response) => {
      response.writeHead(200, { 'Content-Length': '50' });
      response.write('half', () => response.destroy());
    });
    await expect(setup().call(`http://${at}/`)).rejects.toThrow(/closed before|aborted/);
  });

  it('fail when no server listens', async () => {
    const at = await serve(() => undefined);
    const [server] = servers.splice(0);
    await new Promise((resolve) => server?.close(resolve));
    await expect(setup().call(`http://${at}/`)).rejects.toThrow(/ECONNREFUSED/);
  });

  it('report an answer from another installation', async () => {
    const at = await serve((_, response) => void response.writeHead(511).end('{"route":"ingester_prepare"}'));
    const { call, wrongCluster } = setup();
    expect(await call(`http://${at}/`)).toMatchObject({ status: 511 });
    expect(wrongCluster).toEqual(['ingester_prepare']);
  });
});

describe('calls to pods through a proxy', () => {
  const pod = 'http://ingester-0.ingester.mimir.svc.cluster.local.:8080/prepare?x=1';

  it('contain the whole address, and send the proxy credentials only to the proxy', async () => {
    const seen: unknown[] = [];
    const at = await serve((request, response) => {
      const { method, url, headers } = request;
      seen.push([method, url, headers['host'], headers['proxy-authorization']]);
      response.end('{}');
    });
    expect(await setup({ HTTP_PROXY: `http://user:p%40ss@${at}` }).call(pod)).toEqual({ status: 200, body: '{}' });
    const basic = `Basic ${Buffer.from('user:p@ss').toString('base64')}`;
    expect(seen).toEqual([['POST', pod, 'ingester-0.ingester.mimir.svc.cluster.local.:8080', basic]]);
  });

  it('bypass it for NO_PROXY, and always for localhost', async () => {
    const proxied: unknown[] = [];
    const proxy = await serve((request, response) => {
      proxied.push(request.url);
      response.end();
    });
    const at = await serve((_, response) => void response.end('direct'));
    expect(await setup({ http_proxy: proxy }).call(`http://${at}/`)).toEqual({ status: 200, body: 'direct' });
    const env = { HTTP_PROXY: proxy, NO_PROXY: '.invalid' };
    await expect(setup(env).call('http://pod.invalid/')).rejects.toThrow(/ENOTFOUND|EAI_AGAIN/);
    expect(proxied).toEqual([]);
  });

  it('request a tunnel to a pod with https, and fail if the proxy opens no tunnel', async () => {
    const tunnels: unknown[] = [];
    const at = await serve(
      () => undefined,
      (server) =>
        server.on('connect', (request, socket) => {
          tunnels.push(request.url);
          socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
        }),
    );
    const { call } = setup({ HTTPS_PROXY: at });
    await expect(call('https://pod.mimir.svc/prepare')).rejects.toThrow('the proxy answered 403 to CONNECT');
    expect(tunnels).toEqual(['pod.mimir.svc:443']);
  });

  it('end at their timeout if the proxy does not answer', async () => {
    const at = await serve(
      () => undefined,
      (server) => server.on('connect', (_, socket) => socket.resume().on('end', () => socket.destroy())),
    );
    await expect(setup({ HTTPS_PROXY: at }).call('https://pod.mimir.svc/', { timeoutMs: 50 })).rejects.toThrow(
      'no complete answer within 50 ms',
    );
  });
});

const silent = () => undefined;
const pod = { ordinal: 0, uid: 'u0', name: 'store-0', url: () => 'http://store-0:80/prepare' };

describe.each([
  ['asked to prepare', askToPrepare],
  ['told to stay', cancelPreparation],
])('a pod that is %s', (_, ask) => {
  it.each([
    ['for its whole time while nobody else can act', 60_000, Number.POSITIVE_INFINITY, [60_000]],
    ['for no longer than the Lease is certain', 60_000, 8000.5, [8000]],
    ['for its own time where that is shorter', 500, 700, [500]],
    ['not at all when too little time is left', 60_000, 900, []],
    ['not at all when another one may act', 60_000, -5, []],
  ])('is called %s', async (_what, timeoutMs, leftMs, expected) => {
    const asked: PodRequest[] = [];
    const env: AgentEnv = {
      ...virtualEnv(),
      pods: {
        call: async (request) => {
          asked.push(request);
          return { status: 200, body: '' };
        },
      },
      log: { debug: silent, info: silent, warn: silent, error: silent },
    };
    await ask(env, [pod], { call: 'prepare', timeoutMs, leftMs: () => leftMs });
    expect(asked.map((request) => request.timeoutMs)).toEqual(expected);
  });
});
