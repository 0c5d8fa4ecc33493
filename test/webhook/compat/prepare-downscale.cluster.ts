// What a write inside of an admitted request does on a real API server: to patches, to writes that name a version, and to two zones at once.
import { describe, expect, it, onTestFinished } from 'vitest';
import { connectionProcess, processEnv } from '../../../cluster/connection/process-env.ts';
import { KubernetesTransport } from '../../../cluster/connection/transport.ts';
import { type ClusterEnv, type KubernetesRequest, type PodRequest, sleep } from '../../../cluster/env.ts';
import { loadConnection } from '../../../cluster/kubeconfig/kubeconfig.ts';
import { noDownscale } from '../../../webhook/compat/no-downscale.ts';
import { type PrepareDownscaleConfig, prepareDownscale } from '../../../webhook/compat/prepare/downscale.ts';
import { defaultConfig } from '../../../webhook/config.ts';
import type { WebhookEnv } from '../../../webhook/env.ts';
import type { Endpoint } from '../../../webhook/review/review.ts';
import { startWebhook } from '../../../webhook/webhook.ts';
import type { KubernetesObject } from '../../control-plane/client.ts';
import type { ControlPlane } from '../../control-plane/control-plane.ts';
import { describeOnControlPlane } from '../../control-plane/suite.ts';
import { statefulSet } from '../../control-plane/workloads.ts';

interface Set extends KubernetesObject {
  readonly spec: { readonly replicas: number };
}

const annotation = 'grafana.com/last-downscale';
const setAnnotations = { 'grafana.com/prepare-downscale-http-port': '80', 'grafana.com/prepare-downscale-http-path': 'prepare' };

function zone(name: string, labels: Readonly<Record<string, string>> = {}): object {
  const setLabels = { 'rollout-group': 'ingester', 'grafana.com/prepare-downscale': 'true', ...labels };
  return statefulSet({ name, replicas: 3, setLabels, setAnnotations });
}

interface Given {
  readonly sets: readonly object[];
  /** How long a pod takes to prepare. */
  readonly podMs?: number;
  readonly processes?: number;
  readonly config?: Partial<PrepareDownscaleConfig>;
}

/** A namespace with its sets, and webhooks registered for it: each request goes to the next process, as a Service would send it. */
async function place(
  { client, authority, identities }: ControlPlane,
  namespace: string,
  { sets, podMs = 0, processes = 1, config }: Given,
) {
  const writes: KubernetesRequest[] = [];
  const podCalls: PodRequest[] = [];
  const start = async (): Promise<readonly Endpoint[]> => {
    const connection = await loadConnection(
      { kubeconfig: identities.admin.kubeconfig },
      { ...connectionProcess(), env: {}, homeDir: '/nonexistent' },
    );
    const http = new KubernetesTransport(connection, { userAgent: 'rollout-group-test/1' });
    onTestFinished(() => http.close());
    const cluster: ClusterEnv = processEnv({
      ...http,
      request: (request) => {
        if (request.method !== 'GET') writes.push(request);
        return http.request(request);
      },
    });
    const silent = () => undefined;
    const env: WebhookEnv = {
      ...cluster,
      log: { debug: silent, info: silent, warn: silent, error: silent },
      pods: {
        call: async (request) => {
          podCalls.push(request);
          await sleep(cluster, podMs);
          return { status: 200, body: '' };
        },
      },
    };
    return [noDownscale(env), prepareDownscale(env, { clusterDomain: 'cluster.local.', ...config })];
  };
  const started = await Promise.all(Array.from({ length: processes }, start));
  let turn = 0;
  const shared = ['/admission/no-downscale', '/admission/prepare-downscale'].map((path, index): Endpoint => {
    const next = (): Endpoint => {
      turn += 1;
      const endpoint = started[turn % started.length]?.[index];
      if (endpoint === undefined) throw new Error(`${path} is not there`);
      return endpoint;
    };
    return {
      path,
      handle: (review, call) => next().handle(review, call),
      onFailure: (review, problem) => next().onFailure(review, problem),
    };
  });
  const url = await serve(authority, shared);
  await client.create('/api/v1/namespaces', { metadata: { name: namespace } });
  const path = `/apis/apps/v1/namespaces/${namespace}/statefulsets`;
  for (const set of sets) await client.create(path, set);
  await register({ client, authority }, namespace, url);
  const get = (name: string): Promise<Set> => client.get<Set>(`${path}/${name}`);
  return { path, get, writes, podCalls, client };
}

async function serve(authority: ControlPlane['authority'], endpoints: readonly Endpoint[]): Promise<string> {
  const { certificate: cert, privateKey: key } = authority.issueForServer();
  const ignore = () => undefined;
  const webhook = await startWebhook({
    config: { ...defaultConfig, port: 0, address: '127.0.0.1', drainMs: 0 },
    endpoints,
    tls: { current: () => ({ cert, key }), onChange: () => ignore },
    observer: { inflight: ignore, answered: ignore, decided: ignore, wrongCluster: ignore, refusedConnection: ignore },
    env: { ...processEnv({ request: never, stream: never }), log: { debug: ignore, info: ignore, warn: ignore, error: ignore } },
  });
  onTestFinished(() => webhook.close());
  return `https://127.0.0.1:${webhook.port}`;
}

function never(): Promise<never> {
  return Promise.reject(new Error('the server itself asks nobody'));
}

/** As grafana/rollout-operator ships them. */
async function register({ client, authority }: Pick<ControlPlane, 'client' | 'authority'>, namespace: string, url: string): Promise<void> {
  const caBundle = Buffer.from(authority.certificate).toString('base64');
  for (const [name, kind, resource, sideEffects] of [
    ['no-downscale', 'ValidatingWebhookConfiguration', 'validatingwebhookconfigurations', 'None'],
    ['prepare-downscale', 'MutatingWebhookConfiguration', 'mutatingwebhookconfigurations', 'NoneOnDryRun'],
  ] as const) {
    const collection = `/apis/admissionregistration.k8s.io/v1/${resource}`;
    const rule = { apiGroups: ['apps'], apiVersions: ['v1'], operations: ['UPDATE'], resources: ['statefulsets', 'statefulsets/scale'] };
    const webhook = {
      name: `${name}-${namespace}.grafana.com`,
      admissionReviewVersions: ['v1'],
      sideEffects,
      failurePolicy: 'Fail',
      timeoutSeconds: 10,
      clientConfig: { url: `${url}/admission/${name}`, caBundle },
      rules: [{ ...rule, scope: 'Namespaced' }],
      namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
    };
    await client.create(collection, { kind, metadata: { name: `${name}-${namespace}` }, webhooks: [webhook] });
    onTestFinished(() => client.delete(`${collection}/${name}-${namespace}`));
  }
  // The API server learns of them by a watch of its own: a dry run of a protected StatefulSet shows when.
  const canary = { name: 'canary', replicas: 1, setLabels: { 'grafana.com/no-downscale': 'true' } };
  const path = `/apis/apps/v1/namespaces/${namespace}/statefulsets`;
  const marked = { name: 'other-canary', replicas: 1, setLabels: { 'grafana.com/prepare-downscale': 'true' } };
  for (const options of [canary, marked]) await client.create(path, statefulSet(options));
  await expect
    .poll(async () => (await client.ask('PATCH', `${path}/canary?dryRun=All`, { spec: { replicas: 0 } }, merge)).status, patience)
    .toBe(400);
  // Nothing says where it can be asked, so it is denied as soon as anybody is asked.
  await expect
    .poll(async () => {
      await client.ask('PATCH', `${path}/other-canary`, { spec: { replicas: 1 } }, merge);
      return (await client.ask('PATCH', `${path}/other-canary`, { spec: { replicas: 0 } }, merge)).status;
    }, patience)
    .toBe(400);
}

const patience = { timeout: 30_000, interval: 200 };
const merge = 'application/merge-patch+json';

describeOnControlPlane(
  'the downscale endpoints on an API server',
  (controlPlane) => {
    describe('prepare-downscale with annotations', () => {
      it('allows a patch with pods that take longer than a second, and writes the annotation once', async () => {
        const { path, get, writes, client } = await place(controlPlane(), 'patched', { sets: [zone('zone-a')], podMs: 1_200 });
        const { status, body } = await client.askUntilJudged('PATCH', `${path}/zone-a`, { spec: { replicas: 2 } }, merge);
        expect([status, body]).toEqual([200, expect.objectContaining({ spec: expect.objectContaining({ replicas: 2 }) })]);
        expect((await get('zone-a')).metadata.annotations?.[annotation]).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
        expect(writes.map(({ method }) => method)).toEqual(['PATCH']);
      });

      it('allows the second attempt of a write that names the version it read', async () => {
        const { path, get, writes, client } = await place(controlPlane(), 'replaced', { sets: [zone('zone-a')], podMs: 1_200 });
        const put = async () => {
          const set = await get('zone-a');
          return (await client.askUntilJudged('PUT', `${path}/zone-a`, { ...set, spec: { ...set.spec, replicas: 2 } })).status;
        };
        expect([await put(), await put()]).toEqual([409, 200]);
        expect(writes).toHaveLength(1);
      });

      it('has the same result for /scale', async () => {
        const { path, get, podCalls, client } = await place(controlPlane(), 'scaled', { sets: [zone('zone-a')] });
        // The webhook asks no ordinal that the StatefulSet does not count. No controller runs here, so the test writes the status.
        expect((await client.askUntilJudged('PATCH', `${path}/zone-a/status`, { status: { replicas: 3 } }, merge)).status).toBe(200);
        expect((await client.askUntilJudged('PATCH', `${path}/zone-a/scale`, { spec: { replicas: 1 } }, merge)).status).toBe(200);
        expect((await get('zone-a')).metadata.annotations?.[annotation]).toBeDefined();
        const hosts = new globalThis.Set(podCalls.map(({ url }) => new URL(url).hostname));
        expect(hosts).toEqual(new globalThis.Set(['zone-a-2', 'zone-a-1'].map((pod) => `${pod}.zone-a.scaled.svc.cluster.local.`)));
      });

      it('does nothing for a dry run', async () => {
        const { path, get, writes, podCalls, client } = await place(controlPlane(), 'dry', { sets: [zone('zone-a')] });
        expect((await client.askUntilJudged('PATCH', `${path}/zone-a?dryRun=All`, { spec: { replicas: 1 } }, merge)).status).toBe(200);
        expect([writes, podCalls, (await get('zone-a')).spec.replicas]).toEqual([[], [], 3]);
      });
    });

    it.each([
      ['annotations', undefined],
      ['tracker', { zoneTracker: { configMapName: 'tracker' } }],
    ])('of two zones that shrink at once in two processes at most one does: %s', async (name, config) => {
      const waits = { 'grafana.com/min-time-between-zones-downscale': '1h' };
      const sets = [zone('zone-a', waits), zone('zone-b', waits)];
      const { path, client, get } = await place(controlPlane(), `raced-${name}`, { sets, processes: 2, ...(config && { config }) });
      const old = JSON.stringify({ lastDownscaled: '2020-01-01T00:00:00Z' });
      const maps = `/api/v1/namespaces/raced-${name}/configmaps`;
      const tracker = { metadata: { name: 'tracker' }, data: { 'zone-a': old, 'zone-b': old } };
      if (config !== undefined) await client.create(maps, tracker);
      for (let pair = 0; pair < 20; pair++) {
        await Promise.all(
          ['zone-a', 'zone-b'].map((zone) => client.askUntilJudged('PATCH', `${path}/${zone}`, { spec: { replicas: 2 } }, merge)),
        );
        const after = await Promise.all([get('zone-a'), get('zone-b')]);
        const shrunk = after.filter(({ spec }) => spec.replicas === 2).length;
        expect(shrunk, `pair ${pair}`).toBeLessThanOrEqual(1);
        // Back to the beginning.
        const reset = { metadata: { annotations: { [annotation]: null } }, spec: { replicas: 3 } };
        await Promise.all(['zone-a', 'zone-b'].map((zone) => client.patch(`${path}/${zone}`, 'merge', reset)));
        if (config !== undefined) await client.patch(`${maps}/tracker`, 'merge', { data: tracker.data });
      }
      // Two requests at once may both be denied each time. A request alone passes, so the pairs raced for something.
      expect((await client.askUntilJudged('PATCH', `${path}/zone-a`, { spec: { replicas: 2 } }, merge)).status).toBe(200);
    });
  },
  { isStill: true },
);
