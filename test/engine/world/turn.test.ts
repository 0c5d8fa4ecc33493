// One turn of the StatefulSet controller, as kubernetes/pkg/controller/statefulset/stateful_set_control.go computes it.
import { describe, expect, it } from 'vitest';
import {
  type ControlledPod,
  type ControlledSet,
  controllerTurn,
  isUpdateComplete,
  replicaCounts,
} from '../../../engine/world/controller.ts';
import { holdingPartition } from '../../../policies/strategies.ts';

const now = Date.UTC(2026, 0, 15, 12);

function pod(ordinal: number, change: Partial<ControlledPod> = {}): ControlledPod {
  return { ordinal, revision: 'new', isTerminating: false, phase: 'Running', isReady: true, readyChangedMs: now - 60_000, ...change };
}

const parallel: ControlledSet = {
  replicas: 3,
  firstOrdinal: 0,
  podManagementPolicy: 'Parallel',
  updateStrategy: 'OnDelete',
  partition: undefined,
  minReadySeconds: 0,
  isTerminating: false,
  status: { currentRevision: 'old', updateRevision: 'new' },
};
const ordered: ControlledSet = { ...parallel, podManagementPolicy: 'OrderedReady' };
const rolling = (partition: number | undefined, podManagementPolicy: ControlledSet['podManagementPolicy'] = 'Parallel'): ControlledSet => ({
  ...parallel,
  podManagementPolicy,
  updateStrategy: 'RollingUpdate',
  partition,
});
const starting = { isReady: false, phase: 'Pending' };
const old = { revision: 'old' };

/** Returns a turn with the ordinals of the deleted pods. */
function turnOf(set: ControlledSet, pods: readonly ControlledPod[], maxUnavailable?: number) {
  const given = { set, pods, nowMs: now, ...(maxUnavailable === undefined ? {} : { maxUnavailable }) };
  const { creates, deletes } = controllerTurn(given);
  return { creates, deletes: deletes.map(({ ordinal }) => ordinal) };
}

describe('a turn of the StatefulSet controller', () => {
  it('makes every missing pod at once with Parallel, at the update revision with OnDelete', () => {
    expect(turnOf(parallel, [pod(1)])).toEqual({
      creates: [
        { ordinal: 0, revision: 'new' },
        { ordinal: 2, revision: 'new' },
      ],
      deletes: [],
    });
  });

  it('makes one missing pod with OrderedReady, the lowest, and not before every lower one is available', () => {
    expect(turnOf(ordered, []).creates).toEqual([{ ordinal: 0, revision: 'new' }]);
    expect(turnOf(ordered, [pod(0, starting)]).creates).toEqual([]);
    expect(turnOf(ordered, [pod(0, { isTerminating: true })]).creates).toEqual([]);
    expect(turnOf(ordered, [pod(0)]).creates).toEqual([{ ordinal: 1, revision: 'new' }]);
  });

  it('waits with OrderedReady until a ready pod is available', () => {
    const young = pod(0, { readyChangedMs: now - 4000 });
    expect(turnOf({ ...ordered, minReadySeconds: 10 }, [young])).toEqual({ creates: [], deletes: [] });
    expect(turnOf({ ...ordered, minReadySeconds: 4 }, [young]).creates).toEqual([{ ordinal: 1, revision: 'new' }]);
  });

  it('makes pods below the partition at the current revision', () => {
    expect(turnOf(rolling(2), []).creates.map(({ revision }) => revision)).toEqual(['old', 'old', 'new']);
  });

  it('counts ordinals from the first one', () => {
    expect(turnOf({ ...rolling(1), firstOrdinal: 5 }, [pod(4)])).toEqual({
      creates: [
        { ordinal: 5, revision: 'old' },
        { ordinal: 6, revision: 'new' },
        { ordinal: 7, revision: 'new' },
      ],
      deletes: [4],
    });
  });

  it('removes surplus pods all at once with Parallel, and the highest alone with OrderedReady', () => {
    const pods = [0, 1, 2, 3, 4].map((ordinal) => pod(ordinal));
    expect(turnOf(parallel, pods).deletes).toEqual([4, 3]);
    expect(turnOf(ordered, pods).deletes).toEqual([4]);
    expect(turnOf(ordered, pods.with(4, pod(4, { isTerminating: true }))).deletes).toEqual([]);
  });

  it('removes the highest surplus pod with OrderedReady although a lower one terminates, but not above one that is unready', () => {
    const pods = [pod(0), pod(1), pod(2), pod(3, { isTerminating: true }), pod(4)];
    expect(turnOf(ordered, pods).deletes).toEqual([4]);
    expect(turnOf(ordered, pods.with(4, pod(4, { isReady: false }))).deletes).toEqual([]);
  });

  it('does not shrink with OrderedReady while a pod that stays is not available', () => {
    const pods = [pod(0), pod(1, { isReady: false }), pod(2), pod(3)];
    expect(turnOf(ordered, pods).deletes).toEqual([]);
  });

  it('removes a surplus pod that is broken or not ready for long enough with OrderedReady, as the first that is unavailable', () => {
    const pods = [pod(0), pod(1), pod(2)];
    expect(turnOf(ordered, [...pods, pod(3, { isReady: false })]).deletes).toEqual([3]);
    const slow = { ...ordered, minReadySeconds: 10 };
    expect(turnOf(slow, [...pods, pod(3, { readyChangedMs: now - 4000 })]).deletes).toEqual([3]);
    expect(turnOf(slow, [...pods, pod(3, { isReady: false }), pod(4, { readyChangedMs: now - 4000 })]).deletes).toEqual([]);
  });

  it('deletes a pod that has ended, and makes its successor when it is gone', () => {
    const ended = pod(1, { phase: 'Failed', isReady: false });
    expect(turnOf(parallel, [pod(0), ended, pod(2)])).toEqual({ creates: [], deletes: [1] });
    expect(turnOf(ordered, [pod(0), ended])).toEqual({ creates: [], deletes: [1] });
    // Parallel waits for nothing, so the surplus pods and the missing pods are not left to the next turn.
    expect(turnOf(parallel, [ended, pod(2), pod(3)])).toEqual({ creates: [{ ordinal: 0, revision: 'new' }], deletes: [1, 3] });
  });

  it('replaces no pod with OnDelete', () => {
    expect(
      turnOf(
        parallel,
        [0, 1, 2].map((ordinal) => pod(ordinal, { revision: 'old' })),
      ),
    ).toEqual({ creates: [], deletes: [] });
  });

  it('rolls from the top, one pod at a time, down to the partition', () => {
    expect(turnOf(rolling(0), [pod(0, old), pod(1, old), pod(2, old)]).deletes).toEqual([2]);
    expect(turnOf(rolling(0), [pod(0, old), pod(1, old), pod(2, starting)]).deletes).toEqual([]);
    expect(turnOf(rolling(0), [pod(0, old), pod(1, old), pod(2)]).deletes).toEqual([1]);
    expect(turnOf(rolling(2), [pod(0, old), pod(1, old), pod(2)]).deletes).toEqual([]);
  });

  it('makes as many pods unavailable as the feature gate MaxUnavailableStatefulSet allows, and counts those below the partition', () => {
    const pods = [pod(0, old), pod(1, old), pod(2, old)];
    expect(turnOf(rolling(0), pods, 2).deletes).toEqual([2, 1]);
    expect(turnOf(rolling(2), pods, 2).deletes).toEqual([2]);
    expect(turnOf(rolling(1), pods.with(0, pod(0, { ...old, isReady: false })), 2).deletes).toEqual([2]);
    // The broken pod of an earlier revision uses up the allowance, so its repair waits forever.
    expect(turnOf(rolling(0), pods.with(2, pod(2, { ...old, isReady: false })), 1).deletes).toEqual([]);
  });

  it('makes pods at the current revision as the status counts them without the block rollingUpdate', () => {
    const set = { ...rolling(undefined), status: { ...parallel.status, currentReplicas: 2 } };
    expect(turnOf(set, []).creates.map(({ revision }) => revision)).toEqual(['old', 'old', 'new']);
  });

  it('never gets past a broken pod with OrderedReady, even when the template is mended', () => {
    const pods = [pod(0, { revision: 'old' }), pod(1, { revision: 'old' }), pod(2, { revision: 'broken', isReady: false })];
    expect(turnOf(rolling(0, 'OrderedReady'), pods)).toEqual({ creates: [], deletes: [] });
    expect(turnOf(rolling(0), pods).deletes).toEqual([2]);
  });

  it('does nothing for a StatefulSet that is being deleted', () => {
    expect(turnOf({ ...parallel, isTerminating: true }, [pod(0)])).toEqual({ creates: [], deletes: [] });
  });
});

describe('the counters of a StatefulSet', () => {
  it('count a terminating pod as there and ready, and as updated no more', () => {
    const pods = [pod(0, { revision: 'old' }), pod(1, { isTerminating: true }), pod(2, { readyChangedMs: now - 1000 })];
    expect(replicaCounts({ set: { ...ordered, minReadySeconds: 5 }, pods, nowMs: now })).toEqual({
      replicas: 3,
      readyReplicas: 3,
      availableReplicas: 2,
      currentReplicas: 1,
      updatedReplicas: 1,
    });
  });

  it('make a rolling update complete when every pod is ready at the new revision, and never with OnDelete', () => {
    const isComplete = (set: ControlledSet, change: Partial<ControlledPod>) =>
      isUpdateComplete(set, replicaCounts({ set, pods: [pod(0), pod(1), pod(2, change)], nowMs: now }));
    expect(isComplete(rolling(0), {})).toBe(true);
    expect(isComplete(rolling(holdingPartition), {})).toBe(true);
    expect(isComplete(rolling(0), { isReady: false })).toBe(false);
    expect(isComplete(rolling(0), old)).toBe(false);
    expect(isComplete(parallel, {})).toBe(false);
  });
});
