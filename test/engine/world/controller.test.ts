import { describe, expect, it } from 'vitest';
import type { WorldInput } from '../../../engine/world/model.ts';
import { group } from '../../kit/groups.ts';
import { kitNowMs, outdatedStatefulSet, statefulSet } from '../../kit/objects.ts';
import { afterwards, line, removal, seconds, setIn, story, worldOf } from '../../kit/worlds.ts';

const scaleTo = (replicas: number): WorldInput => ({ kind: 'setReplicas', namespace: 'mimir', statefulSet: 'ingester-zone-a', replicas });
const rolling = { updateStrategy: 'RollingUpdate', partition: 0 } as const;

describe('scaling', () => {
  it('makes all missing pods at once under Parallel', () => {
    expect(story(afterwards(worldOf({ statefulSets: [statefulSet()] }), scaleTo(5)))).toEqual([
      '0:rev-1 ready, 1:rev-1 ready, 2:rev-1 ready, 3:rev-1 starting, 4:rev-1 starting',
      '60s 0:rev-1 ready, 1:rev-1 ready, 2:rev-1 ready, 3:rev-1 ready, 4:rev-1 ready',
    ]);
  });

  it('makes one pod after the other under OrderedReady, each when it has been ready for minReadySeconds', () => {
    const world = worldOf({ statefulSets: [statefulSet({ replicas: 1, podManagementPolicy: 'OrderedReady', minReadySeconds: 10 })] });
    expect(story(afterwards(world, scaleTo(3)))).toEqual([
      '0:rev-1 ready, 1:rev-1 starting',
      '60s 0:rev-1 ready, 1:rev-1 ready',
      '70s 0:rev-1 ready, 1:rev-1 ready, 2:rev-1 starting',
      '130s 0:rev-1 ready, 1:rev-1 ready, 2:rev-1 ready',
      '140s 0:rev-1 ready, 1:rev-1 ready, 2:rev-1 ready',
    ]);
  });

  it('removes the highest pods, all at once under Parallel', () => {
    expect(story(afterwards(worldOf({ statefulSets: [statefulSet()] }), scaleTo(1)))).toEqual([
      '0:rev-1 ready, 1:rev-1 leaving, 2:rev-1 leaving',
      '30s 0:rev-1 ready',
    ]);
  });

  it('removes the highest pods one at a time under OrderedReady', () => {
    const world = worldOf({ statefulSets: [statefulSet({ podManagementPolicy: 'OrderedReady' })] });
    expect(story(afterwards(world, scaleTo(1)))).toEqual([
      '0:rev-1 ready, 1:rev-1 ready, 2:rev-1 leaving',
      '30s 0:rev-1 ready, 1:rev-1 leaving',
      '60s 0:rev-1 ready',
    ]);
  });

  it('does not wait under OrderedReady for a lower surplus pod that leaves already', () => {
    const world = worldOf({ statefulSets: [statefulSet({ replicas: 4, podManagementPolicy: 'OrderedReady' })] });
    expect(story(afterwards(world, removal(world, 'ingester-zone-a-2'), scaleTo(2)))).toEqual([
      '0:rev-1 ready, 1:rev-1 ready, 2:rev-1 leaving, 3:rev-1 leaving',
      '30s 0:rev-1 ready, 1:rev-1 ready',
    ]);
  });

  it('halts under OrderedReady while the pods that leave are unready, except the lowest one', () => {
    const world = worldOf({ statefulSets: [statefulSet({ replicas: 4, podManagementPolicy: 'OrderedReady' })] });
    const fail = (pod: string): WorldInput => ({ kind: 'podFails', namespace: 'mimir', pod: `ingester-zone-a-${pod}` });
    expect(story(afterwards(world, fail('2'), fail('3'), scaleTo(2)))).toEqual([
      '0:rev-1 ready, 1:rev-1 ready, 2:rev-1 starting, 3:rev-1 starting',
    ]);
    expect(story(afterwards(world, fail('3'), scaleTo(2)))).toEqual([
      '0:rev-1 ready, 1:rev-1 ready, 2:rev-1 ready, 3:rev-1 leaving',
      '30s 0:rev-1 ready, 1:rev-1 ready, 2:rev-1 leaving',
      '60s 0:rev-1 ready, 1:rev-1 ready',
    ]);
  });

  it('replaces a pod that has ended', () => {
    const world = worldOf({ statefulSets: [statefulSet()], podChanges: { 'ingester-zone-a': { 1: { phase: 'Failed', isReady: false } } } });
    expect(story(world)).toEqual(['0:rev-1 ready, 1:rev-1 starting, 2:rev-1 ready', '60s 0:rev-1 ready, 1:rev-1 ready, 2:rev-1 ready']);
  });

  it('to the number that is there changes nothing', () => {
    const world = worldOf({ statefulSets: [statefulSet()] });
    expect(afterwards(world, scaleTo(3)).snapshot.statefulSets).toBe(world.snapshot.statefulSets);
  });

  it('counts ordinals from the first one', () => {
    const world = worldOf({ statefulSets: [statefulSet({ firstOrdinal: 5, replicas: 2 })] });
    expect([line(afterwards(world, scaleTo(3))), line(afterwards(world, scaleTo(1)))]).toEqual([
      '5:rev-1 ready, 6:rev-1 ready, 7:rev-1 starting',
      '5:rev-1 ready, 6:rev-1 leaving',
    ]);
  });

  it('dates a decrease in the ledger for every requester, and nothing else', () => {
    const world = worldOf({ groups: [group()] });
    const from = { namespace: 'mimir', statefulSet: 'ingester-zone-b' };
    const down = afterwards(world, { kind: 'setReplicas', ...from, replicas: 2 }, seconds(world, 60), {
      kind: 'setReplicas',
      ...from,
      replicas: 4,
    });
    expect(down.snapshot.ledgers).toEqual([
      { namespace: 'mimir', group: 'ingester', claims: [], preparations: [], downscales: [{ zone: 'b', atMs: kitNowMs, from: 3, to: 2 }] },
    ]);
  });

  it('writes the time of a decrease on a StatefulSet that is labelled for it', () => {
    const labels = { 'grafana.com/prepare-downscale': 'true' };
    const world = worldOf({ statefulSets: [statefulSet({ labels }), statefulSet({ name: 'ingester-zone-b' })] });
    const down = afterwards(world, scaleTo(2), { kind: 'setReplicas', namespace: 'mimir', statefulSet: 'ingester-zone-b', replicas: 2 });
    const up = afterwards(world, scaleTo(4));
    expect([setIn(down).annotations, setIn(down, 'ingester-zone-b').annotations, setIn(up).annotations]).toEqual([
      { 'grafana.com/last-downscale': '2026-03-02T12:00:00Z' },
      {},
      {},
    ]);
  });

  it('by an action needs the UID, and raises the generation', () => {
    const world = worldOf({ groups: [group()] });
    const set = setIn(world);
    const action = {
      kind: 'scaleStatefulSet',
      namespace: 'mimir',
      zone: 'a',
      statefulSet: set.name,
      uid: set.uid,
      resourceVersion: '1',
      from: 3,
      to: 2,
    } as const;
    const done = setIn(afterwards(world, { kind: 'action', action }));
    expect([done.replicas, done.generation, done.status.observedGeneration, done.resourceVersion === set.resourceVersion]).toEqual([
      2,
      2,
      2,
      false,
    ]);
    expect(setIn(afterwards(world, { kind: 'action', action: { ...action, uid: 'another' } }))).toBe(set);
  });
});

describe('a rolling update', () => {
  const template = (revision: string): WorldInput => ({
    kind: 'setTemplate',
    namespace: 'mimir',
    statefulSet: 'ingester-zone-a',
    revision,
  });

  it('replaces one pod at a time from the top and then is complete', () => {
    const world = worldOf({ statefulSets: [statefulSet({ ...rolling, replicas: 2 })] });
    const begun = afterwards(world, template('rev-2'));
    expect(story(begun)).toEqual([
      '0:rev-1 ready, 1:rev-1 leaving',
      '30s 0:rev-1 ready, 1:rev-2 starting',
      '90s 0:rev-1 leaving, 1:rev-2 ready',
      '120s 0:rev-2 starting, 1:rev-2 ready',
      '180s 0:rev-2 ready, 1:rev-2 ready',
    ]);
    expect([begun, afterwards(begun, seconds(begun, 500))].map((stage) => setIn(stage).status)).toMatchObject([
      { observedGeneration: 2, currentRevision: 'rev-1', updateRevision: 'rev-2' },
      { observedGeneration: 2, currentRevision: 'rev-2', updateRevision: 'rev-2' },
    ]);
  });

  it('waits for minReadySeconds between two pods', () => {
    const world = worldOf({ statefulSets: [statefulSet({ ...rolling, replicas: 2, minReadySeconds: 15 })] });
    expect(story(afterwards(world, template('rev-2'))).slice(2, 4)).toEqual([
      '90s 0:rev-1 ready, 1:rev-2 ready',
      '105s 0:rev-1 leaving, 1:rev-2 ready',
    ]);
  });

  it('stops at the partition, counted from the first ordinal', () => {
    const world = worldOf({ statefulSets: [statefulSet({ ...rolling, firstOrdinal: 5, partition: 2 })] });
    expect(story(afterwards(world, template('rev-2'))).at(-1)).toBe('90s 5:rev-1 ready, 6:rev-1 ready, 7:rev-2 ready');
  });

  it('comes after a scale-down under OrderedReady', () => {
    const set = statefulSet({ ...rolling, podManagementPolicy: 'OrderedReady' });
    expect(story(afterwards(worldOf({ statefulSets: [set] }), scaleTo(2), template('rev-2'))).slice(0, 2)).toEqual([
      '0:rev-1 ready, 1:rev-1 ready, 2:rev-1 leaving',
      '30s 0:rev-1 ready, 1:rev-1 leaving',
    ]);
  });

  it('builds a pod that dies below a partition of ordinals that do not begin at 0 at the current revision', () => {
    const world = worldOf({ statefulSets: [outdatedStatefulSet({ ...rolling, firstOrdinal: 5, partition: 3 })] });
    expect(line(afterwards(world, { kind: 'podDies', namespace: 'mimir', pod: 'ingester-zone-a-5' }))).toBe(
      '5:rev-1 starting, 6:rev-1 ready, 7:rev-1 ready',
    );
  });

  it('builds a pod that dies below the partition at the current revision, and one above at the update revision', () => {
    const set = outdatedStatefulSet({ ...rolling, partition: 2 });
    const world = worldOf({ statefulSets: [set] });
    const died = afterwards(world, { kind: 'podDies', namespace: 'mimir', pod: 'ingester-zone-a-0' });
    expect(line(died)).toBe('0:rev-1 starting, 1:rev-1 ready, 2:rev-1 leaving');
    expect(line(afterwards(died, { kind: 'podDies', namespace: 'mimir', pod: 'ingester-zone-a-2' }))).toBe(
      '0:rev-1 starting, 1:rev-1 ready, 2:rev-2 starting',
    );
  });

  it('is stuck on a broken pod under OrderedReady when the template is fixed, and heals under Parallel', () => {
    const stuck = (podManagementPolicy: 'OrderedReady' | 'Parallel'): string => {
      const world = worldOf({ statefulSets: [statefulSet({ ...rolling, podManagementPolicy })] });
      const bad = afterwards(world, template('rev-2'), seconds(world, 60));
      const broken = afterwards(bad, { kind: 'podFails', namespace: 'mimir', pod: 'ingester-zone-a-2', reason: 'CrashLoopBackOff' });
      return line(afterwards(broken, template('rev-1'), seconds(broken, 3600)));
    };
    expect([stuck('OrderedReady'), stuck('Parallel')]).toEqual([
      '0:rev-1 ready, 1:rev-1 ready, 2:rev-2 starting',
      '0:rev-1 ready, 1:rev-1 ready, 2:rev-1 ready',
    ]);
  });
});
