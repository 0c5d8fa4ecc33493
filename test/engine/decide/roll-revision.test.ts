import { describe, expect, it } from 'vitest';
import { adopted, group } from '../../kit/groups.ts';
import { outdatedStatefulSet, statefulSet } from '../../kit/objects.ts';
import { roll } from '../../kit/rolls.ts';
import type { SnapshotOverrides } from '../../kit/snapshots.ts';

const native = group();

describe('the current revision of adopted groups', () => {
  const behind = (name: string, more = {}) =>
    statefulSet({
      name: `ingester-zone-${name}`,
      ...more,
      status: { currentRevision: 'rev-0', ...('status' in more ? (more.status as object) : {}) },
    });
  const pods = {
    podChanges: Object.fromEntries(
      ['a', 'b', 'c'].map((name) => [
        `ingester-zone-${name}`,
        Object.fromEntries([0, 1, 2].map((ordinal) => [ordinal, { revision: 'rev-1' }])),
      ]),
    ),
  };
  const advanced = (
    statefulSets: ReturnType<typeof behind>[],
    overrides: SnapshotOverrides = {},
    definition = adopted(),
    isScaling = false,
  ) =>
    roll(definition, undefined, { ...pods, ...overrides, statefulSets }, isScaling).actions.map((action) =>
      action.kind === 'advanceCurrentRevision' ? action.zone : action.kind,
    );
  const all = [behind('a'), behind('b'), behind('c')];

  it('is advanced in every zone that is complete', () => {
    expect(advanced(all)).toEqual(['a', 'b', 'c']);
    expect(roll(adopted(), undefined, { ...pods, statefulSets: all }).actions[0]).toEqual({
      kind: 'advanceCurrentRevision',
      namespace: 'mimir',
      zone: 'a',
      statefulSet: 'ingester-zone-a',
      uid: 'uid-ingester-zone-a',
      resourceVersion: '100',
      revision: 'rev-1',
    });
  });

  it('is left alone where it is the update revision already, and in native groups', () => {
    expect(advanced([behind('a'), statefulSet({ name: 'ingester-zone-b' }), behind('c')])).toEqual(['a', 'c']);
    expect(advanced(all, {}, native)).toEqual([]);
  });

  it('is advanced up to the first zone that is not complete', () => {
    const outdated = {
      podChanges: {
        ...pods.podChanges,
        'ingester-zone-b': { 0: { revision: 'rev-0' }, 1: { revision: 'rev-1' }, 2: { revision: 'rev-1' } },
      },
    };
    expect(advanced(all, outdated)).toEqual(['a', 'deletePod']);
    const down = {
      podChanges: {
        ...pods.podChanges,
        'ingester-zone-b': { ...pods.podChanges['ingester-zone-b'], 1: { revision: 'rev-1', containersReady: false } },
      },
    };
    expect(advanced(all, down)).toEqual([]);
  });

  it('is advanced past a paused zone', () => {
    const paused = adopted({ zones: [{ name: 'a', paused: true }, 'b', 'c'] });
    expect(advanced(all, {}, paused)).toEqual(['b', 'c']);
  });

  it('is not advanced while replicas change, two zones are not whole, or a member has another strategy', () => {
    expect(advanced(all, {}, adopted(), true)).toEqual([]);
    const missing = {
      podChanges: { ...pods.podChanges, 'ingester-zone-b': { 0: 'missing' }, 'ingester-zone-c': { 0: 'missing' } },
    } as const;
    expect(advanced(all, missing)).toEqual([]);
    expect(advanced([behind('a'), behind('b'), behind('c', { updateStrategy: 'RollingUpdate' })])).toEqual([]);
  });

  it('of a zone whose pods are outdated is not advanced', () => {
    expect(roll(adopted({ zones: ['a'] }), undefined, { statefulSets: [outdatedStatefulSet()] }).actions.map(({ kind }) => kind)).toEqual([
      'deletePod',
    ]);
  });
});
