// One turn of the model of the StatefulSet controller, against what kubernetes/pkg/controller/statefulset/stateful_set_control.go does.
import { describe, expect, it } from 'vitest';
import { countsOf, isComplete, type TurnInput, turnOf } from '../../../simulation/cluster/statefulset-turn.ts';
import type { PodFacts } from '../../../simulation/cluster/workload.ts';

const now = Date.UTC(2026, 0, 15, 12);

function pod(ordinal: number, change: Partial<PodFacts> = {}): PodFacts {
  return {
    namespace: 'mimir',
    name: `set-${ordinal}`,
    uid: `uid-${ordinal}`,
    ordinal,
    labels: {},
    revision: 'new',
    owner: { name: 'set', uid: 'set-uid' },
    isOrphan: false,
    isTerminating: false,
    graceSeconds: 30,
    phase: 'Running',
    isReady: true,
    readyChangedMs: now - 60_000,
    node: 'node-a-1',
    containers: [],
    service: 'set',
    ...change,
  };
}

function input(change: Partial<TurnInput> & { readonly pods: readonly PodFacts[] }): TurnInput {
  return {
    spec: { replicas: 3, podManagementPolicy: 'Parallel', updateStrategy: { type: 'OnDelete' } },
    currentRevision: 'old',
    updateRevision: 'new',
    isTerminating: false,
    wallMs: now,
    ...change,
  };
}

const ordered = { replicas: 3, podManagementPolicy: 'OrderedReady', updateStrategy: { type: 'OnDelete' } };
const rolling = (partition: number, podManagementPolicy = 'Parallel') => ({
  replicas: 3,
  podManagementPolicy,
  updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition } },
});
const starting = { isReady: false, phase: 'Pending' };

describe('a turn of the StatefulSet controller', () => {
  it('makes every missing pod at once with Parallel, at the update revision with OnDelete', () => {
    expect(turnOf(input({ pods: [pod(1)] }))).toEqual({
      creates: [
        { ordinal: 0, revision: 'new' },
        { ordinal: 2, revision: 'new' },
      ],
      deletes: [],
    });
  });

  it('makes one missing pod with OrderedReady, the lowest, and not before every lower one is available', () => {
    expect(turnOf(input({ spec: ordered, pods: [] })).creates).toEqual([{ ordinal: 0, revision: 'new' }]);
    expect(turnOf(input({ spec: ordered, pods: [pod(0, starting)] })).creates).toEqual([]);
    expect(turnOf(input({ spec: ordered, pods: [pod(0, { isTerminating: true })] })).creates).toEqual([]);
    expect(turnOf(input({ spec: ordered, pods: [pod(0)] })).creates).toEqual([{ ordinal: 1, revision: 'new' }]);
  });

  it('waits with OrderedReady until a ready pod is available, and says when that is', () => {
    const young = pod(0, { readyChangedMs: now - 4000 });
    expect(turnOf(input({ spec: { ...ordered, minReadySeconds: 10 }, pods: [young] }))).toEqual({
      creates: [],
      deletes: [],
      nextTurnMs: now + 6000,
    });
  });

  it('makes pods below the partition at the current revision', () => {
    expect(turnOf(input({ spec: rolling(2), pods: [] })).creates.map(({ revision }) => revision)).toEqual(['old', 'old', 'new']);
  });

  it('counts ordinals from the first one', () => {
    const spec = { ...rolling(1), ordinals: { start: 5 } };
    expect(turnOf(input({ spec, pods: [pod(4)] }))).toEqual({
      creates: [
        { ordinal: 5, revision: 'old' },
        { ordinal: 6, revision: 'new' },
        { ordinal: 7, revision: 'new' },
      ],
      deletes: ['set-4'],
    });
  });

  it('removes surplus pods all at once with Parallel, and the highest alone with OrderedReady', () => {
    const pods = [0, 1, 2, 3, 4].map((ordinal) => pod(ordinal));
    expect(turnOf(input({ pods })).deletes).toEqual(['set-4', 'set-3']);
    expect(turnOf(input({ spec: ordered, pods })).deletes).toEqual(['set-4']);
    expect(turnOf(input({ spec: ordered, pods: pods.with(4, pod(4, { isTerminating: true })) })).deletes).toEqual([]);
  });

  it('does not shrink with OrderedReady while a pod that stays is not available', () => {
    const pods = [pod(0), pod(1, { isReady: false }), pod(2), pod(3)];
    expect(turnOf(input({ spec: ordered, pods })).deletes).toEqual([]);
  });

  it('removes a surplus pod that is broken with OrderedReady, as the first that is unhealthy', () => {
    const pods = [pod(0), pod(1), pod(2), pod(3, { isReady: false })];
    expect(turnOf(input({ spec: ordered, pods })).deletes).toEqual(['set-3']);
  });

  it('deletes a pod that has ended, and makes its successor when it is gone', () => {
    expect(turnOf(input({ pods: [pod(0), pod(1, { phase: 'Failed', isReady: false }), pod(2)] }))).toEqual({
      creates: [],
      deletes: ['set-1'],
    });
  });

  it('replaces no pod with OnDelete', () => {
    expect(turnOf(input({ pods: [0, 1, 2].map((ordinal) => pod(ordinal, { revision: 'old' })) }))).toEqual({ creates: [], deletes: [] });
  });

  it('rolls from the top, one pod at a time, down to the partition', () => {
    const old = { revision: 'old' };
    expect(turnOf(input({ spec: rolling(0), pods: [pod(0, old), pod(1, old), pod(2, old)] })).deletes).toEqual(['set-2']);
    expect(turnOf(input({ spec: rolling(0), pods: [pod(0, old), pod(1, old), pod(2, starting)] })).deletes).toEqual([]);
    expect(turnOf(input({ spec: rolling(0), pods: [pod(0, old), pod(1, old), pod(2)] })).deletes).toEqual(['set-1']);
    expect(turnOf(input({ spec: rolling(2), pods: [pod(0, old), pod(1, old), pod(2)] })).deletes).toEqual([]);
  });

  it('never gets past a broken pod with OrderedReady, even when the template is mended', () => {
    const pods = [pod(0, { revision: 'old' }), pod(1, { revision: 'old' }), pod(2, { revision: 'broken', isReady: false })];
    expect(turnOf(input({ spec: rolling(0, 'OrderedReady'), pods }))).toEqual({ creates: [], deletes: [] });
    expect(turnOf(input({ spec: rolling(0), pods })).deletes).toEqual(['set-2']);
  });

  it('does nothing for a StatefulSet that is being deleted', () => {
    expect(turnOf(input({ pods: [], isTerminating: true }))).toEqual({ creates: [], deletes: [] });
  });
});

describe('the counters of a StatefulSet', () => {
  it('count a terminating pod as there and ready, and as updated no more', () => {
    const pods = [pod(0, { revision: 'old' }), pod(1, { isTerminating: true }), pod(2, { readyChangedMs: now - 1000 })];
    expect(countsOf(input({ spec: { ...ordered, minReadySeconds: 5 }, pods }))).toEqual({
      replicas: 3,
      readyReplicas: 3,
      availableReplicas: 2,
      currentReplicas: 1,
      updatedReplicas: 1,
    });
  });

  it('make a rolling update complete when every pod is ready at the new revision, and never with OnDelete', () => {
    const given = input({ spec: rolling(0), pods: [pod(0), pod(1), pod(2)] });
    expect(isComplete(given, countsOf(given))).toBe(true);
    const notReady = input({ spec: rolling(0), pods: [pod(0), pod(1), pod(2, { isReady: false })] });
    expect(isComplete(notReady, countsOf(notReady))).toBe(false);
    const onDelete = input({ pods: [pod(0), pod(1), pod(2)] });
    expect(isComplete(onDelete, countsOf(onDelete))).toBe(false);
  });
});
