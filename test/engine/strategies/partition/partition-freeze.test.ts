import { describe, expect, it } from 'vitest';
import { decideGroup } from '../../../../engine/decide/decide.ts';
import type { GroupDecision } from '../../../../engine/decision.ts';
import { violationsOf } from '../../../../engine/invariants/invariants.ts';
import type { RunState } from '../../../../engine/run/run-state.ts';
import type { Claim } from '../../../../engine/snapshot.ts';
import { group } from '../../../kit/groups.ts';
import { newRevision, oldRevision, type PodChanges, type StatefulSetOverrides } from '../../../kit/objects.ts';
import { ago, hourMs, ledgerOf, outdatedSets, runOf } from '../../../kit/questions.ts';
import { podsIn } from '../../../kit/rolls.ts';
import { snapshotOf } from '../../../kit/snapshots.ts';

interface State {
  readonly set?: StatefulSetOverrides;
  readonly pods?: PodChanges;
  readonly run?: RunState;
  readonly claims?: readonly Claim[];
}

const isNew = { revision: newRevision };
const inFlight = { ...isNew, isReady: false, readyChangedMs: ago(1000) };
const terminating = { isTerminating: true, isReady: false };

/** Zone a with five pods, which the StatefulSet controller replaces, because the partition is 0. */
function decided({ set, pods = {}, run, claims = [] }: State): GroupDecision {
  const definition = group({ zones: ['a'], rollout: { strategy: 'partition' } });
  const statefulSets = outdatedSets(['a'], { replicas: 5, updateStrategy: 'RollingUpdate', partition: 0, ...set });
  const ledgers = run === undefined && claims.length === 0 ? [] : [ledgerOf({ claims, ...(run === undefined ? {} : { run }) })];
  const snapshot = snapshotOf({ groups: [definition], statefulSets, ledgers, ...podsIn({ a: pods }) });
  const decision = decideGroup(snapshot, definition);
  expect(violationsOf({ snapshot, group: definition, decision })).toEqual([]);
  return decision;
}

function written({ actions }: GroupDecision): readonly string[] {
  return actions.map((action) => (action.kind === 'setPartition' ? `${action.to} ${action.because}` : action.kind));
}

const target = { a: newRevision };
const completed = runOf({ outcome: 'completed', target: { a: oldRevision }, completedMs: ago(hourMs), lastDisruptionMs: ago(hourMs) });
const claim: Claim = {
  verb: 'setPartition',
  zone: 'a',
  uid: 'uid-ingester-zone-a',
  from: 4,
  to: 0,
  resourceVersion: '100',
  atMs: ago(1000),
};

describe('a group that is defined while its StatefulSet controller replaces pods', () => {
  const cases: readonly (readonly [string, State, readonly string[]])[] = [
    ['freezes every pod if no pod is updated', {}, ['1000000 frozen']],
    ['keeps the update of the updated pods', { pods: { 3: isNew, 4: isNew } }, ['3 frozen']],
    ['keeps the update of a pod that starts', { pods: { 3: inFlight, 4: isNew } }, ['3 frozen']],
    ['lets a terminating pod become updated', { pods: { 3: terminating, 4: isNew } }, ['3 frozen']],
    ['lets the successor of a missing pod be updated', { pods: { 3: 'missing', 4: isNew } }, ['3 frozen']],
    ['freezes a pod that terminates for another reason', { pods: { 0: terminating, 4: isNew } }, ['4 frozen']],
    ['freezes a missing pod below an outdated one', { pods: { 1: 'missing', 4: isNew } }, ['4 frozen']],
    ['keeps the update of a pod below outdated ones', { pods: { 2: isNew, 4: isNew } }, ['2 frozen']],
    ['counts from the first ordinal', { set: { firstOrdinal: 5 }, pods: { 9: isNew } }, ['4 frozen']],
    [
      'freezes every pod if a template was reverted: then every pod comes back at it',
      { set: reverted(), pods: { 4: isNew } },
      ['1000000 frozen'],
    ],
    ['freezes above a lower partition', { set: { partition: 2 }, pods: { 4: isNew } }, ['4 frozen']],
    ['freezes after a run that had completed', { run: completed, pods: { 4: isNew } }, ['4 frozen']],
    ['freezes a zone that the run does not include', { run: runOf({ target: { b: newRevision } }), pods: { 4: isNew } }, ['4 frozen']],
    ['cannot freeze above an updated pod', { pods: { 0: isNew, 4: isNew } }, []],
    ['waits for a current status', { set: { generation: 9, status: { observedGeneration: 8 } } }, []],
    ['does not freeze what a run exposed', { run: runOf({ target, openZone: 'a', lastDisruptionMs: ago(1000) }) }, []],
    ['does not freeze what a claim exposed', { claims: [claim] }, []],
    ['does not freeze another update strategy', { set: { updateStrategy: 'OnDelete' } }, []],
  ];
  it.each(cases)('%s', (_, state, expected) => {
    expect(written(decided(state))).toEqual(expected);
  });

  function reverted(): StatefulSetOverrides {
    return { status: { currentRevision: oldRevision, updateRevision: oldRevision } };
  }

  it('starts no run before the freeze, and says why', () => {
    const { run, phase, outcome, waits } = decided({ pods: { 4: isNew } });
    expect({ run, phase, outcome, waits }).toEqual({
      run: undefined,
      phase: 'Waiting',
      outcome: 'act',
      waits: [
        {
          rule: 'partition-kept',
          outcome: 'wait',
          fact: 'partition 0 lets the StatefulSet controller replace ingester-zone-a-0, ingester-zone-a-1, ingester-zone-a-2, ingester-zone-a-3, which no run includes',
          limit: '4 or more',
          source: { object: 'StatefulSet mimir/ingester-zone-a', field: 'spec.updateStrategy.rollingUpdate.partition' },
        },
      ],
    });
  });

  it('starts the run after the freeze, with the pods in flight', () => {
    const { run } = decided({ set: { partition: 3 }, pods: { 3: terminating, 4: isNew } });
    expect(run).toMatchObject({ outcome: 'running', wave: 0, target, previous: { a: oldRevision } });
  });

  it('adds a zone to a run only after the freeze', () => {
    expect(decided({ run: runOf({ target: { b: newRevision } }) }).run?.target).not.toHaveProperty('a');
  });
});
