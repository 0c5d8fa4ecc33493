import { describe, expect, it } from 'vitest';
import { originalMetrics, ownMetrics } from '../../agent/metrics/catalog.ts';
import { kubernetesPathLabel } from '../../agent/metrics/instruments.ts';
import { Metrics } from '../../agent/metrics/metrics.ts';
import type { TurnReport } from '../../agent/report.ts';
import type { GroupDecision } from '../../engine/decision.ts';
import { phases } from '../../policies/rollout/phases.ts';
import { metricTables } from '../../scripts/generated/pages.ts';
import { startProcess } from '../kit/agent-process.ts';
import { adoptedGroup, nativeGroup, newCluster, rolled } from '../kit/cluster.ts';
import { adopted, group } from '../kit/groups.ts';
import { kitNowMs } from '../kit/objects.ts';
import { snapshotOf } from '../kit/snapshots.ts';

function setup() {
  const at = { nowMs: kitNowMs, monotonicMs: 0 };
  const metrics = new Metrics({ nowMs: () => at.nowMs, monotonicMs: () => at.monotonicMs }, '1.2.3');
  const pass = (ms: number): void => {
    at.nowMs += ms;
    at.monotonicMs += ms;
  };
  /** The samples of a metric, without those of build and types. */
  const samples = async (name: string): Promise<readonly string[]> => {
    const { text } = await metrics.text();
    return text.split('\n').filter((line) => new RegExp(`^${name}(?:_bucket|_sum|_count)?[{ ]`).test(line));
  };
  return { metrics, pass, samples };
}

function decisionOf(overrides: Partial<GroupDecision> = {}): GroupDecision {
  return {
    namespace: 'mimir',
    group: 'ingester',
    goal: 'roll',
    phase: 'Rolling',
    outcome: 'act',
    zones: [],
    steps: [],
    actions: [],
    waits: [],
    stops: [],
    warnings: [],
    wantedReadings: [],
    ...overrides,
  };
}

function reportOf(overrides: Partial<TurnReport> = {}): TurnReport {
  const one = group();
  return {
    group: one,
    snapshot: snapshotOf({ groups: [one], everySet: { labels: {} } }),
    decision: decisionOf(),
    performed: [],
    startedMs: kitNowMs,
    durationMs: 20,
    ...overrides,
  };
}

function adoptedReport(overrides: Partial<TurnReport> = {}): TurnReport {
  const one = adopted({ name: 'ingester' });
  const snapshot = snapshotOf({ groups: [one], everySet: { labels: { 'rollout-group': 'ingester' } } });
  return reportOf({ group: one, snapshot, ...overrides });
}

describe('the registry', () => {
  it('contains exactly the catalog, each metric with its type and help', async () => {
    const { metrics } = setup();
    const { text, contentType } = await metrics.text();
    expect(contentType).toBe('text/plain; version=0.0.4; charset=utf-8');
    const types = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name, type]);
    const catalog = [...Object.values(originalMetrics), ...Object.values(ownMetrics)].map(({ name, type }) => [name, type]);
    expect(types.sort()).toEqual(catalog.sort());
    for (const [name] of catalog) expect(metricTables().join('\n')).toContain(`\`${name}\``);
  });

  it('separates our names from the names of the original', () => {
    for (const { name } of Object.values(ownMetrics)) expect(name).toMatch(/^rollout_group_[a-z_]+$/);
    for (const { name } of Object.values(originalMetrics))
      expect(name).toMatch(/^(?:rollout_operator_[a-z_]+|kube_validating_webhook_failure_policy)$/);
  });
});

describe('the metrics of grafana/rollout-operator', () => {
  it('count turns of groups that carry its label, with its buckets', async () => {
    const { metrics, samples } = setup();
    metrics.listener.turnEnded(adoptedReport());
    expect(await samples('rollout_operator_group_reconciles_total')).toEqual([
      'rollout_operator_group_reconciles_total{rollout_group="ingester"} 1',
    ]);
    expect(await samples('rollout_operator_group_reconciles_failed_total')).toEqual([
      'rollout_operator_group_reconciles_failed_total{rollout_group="ingester"} 0',
    ]);
    expect(await samples('rollout_operator_last_successful_group_reconcile_timestamp_seconds')).toEqual([
      `rollout_operator_last_successful_group_reconcile_timestamp_seconds{rollout_group="ingester"} ${kitNowMs / 1000}`,
    ]);
    const buckets = (await samples('rollout_operator_group_reconcile_duration_seconds')).map((line) => /le="([^"]+)"/.exec(line)?.[1]);
    expect(buckets.filter(Boolean)).toEqual(['0.005', '0.01', '0.025', '0.05', '0.1', '0.25', '0.5', '1', '2.5', '5', '10', '+Inf']);
  });

  it('ignore other groups', async () => {
    const { metrics, samples } = setup();
    metrics.listener.turnEnded(reportOf());
    expect(await samples('rollout_operator_group_reconciles_total')).toEqual([]);
  });

  it('are 0 until the first success, keep their value after failures, and end with their group', async () => {
    const { metrics, samples, pass } = setup();
    const last = 'rollout_operator_last_successful_group_reconcile_timestamp_seconds';
    metrics.listener.turnEnded(adoptedReport({ error: 'conflict' }));
    expect(await samples(last)).toEqual([`${last}{rollout_group="ingester"} 0`]);
    expect(await samples('rollout_operator_group_reconciles_failed_total')).toEqual([
      'rollout_operator_group_reconciles_failed_total{rollout_group="ingester"} 1',
    ]);
    pass(1000);
    metrics.listener.turnEnded(adoptedReport());
    pass(1000);
    metrics.listener.turnEnded(adoptedReport({ error: 'conflict' }));
    expect(await samples(last)).toEqual([`${last}{rollout_group="ingester"} ${kitNowMs / 1000 + 1}`]);
    metrics.listener.groupsChanged?.([group({ name: 'other' })], []);
    for (const name of ['reconciles_total', 'reconciles_failed_total', 'reconcile_duration_seconds']) {
      expect(await samples(`rollout_operator_group_${name}`)).toEqual([]);
    }
    expect(await samples(last)).toEqual([]);
  });

  it('of an idle group show a success at least every five minutes, and its turns send no request', async () => {
    const cluster = newCluster();
    adoptedGroup(cluster);
    const metrics = new Metrics(cluster.env.clock, '1.2.3');
    startProcess({ env: cluster.env, listeners: () => [metrics.listener] });
    await cluster.env.advance(60_000);
    const sent = () => cluster.env.requests.filter(({ site }) => !/^(?:watch|lease)\./.test(site)).map(({ site }) => site);
    const before = sent();
    for (let minute = 0; minute < 60; minute += 1) {
      await cluster.env.advance(60_000);
      const [, seconds] = /^rollout_operator_last_success\S+ (\S+)$/m.exec((await metrics.text()).text) ?? [];
      expect(cluster.env.clock.nowMs() / 1000 - Number(seconds)).toBeLessThanOrEqual(301);
    }
    expect(sent()).toEqual(before);
  });

  it('end when another process becomes the leader, and start again with the next turn', async () => {
    const { metrics, samples } = setup();
    const names = ['rollout_operator_group_reconciles_total', 'rollout_group_state', 'rollout_group_phase_started_timestamp_seconds'];
    const counts = async () => await Promise.all(names.map(async (name) => (await samples(name)).length));
    metrics.listener.leadershipChanged?.({ isLeader: true, epoch: 1 });
    metrics.listener.turnEnded(adoptedReport());
    expect(await counts()).toEqual([1, phases.length, 1]);
    metrics.listener.leadershipChanged?.({ isLeader: false });
    // A turn that ends after the loss.
    metrics.listener.turnEnded(adoptedReport());
    expect(await counts()).toEqual([0, 0, 0]);
    metrics.listener.leadershipChanged?.({ isLeader: true, epoch: 3 });
    metrics.listener.turnEnded(adoptedReport());
    expect(await counts()).toEqual([1, phases.length, 1]);
  });

  it('count requests of the HTTP server', async () => {
    const { metrics, samples } = setup();
    metrics.httpServer.inflight('GET', 'ready', 1);
    expect(await samples('rollout_operator_inflight_requests')).toEqual([
      'rollout_operator_inflight_requests{method="GET",route="ready"} 1',
    ]);
    metrics.httpServer.inflight('GET', 'ready', -1);
    metrics.httpServer.answered({ method: 'GET', route: 'ready', status: 500, durationMs: 30, requestBytes: 0, responseBytes: 20 });
    expect(await samples('rollout_operator_inflight_requests')).toEqual([
      'rollout_operator_inflight_requests{method="GET",route="ready"} 0',
    ]);
    const duration = await samples('rollout_operator_request_duration_seconds');
    expect(duration).toContain(
      'rollout_operator_request_duration_seconds_bucket{le="0.05",method="GET",route="ready",status_code="500",ws="false"} 1',
    );
    expect(duration).toContain(
      'rollout_operator_request_duration_seconds_bucket{le="100",method="GET",route="ready",status_code="500",ws="false"} 1',
    );
    expect(duration).toHaveLength(14 + 1 + 2);
    const bytes = await samples('rollout_operator_response_message_bytes');
    expect(bytes.map((line) => /le="([^"]+)"/.exec(line)?.[1]).filter(Boolean)).toEqual([
      '4',
      '16',
      '64',
      '256',
      '1024',
      '4096',
      '16384',
      '65536',
      '262144',
      '1048576',
      '4194304',
      '16777216',
      '67108864',
      '268435456',
      '1073741824',
      '+Inf',
    ]);
    metrics.httpServer.wrongCluster({ route: '<unknown-route>', wanted: 'mimir', given: 'loki' });
    expect(await samples('rollout_operator_server_invalid_cluster_validation_label_requests_total')).toEqual([
      'rollout_operator_server_invalid_cluster_validation_label_requests_total{protocol="http",method="<unknown-route>",cluster_validation_label="mimir",request_cluster_validation_label="loki"} 1',
    ]);
  });

  it('count requests to the API server and to pods', async () => {
    const { metrics, samples } = setup();
    metrics.kubernetesAnswered({ method: 'DELETE', path: '/api/v1/namespaces/mimir/pods/x-0?dryRun=All', status: 409, durationMs: 7 });
    metrics.kubernetesAnswered({ method: 'GET', path: '/apis/apps/v1/statefulsets?watch=1', status: 'error', durationMs: 7 });
    expect(await samples('rollout_operator_kubernetes_api_client_request_duration_seconds')).toEqual(
      expect.arrayContaining([
        'rollout_operator_kubernetes_api_client_request_duration_seconds_count{path="core/v1/pods object",method="DELETE",status_code="409"} 1',
        'rollout_operator_kubernetes_api_client_request_duration_seconds_count{path="apps/v1/statefulsets collection",method="GET",status_code="error"} 1',
      ]),
    );
    metrics.kubernetesThrottled('apps');
    expect(await samples('rollout_operator_kubernetes_api_client_rate_limited_requests_total')).toEqual([
      'rollout_operator_kubernetes_api_client_rate_limited_requests_total{api_group="apps"} 1',
    ]);
    metrics.podAnswered({ method: 'POST', path: '/ingester/prepare-shutdown', status: 204, durationMs: 7 });
    expect(await samples('rollout_operator_pod_http_client_request_duration_seconds')).toContain(
      'rollout_operator_pod_http_client_request_duration_seconds_count{path="/ingester/prepare-shutdown",method="POST",status_code="204"} 1',
    );
    metrics.wrongClusterAnswered({ route: 'prepare', cluster: 'mimir' });
    expect(await samples('rollout_operator_client_invalid_cluster_validation_label_requests_total')).toEqual([
      'rollout_operator_client_invalid_cluster_validation_label_requests_total{method="prepare",protocol="http",request_cluster="mimir"} 1',
    ]);
  });

  it('give at most 200 paths a separate series', async () => {
    const { metrics, samples } = setup();
    for (let index = 0; index < 300; index += 1) metrics.podAnswered({ method: 'POST', path: `/${index}`, status: 200, durationMs: 1 });
    const counts = (await samples('rollout_operator_pod_http_client_request_duration_seconds')).filter((line) => line.includes('_count'));
    expect(counts).toHaveLength(201);
    expect(counts.at(-1)).toBe(
      'rollout_operator_pod_http_client_request_duration_seconds_count{path="other",method="POST",status_code="200"} 100',
    );
  });
});

describe('kubernetesPathLabel', () => {
  it.each([
    ['/api/v1/pods', 'core/v1/pods collection'],
    ['/api/v1/namespaces/mimir/pods?limit=500', 'core/v1/pods collection'],
    ['/api/v1/namespaces/mimir/pods/x-0', 'core/v1/pods object'],
    ['/api/v1/namespaces/mimir/pods/x-0/eviction', 'core/v1/pods object eviction subresource'],
    ['/api/v1/namespaces/mimir', 'core/v1/namespaces object'],
    ['/api/v1/namespaces/mimir/status', 'core/v1/namespaces object status subresource'],
    ['/api/v1/nodes/n', 'core/v1/nodes object'],
    ['/apis/apps/v1/namespaces/mimir/statefulsets/x/scale', 'apps/v1/statefulsets object scale subresource'],
    ['/apis/apps/v1/watch/namespaces/mimir/statefulsets', 'apps/v1/statefulsets collection'],
    ['/apis/coordination.k8s.io/v1/namespaces/mimir/leases/agent', 'coordination.k8s.io/v1/leases object'],
    ['/apis/rollout-group.dev/v1alpha1/rolloutgroups', 'rollout-group.dev/v1alpha1/rolloutgroups collection'],
    ['', ''],
    ['/', '/'],
    ['/api', '/api'],
    ['/apis/apps/v1', '/apis/apps/v1'],
    ['/healthz', '/healthz'],
  ])('%s is %s', (path, label) => {
    expect(kubernetesPathLabel(path)).toBe(label);
  });
});

describe('the metrics of groups', () => {
  const wait = { rule: 'other-zones-ready', outcome: 'wait', fact: 'zone b has 1 pod down' } as const;

  it('show the phase, and how long the group has been in each', async () => {
    const { metrics, samples, pass } = setup();
    metrics.listener.turnEnded(reportOf({ decision: decisionOf({ phase: 'Rolling' }) }));
    pass(60_000);
    metrics.listener.turnEnded(reportOf({ decision: decisionOf({ phase: 'Waiting' }) }));
    pass(30_000);
    expect((await samples('rollout_group_state')).filter((line) => line.endsWith(' 1'))).toEqual([
      'rollout_group_state{namespace="mimir",group="ingester",phase="Waiting"} 1',
    ]);
    expect(await samples('rollout_group_state')).toHaveLength(phases.length);
    expect(await samples('rollout_group_phase_seconds_total')).toEqual([
      'rollout_group_phase_seconds_total{namespace="mimir",group="ingester",phase="Rolling"} 60',
      'rollout_group_phase_seconds_total{namespace="mimir",group="ingester",phase="Waiting"} 30',
    ]);
    expect(await samples('rollout_group_phase_started_timestamp_seconds')).toEqual([
      `rollout_group_phase_started_timestamp_seconds{namespace="mimir",group="ingester"} ${kitNowMs / 1000 + 60}`,
    ]);
  });

  it('show each rule that blocks the group with its start, and drop it when it passes', async () => {
    const { metrics, samples, pass } = setup();
    metrics.listener.turnEnded(reportOf({ decision: decisionOf({ waits: [wait] }) }));
    pass(5000);
    metrics.listener.turnEnded(reportOf({ decision: decisionOf({ waits: [wait, { ...wait, rule: 'policy/freeze', outcome: 'no' }] }) }));
    expect(await samples('rollout_group_waits')).toEqual([
      'rollout_group_waits{namespace="mimir",group="ingester",rule="other-zones-ready",reason="OtherZonesNotReady",outcome="wait"} 1',
      expect.stringMatching(
        /^rollout_group_waits\{namespace="mimir",group="ingester",rule="policy\/freeze",reason="\w+",outcome="no"\} 1$/,
      ),
    ]);
    expect(await samples('rollout_group_wait_started_timestamp_seconds')).toEqual([
      `rollout_group_wait_started_timestamp_seconds{namespace="mimir",group="ingester",rule="other-zones-ready"} ${kitNowMs / 1000}`,
      `rollout_group_wait_started_timestamp_seconds{namespace="mimir",group="ingester",rule="policy/freeze"} ${kitNowMs / 1000 + 5}`,
    ]);
    metrics.listener.turnEnded(reportOf());
    expect(await samples('rollout_group_waits')).toEqual([]);
  });

  it('show pods and the budget by zone', async () => {
    const { metrics, samples } = setup();
    const zones = [{ zone: 'a', statefulSet: 'ingester-zone-a', replicas: 20, updated: 12, available: 18, isReady: false, revisions: [] }];
    const one = group({ zones: [{ name: 'a', maxUnavailable: '10%' }] });
    metrics.listener.turnEnded(reportOf({ group: one, decision: decisionOf({ zones }) }));
    const labels = 'namespace="mimir",group="ingester",zone="a"';
    expect(await samples('rollout_group_pods')).toEqual([
      `rollout_group_pods{${labels},state="desired"} 20`,
      `rollout_group_pods{${labels},state="updated"} 12`,
      `rollout_group_pods{${labels},state="available"} 18`,
    ]);
    expect(await samples('rollout_group_budget_limit_pods')).toEqual([`rollout_group_budget_limit_pods{${labels}} 2`]);
    expect(await samples('rollout_group_budget_used_pods')).toEqual([`rollout_group_budget_used_pods{${labels}} 2`]);
    expect(await samples('rollout_group_drift_fields')).toEqual([`rollout_group_drift_fields{${labels}} 0`]);
  });

  it('count turns and actions, and measure the reaction', async () => {
    const { metrics, samples } = setup();
    const action = {
      kind: 'scaleStatefulSet',
      namespace: 'mimir',
      zone: 'a',
      statefulSet: 's',
      uid: 'u',
      resourceVersion: '1',
      from: 1,
      to: 2,
    } as const;
    metrics.listener.turnEnded(
      reportOf({
        performed: [
          { action, result: 'done' },
          { action, result: 'conflict' },
        ],
        reactionMs: 30,
      }),
    );
    metrics.listener.turnEnded(reportOf({ performed: [{ action, result: 'done' }], error: 'unreachable' }));
    const labels = 'namespace="mimir",group="ingester"';
    expect(await samples('rollout_group_actions_total')).toEqual([
      `rollout_group_actions_total{${labels},kind="scaleStatefulSet",result="done"} 2`,
      `rollout_group_actions_total{${labels},kind="scaleStatefulSet",result="conflict"} 1`,
    ]);
    expect(await samples('rollout_group_turns_total')).toEqual([
      `rollout_group_turns_total{${labels},result="ok"} 1`,
      `rollout_group_turns_total{${labels},result="failed"} 1`,
    ]);
    expect(await samples('rollout_group_reaction_seconds')).toContain('rollout_group_reaction_seconds_bucket{le="0.05"} 1');
    expect(await samples('rollout_group_turn_duration_seconds')).toContain('rollout_group_turn_duration_seconds_count 2');
  });

  it('lose every series with their group', async () => {
    const { metrics } = setup();
    metrics.listener.turnEnded(reportOf({ decision: decisionOf({ waits: [wait] }) }));
    metrics.listener.groupsChanged?.([], []);
    const { text } = await metrics.text();
    expect(text).not.toContain('ingester');
    expect(text).toContain('rollout_group_groups 0');
  });

  it('cover at most a thousand groups', async () => {
    const { metrics, samples } = setup();
    const many = Array.from({ length: 1003 }, (_, index) => group({ name: `g${index}` }));
    metrics.listener.groupsChanged?.(many, []);
    for (const one of many) metrics.listener.turnEnded(reportOf({ group: one }));
    expect(await samples('rollout_group_phase_started_timestamp_seconds')).toHaveLength(1000);
    expect(await samples('rollout_group_groups')).toEqual(['rollout_group_groups 1003']);
    expect(await samples('rollout_group_groups_without_series')).toEqual(['rollout_group_groups_without_series 3']);
  });
});

describe('the metrics of runs', () => {
  const labels = 'namespace="mimir",group="ingester"';
  const names = ['run_duration_seconds', 'wave_duration_seconds', 'pod_replacement_duration_seconds'] as const;

  it.each(['onDelete', 'partition'] as const)('count each pod, wave and run once, with %s', async (strategy) => {
    const waves = [
      { name: 'canary', zones: ['a'], pods: 1, after: { soak: '10m' } },
      { name: 'rest', zones: ['a', 'b', 'c'], percent: 100 },
    ];
    const partition = strategy === 'partition' ? { partition: 3 } : {};
    const cluster = newCluster();
    nativeGroup(cluster, { rollout: { strategy, ...(strategy === 'onDelete' ? { rotateBy: 'delete' } : {}), waves } }, partition);
    const metrics = new Metrics(cluster.env.clock, '1.2.3');
    startProcess({ env: cluster.env, listeners: () => [metrics.listener] });
    const value = async (sample: string) =>
      Number(new RegExp(`^rollout_group_${sample}\\{${labels}\\} (.*)$`, 'm').exec((await metrics.text()).text)?.[1]);
    await cluster.env.advance(10_000);
    const counts = () => Promise.all(names.map((name) => value(`${name}_count`)));
    expect(await counts()).toEqual([Number.NaN, Number.NaN, Number.NaN]);
    cluster.rollTo('app:2');
    await cluster.env.advance(1000);
    expect(await counts()).toEqual([0, 0, 0]);
    await cluster.env.advance(300_000);
    expect(await counts()).toEqual([0, 0, 1]);
    expect(await value('run_active_seconds')).toBeCloseTo(300, -1);
    await cluster.env.until(() => rolled(cluster, 'app:2'), 3_600_000);
    await cluster.env.advance(10_000);
    expect(await counts()).toEqual([1, 2, 9]);
    const [run = 0, both = 0, pods = 0] = await Promise.all(names.map((name) => value(`${name}_sum`)));
    expect(both).toBeGreaterThan(600);
    expect(Math.abs(run - both)).toBeLessThan(20);
    // A pod of the model drains for about three seconds and starts in about four.
    expect(pods / 9).toBeGreaterThan(3);
    expect(pods / 9).toBeLessThan(20);
    expect(await value('run_active_seconds')).toBeNaN();
    metrics.listener.leadershipChanged?.({ isLeader: false });
    expect(await counts()).toEqual([Number.NaN, Number.NaN, Number.NaN]);
  });

  it.each(['the same process', 'another process'])('do not count the time of a pause as time without progress: %s', async (which) => {
    const cluster = newCluster();
    nativeGroup(cluster, { rollout: { strategy: 'onDelete', rotateBy: 'delete' } });
    const start = () => {
      const metrics = new Metrics(cluster.env.clock, '1.2.3');
      return { metrics, process: startProcess({ env: cluster.env, listeners: () => [metrics.listener] }) };
    };
    let { metrics, process } = start();
    const stalledSeconds = async () => {
      const [, seconds] = /^rollout_group_run_stalled_seconds\S+ (.*)$/m.exec((await metrics.text()).text) ?? [];
      return Number(seconds);
    };
    const intents = 'rolloutintents.rollout-group.dev';
    cluster.workloads.breakNext('ingester-zone-b-1');
    cluster.rollTo('app:2');
    await cluster.env.advance(600_000);
    cluster.api.put(intents, { metadata: { name: 'wait', namespace: 'mimir' }, spec: { group: 'ingester', action: 'pause' } });
    await cluster.env.advance(3_600_000);
    expect(await stalledSeconds()).toBe(0);
    if (which === 'another process') process.crash();
    cluster.api.remove(intents, 'mimir', 'wait');
    if (which === 'another process') ({ metrics, process } = start());
    await cluster.env.advance(600_000);
    expect(await stalledSeconds()).toBeGreaterThan(500);
    expect(await stalledSeconds()).toBeLessThanOrEqual(600);
  });

  it('count a failed run, and show its deadline until then', async () => {
    const cluster = newCluster();
    nativeGroup(cluster, { rollout: { strategy: 'onDelete', rotateBy: 'delete', deadlines: { run: '1h', progress: '20m' } } });
    const metrics = new Metrics(cluster.env.clock, '1.2.3');
    startProcess({ env: cluster.env, listeners: () => [metrics.listener] });
    const lines = async () => (await metrics.text()).text.split('\n').filter((line) => line.startsWith('rollout_group_run'));
    cluster.workloads.breakNext('ingester-zone-b-1');
    cluster.rollTo('app:2');
    await cluster.env.advance(600_000);
    expect(await lines()).toContain(`rollout_group_run_deadline_seconds{${labels}} 3600`);
    const [, stalled] = /^rollout_group_run_stalled_seconds\S+ (.*)$/m.exec((await lines()).join('\n')) ?? [];
    expect(Number(stalled)).toBeGreaterThan(500);
    await cluster.env.advance(900_000);
    expect(await lines()).toContain(`rollout_group_runs_total{${labels},outcome="failed"} 1`);
    expect(await lines()).toContain(`rollout_group_run_duration_seconds_count{${labels}} 0`);
    expect((await lines()).join('\n')).not.toContain('deadline_seconds{');
    metrics.listener.groupsChanged?.([], []);
    expect(await lines()).toEqual([]);
  });
});

describe('the metrics of the agent', () => {
  it('show missing parts, invalid policies, and the leader', async () => {
    const { metrics, samples } = setup();
    metrics.listener.degraded?.([{ id: 'watch/rolloutgroups', reason: 'missing', message: 'm' }]);
    metrics.listener.leadershipChanged?.({ isLeader: true, epoch: 4 });
    const place = { file: '', line: 0, column: 0, pointer: '', message: 'm' };
    metrics.listener.groupsChanged?.([], [
      { ...place, code: 'RG1001', severity: 'error' },
      { ...place, code: 'RG1001', severity: 'error' },
    ] as never);
    expect(await samples('rollout_group_degraded')).toEqual(['rollout_group_degraded{part="watch/rolloutgroups",reason="missing"} 1']);
    expect(await samples('rollout_group_leader')).toEqual(['rollout_group_leader 1']);
    expect(await samples('rollout_group_leader_epoch')).toEqual(['rollout_group_leader_epoch 4']);
    expect(await samples('rollout_group_findings')).toEqual(['rollout_group_findings{code="RG1001",severity="error"} 2']);
    metrics.listener.degraded?.([]);
    metrics.listener.leadershipChanged?.({ isLeader: false });
    expect(await samples('rollout_group_degraded')).toEqual([]);
    expect(await samples('rollout_group_leader')).toEqual(['rollout_group_leader 0']);
  });
});
