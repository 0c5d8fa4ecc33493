import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Metrics } from '../../agent/metrics/metrics.ts';
import { describeWithPromtool, expectFiring, world } from '../deploy/promtool.ts';
import { startProcess } from '../kit/agent-process.ts';
import { adoptedGroup, newCluster, rolled } from '../kit/cluster.ts';

const seconds = '0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 10';
const requestSeconds = `${seconds} 25 50 100`;
const bytes = '4 16 64 256 1024 4096 16384 65536 262144 1048576 4194304 16777216 67108864 268435456 1073741824';

/** The metrics of grafana/rollout-operator v0.38.1 as its users see them, typed in and not derived from the catalog: name, type, labels, buckets. */
const table: readonly (readonly [name: string, type: string, labels: string, buckets?: string])[] = [
  ['rollout_operator_group_reconciles_total', 'counter', 'rollout_group'],
  ['rollout_operator_group_reconciles_failed_total', 'counter', 'rollout_group'],
  ['rollout_operator_group_reconcile_duration_seconds', 'histogram', 'rollout_group', seconds],
  ['rollout_operator_last_successful_group_reconcile_timestamp_seconds', 'gauge', 'rollout_group'],
  ['rollout_operator_request_duration_seconds', 'histogram', 'method route status_code ws', requestSeconds],
  ['rollout_operator_request_message_bytes', 'histogram', 'method route', bytes],
  ['rollout_operator_response_message_bytes', 'histogram', 'method route', bytes],
  ['rollout_operator_inflight_requests', 'gauge', 'method route'],
  ['rollout_operator_client_invalid_cluster_validation_label_requests_total', 'counter', 'method protocol request_cluster'],
  [
    'rollout_operator_server_invalid_cluster_validation_label_requests_total',
    'counter',
    'cluster_validation_label method protocol request_cluster_validation_label',
  ],
  ['rollout_operator_kubernetes_api_client_request_duration_seconds', 'histogram', 'method path status_code', requestSeconds],
  ['rollout_operator_kubernetes_api_client_rate_limited_requests_total', 'counter', 'api_group'],
  ['rollout_operator_pod_http_client_request_duration_seconds', 'histogram', 'method path status_code', requestSeconds],
  ['rollout_operator_zpdb_configurations_observed_total', 'counter', 'result'],
  ['rollout_operator_zpdb_eviction_requests_total', 'counter', 'reason status'],
  ['rollout_operator_zpdb_inflight_eviction_requests', 'gauge', ''],
  ['kube_validating_webhook_failure_policy', 'gauge', 'policy type webhook'],
];

const budgets = 'zoneawarepoddisruptionbudgets.rollout-operator.grafana.com';

/** An adopted group with a budget, and the metrics of its agent. */
function setup(spec: Readonly<Record<string, unknown>> = {}) {
  const cluster = newCluster();
  adoptedGroup(cluster);
  // Selects every pod and every StatefulSet of the namespace.
  const selector = { matchLabels: {} };
  cluster.api.put(budgets, { metadata: { name: 'ingester', namespace: 'mimir' }, spec: { selector, maxUnavailable: 1, ...spec } });
  const metrics = new Metrics(cluster.env.clock, '1.2.3');
  const process = startProcess({ env: cluster.env, listeners: () => [metrics.listener] });
  return { cluster, metrics, process };
}

interface Exposed {
  readonly type: string;
  readonly labels: Set<string>;
  readonly buckets: Set<string>;
}

/** Parses the text format, without the metrics of this project. */
function exposed(text: string): ReadonlyMap<string, Exposed> {
  const found = new Map<string, Exposed>();
  for (const [, name = '', type = ''] of text.matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
    if (!name.startsWith('rollout_group_')) found.set(name, { type, labels: new Set(), buckets: new Set() });
  }
  for (const [, sample = '', labels = ''] of text.matchAll(/^([a-z_]+)(?:\{(.*)\})? \S+$/gm)) {
    const metric = found.get(sample) ?? found.get(sample.replace(/_(?:bucket|sum|count)$/, ''));
    for (const [, label = '', value = ''] of labels.matchAll(/([a-z_]+)="([^"]*)"/g)) {
      if (label === 'le') metric?.buckets.add(value);
      else metric?.labels.add(label);
    }
  }
  return found;
}

/** Calls every input of the metrics once, so that each metric has a series. */
function exercise(metrics: Metrics): void {
  const { httpServer, webhook } = metrics;
  httpServer.inflight('GET', 'ready', 1);
  httpServer.answered({ method: 'GET', route: 'ready', status: 200, durationMs: 1, requestBytes: 0, responseBytes: 3 });
  httpServer.wrongCluster({ route: 'metrics', wanted: 'mimir', given: 'loki' });
  metrics.kubernetesAnswered({ method: 'GET', path: '/api/v1/pods', status: 200, durationMs: 5 });
  metrics.kubernetesThrottled('apps');
  metrics.podAnswered({ method: 'POST', path: '/prepare', status: 'error', durationMs: 5 });
  metrics.wrongClusterAnswered({ route: 'prepare', cluster: 'mimir' });
  metrics.zoneBudgetObserved('updated');
  webhook.evictionBegan();
  webhook.evictionEnded({ reason: 'allowed', code: 200 });
  const policy = { type: 'ValidatingWebhook', webhook: 'pod-eviction-mimir.grafana.com', policy: 'Fail', value: 1 };
  webhook.setCertificateSource({ expiry: () => undefined, failurePolicies: () => [policy] });
}

describe('the metrics of grafana/rollout-operator', () => {
  it('have exactly the names, types, labels and buckets of the specification', async () => {
    const { cluster, metrics } = setup();
    exercise(metrics);
    await cluster.env.advance(30_000);
    const found = [...exposed((await metrics.text()).text)].map(([name, { type, labels, buckets }]) => {
      const bounds = [...buckets].filter((bound) => bound !== '+Inf').join(' ');
      return [name, type, [...labels].sort().join(' '), ...(bounds === '' ? [] : [bounds])];
    });
    expect(found.sort()).toEqual([...table].sort());
  });
});

describe('the requests under a ZoneAwarePodDisruptionBudget', () => {
  async function requests(metrics: Metrics): Promise<Readonly<Record<string, number>>> {
    const { text } = await metrics.text();
    const samples = text.matchAll(/^rollout_operator_zpdb_eviction_requests_total\{reason="(.*)",status="(.*)"\} (\d+)$/gm);
    return Object.fromEntries([...samples].map(([, reason, status, count]) => [`${reason} ${status}`, Number(count)]));
  }

  it('count the pods that a rollout deletes', async () => {
    const { cluster, metrics } = setup();
    await cluster.env.advance(5000);
    expect(await requests(metrics)).toEqual({});
    cluster.rollTo('app:2');
    await cluster.env.until(() => rolled(cluster, 'app:2'), 3_600_000);
    expect(cluster.deletedPods()).toHaveLength(9);
    expect(await requests(metrics)).toEqual({ 'allowed 200': 9 });
  });

  it('count the pods that a rollout may not delete', async () => {
    const { cluster, metrics } = setup({ podNamePartitionRegex: 'ingester-zone-[a-z]-([0-9]+)', crossZoneEvictionDelay: '1h' });
    await cluster.env.advance(5000);
    cluster.rollTo('app:2');
    await cluster.env.advance(60_000);
    expect(cluster.deletedPods()).toEqual([]);
    const counts = await requests(metrics);
    expect(Object.keys(counts)).toEqual(['denied 429']);
  });

  it('count the pods that no budget selects', async () => {
    const { cluster, metrics } = setup({ selector: { matchLabels: { 'rollout-group': 'other' } } });
    await cluster.env.advance(5000);
    cluster.rollTo('app:2');
    await cluster.env.until(() => rolled(cluster, 'app:2'), 3_600_000);
    expect(await requests(metrics)).toEqual({ 'pod-not-in-scope 200': 9 });
  });
});

/** The alert expressions of the mixin of grafana/rollout-operator that read metrics of v0.38. */
const mixin = {
  IncorrectWebhookConfigurationFailurePolicy:
    'count by(type, webhook, namespace) (kube_validating_webhook_failure_policy{policy="Ignore", webhook=~"^(pod-eviction|zpdb-validation).+"} > 0)',
  BadZoneAwarePodDisruptionBudgetConfiguration:
    'sum by (job, namespace)(rate(rollout_operator_zpdb_configurations_observed_total{result="invalid"}[5m])) > 0',
  HighNumberInflightZpdbRequests: 'avg_over_time(rollout_operator_zpdb_inflight_eviction_requests[5m]) > 10',
  KubernetesAPIClientRateLimited:
    'sum by (namespace, api_group) (rate(rollout_operator_kubernetes_api_client_rate_limited_requests_total[5m])) > 0',
};

describeWithPromtool('the alerts of the mixin of grafana/rollout-operator', () => {
  it('fire only in their cases', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'rollout-group-mixin-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const file = join(folder, 'mixin.yaml');
    const all = Object.entries(mixin).map(([alert, expr]) => ({ alert, expr, for: '5m' }));
    writeFileSync(file, JSON.stringify({ groups: [{ name: 'rollout_operator_alerts', rules: all }] }));
    const { scrapes, first, state } = await world();
    const { metrics } = first;
    const policy = { type: 'ValidatingWebhook', webhook: 'pod-eviction-mimir.grafana.com', policy: 'Ignore' };
    const source = (value: number) => ({ expiry: () => undefined, failurePolicies: () => [{ ...policy, value }] });
    metrics.webhook.setCertificateSource(source(0));
    metrics.zoneBudgetObserved('updated');
    metrics.webhook.evictionBegan();
    metrics.kubernetesThrottled('');
    await scrapes.pass(20);
    expectFiring(state(), [], file);
    metrics.webhook.setCertificateSource(source(1));
    for (let count = 0; count < 11; count += 1) metrics.webhook.evictionBegan();
    for (let minute = 0; minute < 20; minute += 1) {
      // Each budget counts again every four minutes.
      if (minute % 4 === 0) metrics.zoneBudgetObserved('invalid');
      metrics.kubernetesThrottled('');
      await scrapes.pass(1);
    }
    expectFiring(state(), Object.keys(mixin), file);
  });
});
