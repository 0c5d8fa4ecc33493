import { describe, expect, it } from 'vitest';
import { afterWave, beforeWave } from '../../../engine/rules/wave.ts';
import { digestOfWaves } from '../../../engine/run/requests.ts';
import type { GateReading } from '../../../engine/snapshot.ts';
import type { GateDefinition, WaveDefinition } from '../../../policies/definition.ts';
import { gate, group, wave } from '../../kit/groups.ts';
import { kitNowMs } from '../../kit/objects.ts';
import { ago, contextWith, hourMs, intent, line, minuteMs, runOf } from '../../kit/questions.ts';
import type { SnapshotOverrides } from '../../kit/snapshots.ts';

const oncall = { count: 1, from: ['oncall'] };
const full: WaveDefinition = wave('canary', ['a'], {
  before: { approval: oncall, gates: ['errors'] },
  after: { soakMs: hourMs, approval: oncall, gates: ['errors'] },
});
const peopled: WaveDefinition = wave('canary', ['a'], {
  before: { approval: oncall, gates: [] },
  after: { soakMs: hourMs, approval: oncall, gates: [] },
});
const sources = {
  'waves.canary.before.approval': line(1),
  'waves.canary.after.approval': line(2),
  'waves.canary.after.soak': line(3),
  'gates.errors': line(4),
};

const given = (skipOnRollback: boolean, gates: readonly GateDefinition[] = []) =>
  group({ rollout: { waves: [full], skipOnRollback }, gates, sources });
const bad: GateReading = { atMs: ago(minuteMs), result: 'value', value: 9 };
const readings = (...list: GateReading[]) => ({
  gateReadings: [{ namespace: 'mimir', group: 'ingester', gate: 'errors', readings: list }],
});
const context = (overrides: SnapshotOverrides = {}, of = given(true)) => contextWith(of, overrides);
const digest = digestOfWaves(given(true));
const nothing = { results: [], observations: [], wantedReadings: [] };

describe('before a wave', () => {
  it('no rule is evaluated without a setting in the wave', () => {
    expect(beforeWave(context(), wave('canary', ['a']), runOf())).toEqual(nothing);
  });

  it('an approval is for this wave of this run', () => {
    expect(beforeWave(context(), peopled, runOf()).results).toEqual([
      { rule: 'approval', outcome: 'wait', fact: '0 of 1 approvals from oncall', limit: '1 from oncall', source: line(1), digest },
    ]);
    const approved = context({ intents: [intent({ wave: 'canary', digest })] });
    expect(beforeWave(approved, peopled, runOf()).results).toEqual([
      { rule: 'approval', outcome: 'ok', fact: 'approved by kim', limit: '1 from oncall', source: line(1) },
    ]);
    expect(beforeWave(context({ intents: [intent({ wave: 'other' })] }), peopled, runOf()).results).toMatchObject([{ outcome: 'wait' }]);
  });

  it('no approval is needed for a rollback, unless a policy requires it', () => {
    const rollback = runOf({ kind: 'rollback' });
    expect(beforeWave(context(), peopled, rollback).results).toEqual([
      { rule: 'approval', outcome: 'skip', fact: 'a return to the previous template needs no approval (skipOnRollback)', source: line(1) },
    ]);
    expect(beforeWave(context({}, given(false)), peopled, rollback).results).toMatchObject([{ outcome: 'wait' }]);
  });

  it('gates count from the end of the previous wave, or from the retry of a user', () => {
    const gated = given(true, [gate({ failureLimit: 0 })]);
    expect(beforeWave(context({}, gated), full, runOf({ waveStartedMs: ago(5 * minuteMs) })).wantedReadings).toEqual([
      { gate: 'errors', fromMs: ago(5 * minuteMs) },
    ]);
    const retried = runOf({ waveStartedMs: ago(5 * minuteMs), retriedMs: ago(2 * minuteMs) });
    expect(beforeWave(context({}, gated), full, retried).wantedReadings).toEqual([{ gate: 'errors', fromMs: ago(2 * minuteMs) }]);
  });

  it('an undefined gate is unknown and blocks', () => {
    expect(beforeWave(context(), full, runOf()).results.at(-1)).toEqual({
      rule: 'gate',
      outcome: 'unknown',
      fact: 'gate errors is not defined',
    });
  });

  it('a gate that failed too often names the cause of the failed run', () => {
    const asked = beforeWave(context(readings(bad), given(true, [gate()])), full, runOf());
    expect(asked.failure).toBe('gate errors is 9; 0 of 1 successes in a row, 1 failed');
    expect(asked.results.map(({ rule, outcome }) => [rule, outcome])).toEqual([
      ['approval', 'wait'],
      ['gate', 'no'],
    ]);
  });
});

describe('after a wave', () => {
  const soaking = (waveAvailableMs: number, kind: 'rollout' | 'rollback' = 'rollout') => runOf({ waveAvailableMs, kind });

  it('no rule is evaluated without a setting in the wave', () => {
    expect(afterWave(context(), wave('canary', ['a']), soaking(ago(minuteMs)))).toEqual(nothing);
  });

  it('the wave soaks, then waits for approval', () => {
    expect(afterWave(context(), peopled, soaking(ago(10 * minuteMs))).results).toEqual([
      {
        rule: 'soak',
        outcome: 'wait',
        fact: 'wave canary has soaked for 10m',
        age: expect.any(Object),
        limit: '1h',
        source: line(3),
        earliestMs: kitNowMs + 50 * minuteMs,
      },
      { rule: 'approval', outcome: 'wait', fact: '0 of 1 approvals from oncall', limit: '1 from oncall', source: line(2), digest },
    ]);
  });

  it('the soak reports that the run does not change the pods of the wave', () => {
    const { target } = runOf();
    const fact = (zone: string) =>
      afterWave(context(), wave('canary', [zone], { after: { soakMs: hourMs, gates: [] } }), {
        ...soaking(ago(10 * minuteMs)),
        previous: { ...runOf().previous, a: target['a'] ?? '' },
      }).results[0]?.fact;
    expect([fact('a'), fact('b')]).toEqual([
      'wave canary has soaked for 10m, though this run does not change its pods',
      'wave canary has soaked for 10m',
    ]);
  });

  it('the soak ends when exactly its time has passed', () => {
    const [soak] = afterWave(context(), full, soaking(ago(hourMs))).results;
    const age = { words: 'for 1h', fromMs: ago(hourMs) };
    expect(soak).toEqual({ rule: 'soak', outcome: 'ok', fact: 'wave canary has soaked for 1h', age, limit: '1h', source: line(3) });
    expect(afterWave(context(), full, soaking(ago(hourMs) + 1)).results[0]?.outcome).toBe('wait');
  });

  it('starts now when the time since which the pods are available is unknown', () => {
    expect(afterWave(context(), full, runOf()).results[0]).toMatchObject({ earliestMs: kitNowMs + hourMs });
  });

  it('a rollback needs no soak and no approval, unless a policy requires it', () => {
    expect(afterWave(context(), peopled, soaking(kitNowMs, 'rollback')).results).toEqual([
      {
        rule: 'soak',
        outcome: 'skip',
        fact: 'a return to the previous template does not soak (skipOnRollback)',
        limit: '1h',
        source: line(3),
      },
      { rule: 'approval', outcome: 'skip', fact: 'a return to the previous template needs no approval (skipOnRollback)', source: line(2) },
    ]);
    expect(afterWave(context({}, given(false)), peopled, soaking(kitNowMs, 'rollback')).results.map(({ outcome }) => outcome)).toEqual([
      'wait',
      'wait',
    ]);
  });

  it('a return evaluates no gates, because they may measure the failure that it repairs, unless a policy requires it', () => {
    const of = (skipOnRollback: boolean) => {
      const gates = [gate({ initialDelayMs: minuteMs })];
      return afterWave(context({}, given(skipOnRollback, gates)), full, soaking(ago(5 * minuteMs), 'rollback'));
    };
    expect([of(true).results.map(({ rule }) => rule), of(true).wantedReadings]).toEqual([['soak', 'approval'], []]);
    const asked = of(false);
    expect(asked.results.at(-1)).toMatchObject({ rule: 'gate', outcome: 'wait', source: line(4) });
    expect(asked.wantedReadings).toEqual([{ gate: 'errors', fromMs: ago(4 * minuteMs) }]);
  });

  it('a gate in mode observe neither blocks nor fails', () => {
    const asked = afterWave(context(readings(bad), given(true, [gate({ mode: 'observe' })])), full, soaking(ago(5 * minuteMs)));
    expect(asked.results.map(({ rule }) => rule)).toEqual(['soak', 'approval']);
    expect(asked.observations).toMatchObject([{ rule: 'gate', outcome: 'wait' }]);
    expect(asked.failure).toBeUndefined();
    expect(asked.wantedReadings).toEqual([{ gate: 'errors', fromMs: ago(5 * minuteMs) }]);
  });

  it('gates of other waves are not evaluated', () => {
    const other = given(true, [gate({ name: 'latency' })]);
    expect(afterWave(context({}, other), full, soaking(ago(minuteMs))).wantedReadings).toEqual([]);
  });
});
