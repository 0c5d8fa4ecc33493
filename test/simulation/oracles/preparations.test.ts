import { describe, expect, it } from 'vitest';
import { History } from './history.ts';

const delayed = { replicas: 'delayedMirror', delaySeconds: 60 } as const;

function prepared(history: History, reportedMs?: number): void {
  history.call('ing-a-2', 'POST', reportedMs === undefined ? {} : { reportedMs });
}

describe('S11', () => {
  it('finds a pod that leaves before its delay ends, and accepts it afterwards', () => {
    const early = new History(delayed);
    prepared(early);
    early.advance(58_000).scale('ing-a', 2, early.agent());
    expect(early.found('S11')).toEqual(['a1 scales ing-a to 2, and ing-a-2 has been prepared for 58000 ms, not for 60000 ms']);
    const late = new History(delayed);
    prepared(late);
    late.advance(60_000).scale('ing-a', 2, late.agent());
    expect(late.found('S11')).toEqual([]);
  });

  it('finds a pod that was never prepared, was cancelled since, or was replaced', () => {
    const never = new History(delayed);
    never.advance(60_000).scale('ing-a', 2, never.agent());
    expect(never.found('S11').join()).toContain('was never asked');
    const stays = new History(delayed);
    prepared(stays);
    stays.call('ing-a-2', 'DELETE');
    stays.advance(60_000).scale('ing-a', 2, stays.agent());
    expect(stays.found('S11')).toHaveLength(1);
    const replaced = new History(delayed);
    prepared(replaced);
    replaced.replace('ing-a-2');
    replaced.advance(60_000).scale('ing-a', 2, replaced.agent());
    expect(replaced.found('S11')).toHaveLength(1);
  });

  it('finds a pod that was lost while it prepared, or before its first call', () => {
    const lost = (isAsked: boolean, waitedMs: number): readonly string[] => {
      const history = new History(delayed);
      if (isAsked) prepared(history);
      history.advance(waitedMs).remove('pods', 'ing-a-2');
      history.scale('ing-a', 2, history.agent());
      return history.found('S11');
    };
    expect(lost(true, 9000)).toEqual(['a1 scales ing-a to 2, and ing-a-2 has been prepared for 9000 ms, not for 60000 ms']);
    expect(lost(true, 60_000)).toEqual([]);
    expect(lost(false, 60_000)).toEqual(['a1 scales ing-a to 2, and ing-a-2 was never asked to prepare']);
  });

  it('finds no ordinal whose pod was never created, or left with an earlier downscale', () => {
    const history = new History(delayed);
    history.scale('ing-a', 4);
    history.advance(60_000).scale('ing-a', 3, history.agent());
    history.scale('ing-a', 2);
    history.remove('pods', 'ing-a-2');
    history.scale('ing-a', 3);
    history.advance(60_000).scale('ing-a', 2, history.agent());
    expect(history.found('S11')).toEqual([]);
  });

  it('finds a pod that the next growth kept', () => {
    const history = new History(delayed);
    history.scale('ing-a', 2);
    history.scale('ing-a', 3);
    history.advance(60_000).scale('ing-a', 2, history.agent());
    expect(history.found('S11').join()).toContain('ing-a-2');
  });

  it('counts only the calls of the delay, not those before the removal', () => {
    const prepares = (path: string): readonly string[] => {
      const history = new History(delayed);
      history.call('ing-a-2', 'POST', { path, reportedMs: history.nowMs });
      history.advance(60_000).call('ing-a-2', 'POST', { path: '/last', reportedMs: history.nowMs });
      history.call('ing-a-2', 'DELETE', { path: '/other' });
      history.scale('ing-a', 2, history.agent());
      return history.found('S11');
    };
    expect(prepares('/prepare')).toEqual([]);
    expect(prepares('/other').join()).toContain('was never asked');
  });

  it('starts again with a successor, except in an adopted group whose successor reports the time of its predecessor', () => {
    const successor = (reportedMs: number, kind: 'native' | 'adopted'): readonly string[] => {
      const history = new History({ ...delayed, kind });
      prepared(history, history.nowMs);
      history.advance(30_000).replace('ing-a-2');
      prepared(history, reportedMs);
      history.advance(30_000).scale('ing-a', 2, history.agent());
      return history.found('S11');
    };
    expect(successor(1_000_000, 'native')).toHaveLength(1);
    expect(successor(1_000_000, 'adopted')).toEqual([]);
    expect(successor(1_030_000, 'adopted')).toHaveLength(1);
  });

  it('is not shortened by a pod with a wrong time, except in an adopted group', () => {
    const lying = (kind: 'native' | 'adopted'): readonly string[] => {
      const history = new History({ ...delayed, kind });
      prepared(history, history.nowMs - 3_600_000);
      history.advance(5000).scale('ing-a', 2, history.agent());
      return history.found('S11');
    };
    expect(lying('native')).toHaveLength(1);
    expect(lying('adopted')).toEqual([]);
  });

  it('begins again when the same pod names a later time', () => {
    const history = new History(delayed);
    prepared(history, history.nowMs);
    history.advance(50_000);
    prepared(history, history.nowMs);
    history.advance(20_000).scale('ing-a', 2, history.agent());
    expect(history.found('S11')).toHaveLength(1);
  });

  it('is shortened by as much as the wall clock was set forward', () => {
    const history = new History(delayed);
    prepared(history);
    history.clocks.set('a1', { rate: 1, wallErrorMs: 40_000 });
    history.advance(21_000).scale('ing-a', 2, history.agent());
    expect(history.found('S11')).toEqual([]);
  });

  it('applies to no group without a delay, and not to a pod that was created after the decision', () => {
    const free = new History({ replicas: 'mirror' });
    free.scale('ing-a', 2, free.agent());
    const grown = (ageMs: number): readonly string[] => {
      const history = new History(delayed);
      history.scale('ing-a', 4);
      history.create('ing-a-3');
      history.advance(ageMs).scale('ing-a', 3, history.agent());
      return history.found('S11');
    };
    expect([...free.found('S11'), ...grown(5000)]).toEqual([]);
    expect(grown(11_000)).toHaveLength(1);
  });

  it('applies to a pod that started after the decision if the decision knew its predecessor', () => {
    const young = (isAsked: boolean): readonly string[] => {
      const history = new History(delayed);
      if (isAsked) prepared(history);
      history.advance(60_000).replace('ing-a-2');
      history.advance(5000).scale('ing-a', 2, history.agent());
      return history.found('S11');
    };
    expect(young(false)).toEqual(['a1 scales ing-a to 2, and ing-a-2 was never asked to prepare']);
    expect(young(true)).toEqual([]);
  });
});

describe('L5', () => {
  it('finds a pod that stays and was not cancelled', () => {
    const history = new History(delayed);
    prepared(history);
    history.heal().end();
    expect(history.found('L5')).toEqual(['at the end ing-a-2 is still prepared to leave, although it stays']);
  });

  it('accepts a pod that was cancelled or has left', () => {
    const told = new History(delayed);
    prepared(told);
    told.call('ing-a-2', 'DELETE');
    told.heal().end();
    const left = new History(delayed);
    prepared(left);
    left.scale('ing-a', 2);
    left.remove('pods', 'ing-a-2');
    left.heal().end();
    expect([...told.found('L5'), ...left.found('L5')]).toEqual([]);
  });
});
