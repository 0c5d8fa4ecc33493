import { describe, expect, it } from 'vitest';
import { leavingPods } from '../../../engine/rules/leaving.ts';
import type { CreatedPods, StatefulSetView } from '../../../engine/snapshot.ts';
import { group } from '../../kit/groups.ts';
import { type PodChanges, statefulSet } from '../../kit/objects.ts';
import { contextWith, ledgerOf, zoneIn } from '../../kit/questions.ts';

interface Given extends Partial<Pick<StatefulSetView, 'podManagementPolicy' | 'firstOrdinal'>> {
  readonly missing?: readonly number[];
  readonly counted?: number;
  readonly created?: Partial<CreatedPods>;
}

/** The pods that leave when zone a goes from five replicas to three. */
function leaving({ missing = [], counted = 5 - missing.length, created, ...set }: Given) {
  const podChanges: PodChanges = Object.fromEntries(missing.map((ordinal) => [ordinal, 'missing']));
  const context = contextWith(group({ zones: ['a'] }), {
    statefulSets: [statefulSet({ ...set, replicas: 5, status: { replicas: counted } })],
    podChanges: { 'ingester-zone-a': podChanges },
    ledgers: [ledgerOf(created && { created: [{ zone: 'a', uid: 'uid-ingester-zone-a', ordinals: '', ...created }] })],
  });
  const { pods, lost, lostCount } = leavingPods(zoneIn(context), context.view.ledger, { from: 5, to: 3 });
  return { pods: pods.map(({ ordinal }) => ordinal), lost, lostCount };
}

describe('the pods that leave', () => {
  it.each<[string, Given, readonly number[], number | undefined]>([
    ['all exist', {}, [3, 4], undefined],
    ['counts from the first ordinal', { firstOrdinal: 10 }, [13, 14], undefined],
    ['a pod was lost, and the status still counts it', { missing: [4], counted: 5 }, [3], 4],
    ['a lower pod was lost, and the status still counts it', { missing: [3], counted: 5 }, [4], 3],
    ['a pod was never created', { missing: [4] }, [3], undefined],
    ['a lower pod was never created, because a quota allowed only the higher one', { missing: [3] }, [4], undefined],
    ['no pod was ever created', { missing: [3, 4] }, [], undefined],
    ['the ledger remembers the lost pod', { missing: [4], created: { ordinals: '0-4' } }, [3], 4],
    ['the ledger remembers other pods', { missing: [4], created: { ordinals: '0-3' } }, [3], undefined],
    ['the ledger remembers another StatefulSet of this name', { missing: [4], created: { ordinals: '0-4', uid: 'old' } }, [3], undefined],
    ['the ledger remembers another zone', { missing: [4], created: { ordinals: '0-4', zone: 'b' } }, [3], undefined],
    ['OrderedReady creates every lower pod first', { missing: [0, 1, 2, 3], podManagementPolicy: 'OrderedReady' }, [4], 3],
    ['a pod that stays was lost', { missing: [1], created: { ordinals: '0-4' } }, [3, 4], undefined],
  ])('%s', (_case, given, pods, lost) => {
    expect(leaving(given)).toEqual({ pods, lost, lostCount: lost === undefined ? 0 : 1 });
  });

  it('counts every lost pod and names one', () => {
    expect(leaving({ missing: [3, 4], created: { ordinals: '0-4' } })).toEqual({ pods: [], lost: 4, lostCount: 2 });
    expect(leaving({ missing: [3, 4], counted: 5 })).toEqual({ pods: [], lost: 3, lostCount: 2 });
    expect(leaving({ missing: [3, 4], counted: 4, created: { ordinals: '4' } })).toEqual({ pods: [], lost: 4, lostCount: 2 });
  });
});
