import { describe, expect, it } from 'vitest';
import { leavingPods } from '../../../engine/rules/leaving.ts';
import type { Claim, Preparation, StatefulSetView } from '../../../engine/snapshot.ts';
import { group } from '../../kit/groups.ts';
import { kitNowMs, type PodChanges, statefulSet } from '../../kit/objects.ts';
import { contextWith, ledgerOf, preparation, zoneIn } from '../../kit/questions.ts';

interface Given extends Partial<Pick<StatefulSetView, 'podManagementPolicy' | 'firstOrdinal' | 'replicas'>> {
  readonly missing?: readonly number[];
  readonly counted?: number;
  readonly preparations?: readonly Preparation[];
  readonly claims?: readonly Claim[];
  readonly to?: number;
}

/** The pods that leave when zone a goes from five replicas to three. */
function leaving({ missing = [], counted = 5, preparations = [], claims = [], to = 3, replicas = 5, ...set }: Given) {
  const podChanges: PodChanges = Object.fromEntries(missing.map((ordinal) => [ordinal, 'missing']));
  const context = contextWith(group({ zones: ['a'] }), {
    statefulSets: [statefulSet({ ...set, replicas, status: { replicas: counted } })],
    podChanges: { 'ingester-zone-a': podChanges },
    ledgers: [ledgerOf({ preparations, claims })],
  });
  const { pods, lost, lostCount } = leavingPods(zoneIn(context), context.view.ledger, { from: replicas, to });
  return { pods: pods.map(({ ordinal }) => ordinal), lost, lostCount };
}

const evicted: Claim = { verb: 'evictPod', zone: 'a', uid: 'uid-old', ordinal: 4, atMs: kitNowMs };

describe('the pods that leave', () => {
  it.each<[string, Given, readonly number[], readonly number[]]>([
    ['all exist', {}, [3, 4], []],
    ['counts from the first ordinal', { firstOrdinal: 10 }, [13, 14], []],
    ['a pod was lost, and the status still counts it', { missing: [4] }, [3], [4]],
    ['a lower pod was lost', { missing: [3], counted: 4 }, [4], [3]],
    ['a pod was never created', { missing: [4], counted: 4 }, [3], []],
    ['no pod was ever created', { missing: [3, 4], counted: 3 }, [], []],
    [
      'the status no longer counts the lost pod, which was asked before',
      { missing: [4], counted: 4, preparations: [preparation(4)] },
      [3],
      [4],
    ],
    ['the status no longer counts the lost pod, which the agent evicted before', { missing: [4], counted: 4, claims: [evicted] }, [3], [4]],
    ['the ledger names another zone', { missing: [4], counted: 4, preparations: [preparation(4, { zone: 'b' })] }, [3], []],
    [
      'another operator may have asked the pod, which proves no creation',
      { missing: [4], counted: 4, preparations: [preparation(4, { podUid: '' })] },
      [3],
      [],
    ],
    [
      'OrderedReady created every ordinal below an existing pod',
      { missing: [0, 1, 2, 3], counted: 1, podManagementPolicy: 'OrderedReady' },
      [4],
      [3],
    ],
    ['Parallel may have failed to create it', { missing: [0, 1, 2, 3], counted: 1 }, [4], []],
    ['a pod that stays was lost', { missing: [1], counted: 4 }, [3, 4], []],
  ])('%s', (_case, given, pods, lost) => {
    expect(leaving(given)).toEqual({ pods, lost, lostCount: lost.length });
  });
});
