import { describe, expect, it } from 'vitest';
import { podsAvailable, updatedPods } from '../../../engine/observe/readings.ts';
import { viewGroup } from '../../../engine/observe/view.ts';
import type { StatefulSetView } from '../../../engine/snapshot.ts';
import { group, wave } from '../../kit/groups.ts';
import { kitNowMs, newRevision, oldRevision, outdatedStatefulSet, type PodChanges } from '../../kit/objects.ts';
import { snapshotOf } from '../../kit/snapshots.ts';

const waves = [wave('canary', ['a'], { amount: { pods: 1 } }), wave('rest', ['b', 'c'])];
const ingester = group({ rollout: { waves } });
const target = { a: newRevision, b: newRevision, c: newRevision };
const previous = { a: oldRevision, b: oldRevision, c: oldRevision };
const updated = { revision: newRevision } as const;
const justReady = { ...updated, readyChangedMs: kitNowMs - 30_000 };

type Zones = Readonly<Record<string, PodChanges>>;

function viewOf(changes: Zones, more: { readonly set?: Partial<StatefulSetView>; readonly unreadZone?: string } = {}) {
  const sets = ['a', 'b', 'c'].map((zone) => outdatedStatefulSet({ name: `ingester-zone-${zone}`, ...more.set }));
  const podChanges = Object.fromEntries(Object.entries(changes).map(([zone, pods]) => [`ingester-zone-${zone}`, pods]));
  const unread = more.unreadZone === undefined ? [] : [{ ...unreadPods, statefulSet: `ingester-zone-${more.unreadZone}` }];
  return viewGroup(snapshotOf({ groups: [ingester], statefulSets: sets, podChanges, pods: unread }), ingester);
}

const unreadPods = { namespace: 'mimir', pods: { unknown: 'forbidden' } };

const after = { wave: 0, waveAvailableMs: kitNowMs - 60_000, target };
const before = { wave: 0, target };
const asked = { atMs: kitNowMs, minReadySeconds: 0 };
const value = (number: number) => ({ atMs: kitNowMs, result: 'value', value: number });

describe('the pods of the wave that are not available', () => {
  it('are the updated ones after its last pod', () => {
    expect(podsAvailable(viewOf({ a: { 2: updated } }), after, asked)).toEqual(value(0));
    expect(podsAvailable(viewOf({ a: { 2: { ...updated, isReady: false } } }), after, asked)).toEqual(value(1));
    // It is what the next wave cures.
    expect(podsAvailable(viewOf({ a: { 1: { isReady: false }, 2: updated } }), after, asked)).toEqual(value(0));
  });

  it('are all of its zones before its first pod, and none of other zones', () => {
    expect(podsAvailable(viewOf({ a: { 1: { isReady: false } }, b: { 0: { isReady: false } } }), before, asked)).toEqual(value(1));
    const rest = { ...before, wave: 1 };
    expect(podsAvailable(viewOf({ a: { 1: { isReady: false } }, b: { 0: { isReady: false } }, c: { 1: 'missing' } }), rest, asked)).toEqual(
      value(2),
    );
  });

  it('are those that are missing, at any revision', () => {
    expect(podsAvailable(viewOf({ a: { 0: 'missing', 2: updated } }), after, asked)).toEqual(value(1));
  });

  it('are those that have not been ready for as long as the gate or the StatefulSet asks', () => {
    const view = viewOf({ a: { 2: justReady } });
    expect(podsAvailable(view, after, { ...asked, minReadySeconds: 30 })).toEqual(value(0));
    expect(podsAvailable(view, after, { ...asked, minReadySeconds: 31 })).toEqual(value(1));
    expect(podsAvailable(viewOf({ a: { 2: justReady } }, { set: { minReadySeconds: 60 } }), after, asked)).toEqual(value(1));
  });

  it('are those that terminate, and those whose node is lost', () => {
    expect(podsAvailable(viewOf({ a: { 2: { ...updated, isTerminating: true } } }), after, asked)).toEqual(value(1));
    expect(podsAvailable(viewOf({ a: { 2: { ...updated, nodeReady: false } } }), after, asked)).toEqual(value(1));
  });

  it('are not known without the pods, and without a wave', () => {
    const error = (message: string) => ({ atMs: kitNowMs, result: 'error', message });
    expect(podsAvailable(viewOf({}, { unreadZone: 'a' }), after, asked)).toEqual(
      error('the pods of ingester-zone-a could not be read: forbidden'),
    );
    expect(podsAvailable(viewOf({}), { ...after, wave: 2 }, asked)).toEqual(error('no wave is under way'));
  });
});

describe('the updated pods', () => {
  it('are those of every zone at the revision of the run, with the Service of their StatefulSet', () => {
    const view = viewOf({ a: { 1: updated, 2: { ...updated, isTerminating: true } }, c: { 0: updated } });
    const found = updatedPods(view, { target, previous });
    expect(typeof found === 'string' ? found : found.map(({ pod, serviceName }) => `${pod.name} ${serviceName}`)).toEqual([
      'ingester-zone-a-1 ingester-zone-a',
      'ingester-zone-a-2 ingester-zone-a',
      'ingester-zone-c-0 ingester-zone-c',
    ]);
    // Of zone a the run changes nothing.
    expect(updatedPods(view, { target, previous: { ...previous, a: newRevision } })).toHaveLength(1);
  });

  it('are not known while those of a zone are not', () => {
    expect(updatedPods(viewOf({}, { unreadZone: 'a' }), { target, previous })).toBe(
      'the pods of ingester-zone-a could not be read: forbidden',
    );
  });
});
