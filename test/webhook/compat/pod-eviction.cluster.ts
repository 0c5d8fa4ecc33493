// Evictions under a zone-aware budget on a real API server: its kinds, what `kubectl drain` hears, and two processes that are asked at once.
import { readdirSync, readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { parse } from 'yaml';
import { connectionProcess, processEnv } from '../../../cluster/connection/process-env.ts';
import { KubernetesTransport } from '../../../cluster/connection/transport.ts';
import { loadConnection } from '../../../cluster/kubeconfig/kubeconfig.ts';
import { evictionCache } from '../../../webhook/compat/eviction/eviction-cache.ts';
import { podEviction } from '../../../webhook/compat/eviction/pod-eviction.ts';
import { startZoneBudgets, zpdbValidation } from '../../../webhook/compat/zpdb.ts';
import { defaultConfig } from '../../../webhook/config.ts';
import type { WebhookEnv } from '../../../webhook/env.ts';
import type { Endpoint } from '../../../webhook/review/review.ts';
import { startWebhook } from '../../../webhook/webhook.ts';
import type { KubernetesObject, Reply } from '../../control-plane/client.ts';
import type { ControlPlane } from '../../control-plane/control-plane.ts';
import { TestGroup } from '../../control-plane/group.ts';
import { describeOnControlPlane } from '../../control-plane/suite.ts';
import { followedBudgets } from '../../kit/followed.ts';
import { evictionReview } from './eviction-world.ts';

interface Seen extends KubernetesObject {
  readonly spec: Readonly<Record<string, unknown>>;
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string; readonly message?: string }[] };
}

type Failure = { readonly message?: string; readonly code?: number };

const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const group = 'rollout-operator.grafana.com';
const patience = { timeout: 60_000, interval: 200 };
const ignore = (): void => undefined;

const budgetsPath = (namespace: string): string => `/apis/${group}/v1/namespaces/${namespace}/zoneawarepoddisruptionbudgets`;

/** Over everything in its namespace. */
const budget = (name: string, spec: object): object => ({
  apiVersion: `${group}/v1`,
  kind: 'ZoneAwarePodDisruptionBudget',
  metadata: { name },
  spec: { selector: { matchLabels: {} }, ...spec },
});

async function process({ identities }: ControlPlane): Promise<readonly Endpoint[]> {
  const options = { ...connectionProcess(), env: {}, homeDir: '/nonexistent' };
  const http = new KubernetesTransport(await loadConnection({ kubeconfig: identities.admin.kubeconfig }, options), {
    userAgent: 'rollout-group-test/1',
  });
  const env: WebhookEnv = {
    ...processEnv(http),
    log: { debug: ignore, info: ignore, warn: ignore, error: ignore },
    pods: { call: () => Promise.reject(new Error('no pod is called')) },
  };
  const followed = followedBudgets(env);
  const budgets = startZoneBudgets({ log: env.log, followed });
  onTestFinished(() => {
    budgets.stop();
    followed.stop();
    return http.close();
  });
  await expect.poll(() => budgets.isSettled(), patience).toBe(true);
  return [podEviction(env, { budgets, cache: evictionCache(env, { isAlone: () => false }) }), zpdbValidation()];
}

/** Two processes behind one address, each asked in its turn, as a Service would. */
async function serve(controlPlane: ControlPlane, namespace: string): Promise<void> {
  const both = [await process(controlPlane), await process(controlPlane)];
  let turn = 0;
  const endpoints = ['/admission/pod-eviction', '/admission/zpdb-validation'].map((path, index): Endpoint => {
    const next = (): Endpoint => {
      turn += 1;
      const endpoint = both[turn % both.length]?.[index];
      if (endpoint === undefined) throw new Error(`${path} is not there`);
      return endpoint;
    };
    return {
      path,
      handle: (review, call) => next().handle(review, call),
      onFailure: (review, problem) => next().onFailure(review, problem),
    };
  });
  const { certificate: cert, privateKey: key } = controlPlane.authority.issueForServer();
  const never = (): Promise<never> => Promise.reject(new Error('the server itself asks nobody'));
  const webhook = await startWebhook({
    config: { ...defaultConfig, port: 0, address: '127.0.0.1', drainMs: 0 },
    endpoints,
    tls: { current: () => ({ cert, key }), onChange: () => ignore },
    observer: { inflight: ignore, answered: ignore, decided: ignore, wrongCluster: ignore, refusedConnection: ignore },
    env: { ...processEnv({ request: never, stream: never }), log: { debug: ignore, info: ignore, warn: ignore, error: ignore } },
  });
  onTestFinished(() => webhook.close());
  await register(controlPlane, namespace, `https://127.0.0.1:${webhook.port}`);
}

/** As grafana/rollout-operator ships them, but for the side effects that evictions do have. */
async function register({ client, authority }: ControlPlane, namespace: string, url: string): Promise<void> {
  const collection = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations';
  const caBundle = Buffer.from(authority.certificate).toString('base64');
  for (const [name, rule, sideEffects] of [
    ['pod-eviction', { apiGroups: [''], resources: ['pods/eviction'], operations: ['CREATE'] }, 'NoneOnDryRun'],
    ['zpdb-validation', { apiGroups: [group], resources: ['zoneawarepoddisruptionbudgets'], operations: ['CREATE', 'UPDATE'] }, 'None'],
  ] as const) {
    const webhook = {
      name: `${name}-${namespace}.grafana.com`,
      admissionReviewVersions: ['v1'],
      sideEffects,
      failurePolicy: 'Fail',
      timeoutSeconds: 10,
      clientConfig: { url: `${url}/admission/${name}`, caBundle },
      rules: [{ ...rule, apiVersions: ['v1'], scope: 'Namespaced' }],
      namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
    };
    await client.create(collection, { metadata: { name: `${name}-${namespace}` }, webhooks: [webhook] });
    onTestFinished(() => client.delete(`${collection}/${name}-${namespace}`));
  }
}

describeOnControlPlane('the zone-aware budget', (controlPlane) => {
  beforeAll(async () => {
    const { client } = controlPlane();
    for (const file of readdirSync('deploy/crds')) {
      const definition = parse(readFileSync(`deploy/crds/${file}`, 'utf8')) as Seen;
      if (definition.spec['group'] === group) await client.create(definitions, definition);
    }
    await client.until<Seen>(definitions, 'every kind served', (items) =>
      items.every((item) => item.status?.conditions?.some(({ type, status }) => type === 'Established' && status === 'True')),
    );
    for (const path of [budgetsPath('default'), `/apis/${group}/v1/namespaces/default/replicatemplates`]) {
      await vi.waitFor(async () => expect((await client.ask('GET', path)).status).toBe(200), patience);
    }
  });

  describe('the kinds of budgets and templates', () => {
    it.each<[string, object, string]>([
      ['a negative count', { maxUnavailable: -1 }, 'maxUnavailable'],
      ['a percentage above 100', { maxUnavailablePercentage: 101 }, 'maxUnavailablePercentage'],
      ['a group of 0', { podNamePartitionRegex: '(a)', podNameRegexGroup: 0 }, 'podNameRegexGroup'],
      ['no labels', { selector: {} }, 'matchLabels'],
      ['no selector', { selector: undefined }, 'selector'],
      ['text for a number', { maxUnavailable: '1' }, 'maxUnavailable'],
    ])('deny %s', async (_case, spec, field) => {
      const { status, body } = await controlPlane().client.ask<Failure>('POST', budgetsPath('default'), budget('wrong', spec));
      expect([status, body.message]).toEqual([422, expect.stringContaining(field)]);
    });

    it('accept the objects of the original, keep their fields, and have a status and the short name', async () => {
      const { client } = controlPlane();
      const spec = { maxUnavailable: 2, podNamePartitionRegex: '(a)-([0-9]+)', podNameRegexGroup: 2, crossZoneEvictionDelay: '5m' };
      const { body } = await client.ask<Seen>('POST', budgetsPath('default'), budget('whole', spec));
      expect(body.spec).toEqual({ selector: { matchLabels: {} }, ...spec });
      expect((await client.ask('GET', `${budgetsPath('default')}/whole/status`)).status).toBe(200);
      const { resources } = await client.get<{
        readonly resources: readonly { name: string; shortNames?: string[]; categories?: string[] }[];
      }>(`/apis/${group}/v1`);
      expect(resources.find(({ name }) => name === 'zoneawarepoddisruptionbudgets')?.shortNames).toEqual(['zpdb']);
      expect(resources.find(({ name }) => name === 'replicatemplates')?.categories).toEqual(['all']);
    });

    it('give a template one replica, and a scale', async () => {
      const { client } = controlPlane();
      const path = `/apis/${group}/v1/namespaces/default/replicatemplates`;
      await client.create(path, {
        apiVersion: `${group}/v1`,
        kind: 'ReplicaTemplate',
        metadata: { name: 'one' },
        spec: { labelSelector: 'a=b' },
      });
      const scale = await client.get<{ readonly spec: object; readonly status: object }>(`${path}/one/scale`);
      expect([scale.spec, scale.status]).toEqual([{ replicas: 1 }, { replicas: 0, selector: 'a=b' }]);
    });
  });

  describe('during evictions', () => {
    it('one zone loses a pod, a drain of another zone must retry, and a dry run uses no budget', async () => {
      const { client } = controlPlane();
      const namespace = 'evicted';
      const members = new TestGroup(client, { namespace, replicas: 2 });
      await members.create();
      await serve(controlPlane(), namespace);
      const evict = (pod: string, query = ''): Promise<Reply<Failure>> =>
        client.askUntilJudged<Failure>('POST', `${members.podsPath}/${pod}/eviction${query}`, {
          apiVersion: 'policy/v1',
          kind: 'Eviction',
          metadata: { name: pod, namespace },
        });
      // The API server learns of the hooks by a watch of its own, and the processes of the budget by theirs.
      const invalid = { maxUnavailable: 1, maxUnavailablePercentage: 10 };
      await expect
        .poll(async () => {
          const { status, body } = await client.ask<Failure>('POST', `${budgetsPath(namespace)}?dryRun=All`, budget('invalid', invalid));
          return [status, body.message];
        }, patience)
        .toEqual([400, expect.stringContaining('denied the request: ZoneAwarePodDisruptionBudget evicted/invalid: maxUnavailable and')]);
      await client.create(budgetsPath(namespace), budget('none', { maxUnavailable: 0 }));
      let refusals = 0;
      await expect
        .poll(async () => {
          // Both processes, one after the other.
          const answers = [await evict('ingester-zone-a-0', '?dryRun=All'), await evict('ingester-zone-a-0', '?dryRun=All')];
          refusals = answers.filter(({ status }) => status === 403).length;
          return refusals;
        }, patience)
        .toBe(2);
      await client.patch(`${budgetsPath(namespace)}/none`, 'merge', { spec: { maxUnavailable: 1 } });
      await expect
        .poll(async () => {
          const answers = [await evict('ingester-zone-b-0', '?dryRun=All'), await evict('ingester-zone-b-0', '?dryRun=All')];
          return answers.map(({ status }) => status);
        }, patience)
        .toEqual([201, 201]);
      expect((await evict('ingester-zone-a-0')).status).toBe(201);
      const refused = await evict('ingester-zone-b-0');
      expect([refused.status, refused.body.message]).toEqual([
        429,
        expect.stringMatching(/^admission webhook "pod-eviction-evicted\.grafana\.com" denied the request: 1 pod .* in ingester-zone-a$/),
      ]);
      await expect.poll(async () => (await evict('ingester-zone-b-0')).status, patience).toBe(201);
    });

    it('two processes with simultaneous requests agree', async () => {
      const { client } = controlPlane();
      const namespace = 'mimir';
      const members = new TestGroup(client, { namespace, replicas: 1 });
      await members.create();
      await client.create(budgetsPath(namespace), budget('zones', { maxUnavailable: 1 }));
      const endpoints = [await process(controlPlane()), await process(controlPlane())].map(([eviction]) => eviction);
      const record = `/api/v1/namespaces/${namespace}/configmaps/rollout-group-evictions-zones`;
      for (let pair = 0; pair < 40; pair += 1) {
        const answers = await Promise.all(
          endpoints.map((endpoint, index) =>
            endpoint?.handle(evictionReview(index === pair % 2 ? 'ingester-zone-a-0' : 'ingester-zone-b-0'), {
              deadlineMs: performance.now() + 30_000,
              signal: new AbortController().signal,
            }),
          ),
        );
        expect(answers.map((answer) => answer?.code).sort(), `pair ${pair}`).toEqual([200, 429]);
        await client.delete(record);
      }
    });
  });
});
