import { describe, expect, it } from 'vitest';
import { decide } from '../../../engine/decide/decide.ts';
import { foreignPods, type Observed, orphanedPods, snapshotOf } from '../../../engine/observe/cluster.ts';
import type { ObservedPod } from '../../../engine/observe/objects.ts';
import { viewGroup } from '../../../engine/observe/view.ts';
import { emptySnapshot, isUnknown, type PodView, type StatefulSetView } from '../../../engine/snapshot.ts';
import { adopted, group } from '../../kit/groups.ts';
import { kitNowMs, pod, statefulSet } from '../../kit/objects.ts';

function owned(set: StatefulSetView, ordinal: number, changes: Partial<ObservedPod> = {}): ObservedPod {
  return { namespace: set.namespace, owner: { kind: 'StatefulSet', name: set.name, uid: set.uid }, ...pod(set, ordinal), ...changes };
}

const a = statefulSet();
const b = statefulSet({ name: 'ingester-zone-b' });

function observed(changes: Partial<Observed> = {}): Observed {
  const pods = [a, b].flatMap((set) => [2, 0, 1].map((ordinal) => owned(set, ordinal)));
  return {
    ...emptySnapshot(kitNowMs),
    groups: [group({ zones: ['a', 'b'] })],
    statefulSets: [a, b],
    pods,
    nodes: { unknown: 'no permission' },
    ...changes,
  };
}

function podsOf(given: Observed, name: string): readonly PodView[] | string {
  const pods = snapshotOf(given).pods.find((view) => view.statefulSet === name)?.pods;
  if (pods === undefined) return 'no such StatefulSet';
  return isUnknown(pods) ? pods.unknown : pods;
}

const namesOf = (given: Observed, name: string) => {
  const pods = podsOf(given, name);
  return typeof pods === 'string' ? pods : pods.map((one) => one.name);
};

describe('the pods of a StatefulSet', () => {
  it('are the pods with its owner reference, by ordinal, in any order of events', () => {
    expect(namesOf(observed(), a.name)).toEqual(['ingester-zone-a-0', 'ingester-zone-a-1', 'ingester-zone-a-2']);
  });

  const stranger = (changes: Partial<ObservedPod>): Observed => {
    const { owner: _, ...orphan } = owned(a, 1, { name: 'ingester-zone-a-1', uid: 'stranger' });
    return observed({ pods: [owned(a, 0), owned(a, 2), { ...orphan, ...changes }] });
  };

  it.each<[string, Partial<ObservedPod>]>([
    ['carries the labels and has no owner', {}],
    ['carries the labels and belongs to another controller', { owner: { kind: 'ReplicaSet', name: 'x', uid: 'x' } }],
    ['belongs to the StatefulSet that had this name before', { owner: { kind: 'StatefulSet', name: a.name, uid: 'before' } }],
    ['names the UID as that of another kind', { owner: { kind: 'ReplicaSet', name: a.name, uid: a.uid } }],
    ['names the UID and is in another namespace', { namespace: 'loki', owner: { kind: 'StatefulSet', name: a.name, uid: a.uid } }],
  ])('do not include a pod that %s: it does not count as healthy and is not changed', (_case, changes) => {
    const given = stranger({ isReady: false, revision: 'old', ...changes });
    expect(namesOf(given, a.name)).toEqual(['ingester-zone-a-0', 'ingester-zone-a-2']);
    const decision = decide(snapshotOf({ ...given, groups: [group({ zones: ['a'] })] })).groups[0];
    expect([decision?.zones[0]?.available, decision?.actions]).toEqual([2, []]);
  });

  it('are only its own pods if two StatefulSets share one label name', () => {
    const shared = { podLabels: { name: 'ingester' } };
    const sets = [a, b].map((set) => ({ ...set, ...shared }));
    const pods = sets.flatMap((set) => [0, 1, 2].map((ordinal) => owned(set, ordinal, { labels: { name: 'ingester' } })));
    const group = adopted({ zones: ['a', 'b'] });
    const view = viewGroup(snapshotOf(observed({ statefulSets: sets, pods, groups: [group] })), group);
    expect(view.zones.map((zone) => zone.pods.map((one) => one.name))).toEqual(
      sets.map((set) => [0, 1, 2].map((ordinal) => `${set.name}-${ordinal}`)),
    );
  });
});

describe('unreadable parts', () => {
  it.each<[string, Partial<Observed>, string | readonly string[], string | readonly string[]]>([
    ['all pods', { pods: { unknown: 'forbidden' } }, 'forbidden', 'forbidden'],
    ['the pods of a namespace', { unread: [{ kind: 'Pod', namespace: 'mimir', unknown: 'forbidden' }] }, 'forbidden', 'forbidden'],
    [
      'one pod',
      { unread: [{ kind: 'Pod', namespace: 'mimir', name: 'ingester-zone-a-1', unknown: 'odd' }] },
      'odd',
      namesOf(observed(), b.name),
    ],
    [
      'pods elsewhere',
      { unread: [{ kind: 'Pod', namespace: 'loki', unknown: 'odd' }] },
      namesOf(observed(), a.name),
      namesOf(observed(), b.name),
    ],
  ])('makes every value unknown that depends on it: %s', (_case, changes, ofA, ofB) => {
    const given = observed(changes);
    expect([namesOf(given, a.name), namesOf(given, b.name)]).toEqual([ofA, ofB]);
  });

  it.each<[string, Partial<Observed>, RegExp]>([
    ['StatefulSets', { statefulSets: { unknown: 'forbidden' } }, /could not be read: forbidden/],
    [
      'one StatefulSet',
      { statefulSets: [b], unread: [{ kind: 'StatefulSet', namespace: 'mimir', name: a.name, unknown: 'odd' }] },
      /ingester-zone-a could not be read: odd/,
    ],
    [
      'the ledger',
      { unread: [{ kind: 'Ledger', namespace: 'mimir', name: 'ingester', unknown: 'the ledger is newer' }] },
      /^the ledger is newer$/,
    ],
  ])('block the group with the reason: %s', (_case, changes, why) => {
    const pods = [a, b].flatMap((set) => [0, 1, 2].map((ordinal) => owned(set, ordinal, { revision: 'old' })));
    const [decision] = decide(snapshotOf(observed({ pods, ...changes }))).groups;
    expect(decision).toMatchObject({
      outcome: 'wait',
      actions: [],
      waits: expect.arrayContaining([{ rule: 'view-complete', outcome: 'unknown', fact: expect.stringMatching(why) }]),
    });
  });
});

describe('nodes', () => {
  const readiness = (nodes: Observed['nodes']) => {
    const pods = podsOf(
      observed({ nodes, pods: [owned(a, 0, { node: 'n1' }), owned(a, 1, { node: 'n2' }), owned(a, 2, { node: '' })] }),
      a.name,
    );
    return typeof pods === 'string' ? pods : pods.map((one) => one.nodeReady);
  };

  it('are ready by their condition, and unready if they do not exist', () => {
    expect(readiness(new Map([['n1', true]]))).toEqual([true, false, true]);
    expect(
      readiness(
        new Map([
          ['n1', false],
          ['n2', true],
        ]),
      ),
    ).toEqual([false, true, true]);
  });

  it('are ready if the agent may not read them', () => {
    expect(readiness({ unknown: 'forbidden' })).toEqual([true, true, true]);
  });
});

describe('a pod without an owner', () => {
  it('is reported with the StatefulSet that matches its name', () => {
    const { owner: _, ...orphan } = owned(a, 7, { name: 'ingester-zone-a-7', uid: 'x' });
    const other = { ...orphan, name: 'debug', owner: { kind: 'Job', name: 'debug', uid: 'y' } };
    expect(foreignPods(observed({ pods: [owned(a, 0), orphan, other, { ...orphan, name: 'x', labels: {} }] }))).toEqual([
      { namespace: 'mimir', name: 'ingester-zone-a-7', statefulSet: a.name },
      { namespace: 'mimir', name: 'debug', statefulSet: a.name, owner: 'Job debug' },
    ]);
  });
});

it('the orphans of a missing member are the pods of its name without a controller', () => {
  const orphan = (ordinal: number): ObservedPod => ({ namespace: b.namespace, ...pod(b, ordinal) });
  const namesIn = (given: Observed) =>
    orphanedPods(given).map(({ statefulSet: name, pods }) => [name, isUnknown(pods) ? [] : pods.map(({ ordinal }) => ordinal)]);
  const pods = [orphan(1), orphan(0), owned(b, 2), { ...orphan(3), namespace: 'loki' }, { ...orphan(4), name: `${b.name}-x` }];
  expect(namesIn(observed({ statefulSets: [a], pods }))).toEqual([[b.name, [0, 1]]]);
  expect(namesIn(observed({ pods }))).toEqual([]);
  expect(namesIn(observed({ statefulSets: { unknown: 'forbidden' }, pods }))).toEqual([]);
});

describe('a second snapshot of the same views', () => {
  it('has the same lists, so that derived values are used again', () => {
    const given = observed({
      nodes: new Map([['n1', true]]),
      pods: [owned(a, 0, { node: 'n1' }), owned(a, 1, { node: 'gone' }), owned(a, 2)],
    });
    const views = () => snapshotOf({ ...given, nowMs: given.nowMs + 1, nodes: new Map([['n1', true]]) }).pods;
    const [first, second] = [views(), views()];
    expect(first.every((view, index) => view === second[index])).toBe(true);
    expect(podsOf({ ...given, nodes: new Map() }, a.name)).not.toBe(first[0]?.pods);
  });
});
