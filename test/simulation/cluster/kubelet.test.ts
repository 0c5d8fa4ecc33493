// The model of the kubelets on the model server: what is told of a pod from its making to its end.
import { describe, expect, it } from 'vitest';
import { conditionsOf, containerStateOf, newWorld, type World } from './world.ts';

/** Every version of the pods of one name from now on, by what is to be seen of it. */
function storyOf({ commits }: World, name: string): readonly string[] {
  return commits
    .filter(({ resource, after }) => resource === 'pods' && after.metadata.name === name)
    .map(({ type, after }) => {
      const ready = conditionsOf(after).find((condition) => condition.startsWith('Ready=')) ?? 'Ready=';
      const { phase = '' } = (after['status'] ?? {}) as { readonly phase?: string };
      const going = after.metadata.deletionTimestamp === undefined ? '' : ' terminating';
      return type === 'DELETED' ? 'gone' : `${phase} ${containerStateOf(after) || '-'} ${ready}${going}`;
    });
}

describe('the kubelets', () => {
  it('report a pod in small steps', async () => {
    const world = newWorld({}, 3);
    const { cluster, run, until, readyCount } = world;
    cluster.happen({ kind: 'deletePod', zone: 'a', ordinal: 0 });
    await run(2000);
    await until(() => readyCount('a') === 3);
    expect(storyOf(world, 'ingester-zone-a-0')).toMatchInlineSnapshot(`
      [
        "Running running Ready=True terminating",
        "Succeeded Error Ready=False terminating",
        "Succeeded Error Ready=False terminating",
        "gone",
        "Pending - Ready=",
        "Pending - Ready=",
        "Pending ContainerCreating Ready=False",
        "Running running Ready=False",
        "Running running Ready=True",
      ]
    `);
  });

  it('write whole seconds, and another time only if readiness changes', async () => {
    const { cluster, run, server } = newWorld();
    const transition = () => {
      const { conditions = [] } = (server.get('pods', 'mimir', 'ingester-zone-a-0')?.['status'] ?? {}) as {
        readonly conditions?: readonly { readonly type: string; readonly lastTransitionTime: string }[];
      };
      return conditions.find(({ type }) => type === 'Ready')?.lastTransitionTime ?? '';
    };
    const before = transition();
    await run(10_500);
    cluster.happen({ kind: 'podFails', zone: 'a', ordinal: 0, forMs: 30_000 });
    const failed = transition();
    expect([before < failed, failed]).toEqual([true, '2026-01-15T12:00:10Z']);
    await run(20_000);
    expect(transition()).toBe(failed);
    await run(11_000);
    expect(transition()).toBe('2026-01-15T12:00:40Z');
  });

  it('keep a pod failing until every cause ends', async () => {
    const { cluster, run, pod } = newWorld();
    cluster.happen({ kind: 'podFails', zone: 'a', ordinal: 0, forMs: 30_000 });
    cluster.happen({ kind: 'podFails', zone: 'a', ordinal: 0, forMs: 60_000 });
    await run(40_000);
    expect(pod('a', 0).isReady).toBe(false);
    await run(21_000);
    expect(pod('a', 0).isReady).toBe(true);
  });

  it('change the readiness of a pod as often as configured', async () => {
    const { cluster, run, commits, pod } = newWorld();
    cluster.happen({ kind: 'podFlaps', zone: 'b', ordinal: 2, times: 3 });
    await run(60_000);
    const changes = commits.filter(({ resource, after }) => resource === 'pods' && after.metadata.name === 'ingester-zone-b-2');
    expect(changes).toHaveLength(6);
    expect(pod('b', 2).isReady).toBe(true);
  });

  it('start a container again that has died, in the same pod, or leave the pod to be replaced', async () => {
    const outcomes = new Set<string>();
    for (const seed of [1, 2, 3, 4, 5, 6]) {
      const world = newWorld({}, seed);
      const { cluster, run, until, pod, readyCount } = world;
      const { uid } = pod('a', 0);
      cluster.happen({ kind: 'podDies', zone: 'a', ordinal: 0 });
      expect(pod('a', 0).isReady).toBe(false);
      await run(1000);
      await until(() => readyCount('a') === 3);
      const isSame = pod('a', 0).uid === uid;
      outcomes.add(`${isSame ? 'same' : 'other'} pod, ${storyOf(world, 'ingester-zone-a-0')[0]}`);
    }
    expect(outcomes).toEqual(new Set(['same pod, Running Error Ready=False', 'other pod, Failed Error Ready=False']));
  });

  it('back off from an image that is broken, again and again', async () => {
    const world = newWorld({}, 2);
    const { cluster, run, server, pod } = world;
    cluster.happen({ kind: 'setImage', image: 'broken/app:2' });
    await run(2000);
    cluster.happen({ kind: 'deletePod', zone: 'a', ordinal: 0 });
    await run(120_000);
    expect(pod('a', 0)).toMatchObject({ isReady: false, phase: 'Running' });
    expect(storyOf(world, 'ingester-zone-a-0').filter((line) => line.includes('CrashLoopBackOff')).length).toBeGreaterThan(2);
    const { containerStatuses = [] } = (server.get('pods', 'mimir', 'ingester-zone-a-0')?.['status'] ?? {}) as {
      readonly containerStatuses?: readonly { readonly restartCount: number }[];
    };
    expect(containerStatuses[0]?.restartCount).toBeGreaterThan(2);
    cluster.heal();
    expect(cluster.wanted()[0]?.image).toBe('app:1');
  });

  it('keep a pod that does not end, until it does', async () => {
    const { cluster, run, pod } = newWorld();
    const { uid } = pod('a', 0);
    cluster.happen({ kind: 'stuckTerminating', zone: 'a', ordinal: 0, forMs: 90_000 });
    cluster.happen({ kind: 'deletePod', zone: 'a', ordinal: 0 });
    await run(85_000);
    expect(pod('a', 0)).toMatchObject({ uid, isTerminating: true });
    await run(10_000);
    expect(pod('a', 0).uid).not.toBe(uid);
  });

  it('are as slow as configured, for pods that start from then on', async () => {
    const timeOf = async (startFactor: number, drainFactor: number): Promise<number> => {
      const { cluster, run, until, readyCount, nowMs } = newWorld();
      cluster.happen({ kind: 'slowKubelet', startFactor, drainFactor, forMs: 400_000 });
      cluster.happen({ kind: 'deletePod', zone: 'a', ordinal: 0 });
      await run(500);
      await until(() => readyCount('a') === 3);
      return nowMs();
    };
    const usual = await timeOf(1, 1);
    const slowStart = await timeOf(10, 1);
    const slowEnd = await timeOf(1, 10);
    expect(slowStart).toBeGreaterThan(usual + 15_000);
    expect(slowEnd).toBeGreaterThan(usual + 10_000);
  });
});
