// The model of the disruption controller: what budgets say of themselves, and what evictions are then allowed.
import { describe, expect, it } from 'vitest';
import { newWorld, type World } from './world.ts';

const anybody = { user: 'somebody' };

function budget({ server }: World, zone: string) {
  const { conditions, ...status } = (server.get('poddisruptionbudgets.policy', 'mimir', `ingester-zone-${zone}`)?.['status'] ?? {}) as {
    readonly conditions: readonly { readonly reason: string }[];
    readonly disruptionsAllowed: number;
    readonly disruptedPods?: object;
  };
  return { disruptedPods: {}, ...status, reason: conditions[0]?.reason };
}

describe('the disruption controller', () => {
  it('reports the allowed disruptions from the start', () => {
    expect(budget(newWorld({ rotateBy: 'evict', maxUnavailable: 2 }), 'a')).toEqual({
      observedGeneration: 1,
      currentHealthy: 3,
      desiredHealthy: 1,
      expectedPods: 3,
      disruptionsAllowed: 2,
      disruptedPods: {},
      reason: 'SufficientPods',
    });
  });

  it('rounds percentages up', () => {
    expect(budget(newWorld({ rotateBy: 'evict', maxUnavailable: '34%' }), 'a')).toMatchObject({ desiredHealthy: 1, disruptionsAllowed: 2 });
  });

  it('hears of a pod that is down only after a while, and of its return', async () => {
    const world = newWorld({ rotateBy: 'evict' });
    const { cluster, run } = world;
    cluster.happen({ kind: 'podFails', zone: 'a', ordinal: 0, forMs: 20_000 });
    await run(5);
    expect(budget(world, 'a').disruptionsAllowed).toBe(1);
    await run(1000);
    expect(budget(world, 'a')).toMatchObject({ currentHealthy: 2, disruptionsAllowed: 0, reason: 'InsufficientPods' });
    expect(budget(world, 'b')).toMatchObject({ currentHealthy: 3, disruptionsAllowed: 1 });
    await run(20_000);
    expect(budget(world, 'a')).toMatchObject({ currentHealthy: 3, disruptionsAllowed: 1, reason: 'SufficientPods' });
  });

  it('allows one eviction, and no other until its successor is ready', async () => {
    const world = newWorld({ rotateBy: 'evict' });
    const { server, run, until, readyCount } = world;
    expect(server.evict(anybody, 'mimir', 'ingester-zone-a-0')).toBe(201);
    expect(server.evict(anybody, 'mimir', 'ingester-zone-a-1')).toBe(429);
    await run(2000);
    expect(server.evict(anybody, 'mimir', 'ingester-zone-a-1')).toBe(429);
    await until(() => readyCount('a') === 3);
    await run(1000);
    expect(server.evict(anybody, 'mimir', 'ingester-zone-a-1')).toBe(201);
  });

  it('follows the replicas that its StatefulSets should have', async () => {
    const world = newWorld({ rotateBy: 'evict' });
    world.cluster.happen({ kind: 'scaleByHand', zone: 'a', replicas: 5 });
    await world.run(1000);
    expect(budget(world, 'a')).toMatchObject({ expectedPods: 5, desiredHealthy: 4, disruptionsAllowed: 0 });
    await world.run(60_000);
    expect(budget(world, 'a')).toMatchObject({ currentHealthy: 5, disruptionsAllowed: 1 });
  });

  it('drops an eviction without a deletion after two minutes', async () => {
    const world = newWorld({ rotateBy: 'evict' });
    const { server, run } = world;
    const status = { disruptionsAllowed: 0, disruptedPods: { 'ingester-zone-a-1': '2026-01-15T12:00:00Z' } };
    server.change(anybody, { resource: 'poddisruptionbudgets.policy', namespace: 'mimir', name: 'ingester-zone-a' }, { status }, 'status');
    await run(1000);
    expect(budget(world, 'a')).toMatchObject({ currentHealthy: 2, disruptionsAllowed: 0 });
    await run(125_000);
    expect(budget(world, 'a')).toMatchObject({ currentHealthy: 3, disruptionsAllowed: 1, disruptedPods: {} });
  });
});
