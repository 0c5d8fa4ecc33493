import { describe, expect, it } from 'vitest';
import type { Snapshot } from '../../../engine/snapshot.ts';
import { basisChanges, basisOf } from '../../../plugin/source/cluster/plan-basis.ts';
import { group } from '../../kit/groups.ts';
import { manifest } from '../../kit/manifests.ts';
import { pod, podsOf, statefulSet } from '../../kit/objects.ts';
import { snapshotOf } from '../../kit/snapshots.ts';

const ingester = group();
const before = snapshotOf({ groups: [ingester] });
const target = { ...manifest('a') };

function basis(snapshot: Snapshot, live: readonly object[] = [], desiredObjects: readonly object[] = []) {
  return basisOf({
    groups: [ingester],
    snapshot,
    live: live.map((object) => ({ ...object })),
    desiredObjects: desiredObjects.map((object) => ({ ...object })),
  });
}

function changes(after: Snapshot) {
  return basisChanges(basis(before), basis(after));
}

function withSet(change: (set: Snapshot['statefulSets'][number]) => Snapshot['statefulSets'][number]): Snapshot {
  return { ...before, statefulSets: before.statefulSets.map((set) => (set.name === 'ingester-zone-a' ? change(set) : set)) };
}

describe('the basis of a plan', () => {
  it('names every member and every pod, once, in order', () => {
    const names = basis(before).map(({ object }) => object);
    expect(names).toContain('StatefulSet mimir/ingester-zone-a');
    expect(names).toContain('Pod mimir/ingester-zone-c-0');
    expect(names).toEqual([...new Set(names)].sort());
  });

  it.each<readonly [string, Snapshot]>([
    ['a newer resource version', withSet((set) => ({ ...set, resourceVersion: '999', generation: 9 }))],
    ['counters of the status', withSet((set) => ({ ...set, status: { ...set.status, observedGeneration: 9, updatedReplicas: 0 } }))],
    [
      'the copy of a manifest',
      withSet((set) => ({
        ...set,
        annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '{}', 'rollout-group.dev/plan': 'x' },
      })),
    ],
    ['StatefulSets of others', { ...before, statefulSets: [...before.statefulSets, statefulSet({ name: 'other' })] }],
    ['budgets of others', { ...before, podBudgets: [{ namespace: 'mimir', name: 'x', selector: { matchLabels: { name: 'other' } } }] }],
    ['readings of gates', { ...before, gateReadings: [{ namespace: 'mimir', group: 'ingester', gate: 'g', readings: [] }] }],
    ['intents for others', { ...before, intents: [{ namespace: 'mimir', name: 'i', group: 'other', action: 'pause' }] }],
  ])('is not changed by %s', (_what, after) => {
    expect(changes(after)).toEqual([]);
  });

  it.each([
    [{ webhookProblems: { pins: 'it does not exist' } }, 'problem of the webhook that pins pods'],
    [{ webhookProblems: { requesters: 'it does not exist' } }, 'problem of the webhook that records requesters'],
    [{ missingAccess: [{ namespaces: ['mimir'], fact: 'it may not list pods' }] }, 'problem of the access of the agent'],
  ])('changes if %j is added or removed', (problem, object) => {
    const after = { ...before, webhookProblems: {}, ...problem };
    expect(changes(after)).toEqual([{ object, what: 'appeared', parts: [] }]);
    expect(basisChanges(basis(after), basis({ ...before, webhookProblems: {} }))).toEqual([{ object, what: 'gone', parts: [] }]);
  });

  const set = before.statefulSets[0] ?? statefulSet();
  const replaced = podsOf(set, {});
  it.each<readonly [string, Snapshot, object]>([
    [
      'replicas',
      withSet((one) => ({ ...one, replicas: 9 })),
      { object: 'StatefulSet mimir/ingester-zone-a', what: 'changed', parts: ['replicas'] },
    ],
    [
      'a new template',
      withSet((one) => ({ ...one, status: { ...one.status, updateRevision: 'new' } })),
      { object: 'StatefulSet mimir/ingester-zone-a', what: 'changed', parts: ['revision'] },
    ],
    [
      'a StatefulSet that was created again',
      withSet((one) => ({ ...one, uid: 'another' })),
      { object: 'StatefulSet mimir/ingester-zone-a', what: 'replaced', parts: [] },
    ],
    [
      'a pod that is not ready',
      { ...before, pods: [{ ...replaced, pods: [pod(set, 0, { isReady: false })] }, ...before.pods.slice(1)] },
      { object: 'Pod mimir/ingester-zone-a-0', what: 'changed', parts: ['rest', 'state'] },
    ],
    [
      'a pod that is another one',
      { ...before, pods: [{ ...replaced, pods: [pod(set, 0, { uid: 'another' })] }, ...before.pods.slice(1)] },
      { object: 'Pod mimir/ingester-zone-a-0', what: 'replaced', parts: [] },
    ],
    [
      'a budget over the pods',
      { ...before, podBudgets: [{ namespace: 'mimir', name: 'x', selector: {} }] },
      { object: 'PodDisruptionBudget mimir/x', what: 'appeared', parts: [] },
    ],
    [
      'a pause',
      { ...before, intents: [{ namespace: 'mimir', name: 'i', group: 'ingester', action: 'pause' }] },
      { object: 'RolloutIntent mimir/i', what: 'appeared', parts: [] },
    ],
    [
      'pods that cannot be read any more',
      { ...before, podBudgets: { unknown: 'no' } },
      { object: 'PodDisruptionBudgets mimir', what: 'appeared', parts: [] },
    ],
    [
      'a claim in the ledger',
      {
        ...before,
        ledgers: [
          {
            namespace: 'mimir',
            group: 'ingester',
            claims: [{ verb: 'deletePod', zone: 'a', uid: 'u', atMs: 1 }],
            downscales: [],
            preparations: [],
          },
        ],
      },
      { object: 'Ledger mimir/ingester', what: 'appeared', parts: [] },
    ],
  ])('is changed by %s', (_what, after, expected) => {
    expect(changes(after)).toContainEqual(expected);
  });

  it('does not change while a run waits', () => {
    const ledger = (asOf: number): Snapshot => ({
      ...before,
      ledgers: [
        {
          namespace: 'mimir',
          group: 'ingester',
          claims: [],
          downscales: [],
          preparations: [],
          run: {
            id: 'r',
            kind: 'rollout',
            target: {},
            previous: {},
            startedMs: 1,
            wave: 0,
            waveStartedMs: 1,
            movableMs: asOf,
            movableAsOfMs: asOf,
            isMovable: true,
            outcome: 'running',
          },
        },
      ],
    });
    expect(basisChanges(basis(ledger(1)), basis(ledger(2)))).toEqual([]);
  });
});

describe('the fields that apply would overwrite', () => {
  const of = (live: readonly object[]) => basis(before, live, [target]);
  const uid = { uid: 'u', resourceVersion: '1' };
  const live = { ...target, metadata: { name: 'ingester-zone-a', namespace: 'mimir', ...uid }, status: { replicas: 1 } };

  it('is not changed by status and resource version', () => {
    const later = { ...live, metadata: { ...live.metadata, resourceVersion: '2', managedFields: [] }, status: { replicas: 2 } };
    expect(basisChanges(of([live]), of([later]))).toEqual([]);
  });

  it('is changed by the spec, by labels, and by an added or removed object', () => {
    const spec = { ...live, spec: { replicas: 9 } };
    expect(basisChanges(of([live]), of([spec]))).toMatchObject([{ object: 'StatefulSet mimir/ingester-zone-a', what: 'changed' }]);
    const labels = { ...live, metadata: { ...live.metadata, labels: { team: 'x' } } };
    expect(basisChanges(of([live]), of([labels]))).toMatchObject([{ what: 'changed', parts: ['labels'] }]);
    const service = { kind: 'Service', metadata: { name: 's', namespace: 'mimir' } };
    const absent = basis(before, [], [service]);
    const present = basis(before, [service], [service]);
    expect(basisChanges(absent, present)).toEqual([{ object: 'Service mimir/s', what: 'appeared', parts: [] }]);
    expect(basisChanges(present, absent)).toEqual([{ object: 'Service mimir/s', what: 'gone', parts: [] }]);
  });

  it('is changed by another owner of a field, and not by a write to the status', () => {
    const owners = (...managers: readonly string[]) => ({
      ...target,
      metadata: {
        ...Object(target).metadata,
        managedFields: managers.map((manager) => ({
          manager,
          operation: manager === 'rollout-group' ? 'Apply' : 'Update',
          ...(manager === 'controller' ? { subresource: 'status' } : {}),
          fieldsV1: { 'f:spec': { 'f:minReadySeconds': {} } },
        })),
      },
    });
    const changed = (...managers: readonly string[]) =>
      basisChanges(basis(before, [owners('rollout-group')], [target]), basis(before, [owners(...managers)], [target]));
    expect(changed('rollout-group', 'controller')).toEqual([]);
    expect(changed('rollout-group', 'kubectl-edit')).toMatchObject([{ what: 'changed', parts: ['owned'] }]);
  });

  it('includes the policies that apply to the groups', () => {
    const policy = (rules: readonly object[]) => ({ kind: 'RolloutPolicy', metadata: { name: 'p', namespace: 'other' }, spec: { rules } });
    expect(basisChanges(basis(before, [policy([])]), basis(before, [policy([{ name: 'x' }])]))).toMatchObject([
      { object: 'RolloutPolicy other/p', what: 'changed', parts: ['spec'] },
    ]);
  });
});
