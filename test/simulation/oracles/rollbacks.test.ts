import { describe, expect, it } from 'vitest';
import { decideGroup } from '../../../engine/decide/decide.ts';
import { runStartMs } from '../../../simulation/process/clock.ts';
import { statefulSet } from '../../kit/objects.ts';
import { runOf } from '../../kit/questions.ts';
import { snapshotOf } from '../../kit/snapshots.ts';
import { definition, History } from './history.ts';

/** A group whose revision `r2` was rolled back to `r1`, at which all pods run but those named. */
function rolledBack(...atFailed: readonly string[]): History {
  const history = new History({ strategy: 'pinned' });
  history.ledger('run1', 'running', 'r1', 'r2');
  for (const pod of atFailed) history.replace(pod, 'r2');
  history.advance(20_000).ledger('run1', 'completed', 'r1', 'r2');
  return history.advance(30_000);
}

function publish(history: History, ready: string, degraded: string, unread: readonly string[] = []): void {
  const conditions = [
    { type: 'Ready', status: ready },
    { type: 'Degraded', status: degraded },
  ];
  const zones = unread.map((set) => ({ statefulSet: set, unread: 'unreadable' }));
  const status = { decision: { run: { id: 'run1', outcome: 'completed' }, zones }, conditions };
  history.change('rolloutgroups.rollout-group.dev', 'ing', () => ({ status }), history.agent());
}

/** A turn that reads every zone and leaves the run as it is. */
function failedTurn(history: History): void {
  const statefulSets = definition.zones.map((zone) => statefulSet({ name: zone.statefulSet }));
  const snapshot = snapshotOf({ groups: [definition], statefulSets, nowMs: runStartMs + history.nowMs });
  const run = runOf({ id: 'run1', outcome: 'failed', failure: 'it failed', failedMs: 0 });
  history.turn({ snapshot, decision: { ...decideGroup(snapshot, definition), run } });
}

describe('the judge of rollbacks', () => {
  it("finds 'S39' if a rollback completes before every pod has left the failed revision", () => {
    expect(rolledBack('ing-b-1').found('S39')).toEqual(['the rollback run1 completes, and ing-b-1 still runs the failed revision']);
    expect(rolledBack().found('S39')).toEqual([]);
  });

  it('finds a turn that does not roll back a run that failed a minute ago', () => {
    const found = (progress: object, waitMs: number, wallErrorMs = 0) => {
      const history = new History({ strategy: 'pinned', rollsBack: true });
      history.clocks.set('a1', { rate: 1, wallErrorMs });
      const previous = { a: 'r1', b: 'r1', c: 'r1' };
      history.ledger('run1', 'running', 'r2');
      history.ledger('run1', 'failed', 'r2', undefined, { kind: 'rollout', previous, ...progress });
      failedTurn(history.advance(waitMs));
      return history.found('S39');
    };
    expect(found({}, 65_000)).toEqual(['a1 does not roll back the failed run run1']);
    expect([found({}, 20_000), found({ onFailure: 'pause' }, 65_000), found({ kind: 'rollback' }, 65_000)].flat()).toEqual([]);
    expect(found({ previous: { a: 'r2', b: 'r2', c: 'r2' } }, 65_000)).toEqual([]);
    // By the clock of this agent, the failure is in the future.
    expect([found({}, 65_000, -10_000), found({}, 75_000, -10_000).length]).toEqual([[], 1]);
  });

  it('finds a pod of a rolled-back zone that is created at another revision than the restored one', () => {
    const history = rolledBack();
    const owner = { uid: history.set('ing-a').metadata.uid, controller: true };
    history.write('controllerrevisions.apps', { metadata: { name: 'r1', ownerReferences: [owner] } });
    history.comeBack('ing-a-1', { createdRevision: 'r2', isUnavailable: true });
    history.comeBack('ing-a-1', { createdRevision: 'r2', revision: 'r1' });
    expect(history.found('S39')).toEqual([]);
    history.comeBack('ing-a-1', { createdRevision: 'r2' });
    history.comeBack('ing-a-1', { createdRevision: 'between' });
    expect(history.found('S39')).toEqual([
      'ing-a-1 is created at r2, and its zone was rolled back to r1',
      'ing-a-1 is created at between, and its zone was rolled back to r1',
    ]);
  });

  it('finds a rollback to a revision to which no run was completed', () => {
    const history = new History();
    history.ledger('run1', 'running', 'r3');
    history.ledger('run2', 'running', 'r3', 'r2');
    expect(history.found('S39')).toEqual(
      ['ing-a', 'ing-b', 'ing-c'].map((set) => `the rollback run2 restores r3 in ${set}, to which no run was completed`),
    );
    const completed = new History();
    completed.ledger('run1', 'completed', 'r3');
    completed.ledger('run2', 'running', 'r3', 'r2');
    completed.ledger('run3', 'running', 'r1', 'r2');
    expect(completed.found('S39')).toEqual([]);
  });

  it('finds a published status that hides the rollback', () => {
    const history = rolledBack();
    publish(history, 'False', 'True');
    publish(history, 'Unknown', 'False', ['ing-a', 'ing-b', 'ing-c']);
    expect(history.found('S39')).toEqual([]);
    publish(history, 'True', 'False');
    expect(history.found('S39')).toEqual([
      'after the rollback run1 of ing-a, the published condition Ready is True, and Degraded is False',
    ]);
  });

  it('takes the earlier revision for the target, so that pods at it are not outdated', () => {
    const history = rolledBack();
    history.announceAndTake('ing-a-1');
    expect(history.found('S6')).toEqual(['a1 disrupts ing-a-1, which is at the update revision r1']);
  });

  it('finds a rolled-back revision that rolls out again after the StatefulSet was created again and the ledger lost the block', () => {
    const recreated = (then: (history: History) => void = () => undefined): readonly string[] => {
      const history = new History({ strategy: 'pinned' });
      const inZones = (revision: string) => ({ a: revision, b: revision, c: revision });
      history.ledger('run1', 'completed', 'r1');
      history.ledger('run2', 'failed', 'r2', undefined, { kind: 'rollout', previous: inZones('r1') });
      history.ledger('run3', 'completed', 'r1', 'r2', { kind: 'rollback', previous: inZones('r2') });
      const { metadata, spec, status } = history.advance(30_000).set('ing-a');
      history.remove('statefulsets.apps', 'ing-a');
      history.write('statefulsets.apps', { metadata: { ...metadata, uid: 'again' }, spec, status: {} });
      history.ledger('run3', 'completed', 'r1');
      history.advance(5_000).change('statefulsets.apps', 'ing-a', () => ({ status }));
      then(history);
      history.advance(15_000).announceAndTake('ing-a-1');
      return history.found('S39');
    };
    expect(recreated()).toEqual(['a1 disrupts ing-a-1, which a rollback returned from r2 to r1']);
    expect(recreated((history) => history.request('retry', 'run3'))).toEqual([]);
    const updatedTo = (updateRevision: string) => (history: History) =>
      history.change('statefulsets.apps', 'ing-a', ({ status }) => ({ status: { ...(status as object), updateRevision } }));
    const another = (history: History): void => {
      for (const revision of ['r3', 'r2']) updatedTo(revision)(history);
    };
    expect(recreated(another)).toEqual([]);
  });

  it('finds a pod that is replaced later than 10 s after an undo, until the undo is cancelled', () => {
    const history = new History();
    const undone = ['a', 'b', 'c'].map((zone) => ({ zone, revision: 'r2', to: 'r1' }));
    history.write('rolloutintents.rollout-group.dev', { metadata: { name: 'undo' }, spec: { action: 'undo', undone } });
    history.advance(5_000).announceAndTake('ing-a-2');
    expect(history.found('S39')).toEqual([]);
    history.advance(6_000).announceAndTake('ing-a-1');
    expect(history.found('S39')).toEqual(['a1 disrupts ing-a-1, although a person undid the update revision']);
    history.remove('rolloutintents.rollout-group.dev', 'undo');
    history.announceAndTake('ing-a-0');
    expect(history.found('S39')).toHaveLength(1);
  });
});
