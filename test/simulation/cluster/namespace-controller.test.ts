// A namespace that is deleted: nothing is created there, and everything goes, one kind after the other.
import { expect, it } from 'vitest';
import { Refusal } from '../../../simulation/server/refusal.ts';
import { newWorld } from './world.ts';

it('loses all its objects when it is deleted, and rejects new ones', async () => {
  const { cluster, server, run } = newWorld({ rotateBy: 'evict', strategy: 'pinned' });
  expect(cluster.happen({ kind: 'terminateNamespace' })).toBe(true);
  const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', namespace: 'mimir' } };
  expect(() => server.create({ user: 'jane' }, 'configmaps', map)).toThrow(Refusal);
  expect(() => server.create({ user: 'jane' }, 'configmaps', map)).toThrow('because it is being terminated');
  await run(60_000);
  const resources = [
    'pods',
    'statefulsets.apps',
    'controllerrevisions.apps',
    'rolloutgroups.rollout-group.dev',
    'poddisruptionbudgets.policy',
  ];
  expect(resources.flatMap((resource) => server.list(resource, 'mimir').map(({ metadata }) => metadata.name))).toEqual([]);
  expect(cluster.happen({ kind: 'setImage', image: 'app:2' })).toBe(false);
  expect(cluster.wanted()).toEqual([]);
  cluster.heal();
  await run(60_000);
  expect(server.list('statefulsets.apps', 'mimir')).toEqual([]);
});
