// What a GitOps tool resets by server-side apply, and what it leaves alone.
import { describe, expect, it } from 'vitest';
import { partitionOf, replicasOf } from '../../../simulation/objects.ts';
import { newWorld, type World } from './world.ts';

const git = { kind: 'reapply', owns: [], isForced: true } as const;
const replicas = ({ set }: World): readonly number[] => ['a', 'b', 'c'].map((zone) => replicasOf(set(zone)));
const images = ({ image }: World): readonly (string | undefined)[] => ['a', 'b', 'c'].map(image);

describe('an apply of a GitOps tool', () => {
  it('resets the replicas that it owns in each zone, which are then the requested ones', async () => {
    const world = newWorld();
    world.cluster.happen({ kind: 'setReplicas', replicas: 4 });
    await world.run(1000);
    world.cluster.happen({ ...git, owns: ['replicas'], zone: 'b' });
    await world.run(1000);
    expect(replicas(world)).toEqual([4, 3, 4]);
    expect(world.cluster.wanted().map((wanted) => wanted.replicas)).toEqual([4, 3, 4]);
  });

  it('leaves the partition of the agent alone, unless it is in Git too', async () => {
    const { cluster, server, run, set } = newWorld({ strategy: 'partition' });
    const name = 'ingester-zone-a';
    cluster.happen(git);
    await run(3000);
    const agent = { user: 'system:serviceaccount:rollout-group:rollout-group-agent' };
    const ref = { resource: 'statefulsets.apps', namespace: 'mimir', name };
    server.change(agent, ref, { spec: { updateStrategy: { rollingUpdate: { partition: 2 } } } });
    cluster.happen(git);
    await run(3000);
    expect(partitionOf(set('a'))).toBe(2);
    cluster.happen({ ...git, owns: ['partition'] });
    await run(3000);
    expect(partitionOf(set('a'))).toBe(1_000_000);
  });

  it('without force ends at a conflict with a user, and otherwise writes the image in Git', async () => {
    const world = newWorld();
    world.cluster.happen(git);
    await world.run(3000);
    world.cluster.happen({ kind: 'setImage', image: 'app:2', zones: ['a'] });
    world.cluster.happen({ ...git, isForced: false, image: 'app:1' });
    await world.run(3000);
    expect(images(world)).toEqual(['app:2', 'app:1', 'app:1']);
    world.cluster.happen({ ...git, image: 'app:3' });
    await world.run(3000);
    expect(images(world)).toEqual(['app:3', 'app:3', 'app:3']);
    expect(world.cluster.wanted().map((wanted) => wanted.image)).toEqual(['app:3', 'app:3', 'app:3']);
  });
});
