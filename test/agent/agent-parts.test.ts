import { describe, expect, it } from 'vitest';
import { projectKinds, resourceOf } from '../../simulation/server/kinds.ts';
import { startProcess } from '../kit/agent-process.ts';
import { adoptedGroup, nativeGroup, newCluster, rolled } from '../kit/cluster.ts';
import { status } from '../kit/virtual-env.ts';

const original = [
  '* nodes',
  '* configmaps',
  '* leases.coordination.k8s.io',
  '* poddisruptionbudgets.policy',
  ...projectKinds.map((kind) => `* ${resourceOf(kind)}`),
];

describe('an agent that lacks something', () => {
  it('rolls an adopted group without CRDs, nodes, ConfigMaps and Leases, alone and loudly', async () => {
    const cluster = newCluster({ kinds: [] });
    adoptedGroup(cluster);
    cluster.api.forbid(...original);
    const lease = { mode: 'auto' as const, name: 'rollout-group', durationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2000 };
    const process = startProcess({ env: cluster.env, config: { lease } });
    await cluster.env.until(() => process.agent.isReady());
    cluster.rollTo('app:2');
    await cluster.env.until(() => rolled(cluster, 'app:2'), 600_000);
    expect(cluster.deletedPods()).toHaveLength(9);
    expect(cluster.maxDown()).toEqual({ zones: 1, pods: 1 });
    const ids = process.degradations().map(({ id, reason }) => `${id} ${reason}`);
    expect(ids).toEqual(expect.arrayContaining(['lease forbidden', 'ledger forbidden', 'watch/nodes forbidden']));
  });

  it('rolls out no group without ConfigMaps if a Lease is required', async () => {
    const cluster = newCluster();
    adoptedGroup(cluster);
    cluster.api.forbid('* configmaps');
    const process = startProcess({ env: cluster.env });
    cluster.rollTo('app:2');
    await cluster.env.advance(300_000);
    expect(cluster.deletedPods()).toEqual([]);
    expect(process.degradations().map(({ id }) => id)).toContain('ledger');
    cluster.api.permit('* configmaps');
    await cluster.env.until(() => rolled(cluster, 'app:2'), 1_200_000);
    expect(process.degradations().map(({ id }) => id)).not.toContain('ledger');
  });

  it('blocks every pod while policy objects exist that it may not read', async () => {
    const cluster = newCluster();
    adoptedGroup(cluster);
    cluster.api.forbid('* rolloutpolicies.rollout-group.dev');
    const process = startProcess({ env: cluster.env });
    cluster.rollTo('app:2');
    await cluster.env.advance(120_000);
    expect(cluster.deletedPods()).toEqual([]);
    expect(process.reports.at(-1)?.decision?.waits.map(({ rule }) => rule)).toContain('unreadable-objects/hold');
  });

  it('names a kind that is not installed, and continues without it', async () => {
    const cluster = newCluster({ kinds: projectKinds.filter(({ plural }) => plural !== 'rolloutintents') });
    adoptedGroup(cluster);
    const process = startProcess({ env: cluster.env });
    cluster.rollTo('app:2');
    await cluster.env.until(() => rolled(cluster, 'app:2'), 600_000);
    expect(process.degradations().map(({ id, reason }) => `${id} ${reason}`)).toEqual(['watch/rolloutintents missing']);
  });
});

describe('the view of the agent', () => {
  it('is too old for a decision while the caches show a state before the writes of the agent', async () => {
    const cluster = newCluster();
    adoptedGroup(cluster);
    let hasFrozen = false;
    const process = startProcess({
      env: cluster.env,
      fault: (site) => {
        if (site === 'act.deletePod' && !hasFrozen) cluster.api.hold();
        hasFrozen ||= site === 'act.deletePod';
        return undefined;
      },
    });
    await cluster.env.advance(10_000);
    cluster.rollTo('app:2');
    await cluster.env.advance(45_000);
    // It was read past them, so the group went on.
    expect(cluster.deletedPods().length).toBeGreaterThan(1);
    cluster.api.release();
    await cluster.env.until(() => rolled(cluster, 'app:2'), 600_000);
    expect(process.reports.flatMap(({ performed }) => performed).filter(({ result }) => result === 'conflict')).toEqual([]);
    expect(new Set(cluster.deletedPods()).size).toBe(9);
    expect(cluster.maxDown()).toEqual({ zones: 1, pods: 1 });
    expect(process.reports.filter(({ error }) => error !== undefined)).toEqual([]);
  });

  it('may be a pod that changes between reads: a late deletion is evaluated again', async () => {
    const cluster = newCluster();
    adoptedGroup(cluster);
    let meddled = 0;
    const process = startProcess({
      env: cluster.env,
      fault: (site, moment) => {
        if (site !== 'act.deletePod' || moment !== 'beforeSend' || meddled >= 5) return undefined;
        meddled += 1;
        for (const { metadata } of cluster.api.list('pods', 'mimir')) {
          cluster.api.change('pods', 'mimir', metadata.name, { metadata: { annotations: { meddled: `${meddled}` } } });
        }
        return undefined;
      },
    });
    cluster.rollTo('app:2');
    await cluster.env.until(() => rolled(cluster, 'app:2'), 600_000);
    expect(meddled).toBe(5);
    expect(cluster.deletedPods()).toHaveLength(9);
    expect(process.reports.flatMap(({ performed }) => performed).filter(({ result }) => result === 'conflict').length).toBeGreaterThan(0);
  });

  it('repairs a group if half a zone crash-loops and the image is corrected', async () => {
    const cluster = newCluster();
    nativeGroup(cluster, { rollout: { strategy: 'onDelete', rotateBy: 'delete', replaceUnready: { when: 'any', after: '1m' } } });
    startProcess({ env: cluster.env });
    cluster.rollTo('broken/app:2');
    await cluster.env.advance(300_000);
    expect(cluster.deletedPods()).toHaveLength(1);
    cluster.rollTo('app:3');
    await cluster.env.until(() => rolled(cluster, 'app:3'), 1_200_000);
    expect(cluster.maxDown().zones).toBe(1);
  });
});

describe('evictions', () => {
  const budget = (maxUnavailable: number) => ({
    metadata: { name: 'all', namespace: 'mimir' },
    spec: { maxUnavailable, selector: { matchLabels: {} } },
  });

  it('keep to a PodDisruptionBudget over all zones', async () => {
    const cluster = newCluster();
    nativeGroup(cluster, { rollout: { strategy: 'onDelete', rotateBy: 'evict', maxUnavailable: 2 } });
    cluster.api.put('poddisruptionbudgets.policy', budget(1));
    const process = startProcess({ env: cluster.env });
    cluster.rollTo('app:2');
    await cluster.env.until(() => rolled(cluster, 'app:2'), 600_000);
    expect(cluster.maxDown()).toEqual({ zones: 1, pods: 1 });
    expect(process.reports.filter(({ error }) => error !== undefined)).toEqual([]);
  });

  it('that a PodDisruptionBudget denied are repeated and do not count as failures', async () => {
    const cluster = newCluster();
    nativeGroup(cluster, { rollout: { strategy: 'onDelete', rotateBy: 'evict' } });
    const process = startProcess({ env: cluster.env });
    await cluster.env.advance(5000);
    let refusals = 0;
    cluster.env.replaceServer((request) => {
      const isRefused = request.site === 'act.evictPod' && refusals < 4;
      refusals += isRefused ? 1 : 0;
      return isRefused ? status(429, 'TooManyRequests', 'the budget does not allow it') : cluster.api.serve(request);
    });
    cluster.rollTo('app:2');
    await cluster.env.until(() => rolled(cluster, 'app:2'), 600_000);
    await cluster.env.advance(10_000);
    expect(refusals).toBe(4);
    expect(process.reports.filter(({ error }) => error !== undefined)).toEqual([]);
    expect(process.reports.at(-1)?.ledger?.claims).toEqual([]);
  });
});

describe('time', () => {
  it('wakes a group at the instant that its decision names, without a write before', async () => {
    const cluster = newCluster();
    const waves = [
      { name: 'canary', zones: ['a'], percent: 100, after: { soak: '30m' } },
      { name: 'rest', zones: ['b', 'c'], percent: 100 },
    ];
    nativeGroup(cluster, { rollout: { strategy: 'onDelete', rotateBy: 'delete', waves } });
    startProcess({ env: cluster.env });
    await cluster.env.advance(10_000);
    cluster.rollTo('app:2');
    await cluster.env.advance(120_000);
    expect(cluster.deletedPods()).toHaveLength(3);
    const writes = cluster.writes().length;
    await cluster.env.advance(25 * 60_000);
    expect(cluster.writes().slice(writes)).toEqual([]);
    await cluster.env.advance(10 * 60_000);
    expect(cluster.deletedPods()).toHaveLength(9);
  });

  it('releases the Lease at shutdown, although a turn hangs', async () => {
    const cluster = newCluster();
    adoptedGroup(cluster);
    const { serve } = cluster.api;
    cluster.env.replaceServer((request) =>
      request.site === 'fresh.statefulSet' ? { lost: 'before-apply', forever: true } : serve(request),
    );
    const { agent } = startProcess({ env: cluster.env });
    const holder = () =>
      (
        cluster.api.get('leases.coordination.k8s.io', 'mimir', 'rollout-group')?.['spec'] as
          | { readonly holderIdentity?: string }
          | undefined
      )?.holderIdentity;
    await cluster.env.until(() => cluster.env.requests.some(({ site }) => site === 'fresh.statefulSet'));
    expect(holder()).toBe('agent-1');
    const end = agent.stop();
    await cluster.env.advance(16_000);
    expect(holder()).toBe('');
    await cluster.env.finish(end);
  });

  it('hands over at once at shutdown', async () => {
    const cluster = newCluster();
    adoptedGroup(cluster);
    const first = startProcess({ env: cluster.env, name: 'agent-1' });
    await cluster.env.advance(5000);
    startProcess({ env: cluster.env, name: 'agent-2' });
    await cluster.env.advance(5000);
    cluster.rollTo('app:2');
    await cluster.env.until(() => cluster.deletedPods().length === 2);
    await cluster.env.finish(first.agent.stop());
    const stoppedAt = first.reports.length;
    await cluster.env.until(() => cluster.deletedPods().length === 3, 15_000);
    await cluster.env.until(() => rolled(cluster, 'app:2'), 600_000);
    expect(first.reports).toHaveLength(stoppedAt);
    expect(cluster.maxDown()).toEqual({ zones: 1, pods: 1 });
  });
});
