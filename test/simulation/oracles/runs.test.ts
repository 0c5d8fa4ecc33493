import { describe, expect, it } from 'vitest';
import { History } from './history.ts';

function inRun(outcome = 'running'): History {
  const history = new History();
  history.ledger('run1', outcome);
  return history.advance(20_000);
}

describe('the judge of ended runs', () => {
  it("finds 'S38' if a pod is replaced in an aborted run, later than 10 s after the abort", () => {
    const history = inRun();
    history.request('abort', 'run1');
    history.advance(5_000).announceAndTake('ing-a-2');
    expect(history.found('S38')).toEqual([]);
    history.advance(6_000).announceAndTake('ing-a-1');
    expect(history.found('S38')).toEqual(['a1 disrupts ing-a-1 in the aborted run run1']);
  });

  it('finds a pod that is replaced in a failed run', () => {
    const history = inRun('failed');
    history.announceAndTake('ing-a-2');
    expect(history.found('S38')).toEqual(['a1 disrupts ing-a-2 in the failed run run1']);
  });

  it('accepts a retry, another run, and the abort of another run', () => {
    const retried = inRun();
    retried.request('abort', 'run1');
    retried.advance(20_000).request('retry', 'run1');
    retried.announceAndTake('ing-a-2');
    const another = inRun('failed');
    another.ledger('run2');
    another.announceAndTake('ing-a-2');
    const other = inRun();
    other.request('abort', 'run0');
    other.advance(20_000).announceAndTake('ing-a-2');
    expect([retried, another, other].flatMap((history) => history.found('S38'))).toEqual([]);
  });
});
