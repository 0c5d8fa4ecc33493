import { describe, expect, it } from 'vitest';
import { countedReadings, gateVerdict } from '../../../engine/rules/gate.ts';
import type { GateReading } from '../../../engine/snapshot.ts';
import type { GateDefinition } from '../../../policies/definition.ts';
import { gate, group } from '../../kit/groups.ts';
import { kitNowMs } from '../../kit/objects.ts';
import { ago, contextWith, line, minuteMs, secondMs } from '../../kit/questions.ts';

const sinceMs = ago(10 * minuteMs);
const value = (minutesAgo: number, number: number): GateReading => ({ atMs: ago(minutesAgo * minuteMs), result: 'value', value: number });
const good = (minutesAgo: number) => value(minutesAgo, 0.5);
const bad = (minutesAgo: number) => value(minutesAgo, 0.6);
const noData = (minutesAgo: number): GateReading => ({ atMs: ago(minutesAgo * minuteMs), result: 'noData' });
const notFinite = (text: 'NaN' | '-Inf'): GateReading => ({ atMs: ago(minuteMs), result: 'notFinite', value: text });
const error = (minutesAgo: number): GateReading => ({ atMs: ago(minutesAgo * minuteMs), result: 'error', message: 'timeout' });

function ask(overrides: Partial<GateDefinition>, readings: readonly GateReading[], nowMs = kitNowMs) {
  const asked = gate({ failureLimit: 0, ...overrides });
  const definition = group({ gates: [asked], sources: { 'gates.errors': line(5) } });
  const view = { namespace: 'mimir', group: 'ingester', gate: 'errors', readings };
  const others = [
    { ...view, namespace: 'loki', readings: [bad(1)] },
    { ...view, group: 'store-gateway', readings: [bad(1)] },
    { ...view, gate: 'latency', readings: [bad(1)] },
  ];
  return gateVerdict(contextWith(definition, { nowMs, gateReadings: [...others, view] }), asked, sinceMs);
}

const once = { limit: '1 in a row, every 1m', source: line(5) };
const thrice = { limit: '3 in a row, every 1m', source: line(5) };

describe('a gate', () => {
  it('waits for its first reading', () => {
    expect(ask({}, [])).toEqual({
      answer: { rule: 'gate', outcome: 'wait', fact: 'errors has no reading yet', ...once },
      hasFailed: false,
      fromMs: sinceMs,
    });
  });

  it('waits for its initial delay, and counts no reading before it', () => {
    expect(ask({ initialDelayMs: 12 * minuteMs }, [good(1)])).toEqual({
      answer: { rule: 'gate', outcome: 'wait', fact: 'errors has no reading yet', ...once, earliestMs: kitNowMs + 2 * minuteMs },
      hasFailed: false,
      fromMs: kitNowMs + 2 * minuteMs,
    });
    expect(ask({ initialDelayMs: 10 * minuteMs }, [good(1), good(0)]).answer).toMatchObject({ outcome: 'ok' });
    expect(ask({ initialDelayMs: 9 * minuteMs, consecutive: 2 }, [good(2), good(1)]).answer).toMatchObject({ outcome: 'wait' });
  });

  it('passes after enough successes in a row', () => {
    expect(ask({ consecutive: 3 }, [bad(4), good(1), good(3), good(2)])).toEqual({
      answer: { rule: 'gate', outcome: 'ok', fact: 'errors is 0.5; 3 of 3 successes in a row, 1 failed', ...thrice },
      hasFailed: false,
      fromMs: sinceMs,
    });
  });

  it('waits for the next reading while successes are missing', () => {
    expect(ask({ consecutive: 3 }, [good(3), bad(2), good(1)]).answer).toEqual({
      rule: 'gate',
      outcome: 'wait',
      fact: 'errors is 0.5; 1 of 3 successes in a row, 1 failed',
      ...thrice,
      earliestMs: kitNowMs + minuteMs,
    });
    expect(ask({ consecutive: 3 }, [{ atMs: ago(20 * secondMs), result: 'value', value: 0 }]).answer).toMatchObject({
      earliestMs: kitNowMs + 100 * secondMs,
    });
  });

  it('passes only after the missing successes in a row, also after a failed reading', () => {
    const at = (result: number) => [{ atMs: ago(20 * secondMs), result: 'value', value: result } as const];
    expect(ask({ consecutive: 2 }, at(0.5)).answer.earliestMs).toBe(kitNowMs + 40 * secondMs);
    expect(ask({ consecutive: 2 }, at(0.6)).answer.earliestMs).toBe(kitNowMs + 100 * secondMs);
    expect(ask({ consecutive: 2, initialDelayMs: 11 * minuteMs }, []).answer.earliestMs).toBe(kitNowMs + 2 * minuteMs);
  });

  it('names the number of failures that fails the run', () => {
    const limitOf = (overrides: Partial<GateDefinition>) => ask(overrides, [bad(1)]).answer.limit;
    expect(limitOf({ failureLimit: 3 })).toBe('1 in a row, every 1m; 3 failures fail the run');
    expect(limitOf({ failureLimit: 3, mode: 'observe' })).toBe('1 in a row, every 1m');
    expect(ask({ failureLimit: 1 }, []).answer.limit).toBe('1 in a row, every 1m; 1 failure fails the run');
  });

  it('counts readings of one time once, the worst of them', () => {
    expect(ask({ consecutive: 3 }, [good(2), good(1), good(1), good(1)]).answer).toMatchObject({ outcome: 'wait' });
    expect(ask({ consecutive: 2 }, [good(2), good(1), bad(1)]).answer.fact).toBe('errors is 0.6; 0 of 2 successes in a row, 1 failed');
    expect(ask({ failureLimit: 2 }, [bad(1), bad(1)]).hasFailed).toBe(false);
  });

  it('counts no reading from before its start, nor from the future', () => {
    expect(ask({ consecutive: 2 }, [good(11), good(1), good(-1)]).answer.fact).toBe('errors is 0.5; 1 of 2 successes in a row, 0 failed');
    expect(ask({}, [good(10)], ago(9 * minuteMs)).answer.outcome).toBe('ok');
  });

  it('fails after as many failures as its limit, in a row or not', () => {
    expect(ask({ failureLimit: 2 }, [bad(5), good(4), bad(3), good(1)])).toEqual({
      answer: {
        rule: 'gate',
        outcome: 'no',
        fact: 'errors is 0.5; 1 of 1 successes in a row, 2 failed',
        limit: 'fewer than 2 failures',
        source: line(5),
      },
      hasFailed: true,
      fromMs: sinceMs,
    });
    expect(ask({ failureLimit: 2 }, [bad(5), good(1)])).toMatchObject({ answer: { outcome: 'ok' }, hasFailed: false });
  });

  it('never fails with a limit of 0, and in mode observe', () => {
    expect(ask({ failureLimit: 0 }, [bad(3), bad(2), bad(1)])).toMatchObject({ answer: { outcome: 'wait' }, hasFailed: false });
    expect(ask({ failureLimit: 1, mode: 'observe' }, [bad(1)])).toMatchObject({ answer: { outcome: 'wait' }, hasFailed: false });
  });

  it('is unknown if its last reading is older than three periods', () => {
    expect(ask({}, [good(3)]).answer.outcome).toBe('ok');
    expect(ask({}, [{ ...good(3), atMs: ago(3 * minuteMs) - 1 }]).answer).toEqual({
      rule: 'gate',
      outcome: 'unknown',
      fact: 'errors was last read 3m ago',
      age: expect.any(Object),
      ...once,
    });
  });

  it('is unknown if its last reading is an error', () => {
    expect(ask({ consecutive: 3 }, [good(2), error(1)]).answer).toEqual({
      rule: 'gate',
      outcome: 'unknown',
      fact: 'errors could not be read: timeout; 0 of 3 successes in a row, 0 failed',
      ...thrice,
    });
  });
});

describe('a reading', () => {
  it.each<[string, GateReading, Partial<GateDefinition>, string]>([
    ['without data fails', noData(1), { noData: 'fail' }, 'errors has no data; 0 of 1 successes in a row, 1 failed'],
    ['without data passes when the gate says so', noData(1), { noData: 'pass' }, 'errors has no data; 1 of 1 successes in a row, 0 failed'],
    [
      'without data only holds when the gate says so',
      noData(1),
      { noData: 'hold' },
      'errors has no data; 0 of 1 successes in a row, 0 failed',
    ],
    [
      'that is an error only holds',
      error(1),
      { onError: 'hold' },
      'errors could not be read: timeout; 0 of 1 successes in a row, 0 failed',
    ],
    [
      'that is an error fails when the gate says so',
      error(1),
      { onError: 'fail' },
      'errors could not be read: timeout; 0 of 1 successes in a row, 1 failed',
    ],
    ['that is no number is no data', notFinite('NaN'), { noData: 'fail' }, 'errors is NaN; 0 of 1 successes in a row, 1 failed'],
    ['that is infinite never passes', notFinite('-Inf'), { noData: 'pass' }, 'errors is -Inf; 0 of 1 successes in a row, 0 failed'],
    [
      'that was recorded as passed with such a value never passes either',
      value(1, Number.NEGATIVE_INFINITY),
      { noData: 'pass' },
      'errors is -Infinity; 0 of 1 successes in a row, 0 failed',
    ],
    [
      'whose condition is unknown only holds',
      good(1),
      { pass: { '<': [{ var: 'other' }, 1] } },
      'errors is 0.5; 0 of 1 successes in a row, 0 failed',
    ],
    [
      'whose condition is unknown fails when errors do',
      good(1),
      { pass: { '<': [{ var: 'other' }, 1] }, onError: 'fail' },
      'errors is 0.5; 0 of 1 successes in a row, 1 failed',
    ],
  ])('%s', (_name, reading, overrides, fact) => {
    expect(ask(overrides, [reading]).answer.fact).toBe(fact);
  });
});

describe('a reading without success', () => {
  const kinds: readonly (readonly [what: string, reading: (minutesAgo: number) => GateReading, fails: Partial<GateDefinition>])[] = [
    ['no data', noData, { noData: 'fail' }],
    ['no number', (minutesAgo) => ({ ...notFinite('NaN'), atMs: ago(minutesAgo * minuteMs) }), { noData: 'fail' }],
    ['an error', error, { onError: 'fail' }],
    ['a value that is too high', bad, {}],
  ];

  it.each(kinds)('ends the successes in a row: %s between two successes', (_what, reading, fails) => {
    const answer = ask({ consecutive: 2, failureLimit: 0, ...fails }, [good(3), reading(2), good(1)]).answer;
    expect({ outcome: answer.outcome, fact: answer.fact }).toEqual({
      outcome: 'wait',
      fact: 'errors is 0.5; 1 of 2 successes in a row, 1 failed',
    });
    const held = ask({ consecutive: 2, failureLimit: 0, noData: 'hold', onError: 'hold' }, [good(3), reading(2), good(1)]).answer;
    expect(held.outcome).toBe('wait');
  });

  it.each(kinds)('fails the run at the configured count: %s', (_what, reading, fails) => {
    const readings = [reading(3), good(2), reading(1)];
    expect(ask({ failureLimit: 3, ...fails }, readings).hasFailed).toBe(false);
    expect(ask({ failureLimit: 2, ...fails }, readings).hasFailed).toBe(true);
    expect(ask({ failureLimit: 2, ...fails, mode: 'observe' }, readings).hasFailed).toBe(false);
  });

  it.each(kinds.slice(0, 3))('only blocks while it lasts, unless the gate counts it as a failure: %s', (_what, reading) => {
    const readings = Array.from({ length: 9 }, (_, index) => reading(9 - index));
    const { answer, hasFailed } = ask({ failureLimit: 1, noData: 'hold', onError: 'hold' }, readings);
    expect(hasFailed).toBe(false);
    expect(['wait', 'unknown']).toContain(answer.outcome);
  });
});

describe('the stored readings', () => {
  it('are the newest that must succeed in a row, and the failures before them up to the limit', () => {
    const asked = gate({ consecutive: 2, failureLimit: 12 });
    const readings = [
      ...Array.from({ length: 40 }, (_, index) => (index % 2 === 0 ? bad(50 - index) : good(50 - index))),
      noData(3),
      good(2),
      good(1),
    ];
    const counted = countedReadings({ ...asked, noData: 'hold' }, readings);
    expect(counted).toEqual([
      ...readings.filter((reading) => reading.result === 'value' && reading.value > 0.5).slice(-12),
      good(2),
      good(1),
    ]);
    expect(countedReadings({ ...asked, noData: 'hold' }, counted)).toEqual(counted);
  });

  it('are enough for the same result, with any time between the failures', () => {
    for (const failureLimit of [0, 1, 3, 7]) {
      const overrides = { consecutive: 5, failureLimit, everyMs: secondMs };
      const asked = gate(overrides);
      const all: GateReading[] = [];
      let kept: readonly GateReading[] = [];
      // A failure after each four successes never makes five in a row.
      for (let index = 0; index < 60; index += 1) {
        const reading: GateReading = { atMs: kitNowMs - (60 - index) * secondMs, result: 'value', value: index % 5 === 0 ? 0.6 : 0.5 };
        all.push(reading);
        kept = countedReadings(asked, [...kept, reading]);
        const [whole, counted] = [ask(overrides, all, reading.atMs), ask(overrides, kept, reading.atMs)];
        expect({ outcome: counted.answer.outcome, hasFailed: counted.hasFailed }).toEqual({
          outcome: whole.answer.outcome,
          hasFailed: whole.hasFailed,
        });
        expect(kept.length).toBeLessThanOrEqual(5 + 10);
      }
      expect(ask(overrides, kept).hasFailed).toBe(failureLimit > 0);
    }
  });
});
