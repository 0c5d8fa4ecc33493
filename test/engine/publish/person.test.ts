import { describe, expect, it } from 'vitest';
import { factsOf } from '../../../agent/published/event-facts.ts';
import type { Stop } from '../../../engine/decision.ts';
import { groupStatus, type Held, personNeeded } from '../../../engine/publish/status.ts';
import type { IntentView } from '../../../engine/snapshot.ts';
import { zone } from '../../kit/groups.ts';
import { kitNowMs, newRevision, statefulSet } from '../../kit/objects.ts';
import { freeze, hourMs, intent, policy, policyRule } from '../../kit/questions.ts';
import { misplacedAfter, misplacedTurn, soakingWith } from '../../plugin/person-needed-kit.ts';

const wait = (rule: string, more: Partial<Held['waits'][number]> = {}): Held['waits'][number] => ({
  rule,
  outcome: 'wait',
  fact: 'it waits',
  ...more,
});
const lasting: Stop = { rule: 'paused', fact: 'it is paused', zones: ['a'], isBlocking: true, endsBy: 'person', endsWith: 'resume' };
const zoneOf = (name: string) => ({ zone: name, statefulSet: name, replicas: 0, updated: 0, available: 0, isReady: false, revisions: [] });
const held = (more: Partial<Held>): Held => ({ phase: 'Waiting', outcome: 'wait', waits: [], ...more });

describe('the user that a group needs', () => {
  it.each([
    [held({ phase: 'Failed' }), 'failed'],
    [held({ zones: [{ ...zoneOf('a'), unread: 'missing' }] }), 'missing'],
    [held({ zones: [{ ...zoneOf('a'), unread: 'unreadable' }] }), undefined],
    [held({ phase: 'RolledBack', outcome: 'done' }), 'rolledBack'],
    [held({ phase: 'Blocked', outcome: 'blocked' }), 'blocked'],
    [held({ waits: [wait('zone-budget', { outcome: 'no' })] }), 'blocked'],
    [held({ waits: [wait('zone-budget'), wait('pin-applied')] }), 'misplaced'],
    [held({ waits: [wait('approval')] }), 'approval'],
    [held({ waits: [wait('safety/both', { digest: 'd' })] }), 'approval'],
    [held({ waits: [wait('undone')] }), 'undone'],
    [held({ phase: 'Paused', waits: [wait('paused')] }), 'paused'],
    [held({ phase: 'Rolling', waits: [wait('wave-available')], stops: [lasting] }), 'stopped'],
    [held({ phase: 'Paused', waits: [wait('paused')], stops: [lasting] }), 'paused'],
    [held({ waits: [wait('pin-applied', { earliestMs: 1 })] }), undefined],
    [held({ waits: [wait('zone-budget')] }), undefined],
    [held({ phase: 'Rolling', outcome: 'act', waits: [wait('pin-applied')] }), undefined],
    [held({ phase: 'Done', outcome: 'done' }), undefined],
  ])('%j: %s', (one, expected) => {
    expect(personNeeded(one)).toBe(expected);
  });

  it('appears in the decision only after the last attempt', () => {
    expect([1, 2].map((placements) => personNeeded(misplacedAfter(placements)))).toEqual([undefined, 'misplaced']);
  });

  it('appears in the conditions of the object', () => {
    const conditions = (placements: number) =>
      Object.fromEntries(
        groupStatus(misplacedAfter(placements)).conditions.map(({ type, status, reason }) => [type, `${status} ${reason}`]),
      );
    expect(conditions(2)).toMatchObject({ Progressing: 'False PinNotApplied', Degraded: 'True PinNotApplied' });
    expect(conditions(1)).toMatchObject({ Progressing: 'True PinNotApplied', Degraded: 'False AsExpected' });
  });
});

describe('a stop during a soak', () => {
  const asking = (action: IntentView['action'], more: Partial<IntentView> = {}) => ({ intents: [intent({ action, ...more })] });
  const ofZones = (...zones: readonly string[]) => ({ intents: zones.map((one) => intent({ name: one, action: 'pause', zone: one })) });
  const expiresMs = kitNowMs + hourMs;
  const undone = ['b', 'c'].map((one) => ({ zone: one, revision: newRevision }));
  const hold = policyRule({ name: 'moves', effect: 'hold', message: 'the storage moves' });
  const done = { currentRevision: newRevision, updateRevision: newRevision };
  const last = { statefulSets: ['a', 'b', 'c'].map((one) => statefulSet({ name: `ingester-zone-${one}`, status: done })) };

  it.each([
    ['a pause', soakingWith(asking('pause')), 'paused'],
    ['pauses of all outdated zones', soakingWith(ofZones('b', 'c')), 'paused'],
    ['a protection', soakingWith(asking('protect')), 'stopped'],
    ['an undone revision', soakingWith(asking('undo', { undone })), 'undone'],
    ['a policy rule that only a person ends', soakingWith({ policies: [policy({ rules: [hold] })] }), 'stopped'],
    ['paused settings of all zones', soakingWith({}, { zones: ['a', 'b', 'c'].map((name) => zone({ name, paused: true })) }), 'paused'],
    ['a pause with an end', soakingWith(asking('pause', { expiresMs })), 'paused'],
    ['a protection with an end', soakingWith(asking('protect', { expiresMs })), undefined],
    ['a closed window', soakingWith({ policies: [policy({ windows: [freeze()] })] }), undefined],
    ['a pause of the updated zone', soakingWith(ofZones('a')), undefined],
    ['a pause of one outdated zone', soakingWith(ofZones('b')), undefined],
    ['a protection of one pod', soakingWith(asking('protect', { zone: 'b', ordinals: [0] })), undefined],
    ['a pause after the last pod', soakingWith({ ...last, ...asking('pause') }), undefined],
    ['no stop', soakingWith(), undefined],
  ])('needs a user only if it pauses every outdated pod, or has no end: %s', (_, published, expected) => {
    expect(personNeeded(published)).toBe(expected);
    const conditions = groupStatus(published).conditions.map(({ type, status, reason }) => `${type} ${status} ${reason}`);
    expect(conditions.includes('Progressing True SoakNotOver')).toBe(expected === undefined && published.outcome === 'wait');
    const stopped = conditions.find((one) => one.startsWith('Stopped'));
    expect(published.phase === 'Paused').toBe(expected === 'paused');
    if (expected === 'stopped' || expected === 'paused')
      expect(conditions).toContain(stopped?.replace('Stopped True', 'Progressing False'));
  });
});

describe('the Event about a needed user', () => {
  it('is a separate warning after the last attempt, also if the wait before was reported', () => {
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
