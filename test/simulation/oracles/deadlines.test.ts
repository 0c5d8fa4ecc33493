import { describe, expect, it } from 'vitest';
import type { TurnReport } from '../../../agent/report.ts';
import { decideGroup } from '../../../engine/decide/decide.ts';
import { createMachineClock, runStartMs } from '../../../simulation/process/clock.ts';
import { runOf } from '../../kit/questions.ts';
import { snapshotOf } from '../../kit/snapshots.ts';
import { definition, History } from './history.ts';

/** A group with a deadline of a minute, in whose run a pod was replaced and comes back unready. */
function stuck(): History {
  const history = new History({ deadlineSeconds: 60 });
  history.ledger('run1', 'running', 'r2');
  history.advance(20_000).announceAndTake('ing-a-2');
  history.advance(5000).replace('ing-a-2', 'r2', false);
  return history;
}

/** A turn whose decision goes on with the run, or fails it. */
function turn(history: History, outcome: 'running' | 'failed' = 'running', more: Partial<TurnReport> = {}): void {
  const snapshot = snapshotOf({ groups: [definition], nowMs: runStartMs + history.nowMs });
  const failure = { outcome: 'failed', failure: 'no pod became available', failedMs: 0 } as const;
  const run = outcome === 'running' ? runOf({ id: 'run1' }) : runOf({ id: 'run1', ...failure });
  history.turn({ snapshot, decision: { ...decideGroup(snapshot, definition), run }, ...more });
}

describe('the judge of deadlines', () => {
  it("finds 'S38' if a run goes on although a replaced pod has not come back within the deadline", () => {
    const history = stuck();
    turn(history.advance(60_000));
    expect(history.found('S38')).toEqual([]);
    turn(history.advance(10_000));
    turn(history.advance(1000));
    expect(history.found('S38')).toEqual(['a1 goes on with run run1, and ing-a-2 has not come back for 75000 ms, with a deadline of 60 s']);
  });

  it('accepts a run that fails, a failed turn, a ledger that says so, and a pod that came back', () => {
    const history = stuck();
    turn(history.advance(80_000), 'failed');
    turn(history, 'running', { error: 'the ledger was not written' });
    history.ledger('run1', 'failed', 'r2');
    turn(history);
    const back = stuck();
    back.ready('ing-a-2', true);
    turn(back.advance(80_000));
    expect([...history.found('S38'), ...back.found('S38')]).toEqual([]);
  });

  it('accepts a run that goes on while the zone is unread, and judges the next turn that reads the zone', () => {
    const history = stuck();
    const nowMs = runStartMs + history.nowMs;
    const unread = [{ kind: 'StatefulSet', name: 'ing-a', unknown: 'forbidden' }] as const;
    const snapshot = snapshotOf({ groups: [definition], nowMs, unread, absent: ['ing-a'] });
    turn(history.advance(80_000), 'running', {
      decision: { ...decideGroup(snapshot, definition), run: runOf({ id: 'run1' }) },
    });
    expect(history.found('S38')).toEqual([]);
    turn(history);
    expect(history.found('S38')).toHaveLength(1);
  });

  it('counts a retry and another replacement as progress', () => {
    const retried = stuck();
    retried.advance(50_000).request('retry', 'run1');
    turn(retried.advance(30_000));
    const replaced = stuck();
    replaced.advance(50_000).announceAndTake('ing-a-1');
    turn(replaced.advance(30_000));
    expect([...retried.found('S38'), ...replaced.found('S38')]).toEqual([]);
  });

  it('does not judge a pod at another revision: a stale controller created it, or the template changed since', () => {
    const history = new History({ deadlineSeconds: 60 });
    history.ledger('run1', 'running', 'r2');
    history.advance(20_000).announceAndTake('ing-a-2');
    history.advance(5000).replace('ing-a-2', 'r1', false);
    turn(history.advance(90_000));
    const again = stuck();
    again.change('statefulsets.apps', 'ing-a', ({ status }) => ({ status: { ...(status as object), updateRevision: 'r3' } }));
    again.ledger('run1', 'running', 'r3');
    turn(again.advance(90_000));
    expect([...history.found('S38'), ...again.found('S38')]).toEqual([]);
  });

  it('does not judge a place between two pods that a stale controller creates at another revision', () => {
    const history = new History({ deadlineSeconds: 60 });
    history.ledger('run1', 'running', 'r2');
    history.advance(20_000).announceAndTake('ing-a-2');
    history.advance(5000).replace('ing-a-2', 'r1', false);
    history.advance(90_000).remove('pods', 'ing-a-2');
    turn(history);
    expect(history.found('S38')).toEqual([]);
  });

  it('counts its tolerance by a clock that was slow before', () => {
    const found = (rate: number) => {
      const history = stuck();
      const machine = createMachineClock(history.scene, rate);
      history.advance(69_000);
      machine.mend();
      history.clocks.set('a1', { rate: machine.rate(), trueMs: machine.trueMs, wallErrorMs: 0 });
      turn(history);
      return history.found('S38').length;
    };
    expect([found(1), found(0.4)]).toEqual([1, 0]);
  });
});
