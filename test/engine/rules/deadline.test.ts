import { describe, expect, it } from 'vitest';
import { deadlineFailure, progressDeadline, runDeadline } from '../../../engine/rules/roll.ts';
import type { RunState } from '../../../engine/run/run-state.ts';
import { group } from '../../kit/groups.ts';
import { kitNowMs, newRevision } from '../../kit/objects.ts';
import { ago, contextWith, hourMs, line, minuteMs, outdatedSets, runOf } from '../../kit/questions.ts';

const sources = { 'rollout.deadlines': line(1) };
const progress = { progressMs: 20 * minuteMs };
const whole = { runMs: 2 * hourMs };
const inFlight = { 'ingester-zone-a': { 2: { revision: newRevision, isReady: false, readyChangedMs: ago(5 * minuteMs) } } };

const context = (deadlines: object, podChanges: object = inFlight) =>
  contextWith(group({ rollout: { deadlines }, sources }), { statefulSets: outdatedSets(), podChanges: podChanges as never });
const replaced = (atMs: number): RunState => runOf({ lastDisruptionMs: atMs });

describe('the progress deadline', () => {
  const details = { limit: '20m', source: line(1) };
  const skip = { rule: 'progress-deadline', outcome: 'skip', fact: 'no deadline is set' };

  it('is skipped if it is not set', () => {
    expect(progressDeadline(context(whole), runOf())).toEqual(skip);
    expect(deadlineFailure(context({}), replaced(ago(10 * hourMs)))).toBeUndefined();
  });

  it('does not run while no pod is in flight', () => {
    expect(progressDeadline(context(progress, {}), replaced(ago(hourMs)))).toEqual({
      rule: 'progress-deadline',
      outcome: 'ok',
      fact: 'no pod is in flight',
      ...details,
    });
    expect(deadlineFailure(context(progress, {}), replaced(ago(hourMs)))).toBeUndefined();
  });

  it('runs from the last replacement, and names its end', () => {
    expect(progressDeadline(context(progress), replaced(ago(5 * minuteMs)))).toEqual({
      rule: 'progress-deadline',
      outcome: 'ok',
      fact: 'the last progress was 5m ago',
      age: expect.any(Object),
      ...details,
      earliestMs: kitNowMs + 15 * minuteMs,
    });
    expect(deadlineFailure(context(progress), replaced(ago(20 * minuteMs) + 1))).toBeUndefined();
  });

  it('fails the run when exactly its time has passed', () => {
    expect(deadlineFailure(context(progress), replaced(ago(20 * minuteMs)))).toEqual({
      failure: 'no pod became available for 20m',
      awaitsPods: true,
    });
    expect(progressDeadline(context(progress), replaced(ago(20 * minuteMs)))).toEqual({
      rule: 'progress-deadline',
      outcome: 'ok',
      fact: 'the last progress was 20m ago',
      age: expect.any(Object),
      ...details,
    });
  });

  it.each<[string, RunState, object, string]>([
    ['the beginning of the run', runOf({ startedMs: ago(7 * minuteMs) }), {}, '7m'],
    ['a replacement', replaced(ago(6 * minuteMs)), {}, '6m'],
    [
      'an updated pod that became ready',
      replaced(ago(6 * minuteMs)),
      { 1: { revision: newRevision, readyChangedMs: ago(3 * minuteMs) } },
      '3m',
    ],
    ['a person who said that it goes on', runOf({ retriedMs: ago(2 * minuteMs) }), {}, '2m'],
    ['no old pod that became ready', replaced(ago(6 * minuteMs)), { 1: { readyChangedMs: ago(3 * minuteMs) } }, '6m'],
    [
      'no updated pod that fell back',
      replaced(ago(6 * minuteMs)),
      { 1: { revision: newRevision, isReady: false, readyChangedMs: ago(3 * minuteMs) } },
      '6m',
    ],
  ])('counts as progress %s', (_name, run, more, expected) => {
    const podChanges = { 'ingester-zone-a': { ...inFlight['ingester-zone-a'], ...more } };
    expect(progressDeadline(context(progress, podChanges), run).fact).toBe(`the last progress was ${expected} ago`);
  });
});

describe('the deadline of a run', () => {
  const details = { limit: '2h', source: line(1) };
  const moving = (movableMs: number, isMovable: boolean): RunState => runOf({ movableMs, movableAsOfMs: ago(10 * minuteMs), isMovable });

  it('is skipped if it is not set', () => {
    expect(runDeadline(context(progress), runOf())).toEqual({ rule: 'run-deadline', outcome: 'skip', fact: 'no deadline is set' });
  });

  it('counts the time since the last decision while the group is not blocked', () => {
    expect(runDeadline(context(whole), moving(hourMs, true))).toEqual({
      rule: 'run-deadline',
      outcome: 'ok',
      fact: 'the run has been active for 1h10m',
      age: expect.any(Object),
      ...details,
      earliestMs: kitNowMs + 50 * minuteMs,
    });
  });

  it('stops while the group is blocked, and then names no time', () => {
    expect(runDeadline(context(whole), moving(hourMs, false))).toEqual({
      rule: 'run-deadline',
      outcome: 'ok',
      fact: 'the run has been active for 1h',
      ...details,
    });
  });

  it('never counts backwards', () => {
    expect(runDeadline(context(whole), { ...moving(hourMs, true), movableAsOfMs: kitNowMs + hourMs }).fact).toBe(
      'the run has been active for 1h',
    );
  });

  it('fails the run when exactly its time has passed', () => {
    expect(deadlineFailure(context(whole), moving(110 * minuteMs, true))).toEqual({ failure: 'the run took longer than 2h' });
    expect(runDeadline(context(whole), moving(110 * minuteMs, true))).toEqual({
      rule: 'run-deadline',
      outcome: 'ok',
      fact: 'the run has been active for 2h',
      age: expect.any(Object),
      ...details,
    });
    expect(deadlineFailure(context(whole), moving(110 * minuteMs - 1, true))).toBeUndefined();
    expect(deadlineFailure(context(whole), moving(119 * minuteMs, false))).toBeUndefined();
  });
});
