// What pods answer when they are asked to prepare for their removal, or to stay.
import { describe, expect, it } from 'vitest';
import { newWorld, type World } from './world.ts';

const path = '/ingester/prepare-delayed-downscale';
const host = (pod: string): string => `${pod}.ingester-zone-a.mimir.svc.cluster.local.:80`;
const ask = ({ cluster }: World, method: 'POST' | 'DELETE', pod = 'ingester-zone-a-2') =>
  cluster.podAnswer({ method, host: host(pod), path });
const startSeconds = Date.UTC(2026, 0, 15, 12) / 1000;

/** Worlds of several seeds, in some of which pods keep what they were asked on their volumes. */
const seeds = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];

describe('a pod', () => {
  it('reports the time of its first preparation, the same each time, until it is cancelled', async () => {
    const world = newWorld({ replicas: 'delayedMirror' });
    const { uid } = world.pod('a', 2);
    await world.run(1700);
    const first = { status: 200, body: `{"timestamp":${startSeconds + 1}}`, uid, pod: 'ingester-zone-a-2', namespace: 'mimir' };
    expect(ask(world, 'POST')).toEqual(first);
    await world.run(5000);
    expect(ask(world, 'POST')).toEqual(first);
    expect(world.cluster.preparedPods()).toEqual([uid]);
    expect(ask(world, 'DELETE')).toMatchObject({ status: 200, body: '' });
    expect(world.cluster.preparedPods()).toEqual([]);
    expect(ask(world, 'POST')?.body).toBe(`{"timestamp":${startSeconds + 6}}`);
  });

  it('that does not exist gives no answer', () => {
    expect(ask(newWorld(), 'POST', 'ingester-zone-a-7')).toBe(undefined);
  });

  it('in a crash loop gives no answer', async () => {
    const world = newWorld({}, 2);
    world.cluster.happen({ kind: 'setImage', image: 'broken/app:2' });
    await world.run(2000);
    world.cluster.happen({ kind: 'deletePod', zone: 'a', ordinal: 2 });
    await world.run(30_000);
    expect(ask(world, 'POST')).toBe(undefined);
  });

  it('on a lost node gives no answer until the node returns', async () => {
    const world = newWorld();
    world.cluster.happen({ kind: 'nodeLost', zone: 'a', forMs: 10_000 });
    const answers = (): number => [0, 1, 2].filter((ordinal) => ask(world, 'DELETE', `ingester-zone-a-${ordinal}`) !== undefined).length;
    expect(answers()).toBeLessThan(3);
    await world.run(11_000);
    expect(answers()).toBe(3);
  });

  it('that is replaced has forgotten, or kept it on its volume', async () => {
    const outcomes = new Set<string>();
    for (const seed of seeds) {
      const world = newWorld({ replicas: 'delayedMirror' }, seed);
      ask(world, 'POST');
      world.cluster.happen({ kind: 'deletePod', zone: 'a', ordinal: 2 });
      await world.run(1000);
      await world.until(() => world.readyCount('a') === 3);
      const isPrepared = world.cluster.preparedPods().includes(world.pod('a', 2).uid);
      const seconds = Number(JSON.parse(ask(world, 'POST')?.body ?? '{}').timestamp);
      outcomes.add(`${isPrepared ? 'kept' : 'forgotten'}, ${seconds === startSeconds ? 'the same instant' : 'a new one'}`);
    }
    expect(outcomes).toEqual(new Set(['kept, the same instant', 'forgotten, a new one']));
  });

  it('that is removed and created again finds the state on its retained volume', async () => {
    const kept = new Set<number>();
    for (const seed of seeds) {
      const world = newWorld({ replicas: 'own' }, seed);
      ask(world, 'POST');
      world.cluster.happen({ kind: 'scaleByHand', zone: 'a', replicas: 2 });
      await world.until(() => world.pods('a').length === 2);
      world.cluster.happen({ kind: 'scaleByHand', zone: 'a', replicas: 3 });
      await world.until(() => world.readyCount('a') === 3);
      kept.add(world.cluster.preparedPods().length);
    }
    expect([...kept].sort()).toEqual([0, 1]);
  });
});
