// The model of the StatefulSet controller on the model server: what it makes of templates, deletions, numbers and its own stale cache.
import { describe, expect, it } from 'vitest';
import { specOf } from '../../../simulation/cluster/workload.ts';
import { newWorld } from './world.ts';

const anybody = { user: 'somebody' };

describe('the StatefulSet controller', () => {
  it('names each template once: a rollback has the old update revision again', async () => {
    const { cluster, run, status, server } = newWorld();
    const first = status('a').updateRevision;
    cluster.happen({ kind: 'setImage', image: 'app:2' });
    await run(5000);
    const second = status('a').updateRevision;
    expect(second).not.toBe(first);
    expect(status('a')).toMatchObject({ observedGeneration: 2, currentReplicas: 3, currentRevision: first });
    expect(status('a').updatedReplicas ?? 0).toBe(0);
    cluster.happen({ kind: 'setImage', image: 'app:1' });
    await run(5000);
    expect(status('a')).toMatchObject({ observedGeneration: 3, updatedReplicas: 3, updateRevision: first });
    const revisions = server.list('controllerrevisions.apps', 'mimir').filter(({ metadata }) => metadata.name.includes('zone-a'));
    expect(new Map(revisions.map((one) => [one.metadata.name, one['revision']]))).toEqual(
      new Map([
        [first, 3],
        [second, 2],
      ]),
    );
  });

  it('reports a new template only some time after its write', async () => {
    const { cluster, run, set, status } = newWorld();
    cluster.happen({ kind: 'setImage', image: 'app:2', zones: ['a'] });
    await run(5);
    expect([set('a').metadata.generation, status('a').observedGeneration]).toEqual([2, 1]);
    await run(1000);
    expect(status('a').observedGeneration).toBe(2);
  });

  it('replaces a deleted pod, at the update revision, and no other pod', async () => {
    const { cluster, run, until, pods, pod, status, readyCount } = newWorld();
    cluster.happen({ kind: 'setImage', image: 'app:2' });
    await run(30_000);
    const [before] = [pod('a', 1).uid];
    expect(new Set(pods('a').map(({ revision }) => revision))).toEqual(new Set([status('a').currentRevision]));
    cluster.happen({ kind: 'deletePod', zone: 'a', ordinal: 1 });
    await until(() => readyCount('a') === 3 && pod('a', 1).uid !== before);
    await run(1000);
    expect(pod('a', 1)).toMatchObject({ revision: status('a').updateRevision, containers: [{ image: 'app:2' }] });
    expect(status('a')).toMatchObject({ updatedReplicas: 1, currentReplicas: 2, readyReplicas: 3 });
    // With OnDelete nobody but whoever rolls the group advances it.
    expect(status('a').currentRevision).not.toBe(status('a').updateRevision);
  });

  it('makes pods of the old revision while it works with the past', async () => {
    const { cluster, run, until, pod, pods, status, readyCount } = newWorld();
    cluster.happen({ kind: 'setImage', image: 'app:2' });
    await run(5000);
    const old = pod('a', 0).revision;
    cluster.happen({ kind: 'scaleByHand', zone: 'a', replicas: 4 });
    await until(() => readyCount('a') === 4);
    cluster.happen({ kind: 'controllerIsStale', forMs: 30_000 });
    cluster.happen({ kind: 'deletePod', zone: 'a', ordinal: 0 });
    const { uid } = pod('a', 0);
    await until(() => pods('a').some((one) => one.ordinal === 0 && one.uid !== uid));
    expect(pod('a', 0).revision).toBe(old);
    await run(40_000);
    expect(status('a')).toMatchObject({ observedGeneration: 3, replicas: 4, updatedReplicas: 1 });
    expect(status('a').updateRevision).not.toBe(old);
    cluster.happen({ kind: 'deletePod', zone: 'a', ordinal: 0 });
    await run(1000);
    await until(() => readyCount('a') === 4);
    expect(pod('a', 0).revision).toBe(status('a').updateRevision);
  });

  it('lags for the configured time', async () => {
    const { cluster, run, status } = newWorld();
    cluster.happen({ kind: 'controllerLags', delayMs: 20_000, forMs: 60_000 });
    cluster.happen({ kind: 'setImage', image: 'app:2' });
    await run(19_000);
    expect(status('a').observedGeneration).toBe(1);
    await run(3000);
    expect(status('a').observedGeneration).toBe(2);
  });

  it('hears of everything at once when it lags no more', async () => {
    const { cluster, run, status } = newWorld();
    cluster.happen({ kind: 'controllerLags', delayMs: 60_000, forMs: 60_000 });
    cluster.happen({ kind: 'setImage', image: 'app:2' });
    await run(2000);
    cluster.heal();
    await run(10);
    expect(status('a').observedGeneration).toBe(2);
  });

  it('scales all at once with Parallel and one by one, in order, with OrderedReady', async () => {
    const readyOrder = async (podManagementPolicy: 'Parallel' | 'OrderedReady') => {
      const { cluster, until, commits, readyCount, pods } = newWorld({ podManagementPolicy, podsPerZone: 1 });
      cluster.happen({ kind: 'scaleByHand', zone: 'a', replicas: 4 });
      await until(() => readyCount('a') === 4);
      cluster.happen({ kind: 'scaleByHand', zone: 'a', replicas: 1 });
      await until(() => pods('a').length === 1);
      const waits: string[] = [];
      for (const { type, resource, after, before } of commits) {
        if (resource !== 'pods') continue;
        const isMarked = after.metadata.deletionTimestamp !== undefined && before?.metadata.deletionTimestamp === undefined;
        if (type === 'ADDED') waits.push(`make ${after.metadata.name.slice(-1)}`);
        else if (type === 'DELETED') waits.push(`gone ${after.metadata.name.slice(-1)}`);
        else if (isMarked) waits.push(`delete ${after.metadata.name.slice(-1)}`);
      }
      return waits.join(', ');
    };
    expect(await readyOrder('OrderedReady')).toBe('make 1, make 2, make 3, delete 3, gone 3, delete 2, gone 2, delete 1, gone 1');
    expect((await readyOrder('Parallel')).startsWith('make 1, make 2, make 3, delete 3, delete 2, delete 1')).toBe(true);
  });

  it('rolls by itself while its strategy is RollingUpdate, and then its current revision is the new one', async () => {
    const { cluster, until, run, pods, status, set } = newWorld();
    cluster.happen({ kind: 'setStrategy', zone: 'a', type: 'RollingUpdate', forMs: 300_000 });
    cluster.happen({ kind: 'setImage', image: 'app:2', zones: ['a'] });
    await until(() => pods('a').length === 3 && pods('a').every((pod) => pod.isReady && pod.containers[0]?.image === 'app:2'));
    await run(1000);
    expect(status('a')).toMatchObject({ updatedReplicas: 3, currentReplicas: 3, currentRevision: status('a').updateRevision });
    await run(300_000);
    expect(specOf(set('a')).updateStrategy).toEqual({ type: 'OnDelete' });
  });

  it('never deletes a broken pod below others with OrderedReady, with any current template', async () => {
    const { cluster, run, pod } = newWorld({ podManagementPolicy: 'OrderedReady' });
    cluster.happen({ kind: 'setStrategy', zone: 'a', type: 'RollingUpdate', forMs: 500_000 });
    cluster.happen({ kind: 'setImage', image: 'broken/app:2', zones: ['a'] });
    await run(60_000);
    expect(pod('a', 2)).toMatchObject({ isReady: false, containers: [{ image: 'broken/app:2' }] });
    cluster.happen({ kind: 'setImage', image: 'app:3', zones: ['a'] });
    await run(120_000);
    expect(pod('a', 2).containers[0]?.image).toBe('broken/app:2');
  });

  it('keeps a foreign current revision while it is one of its revisions', async () => {
    const { cluster, server, run, status, until, pods } = newWorld();
    cluster.happen({ kind: 'setImage', image: 'app:2' });
    await run(3000);
    const { updateRevision } = status('a');
    for (const ordinal of [0, 1, 2]) cluster.happen({ kind: 'deletePod', zone: 'a', ordinal });
    await run(1000);
    await until(() => pods('a').length === 3 && pods('a').every((pod) => pod.isReady && pod.revision === updateRevision));
    server.change(
      anybody,
      { resource: 'statefulsets.apps', namespace: 'mimir', name: 'ingester-zone-a' },
      { status: { currentRevision: updateRevision } },
      'status',
    );
    await run(10_000);
    expect(status('a')).toMatchObject({ currentRevision: updateRevision, currentReplicas: 3, updatedReplicas: 3 });
  });

  it('counts a pod as available only when it has been ready long enough', async () => {
    const { cluster, run, until, status, readyCount } = newWorld({ minReadySeconds: 30 });
    cluster.happen({ kind: 'deletePod', zone: 'a', ordinal: 0 });
    await run(1000);
    await until(() => readyCount('a') === 3);
    await run(1000);
    expect(status('a')).toMatchObject({ readyReplicas: 3, availableReplicas: 2 });
    await run(32_000);
    expect(status('a')).toMatchObject({ readyReplicas: 3, availableReplicas: 3 });
  });

  it('takes over the pods of a StatefulSet that was deleted without them', async () => {
    const { cluster, run, pods, set, status } = newWorld();
    const before = pods('a').map(({ uid }) => uid);
    const old = set('a').metadata.uid;
    cluster.happen({ kind: 'recreateStatefulSet', zone: 'a', isOrphaning: true, afterMs: 5000 });
    await run(4000);
    expect(pods('a').map(({ uid, isOrphan }) => `${uid} ${isOrphan}`)).toEqual(before.map((uid) => `${uid} true`));
    await run(5000);
    expect(set('a').metadata.uid).not.toBe(old);
    expect(pods('a').map(({ uid, owner }) => `${uid} ${owner?.uid}`)).toEqual(before.map((uid) => `${uid} ${set('a').metadata.uid}`));
    expect(status('a')).toMatchObject({ replicas: 3, readyReplicas: 3, updatedReplicas: 3 });
  });

  it('recreates every pod when the StatefulSet was deleted with them, as soon as the names are free', async () => {
    const { cluster, run, until, pods, set, readyCount } = newWorld({ drainMs: 20_000 });
    const before = pods('a').map(({ uid }) => uid);
    cluster.happen({ kind: 'recreateStatefulSet', zone: 'a', isOrphaning: false, afterMs: 1000 });
    await run(8000);
    expect(pods('a').every(({ isTerminating }) => isTerminating)).toBe(true);
    await until(() => readyCount('a') === 3);
    expect(pods('a').filter(({ uid }) => before.includes(uid))).toEqual([]);
    expect(new Set(pods('a').map(({ owner }) => owner?.uid))).toEqual(new Set([set('a').metadata.uid]));
  });

  it('replaces a pod that has failed for good', async () => {
    const { server, run, until, pod, pods, readyCount } = newWorld();
    const { uid } = pod('b', 1);
    server.change(anybody, { resource: 'pods', namespace: 'mimir', name: 'ingester-zone-b-1' }, { status: { phase: 'Failed' } }, 'status');
    await until(() => pods('b').every((one) => one.uid !== uid) && readyCount('b') === 3);
    await run(10_000);
    expect(pods('b').map(({ phase }) => phase)).toEqual(['Running', 'Running', 'Running']);
  });
});
