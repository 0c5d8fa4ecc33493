import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { type HttpServer, type HttpServerOptions, startHttpServer } from '../../agent/process/http-server.ts';
import type { AnsweredRequest } from '../../cluster/connection/http-server.ts';

interface Observed {
  readonly answered: AnsweredRequest[];
  readonly inflight: string[];
  readonly wrongCluster: unknown[];
}

let server: HttpServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});

async function started(overrides: Partial<HttpServerOptions> = {}): Promise<Observed & { readonly port: number }> {
  const observed: Observed = { answered: [], inflight: [], wrongCluster: [] };
  server = await startHttpServer({
    port: 0,
    address: '127.0.0.1',
    isReady: () => true,
    metrics: async () => ({ contentType: 'text/plain; version=0.0.4', text: 'up 1\n' }),
    observer: {
      inflight: (method, route, change) => observed.inflight.push(`${method} ${route} ${change}`),
      answered: (one) => observed.answered.push(one),
      wrongCluster: (one) => observed.wrongCluster.push(one),
    },
    clock: { monotonicMs: () => 0 },
    log: { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined },
    ...overrides,
  });
  return { ...observed, port: server.port };
}

interface Reply {
  readonly status: number;
  readonly type: string | undefined;
  readonly body: string;
}

function ask(port: number, path: string, { method = 'GET', headers = {}, body = '' } = {}): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest({ host: '127.0.0.1', port, path, method, headers, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => (text += chunk));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, type: response.headers['content-type'], body: text }));
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

describe('the HTTP server', () => {
  it('answers /ready with 500 until the agent is ready, then with 200, without a body', async () => {
    let isReady = false;
    const { port } = await started({ isReady: () => isReady });
    expect(await ask(port, '/ready')).toEqual({ status: 500, type: undefined, body: '' });
    isReady = true;
    expect(await ask(port, '/ready')).toEqual({ status: 200, type: undefined, body: '' });
  });

  it('answers /healthz', async () => {
    const { port } = await started();
    expect(await ask(port, '/healthz')).toMatchObject({ status: 200, body: 'ok\n' });
  });

  it('accepts any method and a query', async () => {
    const { port } = await started();
    for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'OPTIONS']) {
      expect(await ask(port, '/ready?verbose', { method, body: method === 'POST' ? 'x'.repeat(100_000) : '' })).toMatchObject({
        status: 200,
      });
    }
    expect(await ask(port, '/metrics', { method: 'HEAD' })).toEqual({ status: 200, type: 'text/plain; version=0.0.4', body: '' });
    expect(await ask(port, '/metrics')).toEqual({ status: 200, type: 'text/plain; version=0.0.4', body: 'up 1\n' });
  });

  it.each(['/', '/ready/', '/metrics/x', '/debug/pprof/', '/__proto__', '/READY'])('has no %s', async (path) => {
    const { port } = await started();
    expect(await ask(port, path)).toEqual({ status: 404, type: 'text/plain; charset=utf-8', body: '404 page not found\n' });
  });

  it('answers 500 if the metrics cannot be written, and continues', async () => {
    const { port } = await started({ metrics: () => Promise.reject(new Error('secret detail')) });
    expect(await ask(port, '/metrics')).toEqual({ status: 500, type: 'text/plain; charset=utf-8', body: 'internal error\n' });
    expect(await ask(port, '/ready')).toMatchObject({ status: 200 });
  });

  it('reports each request with its route and sizes', async () => {
    const { port, answered, inflight } = await started();
    await ask(port, '/metrics', { method: 'POST', body: 'four' });
    await ask(port, '/nowhere');
    expect(answered.map(({ method, route, status, responseBytes }) => [method, route, status, responseBytes])).toEqual([
      ['POST', 'metrics', 200, 5],
      ['GET', 'other', 404, 19],
    ]);
    expect(inflight).toEqual(['POST metrics 1', 'POST metrics -1', 'GET other 1', 'GET other -1']);
  });

  it('fails to start on a port in use', async () => {
    const { port } = await started();
    const first = server;
    await expect(started({ port })).rejects.toThrow(/EADDRINUSE/);
    server = first;
  });

  it('rejects a request that is not HTTP', async () => {
    const { port } = await started();
    const said = await new Promise<string>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => socket.write('hello\r\n\r\n'));
      let text = '';
      socket.on('data', (chunk) => (text += chunk.toString()));
      socket.on('close', () => resolve(text));
    });
    expect(said).toMatch(/^HTTP\/1\.1 400/);
  });
});

describe('validation of the cluster', () => {
  const clusterValidation = {
    label: 'mimir',
    isSoft: false,
    excludedPaths: ['admission/no-downscale'],
    excludedUserAgents: [/^kube-probe\//],
  };

  it('answers 511 unless exactly one X-Cluster names the namespace', async () => {
    const { port, wrongCluster } = await started({ clusterValidation });
    const rejected = await ask(port, '/nowhere', { headers: { 'X-Cluster': 'loki' } });
    expect(rejected).toMatchObject({ status: 511, type: 'application/json' });
    expect(JSON.parse(rejected.body)).toEqual({
      cluster_validation_error_message: 'rejected request with wrong cluster validation label "loki": it should be "mimir"',
      route: '<unknown-route>',
    });
    expect(await ask(port, '/nowhere')).toMatchObject({ status: 511 });
    expect(await ask(port, '/nowhere', { headers: { 'X-Cluster': ['mimir', 'mimir'] } as never })).toMatchObject({ status: 511 });
    expect(await ask(port, '/nowhere', { headers: { 'X-Cluster': 'mimir' } })).toMatchObject({ status: 404 });
    expect(wrongCluster).toEqual(['loki', '', ''].map((given) => ({ route: '<unknown-route>', wanted: 'mimir', given })));
  });

  it('exempts requests of the kubelet and Prometheus, the excluded paths and the excluded user agents', async () => {
    const { port, wrongCluster } = await started({ clusterValidation });
    for (const path of ['/ready', '/healthz', '/metrics']) expect(await ask(port, path)).toMatchObject({ status: 200 });
    expect(await ask(port, '/x/admission/no-downscale')).toMatchObject({ status: 404 });
    expect(await ask(port, '/nowhere', { headers: { 'User-Agent': 'kube-probe/1.36' } })).toMatchObject({ status: 404 });
    expect(wrongCluster).toEqual([]);
  });

  it('only counts in soft mode', async () => {
    const { port, wrongCluster } = await started({ clusterValidation: { ...clusterValidation, isSoft: true } });
    expect(await ask(port, '/nowhere')).toMatchObject({ status: 404 });
    expect(wrongCluster).toHaveLength(1);
  });
});
