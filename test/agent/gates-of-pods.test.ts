import { describe, expect, it } from 'vitest';
import type { PodResponse } from '../../agent/env.ts';
import { startProcess } from '../kit/agent-process.ts';
import { type Cluster, nativeGroup, newCluster, rolled } from '../kit/cluster.ts';

const every = { every: '10s', consecutive: 3, failureLimit: 0, noData: 'hold', onError: 'hold' };
const waves = (part: 'before' | 'after') => [
  { name: 'first', zones: ['a'], percent: 100, [part]: { gates: ['pods'] } },
  { name: 'rest', zones: ['b', 'c'], percent: 100 },
];

function world(provider: object, part: 'before' | 'after' = 'after'): Cluster {
  const cluster = newCluster();
  nativeGroup(cluster, {
    gates: [{ name: 'pods', ...every, ...provider }],
    rollout: { strategy: 'onDelete', rotateBy: 'delete', waves: waves(part) },
  });
  return cluster;
}

function heldBy(process: ReturnType<typeof startProcess>): string | undefined {
  return process.reports.at(-1)?.decision?.waits.find(({ rule }) => rule === 'gate')?.fact;
}

describe('a gate on the availability of pods', () => {
  it('waits until every updated pod of the wave is ready for the required time, three times in a row', async () => {
    // One failure would fail the run: pods that have just become available are none.
    const cluster = world({ podsAvailable: { minReadySeconds: 60 }, failureLimit: 1 });
    const { env } = cluster;
    const process = startProcess({ env });
    await env.advance(5_000);
    cluster.rollTo('app:2');
    await env.until(() => heldBy(process) !== undefined, 120_000);
    const availableMs = env.clock.monotonicMs();
    expect(cluster.deletedPods()).toHaveLength(3);
    await env.advance(30_000);
    expect(heldBy(process)).toBe('pods has no reading yet');
    await env.until(() => cluster.deletedPods().length === 4, 300_000);
    const tookMs = env.clock.monotonicMs() - availableMs;
    // The last pod has been ready for a minute, and two more readings have come after that.
    expect(tookMs).toBeGreaterThan(70_000);
    expect(tookMs).toBeLessThan(95_000);
    await env.until(() => rolled(cluster, 'app:2'), 600_000);
    await process.agent.stop();
  });

  it('blocks the first pod while the group is not available', async () => {
    const cluster = world({ podsAvailable: { minReadySeconds: 0 } }, 'before');
    const { env } = cluster;
    const process = startProcess({ env });
    await env.advance(5_000);
    cluster.rollTo('app:2');
    await env.until(() => cluster.deletedPods().length > 0, 120_000);
    // Three readings, ten seconds apart.
    expect(process.reports.filter(({ decision }) => decision?.waits.some(({ rule }) => rule === 'gate')).length).toBeGreaterThan(2);
    await env.until(() => rolled(cluster, 'app:2'), 600_000);
  });
});

describe('a gate that probes the pods', () => {
  const provider = { http: { port: 8080, path: '/ready' } };

  it('blocks while an updated pod does not answer, asks no other pod, and continues when all answer', async () => {
    const cluster = world(provider);
    const { env } = cluster;
    let answer: PodResponse = { status: 503, body: 'not now' };
    const process = startProcess({ env, pods: async () => answer });
    await env.advance(5_000);
    cluster.rollTo('app:2');
    await env.until(() => heldBy(process) !== undefined, 120_000);
    await env.advance(60_000);
    expect(cluster.deletedPods()).toHaveLength(3);
    expect(heldBy(process)).toContain('pods is 3; 0 of 3 successes in a row');
    const hosts = new Set(process.podCalls.map(({ method, url }) => `${method} ${new URL(url).hostname.split('.')[0]}`));
    expect([...hosts].sort()).toEqual([0, 1, 2].map((ordinal) => `GET ingester-zone-a-${ordinal}`));
    answer = { status: 200, body: '' };
    await env.until(() => cluster.deletedPods().length === 4, 60_000);
    await env.until(() => rolled(cluster, 'app:2'), 600_000);
    const calls = process.podCalls.length;
    await env.advance(300_000);
    expect(process.podCalls).toHaveLength(calls);
    await process.agent.stop();
  });

  it('has no data before the first pod, and passes only if the gate allows missing data', async () => {
    const cluster = world(provider, 'before');
    const { env } = cluster;
    const process = startProcess({ env, pods: async () => ({ status: 200, body: '' }) });
    await env.advance(5_000);
    cluster.rollTo('app:2');
    await env.advance(120_000);
    expect(cluster.deletedPods()).toEqual([]);
    expect(heldBy(process)).toContain('pods has no data');
    expect(process.podCalls).toEqual([]);
  });
});
