// The model of the nodes: lost ones whose pods nobody hears of, and drained ones whose pods are evicted under their budgets.
import { describe, expect, it } from 'vitest';
import { conditionsOf, newWorld, type World } from './world.ts';

const nodeConditions = ({ server }: World): readonly string[] =>
  server.list('nodes').map((node) => `${node.metadata.name} ${conditionsOf(node).join(' ')}`);
const unreadyNodes = (world: World): number => nodeConditions(world).filter((line) => line.endsWith('Ready=Unknown')).length;

describe('a node that is lost', () => {
  it('is noticed after a while, its pods are not ready then, and are again when it is back', async () => {
    const world = newWorld();
    const { cluster, run, until, pods, readyCount } = world;
    const before = pods('b').map(({ uid }) => uid);
    cluster.happen({ kind: 'nodeLost', zone: 'b', forMs: 120_000 });
    await run(9000);
    expect([unreadyNodes(world), readyCount('b')]).toEqual([0, 3]);
    await until(() => unreadyNodes(world) === 1);
    await run(100);
    const lost = nodeConditions(world)
      .find((line) => line.endsWith('Ready=Unknown'))
      ?.split(' ')[0];
    expect(pods('b').map(({ node, isReady }) => isReady === (node !== lost))).toEqual([true, true, true]);
    expect([readyCount('a'), readyCount('c')]).toEqual([3, 3]);
    await run(120_000);
    expect([unreadyNodes(world), readyCount('b')]).toEqual([0, 3]);
    expect(pods('b').map(({ uid }) => uid)).toEqual(before);
  });

  it('keeps pods that are deleted until it is back', async () => {
    const world = newWorld();
    const { cluster, run, until, pods, readyCount } = world;
    cluster.happen({ kind: 'nodeLost', zone: 'a', forMs: 100_000 });
    await until(() => unreadyNodes(world) === 1);
    await run(200);
    const lost = pods('a').filter(({ isReady }) => !isReady);
    expect(lost.length).toBeGreaterThan(0);
    for (const { ordinal } of lost) cluster.happen({ kind: 'deletePod', zone: 'a', ordinal });
    await run(30_000);
    expect(
      pods('a')
        .filter(({ isTerminating }) => isTerminating)
        .map(({ uid }) => uid),
    ).toEqual(lost.map(({ uid }) => uid));
    cluster.heal();
    await run(1000);
    await until(() => readyCount('a') === 3);
    expect(pods('a').filter(({ uid }) => lost.some((pod) => pod.uid === uid))).toEqual([]);
  });

  it('writes the conditions that the node controllers of Kubernetes write', async () => {
    const { cluster, run, server, pods } = newWorld();
    cluster.happen({ kind: 'nodeLost', zone: 'a', forMs: 500_000 });
    const conditions = () =>
      pods('a').map(({ name, isReady, isTerminating }) => {
        const { status } = server.get('pods', 'mimir', name) as unknown as { status: { conditions: { type: string; reason?: string }[] } };
        const told = status.conditions.filter(({ type }) => type === 'Ready' || type === 'DisruptionTarget');
        return [isReady, isTerminating, ...told.map(({ type, reason }) => `${type} ${reason}`)];
      });
    await run(51_000);
    expect(conditions()).toContainEqual([false, false, 'Ready undefined']);
    await run(301_000);
    expect(conditions()).toContainEqual([false, true, 'Ready undefined', 'DisruptionTarget DeletionByTaintManager']);
  });

  it('loses its pods after five minutes, and not a moment before they can go', async () => {
    const world = newWorld();
    const { cluster, run, pods } = world;
    cluster.happen({ kind: 'nodeLost', zone: 'a', forMs: 500_000 });
    await run(290_000);
    expect(pods('a').filter(({ isTerminating }) => isTerminating)).toEqual([]);
    await run(70_000);
    const terminating = pods('a').filter(({ isTerminating }) => isTerminating);
    expect(terminating.length).toBeGreaterThan(0);
    expect(new Set(terminating.map(({ node }) => node)).size).toBe(1);
  });
});

describe('a node that is drained', () => {
  it('loses its pods one after the other, and accepts pods again', async () => {
    const { cluster, run, until, server, pods, readyCount, told } = newWorld();
    const before = pods('c').map(({ uid }) => uid);
    cluster.happen({ kind: 'nodeDrained', zone: 'c' });
    const [, name = ''] = /cluster: (\S+) is drained/.exec(told[0] ?? '') ?? [];
    const leaving = pods('c').filter(({ node }) => node === name);
    expect(server.get('nodes', '', name)?.['spec']).toMatchObject({ unschedulable: true });
    await run(60_000);
    await until(() => readyCount('c') === 3 && Object.keys(server.get('nodes', '', name)?.['spec'] ?? {}).length === 0);
    const kept = pods('c').filter(({ uid }) => before.includes(uid));
    expect(kept.map(({ uid }) => uid)).toEqual(before.filter((uid) => !leaving.some((pod) => pod.uid === uid)));
  });

  it('waits for the budget: no second pod of the zone is evicted while one is down', async () => {
    const world = newWorld({ rotateBy: 'evict', maxUnavailable: 1, startMs: 20_000 });
    const { cluster, run, commits, pods, readyCount } = world;
    let fewest = 3;
    cluster.happen({ kind: 'nodeDrained', zone: 'a' });
    for (let step = 0; step < 3000; step += 1) {
      await run(100);
      fewest = Math.min(fewest, readyCount('a'));
    }
    const evicted = commits.filter(
      ({ resource, after, before, actor }) =>
        resource === 'pods' &&
        actor.user === 'kubernetes-admin' &&
        after.metadata.deletionTimestamp !== undefined &&
        before?.metadata.deletionTimestamp === undefined,
    );
    expect(evicted.length).toBeGreaterThan(0);
    expect([fewest, pods('a').length]).toEqual([2, 3]);
    cluster.heal();
    await run(120_000);
    expect(readyCount('a')).toBe(3);
  });
});
