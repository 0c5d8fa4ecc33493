// What a real API server makes of the webhook's answers.
import { type AddressInfo, connect, createServer } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import type { TlsMaterial } from '../../../webhook/certificates/source.ts';
import type { Answer, Review } from '../../../webhook/review/review.ts';
import type { ServedEndpoint } from '../../../webhook/server/exchange.ts';
import { describeOnControlPlane } from '../../control-plane/suite.ts';
import { changingSource, closeAll, drainUntil, endpoint, gate, type Served, type ServeOptions, serve, until } from './served.ts';

const configMaps = '/api/v1/namespaces/default/configmaps';
const configurations = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';

interface Status {
  readonly code: number;
  readonly reason?: string;
  readonly message?: string;
  readonly details?: { readonly retryAfterSeconds?: number };
}

interface JudgedOptions extends ServeOptions {
  /** `admissionReviewVersions`, the only one. */
  readonly version?: string;
  readonly timeoutSeconds?: number;
  /** The port that the API server is told, when it is not the server's own. */
  readonly throughPort?: (served: Served) => number;
}

describeOnControlPlane('the answers of the webhook', (controlPlane) => {
  let unregister: (() => Promise<unknown>) | undefined;
  afterEach(async () => {
    await unregister?.();
    unregister = undefined;
    await closeAll();
  });

  const material = (): TlsMaterial => {
    const { certificate, privateKey } = controlPlane().authority.issueForServer();
    return { cert: certificate, key: privateKey };
  };

  /** Serves one endpoint, and registers it for ConfigMaps whose name begins with `judged`. */
  async function judgedBy(
    handle: ServedEndpoint['handle'],
    { version = 'v1', timeoutSeconds = 10, throughPort, ...options }: JudgedOptions = {},
  ): Promise<Served> {
    const { client, authority } = controlPlane();
    const served = await serve({ endpoints: [endpoint(handle)], tls: changingSource(material()), ...options });
    const port = throughPort?.(served) ?? served.port;
    await client.create(configurations, {
      metadata: { name: 'judged' },
      webhooks: [
        {
          name: 'judged.test.rollout-group.dev',
          admissionReviewVersions: [version],
          sideEffects: 'None',
          failurePolicy: 'Fail',
          timeoutSeconds,
          matchConditions: [{ name: 'judged', expression: "request.name.startsWith('judged')" }],
          clientConfig: {
            url: `https://127.0.0.1:${port}/admission/test`,
            caBundle: Buffer.from(authority.certificate).toString('base64'),
          },
          rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['configmaps'] }],
        },
      ],
    });
    unregister = () => client.delete(`${configurations}/judged`);
    // The API server hears of its own configurations by a watch.
    for (let count = 0; served.answered.length === 0; count++) await create(`judged-before-${count}`, {}, 'All');
    served.answered.splice(0);
    served.decided.splice(0);
    return served;
  }

  const create = (name: string, data: Readonly<Record<string, string>> = {}, dryRun = '') =>
    controlPlane().client.ask<Status & { readonly data?: Readonly<Record<string, string>> }>(
      'POST',
      `${configMaps}${dryRun === '' ? '' : `?dryRun=${dryRun}`}`,
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data },
    );

  it('a denial reaches its requester, with its code, its reason and the retry time', async () => {
    const answers: Readonly<Record<string, Answer>> = {
      'judged-later': { allowed: false, code: 429, reason: 'TooManyRequests', message: 'zone-b is not ready', retryAfterSeconds: 7 },
      'judged-never': { allowed: false, code: 403, reason: 'Forbidden', message: 'policy refuses' },
      'judged-plain': { allowed: false, message: 'no downscale' },
    };
    await judgedBy(async ({ name }) => answers[name] ?? { allowed: true });
    const denied = 'admission webhook "judged.test.rollout-group.dev" denied the request';
    const later = await create('judged-later');
    expect(later.status).toBe(429);
    expect(later.body).toMatchObject({
      reason: 'TooManyRequests',
      message: `${denied}: zone-b is not ready`,
      details: { retryAfterSeconds: 7 },
    });
    expect(await create('judged-never')).toMatchObject({
      status: 403,
      body: { reason: 'Forbidden', message: `${denied}: policy refuses` },
    });
    // Without a code the API server says that the request was bad.
    expect(await create('judged-plain')).toMatchObject({ status: 400, body: { message: `${denied}: no downscale` } });
    expect((await create('judged-fine')).status).toBe(201);
    expect((await create('else')).status).toBe(201);
  });

  for (const version of ['v1', 'v1beta1']) {
    it(`a patch is applied, and the audit log has an annotation: ${version}`, async () => {
      const seen = new Set<string>();
      const name = `judged-patched-${version}`;
      await judgedBy(
        async (review: Review) => {
          seen.add(review.apiVersion);
          const patch = [{ op: 'add', path: '/data', value: { added: 'by the webhook' } }] as const;
          return { allowed: true, patch, auditAnnotations: { decision: 'd-1' } };
        },
        { version },
      );
      expect(await create(name)).toMatchObject({ status: 201, body: { data: { added: 'by the webhook' } } });
      expect([...seen]).toEqual([`admission.k8s.io/${version}`]);
      const { auditLog } = controlPlane();
      const line = (await auditLog()).find(({ verb, objectRef }) => verb === 'create' && objectRef?.name === name);
      expect(JSON.stringify(line)).toContain('"judged.test.rollout-group.dev/decision":"d-1"');
    });
  }

  it('a large object arrives complete', async () => {
    let length = 0;
    await judgedBy(async ({ object }) => {
      length = (object?.['data'] as { text?: string } | undefined)?.text?.length ?? 0;
      return { allowed: true };
    });
    expect((await create('judged-large', { text: 'x'.repeat(1_000_000) })).status).toBe(201);
    expect(length).toBe(1_000_000);
  });

  it('a deadline ends the request before the timeout of the API server', async () => {
    let isHanging = false;
    await judgedBy(async () => (isHanging ? new Promise<Answer>(() => undefined) : { allowed: true }), { timeoutSeconds: 2 });
    isHanging = true;
    const { status, body } = await create('judged-hanging');
    expect({ status, message: body.message }).toEqual({
      status: 429,
      message: 'admission webhook "judged.test.rollout-group.dev" denied the request: the webhook did not decide in time',
    });
  });

  /** Creates ConfigMaps by four clients at once until `isOver`; the answer is every status there was. */
  async function createAllTheTime(isOver: () => boolean): Promise<readonly number[]> {
    const client = async (_: unknown, index: number): Promise<readonly number[]> => {
      const statuses: number[] = [];
      for (let count = 0; !isOver(); count++) statuses.push((await create(`judged-${index}-${count}`, {}, 'All')).status);
      return statuses;
    };
    return (await Promise.all(Array.from({ length: 4 }, client))).flat();
  }

  it('certificates change under load, and no request fails', async () => {
    const tls = changingSource(material());
    // Each connection serves few requests, so that there are handshakes all the time.
    const { answered } = await judgedBy(async () => ({ allowed: true }), { tls, limits: { maxRequestsPerConnection: 3 } });
    let isOver = false;
    const statuses = createAllTheTime(() => isOver);
    for (let rotation = 0; rotation < 10; rotation++) {
      const before = answered.length;
      tls.change(material());
      await until(() => answered.length >= before + 20);
    }
    isOver = true;
    expect(new Set(await statuses)).toEqual(new Set([201]));
  });

  it('servers are rolled under load, and no request fails', async () => {
    const allow: ServedEndpoint['handle'] = async () => ({ allowed: true });
    let target = 0;
    // Stands in for a Service: a connection stays with the server that it began with.
    const service = createServer((socket) => {
      const onward = connect(target, '127.0.0.1');
      socket.pipe(onward).pipe(socket);
      socket.on('error', () => onward.destroy());
      onward.on('error', () => socket.destroy());
    });
    await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
    const throughPort = ({ port }: Served): number => {
      target = port;
      return (service.address() as AddressInfo).port;
    };
    let drained = gate();
    let current = await judgedBy(allow, { throughPort, ...drainUntil(drained.passed) });
    let isOver = false;
    const statuses = createAllTheTime(() => isOver);
    for (let roll = 0; roll < 4; roll++) {
      await until(() => current.answered.length > 20);
      const nextDrained = gate();
      const next = await serve({ endpoints: [endpoint(allow)], tls: changingSource(material()), ...drainUntil(nextDrained.passed) });
      const closed = current.webhook.close();
      // It takes a while until readiness has reached everybody.
      const before = current.answered.length;
      await until(() => current.answered.length > before + 10);
      target = next.port;
      await until(() => next.answered.length > 20);
      drained.open();
      await closed;
      drained = nextDrained;
      current = next;
    }
    isOver = true;
    expect(new Set(await statuses)).toEqual(new Set([201]));
    drained.open();
    service.close();
  });
});
