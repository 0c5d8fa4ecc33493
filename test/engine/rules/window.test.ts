import { describe, expect, it } from 'vitest';
import { contextOf } from '../../../engine/context.ts';
import { type UnderWay, windowResult } from '../../../engine/rules/policy.ts';
import type { WindowDefinition } from '../../../policies/definition.ts';
import { group } from '../../kit/groups.ts';
import { kitNowMs } from '../../kit/objects.ts';
import { ago, contextWith, freeze, hourMs, line, policy } from '../../kit/questions.ts';

const definition = group();
const ask = (windows: readonly WindowDefinition[], underWay: UnderWay = 'nothing', action: 'rollout' | 'scaleUp' = 'rollout') =>
  windowResult(contextWith(definition, { policies: [policy({ windows })] }), action, underWay);

const closed = {
  rule: 'window',
  outcome: 'wait',
  fact: 'a deny window blocks rollout',
  limit: 'freeze',
  source: line(20),
  earliestMs: kitNowMs + hourMs,
};
const hours: WindowDefinition = {
  name: 'business-hours',
  kind: 'allow',
  actions: ['rollout'],
  ranges: [{ fromMs: kitNowMs + hourMs, toMs: kitNowMs + 2 * hourMs }],
  inFlight: 'finishZone',
  source: line(21),
};

describe('windows', () => {
  it('do not apply to an action that they do not name', () => {
    const skip = { rule: 'window', outcome: 'skip', fact: 'no window restricts rollout' };
    expect(ask([])).toEqual(skip);
    expect(ask([freeze()], 'nothing', 'scaleUp')).toEqual({ ...skip, fact: 'no window restricts scaleUp' });
  });

  it('block the actions of a deny window until it ends', () => {
    expect(ask([freeze()])).toEqual(closed);
    const ranges = [{ fromMs: ago(hourMs), toMs: kitNowMs + hourMs, reason: 'INC-441' }];
    expect(ask([freeze({ ranges })])).toEqual({ ...closed, fact: 'a deny window blocks rollout: INC-441' });
  });

  it('are open before and after a deny window, and name the next change', () => {
    const later = freeze({ ranges: [{ fromMs: kitNowMs + hourMs, toMs: kitNowMs + 2 * hourMs }] });
    expect(ask([later])).toEqual({
      rule: 'window',
      outcome: 'ok',
      fact: 'the windows are open for rollout',
      earliestMs: kitNowMs + hourMs,
    });
    const over = freeze({ ranges: [{ fromMs: ago(2 * hourMs), toMs: kitNowMs }] });
    expect(ask([over])).toEqual({ rule: 'window', outcome: 'ok', fact: 'the windows are open for rollout' });
  });

  it('name the place of the blocking window, not of another one with its name', () => {
    const over = freeze({ ranges: [{ fromMs: ago(2 * hourMs), toMs: kitNowMs }], source: line(30) });
    expect(ask([over, freeze()])).toMatchObject({ outcome: 'wait', source: line(20) });
  });

  it('block an action that no allow window permits', () => {
    expect(ask([hours])).toEqual({
      rule: 'window',
      outcome: 'wait',
      fact: 'no allow window is open for rollout',
      limit: 'business-hours',
      source: line(21),
      earliestMs: kitNowMs + hourMs,
    });
    expect(ask([{ ...hours, ranges: [{ fromMs: ago(1), toMs: kitNowMs + 1 }] }])).toMatchObject({ outcome: 'ok' });
  });

  const finish = { ...closed, outcome: 'ok', fact: 'a deny window blocks rollout; work in progress may finish' };
  it.each<[WindowDefinition['inFlight'], UnderWay, object]>([
    ['finishPod', 'nothing', closed],
    ['finishPod', 'zone', closed],
    ['finishPod', 'run', closed],
    ['finishZone', 'nothing', closed],
    ['finishZone', 'zone', finish],
    ['finishZone', 'run', closed],
    ['finishAll', 'nothing', closed],
    ['finishAll', 'zone', finish],
    ['finishAll', 'run', finish],
  ])('with inFlight %s, with %s in progress', (inFlight, underWay, expected) => {
    expect(ask([freeze({ inFlight })], underWay)).toEqual(expected);
  });

  it('of several: the strictest decides what may be completed', () => {
    expect(ask([freeze({ inFlight: 'finishAll' }), { ...freeze({ inFlight: 'finishZone' }), name: 'second' }], 'run')).toMatchObject({
      outcome: 'wait',
    });
  });
});

describe('several decisions with the same policies', () => {
  const opensMs = kitNowMs - hourMs;

  it('join the windows once for each instant', () => {
    let reads = 0;
    const counted: WindowDefinition = {
      ...hours,
      get ranges() {
        reads += 1;
        return [{ fromMs: opensMs, toMs: kitNowMs + hourMs }];
      },
    };
    const { snapshot } = contextWith(definition, { policies: [policy({ windows: [counted] })] });
    const read = (nowMs: number) => {
      const start = reads;
      const answer = windowResult(contextOf({ ...snapshot, nowMs }, definition), 'rollout', 'nothing');
      return { outcome: answer.outcome, reads: reads - start };
    };
    expect(read(kitNowMs)).toEqual({ outcome: 'ok', reads: read(kitNowMs - 1).reads });
    expect(read(kitNowMs)).toEqual({ outcome: 'ok', reads: 0 });
    expect(read(kitNowMs + hourMs).outcome).toBe('wait');
    expect(read(kitNowMs)).toEqual({ outcome: 'ok', reads: 0 });
  });

  it('find the policies and the limits of a group once, and again for another agent namespace', () => {
    const { snapshot } = contextWith(definition, { policies: [policy({ limits: { minIntervalMs: 1 } })] });
    const context = contextOf(snapshot, definition);
    const later = contextOf({ ...snapshot, nowMs: kitNowMs + 1 }, definition);
    expect(later.policies).toBe(context.policies);
    expect(later.limits).toBe(context.limits);
    const elsewhere = contextOf({ ...snapshot, agentNamespace: 'elsewhere' }, definition);
    expect(elsewhere.policies).not.toBe(context.policies);
    expect(elsewhere.limits).toEqual({ minIntervalMs: 1 });
  });
});
