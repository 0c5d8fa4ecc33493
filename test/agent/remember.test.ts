import { describe, expect, it } from 'vitest';
import { directReadIntervalMs, type GroupMemory, newMemory } from '../../agent/turn/gather.ts';
import { announcedIn, claimEndsMs, isWorthWriting, withoutClaimsOf } from '../../agent/turn/ledger-changes.ts';
import { nextTurn } from '../../agent/turn/next-turn.ts';
import type { GroupDecision } from '../../engine/decision.ts';
import type { RunState } from '../../engine/run/run-state.ts';
import type { Ledger, Preparation } from '../../engine/snapshot.ts';
import { canonicalJson } from '../../policies/values/canonical-json.ts';
import { type RunFields, withFields } from '../kit/questions.ts';

const run: RunState = {
  id: 'one',
  kind: 'rollout',
  target: { a: 'new' },
  previous: { a: 'old' },
  startedMs: 1000,
  wave: 0,
  waveStartedMs: 1000,
  movableMs: 0,
  movableAsOfMs: 1000,
  isMovable: true,
  outcome: 'running',
};
const ledger: Ledger = { namespace: 'mimir', group: 'ingester', claims: [], downscales: [], preparations: [], run };
const claim = { verb: 'deletePod' as const, zone: 'a', uid: 'u', ordinal: 0, atMs: 5000 };
const preparation: Preparation = { zone: 'a', ordinal: 3, podUid: 'u', call: 'delayed', state: 'failed', seenMs: 1, message: 'no' };
const withRun = (changes: RunFields): Ledger => ({ ...ledger, run: withFields(run, changes) });
const withPreparation = (changes: Partial<Preparation>): Ledger => ({ ...ledger, preparations: [{ ...preparation, ...changes }] });

const action = {
  kind: 'deletePod' as const,
  namespace: 'mimir',
  zone: 'a',
  statefulSet: 's',
  pod: 's-0',
  ordinal: 0,
  uid: 'u',
  resourceVersion: '1',
  because: 'outdated' as const,
};
const freshCaches = { lookUp: () => undefined, hasSeen: () => true };

describe('a ledger is written', () => {
  it.each<[string, Ledger, Ledger]>([
    ['a claim', ledger, { ...ledger, claims: [claim] }],
    ['the end of a claim', { ...ledger, claims: [claim] }, ledger],
    ['the next wave', ledger, withRun({ wave: 1 })],
    ['a group that may not move any more', ledger, withRun({ isMovable: false })],
    ['pods in flight', ledger, withRun({ inFlightSinceMs: 2000 })],
    ['a downscale', ledger, { ...ledger, downscales: [{ zone: 'a', atMs: 1, from: 3, to: 2 }] }],
    ['a cancelled downscale that ended', ledger, { ...ledger, endedCancels: ['0a1b2c3d4e'] }],
    ['a pod that prepared', withPreparation({}), withPreparation({ state: 'prepared' })],
    ['a pod that was told to stay', withPreparation({}), withPreparation({ isWithdrawn: true })],
    ['a pod that is asked for the first time', ledger, withPreparation({ state: 'asked' })],
  ])('for %s', (_what, stored, next) => {
    expect(isWorthWriting(stored, next)).toBe(true);
  });

  it.each<[string, Ledger, Ledger]>([
    ['time that passes', ledger, withRun({ movableMs: 500, movableAsOfMs: 1500 })],
    ['records that have grown too old', { ...ledger, downscales: [{ zone: 'a', atMs: 1, from: 3, to: 2 }] }, ledger],
    ['a pod that fails again', withPreparation({}), withPreparation({ state: 'asked', seenMs: 9000 })],
    ['a pod that dies when all is done', withRun({ outcome: 'completed' }), withRun({ outcome: 'completed', inFlightSinceMs: 7 })],
    ['another order', { ...ledger, claims: [claim, { ...claim, uid: 'v' }] }, { ...ledger, claims: [{ ...claim, uid: 'v' }, claim] }],
  ])('not for %s', (_what, stored, next) => {
    expect(isWorthWriting(stored, next)).toBe(false);
  });
});

describe('claims', () => {
  it('of actions that were not carried out are dropped, and others are kept', () => {
    const other = { ...claim, verb: 'evictPod' as const };
    expect(withoutClaimsOf({ ...ledger, claims: [claim, other] }, [action], ledger).claims).toEqual([other]);
  });

  it('of a downscale are dropped alone if surplus pods of the previous one still terminate', () => {
    const from = { namespace: 'mimir', zone: 'a', uid: 'u', from: 3, resourceVersion: '1' };
    const before = { verb: 'scaleDown' as const, ...from, to: 2, atMs: 1000 };
    const next = { ...before, from: 2, to: 1 };
    const action = { kind: 'scaleStatefulSet' as const, statefulSet: 's', ...from, from: 2, to: 1 };
    expect(withoutClaimsOf({ ...ledger, claims: [before, next] }, [action], ledger).claims).toEqual([before]);
  });

  it('that were already open keep their time, because the answer to the earlier request is unknown', () => {
    const before = { ...ledger, claims: [claim] };
    const announced = { ...ledger, claims: [{ ...claim, atMs: 9000 }] };
    expect(withoutClaimsOf(announced, [action], before)).toEqual(before);
    expect(withoutClaimsOf(before, [action], before)).toBe(before);
  });

  it('belong to this process only if they do not renew the claim of another process', () => {
    const before = { ...ledger, claims: [claim] };
    const renewed = { ...ledger, claims: [{ ...claim, atMs: 9000 }] };
    expect(announcedIn(before, ledger, new Set())).toEqual(new Set([canonicalJson(claim)]));
    expect(announcedIn(renewed, before, new Set())).toEqual(new Set());
    const ours = new Set([canonicalJson(claim)]);
    expect(announcedIn(renewed, before, ours)).toEqual(new Set([...renewed.claims.map(canonicalJson), ...ours]));
  });

  it('expire after two minutes', () => {
    const late = { ...claim, uid: 'v' };
    const claims = [claim, late, { ...claim, uid: 'unseen' }];
    const sinceMs = new Map([
      [canonicalJson(claim), 5000],
      [canonicalJson(late), 9000],
    ]);
    expect(claimEndsMs({ ...ledger, claims }, sinceMs, 6000)).toEqual([125_001, 129_001, 126_001]);
  });
});

describe('the next turn', () => {
  const end = { performed: [], hasProblem: false, isCut: false, isStale: false, storePauseMs: undefined, areSourcesKnown: true };
  const decision = { outcome: 'wait' } as GroupDecision;
  const turn = (memory: GroupMemory, startedMs: number, nowMs: number) =>
    nextTurn(memory, { ...end, decision, startedMs, nowMs }).nextTurnInMs;

  it('follows when a claim ends, and at once if the claim ended during the turn', () => {
    const current = { ...ledger, claims: [claim] };
    const memory = {
      ...newMemory(freshCaches),
      ledger: { stored: current, current },
      knownSinceMs: new Map([[canonicalJson(claim), 5000]]),
    };
    expect(turn(memory, 6000, 6002)).toBe(118_999);
    expect(turn(memory, 124_999, 125_003)).toBe(0);
    expect(turn(memory, 125_001, 125_003)).toBe(directReadIntervalMs);
  });

  it('follows when the pause of a rejected write ends, and at once if it ended during the turn', () => {
    const memory = newMemory(freshCaches);
    const clock = { nowMs: () => 5000, monotonicMs: () => 1000 };
    memory.refusals.note({ action, result: 'refused', message: 'no' }, { clock, warn: () => undefined });
    expect(turn(memory, 1000, 1002)).toBe(4998);
    expect(turn(memory, 5999, 6001)).toBe(0);
    expect(turn(memory, 6000, 6001)).toBe(directReadIntervalMs);
  });

  it('waits for an event after the first conflict', () => {
    const memory = newMemory(freshCaches);
    const clock = { nowMs: () => 5000, monotonicMs: () => 1000 };
    memory.refusals.note({ action, result: 'conflict', message: 'changed' }, { clock, warn: () => undefined });
    expect(turn(memory, 999, 1001)).toBe(directReadIntervalMs);
  });
});
