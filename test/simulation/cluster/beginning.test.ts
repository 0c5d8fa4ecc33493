// How a simulated group stands before anything happens.
import { describe, expect, it } from 'vitest';
import { conditionsOf, newWorld } from './world.ts';

describe('a group at the beginning', () => {
  it('has every pod running and ready for an hour, spread over the nodes of its zone', () => {
    const { server, cluster, pods } = newWorld();
    expect(cluster.statefulSets).toEqual(['ingester-zone-a', 'ingester-zone-b', 'ingester-zone-c']);
    expect(pods('b').map(({ name, phase, isReady }) => `${name} ${phase} ${isReady}`)).toEqual([
      'ingester-zone-b-0 Running true',
      'ingester-zone-b-1 Running true',
      'ingester-zone-b-2 Running true',
    ]);
    for (const pod of pods('b')) {
      expect(pod.readyChangedMs).toBeLessThanOrEqual(Date.UTC(2026, 0, 15, 11));
      expect(pod.node).toMatch(/^node-b-[12]$/);
    }
    expect(conditionsOf(server.get('pods', 'mimir', 'ingester-zone-b-0'))).toEqual([
      'PodScheduled=True',
      'Initialized=True',
      'ContainersReady=True',
      'Ready=True',
    ]);
  });

  it('says so in the status of its StatefulSets', () => {
    const { status, pods } = newWorld({ podsPerZone: 2 });
    const revision = pods('a')[0]?.revision;
    expect(status('a')).toEqual({
      observedGeneration: 1,
      replicas: 2,
      readyReplicas: 2,
      availableReplicas: 2,
      currentReplicas: 2,
      updatedReplicas: 2,
      currentRevision: revision,
      updateRevision: revision,
      collisionCount: 0,
    });
  });

  it.each(['native', 'adopted'] as const)('stays as it is without events: %s', async (kind) => {
    const { commits, run, eventCount } = newWorld({ kind, rotateBy: 'evict', replicas: 'mirror', minReadySeconds: 10 });
    await run(600_000);
    expect(commits.map(({ type, resource, after }) => `${type} ${resource} ${after.metadata.name}`)).toEqual([]);
    expect(eventCount()).toBeLessThan(50);
  });

  it('is the same for the same seed, and so is everything that follows', async () => {
    const play = async (seed: number): Promise<string> => {
      const { cluster, commits, run } = newWorld({ replicas: 'own' }, seed);
      cluster.happen({ kind: 'setImage', image: 'app:2' });
      cluster.happen({ kind: 'deletePod', zone: 'a', ordinal: 1 });
      cluster.happen({ kind: 'podFlaps', zone: 'b', ordinal: 0, times: 2 });
      cluster.happen({ kind: 'nodeLost', zone: 'c', forMs: 60_000 });
      await run(200_000);
      return JSON.stringify(commits.map(({ atMs, after }) => [atMs, after]));
    };
    const [first, again, other] = [await play(1), await play(1), await play(2)];
    expect(again).toBe(first);
    expect(other).not.toBe(first);
  });

  it('consists of given objects, with changes applied one after the other', async () => {
    const labels = { name: 'broker' };
    const statefulSet = (name: string, image: string) => ({
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { name, namespace: 'kafka', labels },
      spec: {
        replicas: 2,
        serviceName: 'kafka',
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: 'kafka', image }] } },
        updateStrategy: { type: 'OnDelete' },
      },
    });
    const given = {
      namespace: 'kafka',
      name: 'kafka',
      statefulSets: ['broker'],
      objects: [statefulSet('broker', 'kafka:1')],
      policies: [{ name: 'kafka.yaml', text: '' }],
      changes: [statefulSet('broker', 'kafka:2'), { ...statefulSet('broker', 'kafka:3'), spec: { replicas: 3 } }],
    };
    const { cluster, run, pods, told } = newWorld({}, 1, given);
    expect(pods('a').map(({ name }) => name)).toEqual(['broker-0', 'broker-1']);
    expect(await cluster.policyDirectory.read()).toBe(given.policies);
    await run(60_000);
    expect(told).toEqual(['people: apply StatefulSet broker', 'people: apply StatefulSet broker']);
    expect(cluster.wanted()).toEqual([{ statefulSet: 'broker', image: 'kafka:2', images: ['kafka:2'], replicas: 3 }]);
    expect(pods('a').map(({ containers }) => containers[0]?.image)).toEqual(['kafka:1', 'kafka:1', 'kafka:2']);
  });
});
