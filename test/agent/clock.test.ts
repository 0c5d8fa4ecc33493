import { describe, expect, it } from 'vitest';
import { startProcess } from '../kit/agent-process.ts';
import { nativeGroup, newCluster, rolled } from '../kit/cluster.ts';

/** A leader that died before the eviction that it had announced was sent, or so it seems; then the clock is set. */
async function afterDeath(jumpMs: number) {
  const cluster = newCluster();
  nativeGroup(cluster, { rollout: { strategy: 'onDelete', rotateBy: 'evict' } });
  const fault = (site: string) => (site === 'act.evictPod' ? ('crash' as const) : undefined);
  const first = startProcess({ env: cluster.env, name: 'agent-1', fault });
  await cluster.env.advance(5000);
  cluster.rollTo('app:2');
  await cluster.env.until(() => !first.isAlive());
  cluster.env.jumpWallClock(jumpMs);
  const second = startProcess({ env: cluster.env, name: 'agent-2' });
  await cluster.env.until(() => second.reports.length > 0);
  return cluster;
}

describe('a claim whose request may not have arrived yet', () => {
  it('is not dropped early because the clock was set forward', async () => {
    const cluster = await afterDeath(3_600_000);
    await cluster.env.advance(100_000);
    expect(cluster.deletedPods()).toEqual([]);
    await cluster.env.until(() => rolled(cluster, 'app:2'), 3_600_000);
    expect(cluster.maxDown()).toEqual({ zones: 1, pods: 1 });
  });

  it('does not block the group for an hour because the clock was set back', async () => {
    const cluster = await afterDeath(-3_600_000);
    await cluster.env.until(() => cluster.deletedPods().length > 0, 180_000);
    await cluster.env.until(() => rolled(cluster, 'app:2'), 3_600_000);
    expect(cluster.maxDown()).toEqual({ zones: 1, pods: 1 });
  });
});
