import { describe, expect, it } from 'vitest';
import { defaultAssumptions } from '../../../engine/plan/document.ts';
import type { World, WorldInput } from '../../../engine/world/model.ts';
import { createWorld, nextEventMs } from '../../../engine/world/world.ts';
import { group } from '../../kit/groups.ts';
import { kitNowMs, outdatedStatefulSet, pod, statefulSet } from '../../kit/objects.ts';
import { snapshotOf } from '../../kit/snapshots.ts';
import { afterwards, counters, line, podIn, removal, seconds, setIn, story, worldOf } from '../../kit/worlds.ts';

const scaleTo = (replicas: number): WorldInput => ({ kind: 'setReplicas', namespace: 'mimir', statefulSet: 'ingester-zone-a', replicas });
const rolling = { updateStrategy: 'RollingUpdate', partition: 0 } as const;

describe('a deleted pod', () => {
  const world = worldOf({ statefulSets: [outdatedStatefulSet()] });

  it('drains, is made again at the update revision under OnDelete, and starts', () => {
    expect(story(afterwards(world, removal(world, 'ingester-zone-a-1')))).toEqual([
      '0:rev-1 ready, 1:rev-1 leaving, 2:rev-1 ready',
      '30s 0:rev-1 ready, 1:rev-2 starting, 2:rev-1 ready',
      '90s 0:rev-1 ready, 1:rev-2 ready, 2:rev-1 ready',
    ]);
  });

  it('is counted at every stage', () => {
    const leaving = afterwards(world, removal(world, 'ingester-zone-a-1'));
    const starting = afterwards(leaving, seconds(leaving, 30));
    const ready = afterwards(starting, seconds(starting, 60));
    expect([world, leaving, starting, ready].map((stage) => counters(stage))).toEqual([
      '3 replicas, 3 ready, 0 updated',
      '3 replicas, 2 ready, 0 updated',
      '3 replicas, 2 ready, 1 updated',
      '3 replicas, 3 ready, 1 updated',
    ]);
  });

  it('comes back as another object that has been ready since it started', () => {
    const done = afterwards(world, removal(world, 'ingester-zone-a-1'), seconds(world, 500));
    const pod = podIn(done, 'ingester-zone-a-1');
    expect(pod).toMatchObject({ readyChangedMs: kitNowMs + 90_000, readyTimeMs: kitNowMs + 90_000, isReady: true, containersReady: true });
    expect(pod.uid).not.toBe(podIn(world, 'ingester-zone-a-1').uid);
    expect(Number(pod.resourceVersion)).toBeGreaterThan(100);
  });

  it('is let alone when the request names another object or an older version of it', () => {
    const replaced = afterwards(world, removal(world, 'ingester-zone-a-1'), seconds(world, 500));
    const stale = removal(world, 'ingester-zone-a-1');
    expect(line(afterwards(replaced, stale))).toBe(line(replaced));
    const broken = afterwards(world, { kind: 'podFails', namespace: 'mimir', pod: 'ingester-zone-a-1' });
    expect(line(afterwards(broken, stale))).toBe(line(broken));
  });

  it('is let alone when only the UID differs', () => {
    const request = removal(world, 'ingester-zone-a-1');
    if (request.kind !== 'action' || request.action.kind !== 'deletePod') throw new Error('not a deletion');
    expect(line(afterwards(world, { kind: 'action', action: { ...request.action, uid: 'other' } }))).toBe(line(world));
  });

  it('no longer counts as updated while it leaves', () => {
    const updated = worldOf({ statefulSets: [statefulSet()] });
    expect(counters(afterwards(updated, removal(updated, 'ingester-zone-a-1')))).toBe('3 replicas, 2 ready, 2 updated');
  });

  it('leaves the current revision as it was when all are replaced under OnDelete', () => {
    let current = worldOf({ statefulSets: [outdatedStatefulSet({ replicas: 2 })] });
    for (const name of ['ingester-zone-a-0', 'ingester-zone-a-1'])
      current = afterwards(current, removal(current, name), seconds(current, 90));
    expect(setIn(current).status).toMatchObject({
      readyReplicas: 2,
      updatedReplicas: 2,
      currentRevision: 'rev-1',
      updateRevision: 'rev-2',
    });
  });

  it('is not deleted twice', () => {
    const leaving = afterwards(world, removal(world, 'ingester-zone-a-1'), seconds(world, 10));
    expect(nextEventMs(afterwards(leaving, removal(leaving, 'ingester-zone-a-1')))).toBe(kitNowMs + 30_000);
  });
});

describe('the model', () => {
  it('begins with the first turn of the controller and with what is under way', () => {
    const set = outdatedStatefulSet({ replicas: 6 });
    const changes = {
      1: 'missing',
      2: { isTerminating: true, isReady: false },
      3: { isReady: false, readyChangedMs: kitNowMs - 20_000 },
      4: { isReady: false, waitingReasons: ['ContainerCreating'] },
      5: { isReady: false, readyChangedMs: kitNowMs - 20_000, waitingReasons: ['CrashLoopBackOff'] },
    } as const;
    expect(story(worldOf({ statefulSets: [set], podChanges: { [set.name]: changes } }))).toEqual([
      '0:rev-1 ready, 1:rev-2 starting, 2:rev-1 leaving, 3:rev-1 starting, 4:rev-1 starting, 5:rev-1 starting',
      '30s 0:rev-1 ready, 1:rev-2 starting, 2:rev-2 starting, 3:rev-1 starting, 4:rev-1 starting, 5:rev-1 starting',
      '40s 0:rev-1 ready, 1:rev-2 starting, 2:rev-2 starting, 3:rev-1 ready, 4:rev-1 starting, 5:rev-1 starting',
      '60s 0:rev-1 ready, 1:rev-2 ready, 2:rev-2 starting, 3:rev-1 ready, 4:rev-1 starting, 5:rev-1 starting',
      '90s 0:rev-1 ready, 1:rev-2 ready, 2:rev-2 ready, 3:rev-1 ready, 4:rev-1 starting, 5:rev-1 starting',
    ]);
  });

  it('takes the times of the group where they differ, at the quantile', () => {
    const snapshot = snapshotOf({ groups: [group({ zones: ['a'] })], statefulSets: [statefulSet({ name: 'other' })] });
    const assumptions = { ...defaultAssumptions, groups: { ingester: { start: { p50Seconds: 7, p90Seconds: 9 } } } };
    expect([...createWorld(snapshot, assumptions, 'p50').durations, ...createWorld(snapshot, assumptions, 'p90').durations]).toEqual([
      ['mimir/other', { drainMs: 30_000, startMs: 60_000, longestStartMs: 540_000 }],
      ['mimir/ingester-zone-a', { drainMs: 30_000, startMs: 7_000, longestStartMs: 27_000 }],
      ['mimir/other', { drainMs: 120_000, startMs: 180_000, longestStartMs: 540_000 }],
      ['mimir/ingester-zone-a', { drainMs: 120_000, startMs: 9_000, longestStartMs: 27_000 }],
    ]);
  });

  it('says why a broken pod waits, and it stays broken', () => {
    const changes = { 'ingester-zone-a': { 0: { readyTimeMs: kitNowMs } } };
    const world = worldOf({ statefulSets: [statefulSet()], podChanges: changes });
    const broken = afterwards(world, { kind: 'podFails', namespace: 'mimir', pod: 'ingester-zone-a-0', reason: 'ImagePullBackOff' });
    expect(podIn(broken, 'ingester-zone-a-0')).toMatchObject({
      isReady: false,
      containersReady: false,
      waitingReasons: ['ImagePullBackOff'],
      readyChangedMs: kitNowMs,
    });
    expect(Object.keys(podIn(broken, 'ingester-zone-a-0'))).not.toContain('readyTimeMs');
    expect(nextEventMs(broken)).toBeUndefined();
    const again = afterwards(broken, seconds(broken, 60), { kind: 'podFails', namespace: 'mimir', pod: 'ingester-zone-a-0' });
    expect(podIn(again, 'ingester-zone-a-0')).toMatchObject({ waitingReasons: [], readyChangedMs: kitNowMs });
  });

  it('keeps the identity of what an input does not change, and never changes what it was given', () => {
    const world = worldOf({ groups: [group()] });
    const before = structuredClone({ ...world, pods: [...world.pods] });
    const next = afterwards(world, removal(world, 'ingester-zone-b-0'));
    const isSame = (index: number): boolean => next.snapshot.pods[index] === world.snapshot.pods[index];
    expect([isSame(0), isSame(1), isSame(2), next.snapshot.statefulSets[0] === world.snapshot.statefulSets[0]]).toEqual([
      true,
      false,
      true,
      true,
    ]);
    expect(structuredClone({ ...world, pods: [...world.pods] })).toEqual(before);
    expect(afterwards(world, seconds(world, 60)).snapshot.pods).toBe(world.snapshot.pods);
  });

  it('does the same in one long step of time as in many short ones', () => {
    const begun = afterwards(
      worldOf({ statefulSets: [statefulSet({ ...rolling, podManagementPolicy: 'OrderedReady', minReadySeconds: 5 })] }),
      {
        kind: 'setTemplate',
        namespace: 'mimir',
        statefulSet: 'ingester-zone-a',
        revision: 'rev-2',
      },
    );
    let short = begun;
    for (let second = 0; second < 600; second += 1) short = afterwards(short, seconds(short, 1));
    expect(short.snapshot).toEqual(afterwards(begun, seconds(begun, 600)).snapshot);
  });

  it('makes the pods of a StatefulSet that is created, and takes a name once', () => {
    const world = worldOf({ groups: [group({ zones: ['a'] })] });
    const set = statefulSet({ name: 'ingester-zone-b', replicas: 2, status: { replicas: 0, readyReplicas: 0, updatedReplicas: 0 } });
    const created = afterwards(world, { kind: 'createStatefulSet', set });
    expect([line(created, set.name), counters(created, set.name)]).toEqual([
      '0:rev-1 starting, 1:rev-1 starting',
      '2 replicas, 0 ready, 2 updated',
    ]);
    expect(counters(afterwards(created, seconds(created, 60)), set.name)).toBe('2 replicas, 2 ready, 2 updated');
    expect(afterwards(created, { kind: 'createStatefulSet', set })).toBe(created);
  });

  it('adopts the pods that a created StatefulSet finds', () => {
    const world = worldOf({ groups: [group({ zones: ['a'] })] });
    const set = statefulSet({ name: 'ingester-zone-b', replicas: 2 });
    const orphans = { namespace: 'mimir', statefulSet: set.name, pods: [pod(set, 0, { revision: 'rev-0' })] };
    const found = { ...world, snapshot: { ...world.snapshot, pods: [...world.snapshot.pods, orphans] } };
    const created = afterwards(found, { kind: 'createStatefulSet', set });
    expect([line(created, set.name), created.snapshot.pods.length]).toEqual([
      '0:rev-0 ready, 1:rev-1 starting',
      found.snapshot.pods.length,
    ]);
  });

  it('does not go back in time', () => {
    const world = worldOf({ statefulSets: [statefulSet()] });
    expect(afterwards(world, { kind: 'elapse', toMs: 0 })).toBe(world);
  });

  it('leaves a StatefulSet alone whose pods are unknown or that is being deleted', () => {
    const unknown = worldOf({
      statefulSets: [statefulSet()],
      pods: [{ namespace: 'mimir', statefulSet: 'ingester-zone-a', pods: { unknown: 'forbidden' } }],
    });
    expect(afterwards(unknown, scaleTo(5), seconds(unknown, 60)).snapshot.statefulSets).toBe(unknown.snapshot.statefulSets);
    const deleted = worldOf({ statefulSets: [statefulSet({ isTerminating: true })] });
    expect(line(afterwards(deleted, removal(deleted, 'ingester-zone-a-1'), seconds(deleted, 60)))).toBe('0:rev-1 ready, 2:rev-1 ready');
  });

  it('advances the current revision and writes replicas back when asked', () => {
    const source = { namespace: 'mimir', apiVersion: 'v1', kind: 'ReplicaTemplate', name: 'r', replicas: 3, statusReplicas: 1 };
    const set = outdatedStatefulSet();
    const world = worldOf({ statefulSets: [set], replicaSources: [source, { ...source, name: 'other' }] });
    const target = { namespace: 'mimir', zone: 'a', statefulSet: set.name, uid: set.uid, resourceVersion: set.resourceVersion };
    const done = afterwards(
      world,
      { kind: 'action', action: { kind: 'advanceCurrentRevision', ...target, revision: 'rev-2' } },
      {
        kind: 'action',
        action: {
          kind: 'writeBackReplicas',
          namespace: 'mimir',
          apiVersion: 'v1',
          resourceKind: 'ReplicaTemplate',
          name: 'r',
          replicas: 3,
        },
      },
    );
    expect(setIn(done).status.currentRevision).toBe('rev-2');
    expect(done.snapshot.replicaSources.map(({ statusReplicas }) => statusReplicas)).toEqual([3, 1]);
    const other = afterwards(world, { kind: 'action', action: { kind: 'advanceCurrentRevision', ...target, uid: 'x', revision: 'rev-2' } });
    expect(setIn(other).status.currentRevision).toBe('rev-1');
  });
});

describe('a pod that is asked to prepare', () => {
  const call = (method: 'POST' | 'DELETE', kind: 'delayed' | 'prepare', ordinals: readonly number[]): WorldInput => ({
    kind: 'action',
    action: { kind: 'callPods', namespace: 'mimir', zone: 'a', statefulSet: 'ingester-zone-a', call: kind, method, ordinals },
  });
  const preparations = (world: World) => world.snapshot.ledgers[0]?.preparations;
  const world = worldOf({ groups: [group({ zones: ['a'] })] });

  it('keeps its first timestamp when it is asked again', () => {
    const twice = afterwards(world, call('POST', 'delayed', [1, 2]), seconds(world, 60), call('POST', 'delayed', [2, 7]));
    expect(preparations(twice)).toEqual([
      {
        zone: 'a',
        ordinal: 1,
        podUid: 'uid-ingester-zone-a-1',
        call: 'delayed',
        state: 'prepared',
        reportedMs: kitNowMs,
        seenMs: kitNowMs,
      },
      {
        zone: 'a',
        ordinal: 2,
        podUid: 'uid-ingester-zone-a-2',
        call: 'delayed',
        state: 'prepared',
        reportedMs: kitNowMs,
        seenMs: kitNowMs,
        answeredMs: kitNowMs + 60_000,
      },
    ]);
  });

  it('keeps its timestamp over a restart, and its delay starts again', () => {
    const asked = afterwards(world, call('POST', 'delayed', [2]));
    const back = afterwards(asked, removal(asked, 'ingester-zone-a-2'), seconds(asked, 90), call('POST', 'delayed', [2]));
    expect(preparations(back)).toMatchObject([
      { ordinal: 2, podUid: podIn(back, 'ingester-zone-a-2').uid, reportedMs: kitNowMs, seenMs: kitNowMs + 90_000 },
    ]);
  });

  it('starts again after it was cancelled', () => {
    const stayed = afterwards(world, call('POST', 'delayed', [1, 2]), call('DELETE', 'delayed', [2]));
    expect(preparations(stayed)?.map(({ ordinal }) => ordinal)).toEqual([1]);
    const again = afterwards(stayed, seconds(stayed, 60), call('POST', 'delayed', [2]));
    expect(preparations(again)?.map(({ reportedMs }) => reportedMs)).toEqual([kitNowMs, kitNowMs + 60_000]);
  });

  it('has no separate timestamp for an immediate removal', () => {
    expect(preparations(afterwards(world, call('POST', 'prepare', [2])))).toEqual([
      { zone: 'a', ordinal: 2, podUid: 'uid-ingester-zone-a-2', call: 'prepare', state: 'prepared', seenMs: kitNowMs },
    ]);
  });

  it('fails when that is assumed', () => {
    const failing = worldOf({ groups: [group({ zones: ['a'] })] }, { preparations: 'fail' });
    expect(preparations(afterwards(failing, call('POST', 'delayed', [2])))).toEqual([
      {
        zone: 'a',
        ordinal: 2,
        podUid: 'uid-ingester-zone-a-2',
        call: 'delayed',
        state: 'failed',
        seenMs: kitNowMs,
        message: 'preparations are assumed to fail',
      },
    ]);
  });
});
