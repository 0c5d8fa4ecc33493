import { describe, expect, it } from 'vitest';
import { startProcess } from '../kit/agent-process.ts';
import { adoptedGroup, newCluster, rolled } from '../kit/cluster.ts';

describe('a rollout', () => {
  it('brings three zones of three pods to the new image, one pod at a time, and is quiet afterwards', async () => {
    const cluster = newCluster();
    adoptedGroup(cluster);
    const process = startProcess({ env: cluster.env });
    await cluster.env.until(() => process.agent.isReady());
    await cluster.env.advance(60_000);
    expect(cluster.writes()).toEqual([]);

    cluster.rollTo('app:2');
    await cluster.env.until(() => rolled(cluster, 'app:2'), 3_600_000);
    expect(cluster.deletedPods()).toHaveLength(9);
    expect(new Set(cluster.deletedPods()).size).toBe(9);
    expect(cluster.maxDown()).toEqual({ zones: 1, pods: 1 });

    await cluster.env.advance(60_000);
    const before = cluster.writes().length;
    await cluster.env.advance(600_000);
    expect(cluster.writes().slice(before)).toEqual([]);
    await process.agent.stop();
  });
});
