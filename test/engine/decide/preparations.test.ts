import { describe, expect, it } from 'vitest';
import { decide } from '../../../engine/decide/decide.ts';
import { noteAnswers, noteAsked, preparedSince, withPossiblePreparations } from '../../../engine/decide/preparations.ts';
import type { Ledger, Preparation } from '../../../engine/snapshot.ts';
import { group } from '../../kit/groups.ts';
import { kitNowMs, statefulSet } from '../../kit/objects.ts';
import { snapshotOf } from '../../kit/snapshots.ts';

const empty: Ledger = { namespace: 'mimir', group: 'ingester', claims: [], downscales: [], preparations: [] };
const post = { zone: 'a', call: 'delayed', method: 'POST' } as const;
const withdraw = { ...post, method: 'DELETE' } as const;
const identity = { zone: 'a', ordinal: 5, podUid: 'u5', call: 'delayed' } as const;
const asked: Preparation = { ...identity, state: 'asked', seenMs: 10 };
const prepared: Preparation = { ...identity, state: 'prepared', reportedMs: 100, seenMs: 150 };
const failed: Preparation = { ...identity, state: 'failed', seenMs: 20, message: 'refused' };
const withEntries = (...preparations: readonly Preparation[]): Ledger => ({ ...empty, preparations });

describe('times from a clock that is ahead', () => {
  const at = 1_000_000;
  const answerOf = (before: Preparation, reportedMs?: number) => {
    const answer = { ordinal: 5, podUid: 'u5', result: 'done' as const, ...(reportedMs === undefined ? {} : { reportedMs }) };
    return noteAnswers(withEntries(before), post, [answer], at).preparations;
  };

  it('are replaced by the next answer of a pod that has already prepared', () => {
    const before = { ...prepared, seenMs: at + 900_000 };
    expect(answerOf(before, 100)).toEqual([{ ...prepared, seenMs: at }]);
    expect(answerOf({ ...failed, sinceMs: at + 900_000, reportedMs: 100 }, 100)).toEqual([{ ...prepared, seenMs: at }]);
  });

  it('count if the time of the pod is in the future too or missing, because this clock may be slow', () => {
    const before = { ...prepared, reportedMs: at + 900_000, seenMs: at + 900_000 };
    expect(answerOf(before, at + 900_000)).toEqual([{ ...before, answeredMs: at }]);
    const { reportedMs: _, ...silent } = before;
    expect(answerOf(silent)).toEqual([{ ...silent, answeredMs: at }]);
  });

  it('count if they are at most half a minute ahead', () => {
    const before = { ...prepared, seenMs: at + 30_000 };
    expect(answerOf(before, 100)).toEqual([{ ...before, answeredMs: at }]);
  });
});

describe('a pod before its first call', () => {
  const ask = (ledger: Ledger, call: Parameters<typeof noteAsked>[1] = post) => noteAsked(ledger, call, [{ ordinal: 5, uid: 'u5' }], 10);

  it('is recorded before the call', () => {
    expect(ask(empty).preparations).toEqual([asked]);
  });

  it('keeps its earlier answer', () => {
    const ledger = withEntries(prepared);
    expect(ask(ledger)).toBe(ledger);
  });

  it('is recorded next to its predecessor, and its delay starts with its own answer', () => {
    const before = { ...prepared, podUid: 'old' };
    const noted = ask(withEntries(before));
    expect(noted.preparations).toEqual([before, asked]);
    const answered = noteAnswers(noted, post, [{ ordinal: 5, podUid: 'u5', result: 'done', reportedMs: 100 }], 500);
    expect(answered.preparations).toEqual([{ ...prepared, seenMs: 500 }]);
  });

  it('starts its delay with its own answer, also after a failure', () => {
    const before = withEntries({ ...prepared, podUid: 'old' });
    const failure = noteAnswers(before, post, [{ ordinal: 5, podUid: 'u5', result: 'failed', message: 'no' }], 400);
    expect(failure.preparations).toEqual([{ ...failed, seenMs: 400, message: 'no' }]);
    const answered = noteAnswers(failure, post, [{ ordinal: 5, podUid: 'u5', result: 'done', reportedMs: 100 }], 500);
    expect(answered.preparations).toEqual([{ ...prepared, seenMs: 500 }]);
  });

  it('must be cancelled again, if it was cancelled after its failure', () => {
    expect(ask(withEntries({ ...failed, isWithdrawn: true })).preparations).toEqual([asked]);
  });

  it('is not recorded if it is cancelled', () => {
    expect(ask(empty, withdraw)).toBe(empty);
  });
});

describe('an answer', () => {
  const done = { ordinal: 5, podUid: 'u5', result: 'done' } as const;

  it.each<[string, Ledger, Parameters<typeof noteAnswers>[1], Parameters<typeof noteAnswers>[2], readonly Preparation[]]>([
    [
      'that is good',
      withEntries(asked),
      post,
      [{ ...done, reportedMs: 7 }],
      [{ ...identity, state: 'prepared', reportedMs: 7, seenMs: 500 }],
    ],
    ['that is bad', withEntries(asked), post, [{ ...done, result: 'failed', message: 'no' }], [{ ...failed, message: 'no', seenMs: 500 }]],
    [
      'of another pod',
      withEntries(asked),
      post,
      [{ ...done, ordinal: 6 }],
      [asked, { ...identity, ordinal: 6, state: 'prepared', seenMs: 500 }],
    ],
    [
      'to the other call',
      withEntries(asked),
      { ...post, call: 'prepare' },
      [done],
      [asked, { ...identity, call: 'prepare', state: 'prepared', seenMs: 500 }],
    ],
    ['to the withdrawal of a pod that was prepared', withEntries(prepared), withdraw, [done], []],
    ['to the withdrawal of a pod that was only asked', withEntries(asked), withdraw, [done], []],
    ['to the withdrawal of a pod that failed', withEntries(failed), withdraw, [done], [{ ...failed, isWithdrawn: true }]],
    [
      'that never came to a withdrawal',
      withEntries(asked, { ...prepared, ordinal: 6 }),
      withdraw,
      [{ ...done, result: 'failed' }],
      [asked, { ...prepared, ordinal: 6 }],
    ],
  ])('%s', (_case, ledger, call, answers, expected) => {
    expect(noteAnswers(ledger, call, answers, 500).preparations).toEqual(expected);
  });
});

describe('a pod that is called again', () => {
  const done = { ordinal: 5, podUid: 'u5', result: 'done' } as const;
  const lost = { ...done, result: 'failed', message: 'no' } as const;
  const afterCalls = (...answers: readonly [Parameters<typeof noteAnswers>[1], Parameters<typeof noteAnswers>[2][number]][]) => {
    let ledger = withEntries(prepared);
    for (const [index, [call, answer]] of answers.entries()) {
      const nowMs = 500 + index;
      ledger = noteAnswers(noteAsked(ledger, call, [{ ordinal: 5, uid: 'u5' }], nowMs), call, [answer], nowMs);
    }
    return ledger.preparations;
  };

  it('has been prepared since its first answer, confirmed by the latest one', () => {
    expect(afterCalls([post, { ...done, reportedMs: 100 }])).toEqual([{ ...prepared, answeredMs: 500 }]);
  });

  it('starts its delay again if it reports a later time', () => {
    expect(afterCalls([post, { ...done, reportedMs: 101 }])).toEqual([{ ...prepared, reportedMs: 101, seenMs: 500 }]);
  });

  it('continues its delay if only the answer was lost', () => {
    expect(afterCalls([post, lost])).toEqual([{ ...failed, message: 'no', seenMs: 500, reportedMs: 100, sinceMs: 150 }]);
    expect(afterCalls([post, lost], [post, lost], [post, { ...done, reportedMs: 100 }])).toEqual([{ ...prepared, answeredMs: 502 }]);
    expect(afterCalls([post, lost], [post, { ...done, reportedMs: 400 }])).toEqual([{ ...prepared, reportedMs: 400, seenMs: 501 }]);
  });

  it('does not continue its delay after it was cancelled', () => {
    expect(afterCalls([post, lost], [withdraw, done])).toEqual([{ ...failed, message: 'no', seenMs: 500, isWithdrawn: true }]);
  });
});

describe('the time since which a pod has been prepared', () => {
  const before = { zone: 'a', ordinal: 5, podUid: 'old', call: 'delayed', state: 'prepared', reportedMs: 100, seenMs: 150 } as const;
  const answer = { zone: 'a', ordinal: 5, podUid: 'new', call: 'delayed', state: 'prepared' } as const;
  const again = { ...answer, podUid: 'old' };

  it.each([
    ['the same pod says it again', before, { ...answer, podUid: 'old' }, 150],
    ['the same pod says the same time', before, { ...answer, podUid: 'old', reportedMs: 100 }, 150],
    ['the same pod says a later time: it was not prepared in between', before, { ...answer, podUid: 'old', reportedMs: 101 }, undefined],
    ['the same pod says an earlier time', before, { ...answer, podUid: 'old', reportedMs: 99 }, 150],
    ['it did not answer once', { ...before, state: 'failed' as const, seenMs: 300, sinceMs: 150 }, { ...again, reportedMs: 100 }, 150],
    [
      'it did not answer once, and started again',
      { ...before, state: 'failed' as const, sinceMs: 150 },
      { ...again, reportedMs: 400 },
      undefined,
    ],
    ['its successor kept the timestamp', before, { ...answer, reportedMs: 100 }, undefined],
    ['its successor began anew', before, { ...answer, reportedMs: 400 }, undefined],
    ['its successor reports nothing', before, answer, undefined],
    ['it had failed before', { ...before, state: 'failed' as const }, { ...answer, podUid: 'old' }, undefined],
    ['it was only asked before', { ...before, state: 'asked' as const }, { ...answer, podUid: 'old' }, undefined],
    ['nobody was asked before', undefined, answer, undefined],
  ])('%s', (_case, known, said, since) => {
    expect(preparedSince(known, said)).toBe(since);
  });
});

describe('a group that another operator prepared', () => {
  const endpoint = { scheme: 'http', port: 8080, path: '/prepare', timeout: '5s' } as const;
  const delayed = { delayed: { afterMs: 60_000, endpoint, onUnreachable: 'hold' } } as const;
  const snapshotWith = (replicas: number, ledger: Ledger) =>
    snapshotOf({
      groups: [group({ zones: [{ name: 'a', replicas: { kind: 'count', count: replicas }, ...delayed }] })],
      statefulSets: [statefulSet()],
      ledgers: [ledger],
    });
  const created = [{ zone: 'a', uid: 'uid-ingester-zone-a', ordinals: '0-2' }];
  const taken = (ledger: Ledger, zone: object = delayed) =>
    withPossiblePreparations({ ...ledger, created }, group({ zones: [{ name: 'a', ...zone }] }), kitNowMs);

  it('may have prepared every pod of a zone that shrinks with a delay, and no pod of another zone', () => {
    expect(taken(empty).preparations.map(({ ordinal, call, state }) => `${call} ${ordinal} ${state}`)).toEqual([
      'delayed 0 asked',
      'delayed 1 asked',
      'delayed 2 asked',
    ]);
    expect(taken(empty, {}).preparations).toEqual([]);
    expect(taken(empty, { prepare: { endpoint, onFailure: 'deny' } }).preparations).toEqual([]);
  });

  it('is taken over once', () => {
    expect(taken({ ...empty, epoch: 1 }).preparations).toEqual([]);
  });

  it('cancels the pods that stay, and prepares the others as if for the first time', () => {
    const calls = (replicas: number) =>
      (decide(snapshotWith(replicas, taken(empty))).groups[0]?.actions ?? []).flatMap((action) =>
        action.kind === 'callPods' ? [`${action.method} ${action.ordinals.join()}`] : [],
      );
    expect(calls(3)).toEqual(['DELETE 0,1,2']);
    expect(calls(2)).toEqual(['DELETE 0,1', 'POST 2']);
  });
});

describe('a pod that was being called when the agent stopped', () => {
  const endpoint = { scheme: 'http', port: 8080, path: '/prepare', timeout: '5s' } as const;
  const callsWith = (replicas: number, zone: object, preparations: readonly Preparation[]) => {
    const snapshot = snapshotOf({
      groups: [group({ zones: [{ name: 'a', replicas: { kind: 'count', count: replicas }, ...zone }] })],
      statefulSets: [statefulSet()],
      ledgers: [withEntries(...preparations)],
    });
    const actions = decide(snapshot).groups[0]?.actions ?? [];
    return actions.flatMap((action) => (action.kind === 'callPods' ? [`${action.method} ${action.call} ${action.ordinals.join()}`] : []));
  };
  const leaving = { zone: 'a', ordinal: 2, podUid: 'uid-ingester-zone-a-2', state: 'asked', seenMs: kitNowMs - 1000 } as const;
  const delayed = { delayed: { afterMs: 60_000, endpoint, onUnreachable: 'hold' } };
  const prepare = { prepare: { endpoint, onFailure: 'deny' } };

  it('is called again if it still leaves', () => {
    expect(callsWith(2, delayed, [{ ...leaving, call: 'delayed' }])).toEqual(['POST delayed 2']);
    expect(callsWith(2, prepare, [{ ...leaving, call: 'prepare' }])).toEqual(['POST prepare 2']);
  });

  it('is cancelled if it no longer leaves', () => {
    expect(callsWith(3, delayed, [{ ...leaving, call: 'delayed' }])).toEqual(['DELETE delayed 2']);
    expect(callsWith(3, prepare, [{ ...leaving, call: 'prepare' }])).toEqual(['DELETE prepare 2']);
  });
});
