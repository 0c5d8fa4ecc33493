import { describe, expect, it } from 'vitest';
import { decideGroup } from '../../../engine/decide/decide.ts';
import type { Action } from '../../../engine/decision.ts';
import { isFailedPass } from '../../../engine/publish/failed-pass.ts';
import type { TakenAction } from '../../../engine/publish/published.ts';
import type { Snapshot } from '../../../engine/snapshot.ts';
import { unready, zpdb } from '../../kit/disruptions.ts';
import { adopted, group as nativeGroup } from '../../kit/groups.ts';
import { oldRevision, outdatedStatefulSet, statefulSet } from '../../kit/objects.ts';
import { type SnapshotOverrides, snapshotOf } from '../../kit/snapshots.ts';

const group = adopted({ zones: ['a', 'b'] });
const name = (zone: string): string => `ingester-zone-${zone}`;
const outdated = outdatedStatefulSet({ name: name('a') });
const nameless = statefulSet({ name: name('b'), status: { currentRevision: '' } });
const rolling = statefulSet({ name: name('b'), updateStrategy: 'RollingUpdate' });
const budgets = ['one', 'two'].map((one) => ({ ...zpdb, name: one }));

interface Given extends SnapshotOverrides {
  readonly performed?: readonly TakenAction[];
  readonly error?: string;
  readonly definition?: typeof group;
}

function isFailed({ performed = [], error, definition = group, ...overrides }: Given = {}): boolean {
  const snapshot: Snapshot = snapshotOf({ groups: [definition], ...overrides });
  return isFailedPass({ group: definition, snapshot, performed, ...(error === undefined ? {} : { error }) });
}

/** The first action of a kind that the engine would take, as it ended. */
function ended(
  kind: Action['kind'],
  result: TakenAction['result'],
  overrides: SnapshotOverrides,
  definition = group,
): readonly TakenAction[] {
  const action = decideGroup(snapshotOf({ groups: [definition], ...overrides }), definition).actions.find((one) => one.kind === kind);
  if (action === undefined) throw new Error(`the test expected ${kind}`);
  return [{ action, result }];
}

describe('a turn fails', () => {
  it.each<[string, Given]>([
    ['when it could not be finished', { error: 'the server is away' }],
    ['on a member that is not OnDelete', { statefulSets: [rolling] }],
    ['on such a member although a zone is to be rolled', { statefulSets: [outdated, rolling] }],
    [
      'on such a member although several zones are down',
      { statefulSets: [rolling], podChanges: { [name('a')]: { 0: unready }, [name('b')]: { 0: unready } } },
    ],
    ['on a status without a current revision', { statefulSets: [nameless] }],
    ['on a status without an update revision', { statefulSets: [statefulSet({ name: name('b'), status: { updateRevision: '' } })] }],
    ['on a pod that several budgets mean', { statefulSets: [outdated], zoneBudgets: budgets }],
    ['when budgets cannot be read and a pod is to go', { statefulSets: [outdated], zoneBudgets: { unknown: 'forbidden' } }],
    ['when pods cannot be read', { pods: [{ namespace: 'mimir', statefulSet: name('a'), pods: { unknown: 'forbidden' } }] }],
    [
      'on a zone that is down and names no revision, before all others',
      { statefulSets: [outdated, nameless], podChanges: { [name('b')]: { 1: unready } } },
    ],
  ])('%s', (_, given) => {
    expect(isFailed(given)).toBe(true);
  });

  it.each(['refused', 'failed', 'unknown'] as const)('on a DELETE that is %s', (result) => {
    const given = { statefulSets: [outdated] };
    expect(isFailed({ ...given, performed: ended('deletePod', result, given) })).toBe(true);
  });

  it.each(['refused', 'failed', 'unknown', 'conflict'] as const)('on a status that is %s', (result) => {
    const updated = Object.fromEntries([0, 1, 2].map((ordinal) => [ordinal, { revision: oldRevision }]));
    const given = {
      statefulSets: [statefulSet({ name: name('a'), status: { currentRevision: 'rev-0' } })],
      podChanges: { [name('a')]: updated },
    };
    expect(isFailed({ ...given, performed: ended('advanceCurrentRevision', result, given) })).toBe(true);
  });
});

describe('a turn succeeds', () => {
  it.each<[string, Given]>([
    ['when there is nothing to do', {}],
    ['when a pod is to go', { statefulSets: [outdated] }],
    ['though several zones are down', { podChanges: { [name('a')]: { 0: unready }, [name('b')]: { 0: unready } } }],
    [
      'though several zones are down and one names no revision',
      { statefulSets: [nameless], podChanges: { [name('a')]: { 0: unready }, [name('b')]: { 0: unready } } },
    ],
    ['though a zone further down names no revision, while the first rolls', { statefulSets: [outdated, nameless] }],
    [
      'though a zone names no revision, when that zone is paused',
      { statefulSets: [nameless], definition: adopted({ zones: ['a', { name: 'b', paused: true }] }) },
    ],
    ['though several budgets mean a pod that nobody wants to delete', { zoneBudgets: budgets }],
    [
      'though several budgets mean a pod, while the zone has nothing left of its own',
      {
        statefulSets: [outdatedStatefulSet({ name: name('a'), status: { readyReplicas: 2 } })],
        zoneBudgets: budgets,
        podChanges: { [name('a')]: { 2: unready } },
      },
    ],
    [
      'though a group that is written down has another strategy',
      { statefulSets: [rolling], definition: nativeGroup({ zones: ['a', 'b'] }) },
    ],
  ])('%s', (_, given) => {
    expect(isFailed(given)).toBe(false);
  });

  it.each(['done', 'conflict'] as const)('with a DELETE that is %s', (result) => {
    const given = { statefulSets: [outdated] };
    expect(isFailed({ ...given, performed: ended('deletePod', result, given) })).toBe(false);
  });

  const forced = adopted({ zones: [{ name: 'a' }, { name: 'b', follows: 'a' }] });
  const larger = [statefulSet({ name: name('a'), replicas: 5 })];

  it.each(['done', 'refused', 'failed', 'unknown', 'conflict'] as const)('with a write of replicas that is %s', (result) => {
    const given = { statefulSets: larger };
    expect(isFailed({ ...given, definition: forced, performed: ended('scaleStatefulSet', result, given, forced) })).toBe(false);
  });

  it('with a write of replicas, which precedes the check of the strategy', () => {
    const scaled = ended('scaleStatefulSet', 'done', { statefulSets: larger }, forced);
    expect(isFailed({ statefulSets: [...larger, rolling], definition: forced, performed: scaled })).toBe(false);
    expect(isFailed({ statefulSets: [...larger, rolling], definition: forced })).toBe(true);
  });
});
