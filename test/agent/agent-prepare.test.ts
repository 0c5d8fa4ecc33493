import { describe, expect, it } from 'vitest';
import type { PodRequest, PodResponse } from '../../agent/env.ts';
import { startProcess } from '../kit/agent-process.ts';
import { type Cluster, newCluster } from '../kit/cluster.ts';

const sourceKey = 'replicatemplates.rollout-operator.grafana.com';
const hourMs = 3_600_000;

/** One adopted zone that mirrors a ReplicaTemplate, with a delayed downscale of an hour. */
function mirrored(replicas = 4): Cluster {
  const cluster = newCluster();
  cluster.api.put(sourceKey, { metadata: { name: 'ingester', namespace: 'mimir' }, spec: { replicas }, status: { replicas } });
  cluster.workloads.create({
    name: 'ingester-zone-a',
    replicas,
    labels: { 'rollout-group': 'ingester' },
    annotations: {
      'grafana.com/rollout-mirror-replicas-from-resource-name': 'ingester',
      'grafana.com/rollout-mirror-replicas-from-resource-kind': 'ReplicaTemplate',
      'grafana.com/rollout-mirror-replicas-from-resource-api-version': 'rollout-operator.grafana.com/v1',
      'grafana.com/rollout-delayed-downscale': '1h',
      'grafana.com/rollout-prepare-delayed-downscale-url': 'http://pod:8080/ingester/prepare-delayed-downscale',
    },
  });
  return cluster;
}

function ask({ api }: Cluster, replicas: number): void {
  api.change(sourceKey, 'mimir', 'ingester', { spec: { replicas } });
}

function replicasOf({ api }: Cluster): unknown {
  const spec = (api.get('statefulsets.apps', 'mimir', 'ingester-zone-a')?.['spec'] ?? {}) as { readonly replicas?: number };
  return spec.replicas;
}

/** Pods that keep the time at which they were first asked. */
function obedient({ env }: Cluster) {
  const prepared = new Map<string, number>();
  const call = async ({ method, url }: PodRequest): Promise<PodResponse> => {
    const pod = new URL(url).hostname.split('.')[0] ?? '';
    if (method === 'DELETE') prepared.delete(pod);
    else if (!prepared.has(pod)) prepared.set(pod, Math.floor(env.clock.nowMs() / 1000));
    return { status: 200, body: JSON.stringify({ timestamp: prepared.get(pod) }) };
  };
  return { call, prepared };
}

const called = (calls: readonly PodRequest[]): readonly string[] => calls.map(({ method, url }) => `${method} ${url}`);
const url = (ordinal: number): string =>
  `http://ingester-zone-a-${ordinal}.ingester-zone-a.mimir.svc.cluster.local.:8080/ingester/prepare-delayed-downscale`;

describe('a delayed downscale', () => {
  it('calls the leaving pods, waits without a write, scales after the delay and updates the source', async () => {
    const cluster = mirrored();
    const pods = obedient(cluster);
    const process = startProcess({ env: cluster.env, pods: pods.call });
    await cluster.env.advance(10_000);
    // Nobody knows whom a former operator asked to leave.
    expect(called(process.podCalls)).toEqual([0, 1, 2, 3].map((ordinal) => `DELETE ${url(ordinal)}`));
    ask(cluster, 2);
    await cluster.env.advance(10_000);
    expect(called(process.podCalls).slice(4)).toEqual([`POST ${url(2)}`, `POST ${url(3)}`]);
    expect(replicasOf(cluster)).toBe(4);
    const waiting = cluster.writes().length;
    await cluster.env.advance(hourMs - 30_000);
    expect(cluster.writes().slice(waiting)).toEqual([]);
    expect(replicasOf(cluster)).toBe(4);
    await cluster.env.advance(60_000);
    expect(replicasOf(cluster)).toBe(2);
    expect(cluster.api.get('replicatemplates.rollout-operator.grafana.com', 'mimir', 'ingester')?.['status']).toEqual({ replicas: 2 });
    // Once more, immediately before they go.
    expect(called(process.podCalls).slice(6)).toEqual([`POST ${url(2)}`, `POST ${url(3)}`]);
  });

  it('that another operator started and no zone needs is cancelled once, and never again', async () => {
    const cluster = mirrored();
    const pods = obedient(cluster);
    pods.prepared.set('ingester-zone-a-3', 1);
    const first = startProcess({ env: cluster.env, name: 'agent-1', pods: pods.call });
    await cluster.env.advance(60_000);
    expect([...pods.prepared]).toEqual([]);
    first.crash();
    const second = startProcess({ env: cluster.env, name: 'agent-2', pods: pods.call });
    await cluster.env.advance(120_000);
    expect(second.reports.length).toBeGreaterThan(0);
    expect(second.podCalls).toEqual([]);
  });

  it('starts again when another client cancels the preparation of a pod; a pod with a new time on every call never leaves', async () => {
    const cluster = mirrored();
    const pods = obedient(cluster);
    startProcess({ env: cluster.env, pods: pods.call });
    ask(cluster, 3);
    await cluster.env.advance(hourMs / 2);
    expect(pods.prepared.size).toBe(1);
    pods.prepared.clear();
    await cluster.env.advance(hourMs);
    expect(replicasOf(cluster)).toBe(4);
    await cluster.env.advance(hourMs);
    expect(replicasOf(cluster)).toBe(3);

    const forgetful = mirrored();
    const { call } = obedient(forgetful);
    const process = startProcess({
      env: forgetful.env,
      pods: async (request) => {
        if (request.method === 'POST') await call({ ...request, method: 'DELETE' });
        return await call(request);
      },
    });
    ask(forgetful, 3);
    await forgetful.env.advance(4 * hourMs);
    expect(replicasOf(forgetful)).toBe(4);
    // Once per delay, and not at every moment.
    expect(process.podCalls.length).toBeLessThan(10);
  });

  it('is blocked by a pod that does not answer a repeated call, and then continues without a new delay', async () => {
    const cluster = mirrored();
    const pods = obedient(cluster);
    let isDown = false;
    startProcess({ env: cluster.env, pods: async (request) => (isDown ? { status: 503, body: '' } : await pods.call(request)) });
    ask(cluster, 2);
    await cluster.env.advance(hourMs / 2);
    isDown = true;
    await cluster.env.advance(hourMs);
    expect(replicasOf(cluster)).toBe(4);
    isDown = false;
    await cluster.env.advance(120_000);
    expect(replicasOf(cluster)).toBe(2);
  });

  it('is cancelled on every pod if the source requests the replicas again', async () => {
    const cluster = mirrored();
    const pods = obedient(cluster);
    const process = startProcess({ env: cluster.env, pods: pods.call });
    ask(cluster, 1);
    await cluster.env.advance(60_000);
    expect(pods.prepared.size).toBe(3);
    ask(cluster, 4);
    await cluster.env.advance(60_000);
    expect(pods.prepared.size).toBe(0);
    const calls = process.podCalls.length;
    await cluster.env.advance(hourMs);
    expect(process.podCalls).toHaveLength(calls);
  });

  it.each(['beforeSend', 'afterReply'] as const)(
    'that is cancelled after the leader died at a call (%s) leaves no pod prepared',
    async (moment) => {
      const cluster = mirrored();
      const pods = obedient(cluster);
      const fault = (site: string, when: string) => (site === 'pods.prepare' && when === moment ? ('crash' as const) : undefined);
      const first = startProcess({ env: cluster.env, name: 'agent-1', pods: pods.call, fault });
      await cluster.env.advance(5000);
      ask(cluster, 2);
      await cluster.env.advance(10_000);
      expect(first.isAlive()).toBe(false);
      ask(cluster, 4);
      startProcess({ env: cluster.env, name: 'agent-2', pods: pods.call });
      await cluster.env.advance(120_000);
      expect([...pods.prepared]).toEqual([]);
      expect(replicasOf(cluster)).toBe(4);
      expect(cluster.api.get('configmaps', 'mimir', 'rollout-group-ingester')).toBeDefined();
    },
  );

  it.each<[string, PodResponse | 'hang' | 'refuse']>([
    ['refuses', 'refuse'],
    ['hangs', 'hang'],
    ['answers 500', { status: 500, body: '' }],
    ['says no time', { status: 200, body: '{}' }],
    ['says zero', { status: 200, body: '{"timestamp":0}' }],
    ['says a time before 1970', { status: 200, body: '{"timestamp":-5}' }],
    ['lies ahead', { status: 200, body: '{"timestamp":99999999999}' }],
    ['answers no JSON', { status: 200, body: 'ok' }],
  ])('does not begin while a pod %s, and makes no write while it is asked again', async (_what, answer) => {
    const cluster = mirrored();
    const process = startProcess({
      env: cluster.env,
      pods: async ({ timeoutMs }) => {
        if (answer === 'refuse') throw new Error('connect ECONNREFUSED');
        if (answer !== 'hang') return answer;
        await new Promise<void>((resolve) => cluster.env.timers.after(timeoutMs, resolve));
        throw new Error('no answer within its time');
      },
    });
    await cluster.env.advance(10_000);
    ask(cluster, 2);
    await cluster.env.advance(120_000);
    const asked = process.podCalls.length;
    const writes = cluster.writes().length;
    await cluster.env.advance(600_000);
    expect(process.podCalls.length).toBeGreaterThan(asked);
    expect(replicasOf(cluster)).toBe(4);
    expect(cluster.writes().slice(writes)).toEqual([]);
    const waits = process.reports.at(-1)?.decision?.waits ?? [];
    expect(waits.map(({ rule }) => rule)).toContain('delayed-downscale');
  });
});
