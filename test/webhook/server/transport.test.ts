import { afterEach, describe, expect, it } from 'vitest';
import { reviewText } from '../review/reviews.ts';
import {
  allowing,
  ask,
  changingSource,
  closeAll,
  endpoint,
  keepAliveAgent,
  newMaterial,
  responseOf,
  type Served,
  serve,
} from './served.ts';

afterEach(closeAll);

describe('an admission request', () => {
  it('is answered with a review of the same apiVersion and uid, and status 200', async () => {
    const { port } = await serve();
    for (const apiVersion of ['admission.k8s.io/v1', 'admission.k8s.io/v1beta1']) {
      const { status, headers, body } = await ask(port, { body: reviewText({ uid: apiVersion }, { apiVersion }) });
      expect(status).toBe(200);
      expect(headers).toMatchObject({ 'content-type': 'application/json', 'x-content-type-options': 'nosniff' });
      expect(headers).not.toHaveProperty('x-powered-by');
      expect(headers).not.toHaveProperty('etag');
      expect(JSON.parse(body)).toEqual({
        kind: 'AdmissionReview',
        apiVersion,
        response: { uid: apiVersion, allowed: true, warnings: ['ingester-zone-a'] },
      });
    }
  });

  it('is answered with status 200 if it is denied, too', async () => {
    const { port } = await serve({ endpoints: [endpoint(async () => ({ allowed: false, code: 403, message: 'no' }))] });
    const reply = await ask(port);
    expect(reply.status).toBe(200);
    expect(responseOf(reply)).toMatchObject({ allowed: false, status: { code: 403, message: 'no' } });
  });

  it('may have any method and a query', async () => {
    const { port } = await serve();
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'GET']) {
      expect(responseOf(await ask(port, { method, path: '/admission/test?timeout=10s' }))).toMatchObject({ allowed: true });
    }
  });

  it('goes to the endpoint of its path', async () => {
    const { port } = await serve({
      endpoints: ['/admission/one', '/admission/two'].map((path) => endpoint(async () => ({ allowed: true, warnings: [path] }), { path })),
    });
    expect(responseOf(await ask(port, { path: '/admission/one' }))).toMatchObject({ warnings: ['/admission/one'] });
    expect(responseOf(await ask(port, { path: '/admission/two?timeout=1s' }))).toMatchObject({ warnings: ['/admission/two'] });
  });

  it('may be sent in chunks, and be large', async () => {
    const { port } = await serve();
    const text = reviewText({ object: { spec: { text: 'x'.repeat(3_000_000) } }, oldObject: { spec: { text: 'ü'.repeat(1_500_000) } } });
    expect(responseOf(await ask(port, { body: text }))).toMatchObject({ allowed: true });
    const bytes = Buffer.from(text);
    const parts = Array.from({ length: Math.ceil(bytes.length / 99_999) }, (_, index) =>
      bytes.subarray(index * 99_999, (index + 1) * 99_999),
    );
    expect(responseOf(await ask(port, { body: parts }))).toMatchObject({ allowed: true });
  });
});

describe('requests that are no admission review', () => {
  /** Status and text, with the promise that the text is a single line. */
  async function refused({ port }: Served, asking: Parameters<typeof ask>[1]): Promise<string> {
    const { status, body } = await ask(port, asking);
    expect(body.split('\n')).toHaveLength(2);
    return `${status} ${body.trim()}`;
  }

  it('is rejected with 404 for an unknown path, compared exactly', async () => {
    const served = await serve();
    for (const path of [
      '/',
      '/admission',
      '/admission/test/',
      '/Admission/test',
      '/admission/tes%74',
      '/ready',
      '/metrics',
      '/%',
      '//admission/test',
      '*',
    ]) {
      expect(await refused(served, { path })).toBe('404 404 page not found');
    }
  });

  it('is rejected with 400 unless its type is exactly application/json', async () => {
    const served = await serve();
    const types = [
      'application/json; charset=utf-8',
      'Application/json',
      'text/plain',
      'application/yaml',
      'application/x-www-form-urlencoded',
      '',
    ];
    for (const type of types) {
      expect(await refused(served, { headers: { 'Content-Type': type } })).toBe('400 the Content-Type must be application/json');
    }
  });

  it('is rejected with 415 if it is compressed', async () => {
    const served = await serve();
    for (const encoding of ['gzip', 'deflate', 'br', 'zstd', 'gzip, gzip', 'identity, gzip']) {
      expect(await refused(served, { headers: { 'Content-Encoding': encoding } })).toBe('415 the body must not have a Content-Encoding');
    }
    expect((await ask(served.port, { headers: { 'Content-Encoding': 'identity' } })).status).toBe(200);
  });

  it('is rejected with 400 if it is no review', async () => {
    const served = await serve();
    expect(await refused(served, { body: '' })).toBe('400 the body could not be decoded: it is empty');
    expect(await refused(served, { body: '{' })).toBe('400 the body could not be decoded: it is not JSON in UTF-8');
    expect(await refused(served, { body: reviewText({}, { request: undefined }) })).toBe('400 the AdmissionReview has no request');
    expect(await refused(served, { body: reviewText({}, { kind: 'StatefulSet', apiVersion: 'apps/v1' }) })).toMatch(
      '400 unsupported group',
    );
  });
});

describe('a connection', () => {
  it('is reused after a rejection, unless much data remains', async () => {
    const { port } = await serve();
    const agent = keepAliveAgent(1);
    const small = 'x'.repeat(50_000);
    const connection = async (asking: Parameters<typeof ask>[1]) => (await ask(port, { agent, ...asking })).headers['connection'];
    expect(await connection({ body: small })).toBe('keep-alive');
    expect(await connection({ body: [small] })).toBe('keep-alive');
    expect(await connection({ body: small, path: '/none' })).toBe('keep-alive');
    expect(await connection({ body: [small], path: '/none' })).toBe('close');
    expect(await connection({ body: small.repeat(2), path: '/none' })).toBe('close');
    expect(await connection({})).toBe('keep-alive');
    agent.destroy();
  });
});

describe('a port in use', () => {
  it('prevents the start', async () => {
    const tls = changingSource(newMaterial());
    const { port } = await serve();
    await expect(serve({ tls, config: { port } })).rejects.toThrow('EADDRINUSE');
    expect(tls.listenerCount()).toBe(0);
  });
});

describe('X-Cluster', () => {
  const label = 'mimir';
  const clusterValidation = { label, isSoft: false, excludedPaths: ['admission/free'], excludedUserAgents: [/^kube-probe/] };
  const endpoints = [allowing, { ...allowing, path: '/admission/free' }];

  it('must occur once with the configured value', async () => {
    const { port, wrongCluster } = await serve({ endpoints, config: { clusterValidation } });
    expect((await ask(port, { headers: { 'X-Cluster': label } })).status).toBe(200);
    const wrong: readonly (readonly [Record<string, string | string[]>, string])[] = [
      [{}, ''],
      [{ 'X-Cluster': 'loki' }, 'loki'],
      [{ 'X-Cluster': [label, label] }, ''],
    ];
    for (const [headers, given] of wrong) {
      const { status, headers: answered, body } = await ask(port, { headers });
      expect({ status, type: answered['content-type'] }).toEqual({ status: 511, type: 'application/json' });
      expect(JSON.parse(body)).toEqual({
        cluster_validation_error_message: `rejected request with wrong cluster validation label "${given}": it should be "mimir"`,
        route: 'admission_test',
      });
      expect(wrongCluster.pop()).toEqual({ route: 'admission_test', wanted: label, given });
    }
  });

  it('is checked before the path', async () => {
    const { port, wrongCluster } = await serve({ endpoints, config: { clusterValidation } });
    expect((await ask(port, { path: '/nowhere' })).status).toBe(511);
    expect(wrongCluster).toEqual([{ route: '<unknown-route>', wanted: label, given: '' }]);
    expect((await ask(port, { path: '/nowhere', headers: { 'X-Cluster': label } })).status).toBe(404);
  });

  it('does not apply to exempt clients, and is only counted in soft mode', async () => {
    const strict = await serve({ endpoints, config: { clusterValidation } });
    expect((await ask(strict.port, { path: '/admission/free' })).status).toBe(200);
    expect((await ask(strict.port, { headers: { 'User-Agent': 'kube-probe/1.33' } })).status).toBe(200);
    expect(strict.wrongCluster).toEqual([]);
    const soft = await serve({ endpoints, config: { clusterValidation: { ...clusterValidation, isSoft: true } } });
    expect((await ask(soft.port)).status).toBe(200);
    expect(soft.wrongCluster).toHaveLength(1);
  });
});

describe('the log of requests', () => {
  it('has one line for each, without bodies and with bounded names', async () => {
    const secret = 'hunter2';
    const { port, lines } = await serve({
      endpoints: [endpoint(async () => ({ allowed: false, code: 429, message: 'later' }))],
    });
    const object = { kind: 'Secret', data: { password: secret } };
    const uid = 'u'.repeat(1000);
    await ask(port, { body: reviewText({ uid, subResource: 'scale', object, userInfo: { username: 'ada' }, dryRun: true }) });
    expect(lines.slice(1)).toEqual([
      {
        level: 'info',
        message: 'admission request',
        fields: {
          path: '/admission/test',
          uid: `${'u'.repeat(253)}…`,
          operation: 'UPDATE',
          resource: 'apps/v1/statefulsets/scale',
          object: 'mimir/ingester-zone-a',
          user: 'ada',
          dryRun: true,
          allowed: false,
          code: 429,
          ms: expect.any(Number),
        },
      },
    ]);
    expect(JSON.stringify(lines)).not.toContain(secret);
  });

  it('has a line for a rejected request, too', async () => {
    const { port, lines } = await serve();
    await ask(port, { path: `/${'x'.repeat(1000)}?token=secret` });
    await ask(port, { body: '{"token":"secret"' });
    expect(lines.slice(1)).toEqual([
      { level: 'info', message: 'request refused', fields: { path: `/${'x'.repeat(252)}…`, status: 404, why: '404 page not found' } },
      {
        level: 'info',
        message: 'request refused',
        fields: { path: '/admission/test', status: 400, why: 'the body could not be decoded: it is not JSON in UTF-8' },
      },
    ]);
  });

  it('is counted by method and route', async () => {
    const served = await serve({ endpoints: [endpoint(async () => ({ allowed: false, code: 403 }), { path: '/admission/no-downscale' })] });
    const body = reviewText();
    const { body: answer } = await ask(served.port, { body, path: '/admission/no-downscale?timeout=10s' });
    await ask(served.port, { path: '/x', method: 'PUT' });
    await closeAll();
    expect(served.inflight).toEqual(['POST admission_no_downscale 1', 'POST admission_no_downscale -1', 'PUT other 1', 'PUT other -1']);
    expect(served.answered).toMatchObject([
      { method: 'POST', route: 'admission_no_downscale', status: 200, requestBytes: Buffer.byteLength(body), responseBytes: answer.length },
      { method: 'PUT', route: 'other', status: 404 },
    ]);
    expect(served.decided).toEqual([{ route: 'admission_no_downscale', allowed: false, durationMs: expect.any(Number) }]);
  });
});
