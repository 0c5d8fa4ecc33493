import { describe, expect, it } from 'vitest';
import { factsOf } from '../../../agent/published/event-facts.ts';
import { groupStatus, type Held, personNeeded } from '../../../engine/publish/status.ts';
import { misplacedAfter, misplacedTurn } from '../../plugin/person-needed-kit.ts';

const wait = (rule: string, more: Partial<Held['waits'][number]> = {}): Held['waits'][number] => ({
  rule,
  outcome: 'wait',
  fact: 'it waits',
  ...more,
});
const held = (more: Partial<Held>): Held => ({ phase: 'Waiting', outcome: 'wait', waits: [], ...more });

describe('the person that a group needs', () => {
  it.each([
    [held({ phase: 'Failed' }), 'failed'],
    [held({ phase: 'Blocked', outcome: 'blocked' }), 'blocked'],
    [held({ waits: [wait('zone-budget', { outcome: 'no' })] }), 'blocked'],
    [held({ waits: [wait('zone-budget'), wait('pin-applied')] }), 'misplaced'],
    [held({ waits: [wait('approval')] }), 'approval'],
    [held({ waits: [wait('safety/both', { digest: 'd' })] }), 'approval'],
    [held({ waits: [wait('undone')] }), 'undone'],
    [held({ phase: 'Paused', waits: [wait('paused')] }), 'paused'],
    [held({ waits: [wait('pin-applied', { earliestMs: 1 })] }), undefined],
    [held({ waits: [wait('zone-budget')] }), undefined],
    [held({ phase: 'Rolling', outcome: 'act', waits: [wait('pin-applied')] }), undefined],
    [held({ phase: 'Done', outcome: 'done' }), undefined],
  ])('%j: %s', (one, expected) => {
    expect(personNeeded(one)).toBe(expected);
  });

  it('is seen in what the engine decides, after the last attempt alone', () => {
    expect([1, 2].map((placements) => personNeeded(misplacedAfter(placements)))).toEqual([undefined, 'misplaced']);
  });

  it('shows in the conditions of the object', () => {
    const conditions = (placements: number) =>
      Object.fromEntries(
        groupStatus(misplacedAfter(placements)).conditions.map(({ type, status, reason }) => [type, `${status} ${reason}`]),
      );
    expect(conditions(2)).toMatchObject({ Progressing: 'False PinNotApplied', Degraded: 'True PinNotApplied' });
    expect(conditions(1)).toMatchObject({ Progressing: 'True PinNotApplied', Degraded: 'False AsExpected' });
  });
});

describe('the Event about it', () => {
  it('is a separate warning after the last attempt, also when the wait before was reported', () => {
    const eventsOf = (placements: number, past?: ReturnType<typeof factsOf>['past']) => {
      const found = factsOf(misplacedTurn(placements), past);
      return { ...found, facts: found.facts.filter(({ reason }) => reason === 'PinNotApplied') };
    };
    const first = eventsOf(1);
    const second = eventsOf(2, first.past);
    expect([first, second].map(({ facts }) => facts.map(({ type, reason }) => `${type} ${reason}`))).toEqual([
      ['Normal PinNotApplied'],
      ['Warning PinNotApplied'],
    ]);
    expect(new Set([...first.facts, ...second.facts].map(({ identity }) => identity)).size).toBe(2);
  });
});
