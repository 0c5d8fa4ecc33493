import { describe, expect, it } from 'vitest';
import { readPrometheus } from '../../../engine/observe/readings.ts';
import { createGateServer, gateQuery, gateSource } from '../../../scripts/soak/groups/gate-server.ts';
import type { GateFault } from '../../../simulation/faults/fault.ts';
import { runStartMs } from '../../../simulation/process/clock.ts';

const question = { source: gateSource, query: gateQuery, process: 'a1' };

function server(gate: 'passing' | 'flipping', seed = 1) {
  const time = { nowMs: 0 };
  let isGood: boolean | undefined;
  const gateServer = createGateServer({
    gate,
    seed,
    flipsUntilMs: 400_000,
    nowMs: () => time.nowMs,
    wallMs: () => runStartMs + time.nowMs,
    answered: (answer) => {
      isGood = answer.isGood;
    },
  });
  const spells = (fromMs: number, toMs: number): readonly boolean[] => {
    const seen: boolean[] = [];
    for (time.nowMs = fromMs; time.nowMs < toMs; time.nowMs += 5_000) {
      gateServer.answer(question);
      seen.push(isGood === true);
    }
    return seen;
  };
  return { gateServer, time, spells };
}

/** What the agent reads out of the answer, or that there is none. */
function read(gateServer: ReturnType<typeof createGateServer>, kind?: GateFault['kind']) {
  const answer = gateServer.answer(question, kind === undefined ? undefined : { class: 'F22', kind });
  return answer === 'silence' ? answer : readPrometheus(answer, { atMs: runStartMs, toleranceMs: 30_000 }).reading;
}

describe('the model of a metric server', () => {
  it('answers with a good value, and in every wrong way that a fault names', () => {
    const { gateServer } = server('passing');
    const atMs = runStartMs;
    const failed = (message: string) => ({ atMs, result: 'error', message });
    expect(read(gateServer)).toEqual({ atMs, result: 'value', value: 0 });
    expect(read(gateServer, 'flip')).toEqual({ atMs, result: 'value', value: 1.5 });
    expect(read(gateServer, 'empty')).toEqual({ atMs, result: 'noData' });
    expect(read(gateServer, 'nan')).toEqual({ atMs, result: 'notFinite', value: 'NaN' });
    expect(read(gateServer, 'stale')).toEqual(failed('the sample is 10m old'));
    expect(read(gateServer, 'partial')).toEqual(failed('the answer has warnings, so it may be partial'));
    expect(read(gateServer, 'unauthorized')).toEqual(failed('the provider does not accept the credentials (HTTP 401)'));
    expect(read(gateServer, 'hang')).toBe('silence');
  });

  it('has one query only', () => {
    const { gateServer } = server('passing');
    expect(gateServer.answer({ ...question, query: 'up' })).toMatchObject({ status: 400 });
    expect(gateServer.answer({ ...question, source: 'other' })).toMatchObject({ status: 400 });
  });

  it('passes all the time, or flips until things go wrong no more, the same for the same seed', () => {
    expect(new Set(server('passing').spells(0, 1_000_000))).toEqual(new Set([true]));
    const flipping = server('flipping').spells(0, 400_000);
    expect(new Set(flipping)).toEqual(new Set([true, false]));
    expect(server('flipping').spells(0, 400_000)).toEqual(flipping);
    expect(server('flipping', 2).spells(0, 400_000)).not.toEqual(flipping);
    expect(new Set(server('flipping').spells(400_000, 1_000_000))).toEqual(new Set([true]));
  });
});
