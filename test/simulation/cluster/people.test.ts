// What people do to the group, what they want of it, and how all of it is mended when the group is to heal.
import { describe, expect, it } from 'vitest';
import type { Admit } from '../../../simulation/cluster/admitted.ts';
import { specOf } from '../../../simulation/cluster/workload.ts';
import type { GroupShape } from '../../../simulation/scenario.ts';
import type { Json } from '../../../simulation/server/request.ts';
import { defaultShape, newWorld, type World } from './world.ts';

const zonesOf = ({ server }: World): readonly string[] => {
  const { members } = (server.get('rolloutgroups.rollout-group.dev', 'mimir', 'ingester')?.['spec'] ?? {}) as {
    readonly members: { readonly zones: readonly { readonly name: string }[] };
  };
  return members.zones.map(({ name }) => name);
};
const replicasAsked = ({ set }: World): readonly (number | undefined)[] => ['a', 'b', 'c'].map((zone) => specOf(set(zone)).replicas);
const wantedReplicas = ({ cluster }: World): readonly number[] => cluster.wanted().map(({ replicas }) => replicas);

describe('an image', () => {
  it('is set in each zone, one after the other', async () => {
    const { cluster, run, image, told } = newWorld();
    cluster.happen({ kind: 'setImage', image: 'app:2' });
    expect([image('a'), image('b'), image('c')]).toEqual(['app:2', 'app:1', 'app:1']);
    await run(2000);
    expect([image('a'), image('b'), image('c')]).toEqual(['app:2', 'app:2', 'app:2']);
    expect(cluster.wanted().map((wanted) => wanted.image)).toEqual(['app:2', 'app:2', 'app:2']);
    expect(told).toEqual(['people: roll to app:2']);
  });

  it('of the last request counts, however fast requests follow each other', async () => {
    const { cluster, run, image } = newWorld();
    cluster.happen({ kind: 'setImage', image: 'app:2' });
    cluster.happen({ kind: 'setImage', image: 'app:3' });
    await run(5000);
    expect([image('a'), image('b'), image('c')]).toEqual(['app:3', 'app:3', 'app:3']);
  });

  it('of some zones leaves the others alone', async () => {
    const { cluster, run, image, told } = newWorld();
    cluster.happen({ kind: 'setImage', image: 'app:2', zones: ['b', 'c'] });
    await run(2000);
    expect([image('a'), image('b'), image('c')]).toEqual(['app:1', 'app:2', 'app:2']);
    expect(told).toEqual(['people: roll ingester-zone-b, ingester-zone-c to app:2']);
  });

  it('that is broken is replaced by the last good one of each zone in the end', async () => {
    const { cluster, run, image } = newWorld();
    cluster.happen({ kind: 'setImage', image: 'app:2', zones: ['a'] });
    cluster.happen({ kind: 'setImage', image: 'broken/app:3' });
    await run(2000);
    expect(cluster.wanted().map((wanted) => wanted.image)).toEqual(['broken/app:3', 'broken/app:3', 'broken/app:3']);
    cluster.heal();
    expect([image('a'), image('b'), image('c')]).toEqual(['app:2', 'app:1', 'app:1']);
    expect(cluster.wanted().map((wanted) => wanted.image)).toEqual(['app:2', 'app:1', 'app:1']);
  });
});

describe('an undo', () => {
  const undone = ({ server }: World) =>
    server.list('rolloutintents.rollout-group.dev', 'mimir').map(({ spec }) => (spec as { readonly undone: readonly object[] }).undone);

  it('writes the earlier templates and a request that blocks the undone revisions, until the faults end', async () => {
    const world = newWorld({ zones: 2 });
    const { cluster, run, image, status } = world;
    expect(cluster.happen({ kind: 'request', action: 'undo', by: 'alice' })).toBe(false);
    const earlier = status('a').updateRevision;
    cluster.happen({ kind: 'setImage', image: 'app:2' });
    await run(5000);
    const later = status('a').updateRevision;
    expect(cluster.happen({ kind: 'request', action: 'undo', by: 'alice' })).toBe(true);
    await run(5000);
    expect([image('a'), image('b')]).toEqual(['app:1', 'app:1']);
    expect(cluster.wanted().map((wanted) => wanted.image)).toEqual(['app:1', 'app:1']);
    expect(undone(world)[0]?.[0]).toEqual({ zone: 'a', revision: later, to: earlier });
    expect(cluster.happen({ kind: 'request', action: 'undo', by: 'bob' })).toBe(false);
    cluster.heal();
    expect(undone(world)).toEqual([]);
  });

  it('writes only the template of its zone', async () => {
    const world = newWorld({ zones: 2 });
    const { cluster, run, image } = world;
    cluster.happen({ kind: 'setImage', image: 'app:2' });
    await run(5000);
    expect(cluster.happen({ kind: 'request', action: 'undo', by: 'alice', zone: 'b' })).toBe(true);
    await run(5000);
    expect([image('a'), image('b')]).toEqual(['app:2', 'app:1']);
    expect(undone(world)).toMatchObject([[{ zone: 'b' }]]);
  });
});

describe('an exception', () => {
  it('replaces the previous one, and is denied next to a running one', async () => {
    const { cluster, server, run } = newWorld();
    const override = { kind: 'override', by: 'alice', forMs: 20_000 } as const;
    const allowed = () =>
      server.list('rolloutexceptions.rollout-group.dev', 'mimir').map(({ spec }) => (spec as { readonly allow: object }).allow);
    expect(cluster.happen(override)).toBe(true);
    expect(cluster.happen({ ...override, podsAtMost: 1 })).toBe(true);
    expect(allowed()).toEqual([{ podsAtMost: 1 }]);
    expect(cluster.happen({ ...override, zone: 'b' })).toBe(false);
    await run(21_000);
    expect(cluster.happen({ ...override, zone: 'b' })).toBe(true);
    expect(allowed()).toEqual([{ podsAtMost: 1 }, { anything: true }]);
  });
});

describe('replicas', () => {
  it('are written where they come from, and are what is wanted of every zone that follows', async () => {
    const asked = async (shape: Partial<GroupShape>, zone?: string) => {
      const world = newWorld(shape);
      world.cluster.happen({ kind: 'setReplicas', replicas: 7, ...(zone === undefined ? {} : { zone }) });
      await world.run(20_000);
      const template = world.server.get('replicatemplates.rollout-operator.grafana.com', 'mimir', 'ingester')?.['spec'];
      return { sets: replicasAsked(world), wanted: wantedReplicas(world), ...(template === undefined ? {} : { template }) };
    };
    for (const kind of ['native', 'adopted'] as const) {
      expect(await asked({ kind, replicas: 'own' })).toEqual({ sets: [7, 7, 7], wanted: [7, 7, 7] });
      expect(await asked({ kind, replicas: 'own' }, 'b')).toEqual({ sets: [3, 7, 3], wanted: [3, 7, 3] });
      expect(await asked({ kind, replicas: 'leader' })).toEqual({ sets: [7, 3, 3], wanted: [7, 7, 7] });
      expect(await asked({ kind, replicas: 'mirror' })).toMatchObject({ sets: [3, 3, 3], wanted: [7, 7, 7], template: { replicas: 7 } });
    }
  });

  it('are written by a machine in two steps, of which the second does not come when there is something newer', async () => {
    const stories = new Set<string>();
    for (const seed of [1, 2, 3, 4, 5, 6, 7, 8]) {
      const { cluster, run, set, commits } = newWorld({ zones: 1 }, seed);
      cluster.happen({ kind: 'setReplicas', replicas: 9 });
      await run(20_000);
      const numbers = commits.filter(
        ({ resource, actor }) => resource === 'statefulsets.apps' && !actor.user.includes('statefulset-controller'),
      );
      stories.add(numbers.map(({ after, actor }) => `${actor.user.split(':').at(-1)} ${specOf(after).replicas}`).join(', '));
      expect(specOf(set('a')).replicas).toBe(9);
    }
    expect(stories).toEqual(new Set(['alice@example.com 9', 'horizontal-pod-autoscaler 6, horizontal-pod-autoscaler 9']));
  });

  it('are those of the last request, also if it comes between the two steps of a machine', async () => {
    for (const seed of [1, 2, 3, 4, 5, 6, 7, 8]) {
      const world = newWorld({ zones: 1, replicas: 'own' }, seed);
      world.cluster.happen({ kind: 'setReplicas', replicas: 9 });
      await world.run(5_000);
      world.cluster.happen({ kind: 'reapply', owns: ['replicas'], isForced: true });
      await world.run(20_000);
      world.cluster.heal();
      await world.run(5_000);
      expect({ seed, asked: [specOf(world.set('a')).replicas] }).toEqual({ seed, asked: wantedReplicas(world) });
    }
  });

  it('written by hand count only where no other source sets them', () => {
    const own = newWorld({ replicas: 'own' });
    own.cluster.happen({ kind: 'scaleByHand', zone: 'b', replicas: 5 });
    expect([replicasAsked(own), wantedReplicas(own)]).toEqual([
      [3, 5, 3],
      [3, 5, 3],
    ]);
    const leader = newWorld({ replicas: 'leader' });
    leader.cluster.happen({ kind: 'scaleByHand', zone: 'b', replicas: 5 });
    expect([replicasAsked(leader), wantedReplicas(leader)]).toEqual([
      [3, 5, 3],
      [3, 3, 3],
    ]);
    leader.cluster.happen({ kind: 'scaleByHand', zone: 'a', replicas: 4 });
    expect(wantedReplicas(leader)).toEqual([4, 4, 4]);
  });

  it.each([false, true])(
    'written by hand do not replace a number that is requested during their review (allowed: %s)',
    async (isAllowed) => {
      let decide = (): void => undefined;
      const ask: Admit = ({ actor, object = {} }, decided) => {
        const allow = (): void => decided({ isAllowed: true, actor, object });
        if ((object['spec'] as Json | undefined)?.['replicas'] !== 5) allow();
        else decide = isAllowed ? allow : () => decided({ isAllowed: false, status: 403, message: 'no' });
      };
      const world = newWorld({ replicas: 'own', webhooks: true }, 1, undefined, { ask });
      world.cluster.happen({ kind: 'scaleByHand', zone: 'a', replicas: 5 });
      world.cluster.happen({ kind: 'setReplicas', replicas: 4, zone: 'a' });
      decide();
      await world.run(60_000);
      expect([replicasAsked(world), wantedReplicas(world)]).toEqual([
        [4, 3, 3],
        [4, 3, 3],
      ]);
    },
  );
});

describe('a group that is paused', () => {
  it('has an intent when it is an object, until it is resumed', () => {
    const { cluster, server } = newWorld();
    const intents = () => server.list('rolloutintents.rollout-group.dev', 'mimir').map(({ spec }) => spec);
    cluster.happen({ kind: 'pause' });
    cluster.happen({ kind: 'pause' });
    expect(intents()).toEqual([{ group: 'ingester', action: 'pause', reason: 'an incident' }]);
    cluster.happen({ kind: 'resume' });
    expect(intents()).toEqual([]);
    cluster.happen({ kind: 'pause' });
    cluster.heal();
    expect(intents()).toEqual([]);
  });

  it('has annotations when it is made of labels', () => {
    const { cluster, server, set } = newWorld({ kind: 'adopted' });
    const marks = () => ['a', 'b', 'c'].map((zone) => set(zone).metadata.annotations?.['grafana.com/rollout-paused']);
    cluster.happen({ kind: 'pause' });
    expect(marks()).toEqual(['true', 'true', 'true']);
    expect(server.list('rolloutintents.rollout-group.dev')).toEqual([]);
    cluster.happen({ kind: 'resume' });
    expect(marks()).toEqual([undefined, undefined, undefined]);
  });
});

describe('a StatefulSet', () => {
  it('removes a group of objects and adds it again', async () => {
    const world = newWorld();
    world.cluster.happen({ kind: 'leaveGroup', zone: 'b', forMs: 30_000 });
    world.cluster.happen({ kind: 'leaveGroup', zone: 'a', forMs: 60_000 });
    expect(zonesOf(world)).toEqual(['c']);
    await world.run(31_000);
    expect(new Set(zonesOf(world))).toEqual(new Set(['b', 'c']));
    world.cluster.heal();
    expect(zonesOf(world)).toEqual(['a', 'b', 'c']);
  });

  it('removes a group of labels and adds it again', async () => {
    const { cluster, run, set } = newWorld({ kind: 'adopted' });
    cluster.happen({ kind: 'leaveGroup', zone: 'c', forMs: 30_000 });
    expect(set('c').metadata.labels?.['rollout-group']).toBe(undefined);
    await run(31_000);
    expect(set('c').metadata.labels?.['rollout-group']).toBe('ingester');
  });

  it('is recreated as requested by then', async () => {
    const { cluster, run, set, image } = newWorld({ kind: 'adopted' });
    cluster.happen({ kind: 'recreateStatefulSet', zone: 'a', isOrphaning: true, afterMs: 30_000 });
    await run(2000);
    cluster.happen({ kind: 'setImage', image: 'app:2' });
    cluster.happen({ kind: 'setReplicas', replicas: 4 });
    cluster.happen({ kind: 'pause' });
    await run(40_000);
    expect([image('a'), specOf(set('a')).replicas]).toEqual(['app:2', 4]);
    expect(set('a').metadata.annotations?.['grafana.com/rollout-paused']).toBe('true');
    expect(set('a').metadata.labels?.['rollout-group']).toBe('ingester');
  });

  it('is recreated after a rollback as soon as the published run is a completed one', async () => {
    const { cluster, run, server, set } = newWorld();
    const { uid } = set('a').metadata;
    cluster.happen({ kind: 'recreateStatefulSet', zone: 'a', isOrphaning: true, afterMs: 1000, isAfterRollback: true });
    const publish = (outcome: string): void => {
      const decision = { run: { id: 'run1', outcome }, waits: [], stops: [{ rule: 'rolled-back' }] };
      const group = { resource: 'rolloutgroups.rollout-group.dev', namespace: 'mimir', name: 'ingester' };
      server.change({ user: 'agent' }, group, { status: { decision } }, 'status');
    };
    publish('running');
    await run(10_000);
    expect(set('a').metadata.uid).toBe(uid);
    publish('completed');
    await run(10_000);
    expect(set('a').metadata.uid).not.toBe(uid);
  });

  it('is recreated at once in the healing phase', async () => {
    const { cluster, run, server } = newWorld();
    cluster.happen({ kind: 'recreateStatefulSet', zone: 'a', isOrphaning: true, afterMs: 300_000 });
    await run(3000);
    expect(server.get('statefulsets.apps', 'mimir', 'ingester-zone-a')).toBe(undefined);
    cluster.heal();
    await run(1000);
    expect(server.get('statefulsets.apps', 'mimir', 'ingester-zone-a')).not.toBe(undefined);
  });

  it('has another strategy for the configured time, or until the group is to recover', async () => {
    const { cluster, run, set } = newWorld();
    const strategy = (zone: string) => specOf(set(zone)).updateStrategy?.type;
    cluster.happen({ kind: 'setStrategy', zone: 'a', type: 'RollingUpdate', forMs: 20_000 });
    cluster.happen({ kind: 'setStrategy', zone: 'b', type: 'RollingUpdate', forMs: 90_000 });
    await run(21_000);
    expect([strategy('a'), strategy('b')]).toEqual(['OnDelete', 'RollingUpdate']);
    cluster.heal();
    expect(strategy('b')).toBe('OnDelete');
  });
});

describe('everything at once', () => {
  const shapes = (['native', 'adopted'] as const).flatMap((kind) => [1, 2, 3].map((seed) => ({ kind, seed })));

  it.each(shapes)('ends well without any agent when pods are deleted by hand: $kind, seed $seed', async ({ kind, seed }) => {
    const { cluster, run, until, readyCount, pods, status } = newWorld({ ...defaultShape, kind, rotateBy: 'evict' }, seed);
    cluster.happen({ kind: 'setImage', image: 'broken/app:2' });
    cluster.happen({ kind: 'nodeDrained', zone: 'a' });
    cluster.happen({ kind: 'nodeLost', zone: 'b', forMs: 400_000 });
    cluster.happen({ kind: 'slowKubelet', startFactor: 20, drainFactor: 20, forMs: 400_000 });
    cluster.happen({ kind: 'recreateStatefulSet', zone: 'c', isOrphaning: false, afterMs: 5000 });
    await run(60_000);
    cluster.happen({ kind: 'controllerIsStale', forMs: 400_000 });
    cluster.happen({ kind: 'controllerLags', delayMs: 10_000, forMs: 400_000 });
    cluster.happen({ kind: 'stuckTerminating', zone: 'a', ordinal: 1, forMs: 400_000 });
    cluster.happen({ kind: 'podDies', zone: 'a', ordinal: 2 });
    cluster.happen({ kind: 'setReplicas', replicas: 4 });
    cluster.happen({ kind: 'setImage', image: 'app:2' });
    await run(60_000);
    cluster.heal();
    await run(5000);
    for (const zone of ['a', 'b', 'c']) for (const { ordinal } of pods(zone)) cluster.happen({ kind: 'deletePod', zone, ordinal });
    await run(2000);
    await until(() => ['a', 'b', 'c'].every((zone) => readyCount(zone) === 4));
    await run(2000);
    for (const [index, { image, replicas }] of cluster.wanted().entries()) {
      const zone = 'abc'.charAt(index);
      expect(pods(zone).map(({ containers }) => containers[0]?.image)).toEqual(Array.from({ length: replicas }, () => image));
      expect(status(zone)).toMatchObject({ replicas, readyReplicas: replicas, updatedReplicas: replicas });
    }
  });
});
