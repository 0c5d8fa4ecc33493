import { describe, expect, it } from 'vitest';
import { defaultAssumptions } from '../../engine/assumptions.ts';
import { createWorld, nextEventMs, step } from '../../engine/world.ts';
import type { World, WorldInput } from '../../engine/world-model.ts';
import { group } from '../kit/groups.ts';
import { kitNowMs, outdatedStatefulSet, statefulSet } from '../kit/objects.ts';
import { snapshotOf } from '../kit/snapshots.ts';
import { afterwards, counters, line, podIn, removal, seconds, setIn, worldOf } from '../kit/worlds.ts';

const scaleTo = (replicas: number): WorldInput => ({ kind: 'setReplicas', namespace: 'mimir', statefulSet: 'ingester-zone-a', replicas });
const rolling = { updateStrategy: 'RollingUpdate', partition: 0 } as const;

/** The lines of the world at every instant at which something happens by itself. */
function story(world: World, limit = 20): readonly string[] {
  const lines = [line(world)];
  let current = world;
  for (let next = nextEventMs(current); next !== undefined && lines.length < limit; next = nextEventMs(current)) {
    current = step(current, { kind: 'elapse', toMs: next });
    lines.push(`${(next - kitNowMs) / 1000}s ${line(current)}`);
  }
  return lines;
}

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

  it('is not deleted twice', () => {
    const leaving = afterwards(world, removal(world, 'ingester-zone-a-1'), seconds(world, 10));
    expect(nextEventMs(afterwards(leaving, removal(leaving, 'ingester-zone-a-1')))).toBe(kitNowMs + 30_000);
  });
});

describe('an evicted pod', () => {
  const budget = { namespace: 'mimir', name: 'pdb', selector: { matchLabels: { 'rollout-group': 'ingester' } }, maxUnavailable: 1 };
  const sets = [statefulSet(), statefulSet({ name: 'ingester-zone-b' })];
  const world = worldOf({ statefulSets: sets, podBudgets: [budget] });
  const evict = (from: World, pod: string): World => afterwards(from, removal(from, pod, 'evictPod'));

  it('goes while its PodDisruptionBudget lasts, over all StatefulSets that it selects', () => {
    const one = evict(world, 'ingester-zone-a-0');
    expect([line(one), line(evict(one, 'ingester-zone-b-0'), 'ingester-zone-b')]).toEqual([
      '0:rev-1 leaving, 1:rev-1 ready, 2:rev-1 ready',
      '0:rev-1 ready, 1:rev-1 ready, 2:rev-1 ready',
    ]);
  });

  it('goes again once the first is back', () => {
    const back = afterwards(evict(world, 'ingester-zone-a-0'), seconds(world, 90));
    expect(line(evict(back, 'ingester-zone-b-0'), 'ingester-zone-b')).toBe('0:rev-1 leaving, 1:rev-1 ready, 2:rev-1 ready');
  });

  it('costs nothing when it is not ready and enough others are', () => {
    const broken = afterwards(world, { kind: 'podFails', namespace: 'mimir', pod: 'ingester-zone-a-0' });
    expect(line(evict(broken, 'ingester-zone-a-0'))).toBe('0:rev-1 leaving, 1:rev-1 ready, 2:rev-1 ready');
    const twice = afterwards(broken, { kind: 'podFails', namespace: 'mimir', pod: 'ingester-zone-a-1' });
    expect(line(evict(twice, 'ingester-zone-a-0'))).toBe('0:rev-1 starting, 1:rev-1 starting, 2:rev-1 ready');
  });

  it('stays when two budgets select it', () => {
    const both = worldOf({ statefulSets: sets, podBudgets: [budget, { ...budget, name: 'other' }] });
    expect(line(evict(both, 'ingester-zone-a-0'))).toBe(line(both));
  });

  it.each([
    ['maxUnavailable 50%', { maxUnavailable: '50%' }, 3],
    ['minAvailable 4', { minAvailable: 4 }, 2],
    ['minAvailable 100%', { minAvailable: '100%' }, 0],
    ['maxUnavailable 0', { maxUnavailable: 0 }, 0],
  ])('%s lets go as many as the eviction API would', (_case, limit, count) => {
    const { maxUnavailable: _maxUnavailable, ...rest } = budget;
    let current = worldOf({ statefulSets: sets, podBudgets: [{ ...rest, ...limit }] });
    for (const zone of ['a', 'b']) for (const ordinal of [0, 1, 2]) current = evict(current, `ingester-zone-${zone}-${ordinal}`);
    const leaving = current.snapshot.pods.map((view) => line(current, view.statefulSet).split('leaving').length - 1);
    expect(leaving[0]).toBe(Math.min(3, count));
    expect((leaving[0] ?? 0) + (leaving[1] ?? 0)).toBe(count);
  });
});

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

  it('counts ordinals from the first one', () => {
    const world = worldOf({ statefulSets: [statefulSet({ firstOrdinal: 5, replicas: 2 })] });
    expect([line(afterwards(world, scaleTo(3))), line(afterwards(world, scaleTo(1)))]).toEqual([
      '5:rev-1 ready, 6:rev-1 ready, 7:rev-1 starting',
      '5:rev-1 ready, 6:rev-1 leaving',
    ]);
  });

  it('dates a decrease in the ledger, whoever asks, and nothing else', () => {
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

describe('the model', () => {
  it('begins with the first turn of the controller and with what is under way', () => {
    const set = outdatedStatefulSet({ replicas: 6 });
    const changes = {
      1: 'missing',
      2: { isTerminating: true, isReady: false },
      3: { isReady: false, readyChangedMs: kitNowMs - 20_000 },
      4: { isReady: false },
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
      ['mimir/other', { drainMs: 30_000, startMs: 60_000 }],
      ['mimir/ingester-zone-a', { drainMs: 30_000, startMs: 7_000 }],
      ['mimir/other', { drainMs: 120_000, startMs: 180_000 }],
      ['mimir/ingester-zone-a', { drainMs: 120_000, startMs: 9_000 }],
    ]);
  });

  it('says why a broken pod waits, and it stays broken', () => {
    const world = worldOf({ statefulSets: [statefulSet()] });
    const broken = afterwards(world, { kind: 'podFails', namespace: 'mimir', pod: 'ingester-zone-a-0', reason: 'ImagePullBackOff' });
    expect(podIn(broken, 'ingester-zone-a-0')).toMatchObject({
      isReady: false,
      containersReady: false,
      waitingReasons: ['ImagePullBackOff'],
      readyChangedMs: kitNowMs,
    });
    expect(nextEventMs(broken)).toBeUndefined();
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
      },
    ]);
  });

  it('keeps its timestamp over a restart, but is seen anew', () => {
    const asked = afterwards(world, call('POST', 'delayed', [2]));
    const back = afterwards(asked, removal(asked, 'ingester-zone-a-2'), seconds(asked, 90), call('POST', 'delayed', [2]));
    expect(preparations(back)).toMatchObject([
      { ordinal: 2, podUid: podIn(back, 'ingester-zone-a-2').uid, reportedMs: kitNowMs, seenMs: kitNowMs + 90_000 },
    ]);
  });

  it('begins anew after it was told to stay', () => {
    const stayed = afterwards(world, call('POST', 'delayed', [1, 2]), call('DELETE', 'delayed', [2]));
    expect(preparations(stayed)?.map(({ ordinal }) => ordinal)).toEqual([1]);
    const again = afterwards(stayed, seconds(stayed, 60), call('POST', 'delayed', [2]));
    expect(preparations(again)?.map(({ reportedMs }) => reportedMs)).toEqual([kitNowMs, kitNowMs + 60_000]);
  });

  it('has no timestamp of its own for an immediate removal', () => {
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
