import { describe, expect, it } from 'vitest';
import { leavingPods } from '../../../engine/rules/leaving.ts';
import { delayedDownscale, prepareDownscale, renewals, withdrawals } from '../../../engine/rules/prepare.ts';
import type { CreatedPods, Preparation, StatefulSetView } from '../../../engine/snapshot.ts';
import type { ReplicasDefinition } from '../../../policies/definition.ts';
import { adopted, group, type ZoneOverrides } from '../../kit/groups.ts';
import { kitNowMs, type PodChanges, statefulSet } from '../../kit/objects.ts';
import { ago, contextWith, hourMs, ledgerOf, line, minuteMs, preparation, scaleQuestion, secondMs, zoneIn } from '../../kit/questions.ts';

const endpoint = { scheme: 'http', port: 8080, path: '/prepare', timeout: '5s' } as const;
const delayed = { afterMs: 2 * hourMs, endpoint, onUnreachable: 'hold' } as const;
const prepare = { endpoint, onFailure: 'deny' } as const;
const sources = { 'zones.a.delayed': line(1), 'zones.a.prepare': line(2) };
const mirror = { kind: 'mirror' } as ReplicasDefinition;

interface Given {
  readonly zone?: Omit<ZoneOverrides, 'name'>;
  readonly preparations?: readonly Preparation[];
  readonly pods?: PodChanges;
  readonly build?: typeof group;
  readonly firstOrdinal?: number;
  readonly status?: Partial<StatefulSetView['status']>;
  readonly to?: number;
  readonly more?: object;
}

/** Zone a of five replicas, going to three. */
function question({
  zone = { delayed },
  preparations = [],
  pods = {},
  build = group,
  firstOrdinal = 0,
  status = {},
  to = 3,
  more = {},
}: Given) {
  const context = contextWith(build({ zones: [{ name: 'a', ...zone }], sources }), {
    statefulSets: [statefulSet({ replicas: 5, firstOrdinal, status })],
    podChanges: { 'ingester-zone-a': pods },
    ledgers: [ledgerOf({ preparations })],
  });
  return scaleQuestion(context, to, more);
}

const call = (kind: 'delayed' | 'prepare', method: 'POST' | 'DELETE', ordinals: readonly number[]) => ({
  kind: 'callPods',
  namespace: 'mimir',
  zone: 'a',
  statefulSet: 'ingester-zone-a',
  call: kind,
  method,
  ordinals,
});

describe('the delayed downscale', () => {
  const of = (given: Given) => delayedDownscale(question(given));
  const details = { limit: '2h', source: line(1) };
  const skip = { result: { rule: 'delayed-downscale', outcome: 'skip', fact: 'no delay is set' }, permitted: 3, actions: [] };

  it('calls all leaving pods first, from the lowest up', () => {
    expect(of({})).toEqual({
      result: { rule: 'delayed-downscale', outcome: 'wait', fact: '2 pods must prepare', ...details },
      permitted: 5,
      actions: [call('delayed', 'POST', [3, 4])],
    });
  });

  it('calls all of them again while one has not answered', () => {
    expect(of({ preparations: [preparation(4)] })).toEqual({
      result: { rule: 'delayed-downscale', outcome: 'wait', fact: '1 pod must prepare', ...details },
      permitted: 5,
      actions: [call('delayed', 'POST', [3, 4])],
    });
  });

  it('does not mistake a pod for its predecessor of the same name', () => {
    expect(of({ preparations: [preparation(4, { podUid: 'uid-old' }), preparation(3)] }).result.fact).toBe('1 pod must prepare');
  });

  it('waits for the successor of a lost pod, and calls only pods that exist', () => {
    const fact = '1 pod must prepare; ingester-zone-a-4 does not exist';
    const waits = { result: { rule: 'delayed-downscale', outcome: 'wait', fact, ...details }, permitted: 5, actions: [] };
    expect(of({ preparations: [preparation(3)], pods: { 4: 'missing' } })).toEqual(waits);
    expect(of({ preparations: [preparation(3), preparation(4)], pods: { 4: 'missing' } })).toEqual(waits);
    expect(of({ preparations: [preparation(4)], pods: { 3: 'missing' } })).toMatchObject({ result: { outcome: 'wait' }, permitted: 5 });
    expect(of({ pods: { 4: 'missing' } })).toMatchObject({ actions: [call('delayed', 'POST', [3])] });
  });

  it('removes an ordinal at once if its pod was never created', () => {
    const never = { pods: { 3: 'missing', 4: 'missing' }, status: { replicas: 3 } } as const;
    const ok = (fact: string) => ({ rule: 'delayed-downscale', outcome: 'ok', fact, ...details });
    expect(of(never)).toEqual({ result: ok('no pod was created for the highest ordinals'), permitted: 3, actions: [] });
    const young = preparation(3, { seenMs: ago(hourMs), reportedMs: ago(hourMs) });
    const one = { pods: { 4: 'missing' }, status: { replicas: 4 } } as const;
    expect(of({ ...one, preparations: [young] })).toMatchObject({ result: { outcome: 'ok' }, permitted: 4 });
    expect(of({ ...one, preparations: [preparation(3)] })).toEqual({
      result: ok('1 pod with the highest ordinal has been prepared for 2h'),
      permitted: 3,
      actions: [],
    });
  });

  it('removes only pods above the highest pod with an unfinished delay', () => {
    const young = preparation(3, { seenMs: ago(hourMs), reportedMs: ago(hourMs) });
    const entries = [preparation(4), young, preparation(2)];
    expect(of({ preparations: entries, to: 2 })).toMatchObject({ result: { outcome: 'ok', earliestMs: kitNowMs + hourMs }, permitted: 4 });
  });

  it('waits until the highest pod has been prepared for the full delay', () => {
    const young = ago(2 * hourMs) + 1;
    const entries = [preparation(3), preparation(4, { seenMs: young, reportedMs: young })];
    expect(of({ preparations: entries })).toEqual({
      result: {
        rule: 'delayed-downscale',
        outcome: 'wait',
        fact: 'ingester-zone-a-4 has been prepared for 1h59m59s',
        age: { words: 'for 1h59m59s', fromMs: young },
        ...details,
        earliestMs: kitNowMs + 1,
      },
      permitted: 5,
      actions: [],
    });
  });

  it('permits the removal of the highest prepared pods, and names the time of the next one', () => {
    const young = ago(hourMs);
    const entries = [preparation(3, { seenMs: young, reportedMs: young }), preparation(4)];
    expect(of({ preparations: entries })).toEqual({
      result: {
        rule: 'delayed-downscale',
        outcome: 'ok',
        fact: '1 pod with the highest ordinal has been prepared for 2h',
        ...details,
        earliestMs: kitNowMs + hourMs,
      },
      permitted: 4,
      actions: [],
    });
  });

  it('permits the removal of all pods when exactly the delay has passed', () => {
    const ripe = ago(2 * hourMs);
    const entries = [3, 4].map((ordinal) => preparation(ordinal, { seenMs: ripe, reportedMs: ripe }));
    expect(of({ preparations: entries })).toEqual({
      result: { rule: 'delayed-downscale', outcome: 'ok', fact: '2 pods with the highest ordinals have been prepared for 2h', ...details },
      permitted: 3,
      actions: [],
    });
  });

  it('counts ordinals from the first one', () => {
    expect(of({ firstOrdinal: 10 }).actions).toEqual([call('delayed', 'POST', [13, 14])]);
    expect(of({ firstOrdinal: 10, preparations: [preparation(13), preparation(14)] })).toMatchObject({ permitted: 3 });
  });

  it('calls pods that may leave again if the newest answer is old, and no others', () => {
    const old = { answeredMs: ago(minuteMs) - 1 };
    const wait = { rule: 'delayed-downscale', outcome: 'wait', ...details };
    expect(of({ preparations: [preparation(3, old), preparation(4)] })).toEqual({
      result: { ...wait, fact: '1 pod must confirm that it is prepared' },
      permitted: 5,
      actions: [call('delayed', 'POST', [3, 4])],
    });
    const young = preparation(3, { seenMs: ago(hourMs), reportedMs: ago(hourMs), ...old });
    expect(of({ preparations: [young, preparation(4, old)] })).toMatchObject({
      permitted: 5,
      actions: [call('delayed', 'POST', [4])],
    });
    expect(of({ preparations: [young, preparation(4)] })).toMatchObject({ result: { outcome: 'ok' }, permitted: 4 });
    const { answeredMs: _answeredMs, ...never } = preparation(4);
    expect(of({ to: 4, preparations: [never] }).actions).toEqual([call('delayed', 'POST', [4])]);
    // What was said before the delay was over does not count, however short the delay is.
    const early = preparation(4, { seenMs: ago(10 * secondMs), reportedMs: ago(10 * secondMs), answeredMs: ago(6 * secondMs) });
    const brief = { zone: { delayed: { ...delayed, afterMs: 5 * secondMs } }, to: 4 };
    expect(of({ ...brief, preparations: [early] }).actions).toEqual([call('delayed', 'POST', [4])]);
    expect(of({ ...brief, preparations: [{ ...early, answeredMs: ago(5 * secondMs) }] }).permitted).toBe(4);
    // A clock that was set back tells nothing of how old an answer is.
    expect(of({ to: 4, preparations: [preparation(4, { answeredMs: kitNowMs + 1 })] }).permitted).toBe(5);
  });

  const failed = preparation(4, { state: 'failed', seenMs: ago(10 * secondMs), message: 'HTTP 500' });
  it.each([
    ['hold', 'wait'],
    ['fail', 'no'],
  ] as const)('with a pod that failed returns by %s: %s, and calls again after 30 s', (onUnreachable, outcome) => {
    expect(of({ zone: { delayed: { ...delayed, onUnreachable } }, preparations: [preparation(3), failed] })).toEqual({
      result: {
        rule: 'delayed-downscale',
        outcome,
        fact: 'ingester-zone-a-4 failed to prepare: HTTP 500',
        ...details,
        earliestMs: kitNowMs + 20 * secondMs,
      },
      permitted: 5,
      actions: [],
    });
  });

  it('calls a failed pod again when 30 s have passed since every failure', () => {
    const old = { ...failed, seenMs: ago(30 * secondMs) };
    const young = preparation(3, { state: 'failed', seenMs: ago(29 * secondMs) });
    expect(of({ preparations: [preparation(3), old] }).actions).toEqual([call('delayed', 'POST', [3, 4])]);
    expect(of({ preparations: [young, old] }).actions).toEqual([]);
  });

  it('calls a failed pod again at once if its failure has a future date', () => {
    const failed = (seenMs: number) => of({ to: 4, preparations: [preparation(4, { state: 'failed', seenMs })] });
    expect(failed(kitNowMs + 30 * minuteMs).actions).toEqual([call('delayed', 'POST', [4])]);
    expect(failed(kitNowMs + 20 * secondMs)).toMatchObject({ result: { earliestMs: kitNowMs + 50 * secondMs }, actions: [] });
  });

  it('uses the later time of the pod and the agent', () => {
    const entry = (reportedMs: number, seenMs: number) =>
      of({ to: 4, preparations: [preparation(4, { reportedMs, seenMs })] }).result.earliestMs;
    expect(entry(ago(hourMs), ago(30 * minuteMs))).toBe(kitNowMs + 90 * minuteMs);
    expect(entry(ago(30 * minuteMs), ago(hourMs))).toBe(kitNowMs + 90 * minuteMs);
  });

  it('ignores the time of a pod whose clock is more than 30 s ahead', () => {
    const entry = (reportedMs: number) =>
      of({ to: 4, preparations: [preparation(4, { reportedMs, seenMs: ago(hourMs) })] }).result.earliestMs;
    expect(entry(kitNowMs + 30 * secondMs)).toBe(kitNowMs + 30 * secondMs + 2 * hourMs);
    expect(entry(kitNowMs + 30 * secondMs + 1)).toBe(kitNowMs + hourMs);
  });

  it('starts again if a fast clock dated the observation, and the pod reports a time that has passed', () => {
    const ahead = kitNowMs + 30 * minuteMs;
    const of4 = (overrides: Partial<Preparation>) => of({ to: 4, preparations: [preparation(4, { seenMs: ahead, ...overrides })] });
    expect(of4({ reportedMs: ago(minuteMs) })).toMatchObject({ result: { outcome: 'wait', fact: '1 pod must prepare' } });
    expect(of4({ reportedMs: ago(minuteMs) }).actions).toEqual([call('delayed', 'POST', [4])]);
    // Here it may be this clock that is wrong.
    expect(of4({ reportedMs: ahead })).toMatchObject({ result: { earliestMs: ahead + 2 * hourMs }, actions: [] });
  });

  it('uses the observation of the agent if the pod reports no time', () => {
    const { reportedMs: _none, ...silent } = preparation(4, { seenMs: ago(hourMs) });
    expect(of({ to: 4, preparations: [silent] }).result.earliestMs).toBe(kitNowMs + hourMs);
  });

  it('uses the time of the pod in adopted groups', () => {
    const early = preparation(4, { reportedMs: ago(3 * hourMs), seenMs: ago(minuteMs) });
    const late = preparation(4, { reportedMs: kitNowMs + hourMs, seenMs: ago(3 * hourMs) });
    const ask = (entry: Preparation) => of({ build: adopted, zone: { delayed, replicas: mirror }, to: 4, preparations: [entry] });
    expect(ask(early)).toMatchObject({ result: { outcome: 'ok' }, permitted: 4 });
    expect(ask(late)).toMatchObject({ result: { outcome: 'wait', fact: 'ingester-zone-a-4 has been prepared for 0s' } });
  });

  it('is skipped if it is not set, and for forced replicas', () => {
    expect(of({ zone: {} })).toEqual(skip);
    expect(of({ more: { isForced: true } })).toEqual(skip);
  });

  it('applies only to mirrored zones in adopted groups, forced or not', () => {
    expect(of({ build: adopted })).toEqual(skip);
    expect(of({ build: adopted, zone: { delayed, replicas: mirror, follows: 'x' } })).toEqual(skip);
    expect(of({ build: adopted, zone: { delayed, replicas: mirror }, more: { isForced: true } }).result.outcome).toBe('wait');
  });
});

describe('the preparation before the removal', () => {
  const of = (given: Given, to = given.to ?? 3) => prepareDownscale(question({ zone: { prepare }, ...given }), to);
  const entry = (ordinal: number, overrides: Partial<Preparation> = {}) => preparation(ordinal, { call: 'prepare', ...overrides });
  const skip = { result: { rule: 'prepare-downscale', outcome: 'skip', fact: 'no preparation is set' }, permitted: 3, actions: [] };

  it('calls the highest pod first', () => {
    expect(of({})).toEqual({
      result: { rule: 'prepare-downscale', outcome: 'wait', fact: '2 pods must prepare', source: line(2) },
      permitted: 5,
      actions: [call('prepare', 'POST', [4, 3])],
    });
  });

  it('calls the pods down to the permitted number', () => {
    expect(of({}, 4).actions).toEqual([call('prepare', 'POST', [4])]);
    expect(of({ firstOrdinal: 10 }, 3).actions).toEqual([call('prepare', 'POST', [14, 13])]);
  });

  it('ends when all of them are prepared', () => {
    expect(of({ preparations: [entry(3), entry(4)] })).toEqual({
      result: { rule: 'prepare-downscale', outcome: 'ok', fact: '2 pods are prepared', source: line(2) },
      permitted: 3,
      actions: [],
    });
    expect(of({ preparations: [entry(4)] }, 4).result.fact).toBe('1 pod is prepared');
  });

  it('is separate from the delayed downscale', () => {
    expect(of({ preparations: [preparation(3), preparation(4)] }).result.fact).toBe('2 pods must prepare');
  });

  const failed = entry(3, { state: 'failed', seenMs: ago(10 * secondMs), message: 'HTTP 500' });
  it.each([
    ['deny', 'no'],
    ['hold', 'wait'],
  ] as const)('is cancelled on every pod after a failure, and returns by %s: %s', (onFailure, outcome) => {
    expect(of({ zone: { prepare: { ...prepare, onFailure } }, preparations: [entry(4), failed] })).toEqual({
      result: {
        rule: 'prepare-downscale',
        outcome,
        fact: 'ingester-zone-a-3 failed to prepare: HTTP 500',
        source: line(2),
        earliestMs: kitNowMs + 20 * secondMs,
      },
      permitted: 5,
      actions: [call('prepare', 'DELETE', [4, 3])],
    });
  });

  it('is cancelled once after a failure', () => {
    expect(of({ preparations: [{ ...failed, isWithdrawn: true }] }).actions).toEqual([]);
  });

  it('is repeated 30 s after a failure', () => {
    expect(of({ preparations: [{ ...failed, seenMs: ago(30 * secondMs), isWithdrawn: true }] })).toMatchObject({
      result: { outcome: 'wait', fact: '2 pods must prepare' },
      actions: [call('prepare', 'POST', [4, 3])],
    });
  });

  it('is skipped if it is not set, and for forced replicas, except in adopted groups', () => {
    expect(of({ zone: {} })).toEqual(skip);
    expect(of({ more: { isForced: true } })).toEqual(skip);
    expect(of({ build: adopted, more: { isForced: true } }).result.outcome).toBe('wait');
  });
});

describe('a preparation is cancelled', () => {
  const of = (preparations: readonly Preparation[], staying = 5, firstOrdinal = 0) =>
    withdrawals(question({ preparations, firstOrdinal }), staying);

  it('of every pod that stays, one call for each kind, from the lowest up', () => {
    const entries = [preparation(4), preparation(1), preparation(4, { podUid: 'uid-old' }), preparation(2, { call: 'prepare' })];
    expect(of(entries)).toEqual([call('delayed', 'DELETE', [1, 4]), call('prepare', 'DELETE', [2])]);
  });

  it('for no pod that leaves', () => {
    expect(of([preparation(3), preparation(4)], 3)).toEqual([]);
    expect(of([preparation(3), preparation(4)], 4)).toEqual([call('delayed', 'DELETE', [3])]);
    expect(of([preparation(13), preparation(14)], 4, 10)).toEqual([call('delayed', 'DELETE', [13])]);
  });

  it('for no pod that a claimed downscale may still remove', () => {
    const asked = question({ preparations: [preparation(2), preparation(3), preparation(4)] });
    const claims = [{ verb: 'scaleDown' as const, zone: 'a', uid: 'uid', from: 5, to: 3, atMs: kitNowMs }];
    expect(withdrawals({ ...asked, zone: { ...asked.zone, claims } }, 5)).toEqual([call('delayed', 'DELETE', [2])]);
  });

  it('once, and in its own zone', () => {
    expect(of([preparation(1, { isWithdrawn: true }), preparation(2, { zone: 'b' })])).toEqual([]);
  });
});

describe('a preparation is renewed', () => {
  const of = (preparations: readonly Preparation[], pods: PodChanges = {}, more: Given = {}) =>
    renewals(question({ preparations, pods, ...more }));
  const before = preparation(4, { podUid: 'uid-old' });

  it('for the successor of a prepared pod, when it runs', () => {
    expect(of([before])).toEqual([call('delayed', 'POST', [4])]);
    expect(of([before], { 4: { containersReady: false } })).toEqual([]);
    expect(of([before], { 4: { isTerminating: true } })).toEqual([]);
    expect(of([before], { 4: 'missing' })).toEqual([]);
  });

  it('for no pod that was never prepared, was called already, or stays', () => {
    expect(of([])).toEqual([]);
    expect(of([before, preparation(4)])).toEqual([]);
    expect(of([preparation(1, { podUid: 'uid-old' })])).toEqual([]);
    expect(of([preparation(4, { podUid: 'uid-old', call: 'prepare' })])).toEqual([]);
  });

  it('only with a delay', () => {
    expect(of([before], {}, { zone: {} })).toEqual([]);
    expect(of([before], {}, { more: { isForced: true } })).toEqual([]);
  });
});

interface Leaving extends Partial<Pick<StatefulSetView, 'podManagementPolicy' | 'firstOrdinal'>> {
  readonly missing?: readonly number[];
  readonly counted?: number;
  readonly created?: Partial<CreatedPods>;
}

/** The pods that leave when zone a goes from five replicas to three. */
function leaving({ missing = [], counted = 5 - missing.length, created, ...set }: Leaving) {
  const podChanges: PodChanges = Object.fromEntries(missing.map((ordinal) => [ordinal, 'missing']));
  const context = contextWith(group({ zones: ['a'] }), {
    statefulSets: [statefulSet({ ...set, replicas: 5, status: { replicas: counted } })],
    podChanges: { 'ingester-zone-a': podChanges },
    ledgers: [ledgerOf(created && { created: [{ zone: 'a', uid: 'uid-ingester-zone-a', ordinals: '', ...created }] })],
  });
  const { pods, lost, lostCount } = leavingPods(zoneIn(context), context.view.ledger, { from: 5, to: 3 });
  return { pods: pods.map(({ ordinal }) => ordinal), lost, lostCount };
}

describe('the pods that leave', () => {
  it.each<[string, Leaving, readonly number[], number | undefined]>([
    ['all exist', {}, [3, 4], undefined],
    ['counts from the first ordinal', { firstOrdinal: 10 }, [13, 14], undefined],
    ['a pod was lost, and the status still counts it', { missing: [4], counted: 5 }, [3], 4],
    ['a lower pod was lost, and the status still counts it', { missing: [3], counted: 5 }, [4], 3],
    ['a pod was never created', { missing: [4] }, [3], undefined],
    ['a lower pod was never created, because a quota allowed only the higher one', { missing: [3] }, [4], undefined],
    ['no pod was ever created', { missing: [3, 4] }, [], undefined],
    ['the ledger remembers the lost pod', { missing: [4], created: { ordinals: '0-4' } }, [3], 4],
    ['the ledger remembers other pods', { missing: [4], created: { ordinals: '0-3' } }, [3], undefined],
    ['the ledger remembers another StatefulSet of this name', { missing: [4], created: { ordinals: '0-4', uid: 'old' } }, [3], undefined],
    ['the ledger remembers another zone', { missing: [4], created: { ordinals: '0-4', zone: 'b' } }, [3], undefined],
    ['OrderedReady creates every lower pod first', { missing: [0, 1, 2, 3], podManagementPolicy: 'OrderedReady' }, [4], 3],
    ['a pod that stays was lost', { missing: [1], created: { ordinals: '0-4' } }, [3, 4], undefined],
  ])('%s', (_case, given, pods, lost) => {
    expect(leaving(given)).toEqual({ pods, lost, lostCount: lost === undefined ? 0 : 1 });
  });

  it('counts every lost pod and names one', () => {
    expect(leaving({ missing: [3, 4], created: { ordinals: '0-4' } })).toEqual({ pods: [], lost: 4, lostCount: 2 });
    expect(leaving({ missing: [3, 4], counted: 5 })).toEqual({ pods: [], lost: 3, lostCount: 2 });
    expect(leaving({ missing: [3, 4], counted: 4, created: { ordinals: '4' } })).toEqual({ pods: [], lost: 4, lostCount: 2 });
  });
});
