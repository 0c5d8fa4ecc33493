import { describe, expect, it } from 'vitest';
import { History } from './history.ts';

/** A run whose zone `a` is open, since a while. */
function openA(): History {
  const history = new History();
  history.ledger('run1', 'running', 'r2', undefined, { openZone: 'a', wave: 0 });
  return history.advance(20_000);
}

/** A rollback of the update revision r2 to r1, whose zone `a` is open, since a while. These pods are at r2. */
function rollsBackA(...failed: readonly string[]): History {
  const history = new History();
  for (const pod of failed) history.replace(pod);
  history.ledger('run1', 'running', 'r1', 'r2', { openZone: 'a', wave: 0 });
  return history.advance(20_000);
}

function opens(history: History, openZone: string, progress = {}): void {
  history.ledger('run1', 'running', 'r2', undefined, { openZone, wave: 0, ...progress });
}

describe('the judge of open zones', () => {
  it("finds 'S37' if a pod is replaced outside of the zone that the stored run has open", () => {
    const history = openA();
    history.announceAndTake('ing-a-2');
    expect(history.found('S37')).toEqual([]);
    history.announceAndTake('ing-b-2');
    expect(history.found('S37')).toEqual(['a1 replaces ing-b-2, and the stored open zone is a']);
  });

  it('finds a zone that is left for another one while the wave lacks pods there', () => {
    const history = openA();
    history.announceAndTake('ing-a-2');
    history.replace('ing-a-2');
    opens(history, 'b');
    expect(history.found('S37')).toEqual(['a1 leaves zone a for zone b, and 2 of its pods are still outdated']);
  });

  it('accepts a zone that has its pods, another wave, another run, and a template that is new to the decision', () => {
    const done = openA();
    for (const pod of ['ing-a-0', 'ing-a-1', 'ing-a-2']) done.replace(pod);
    opens(done, 'b');
    const next = openA();
    next.announceAndTake('ing-a-2');
    opens(next, 'b', { wave: 1 });
    const other = openA();
    other.announceAndTake('ing-a-2');
    other.ledger('run2', 'running', 'r2', undefined, { openZone: 'b', wave: 0 });
    const changed = openA();
    changed.announceAndTake('ing-a-2');
    changed.change('statefulsets.apps', 'ing-a', ({ status }) => ({ status: { ...(status as object), updateRevision: 'r3' } }));
    opens(changed, 'b');
    const repair = openA();
    repair.ready('ing-b-1', false);
    opens(repair.advance(20_000), 'b');
    const reverted = openA();
    opens(reverted, 'b');
    opens(reverted, 'a');
    expect([done, next, other, changed, repair, reverted].flatMap((history) => history.found('S37'))).toEqual([]);
  });

  it('counts the pods of a rollback by the revision to which it returns, and not by the update revision', () => {
    const returnsTo = (history: History, pod: string): void => {
      history.announceAndTake(pod);
      history.replace(pod, 'r1');
      history.ledger('run1', 'running', 'r1', 'r2', { openZone: 'b', wave: 0 });
    };
    const done = rollsBackA('ing-a-2', 'ing-b-2');
    returnsTo(done, 'ing-a-2');
    expect(done.found('S37')).toEqual([]);
    const early = rollsBackA('ing-a-1', 'ing-a-2', 'ing-b-2');
    returnsTo(early, 'ing-a-2');
    expect(early.found('S37')).toEqual(['a1 leaves zone a for zone b, and 1 of its pods are still outdated']);
    const repair = rollsBackA('ing-a-1', 'ing-a-2', 'ing-b-2');
    repair.ready('ing-b-2', false);
    returnsTo(repair.advance(20_000), 'ing-a-2');
    expect(repair.found('S37')).toEqual([]);
  });
});
