import { describe, expect, it } from 'vitest';
import { changesAtMs, policyAnswer } from '../../../engine/rules/policy.ts';
import { group } from '../../kit/groups.ts';
import { kitNowMs } from '../../kit/objects.ts';
import { ago, contextWith, hourMs, minuteMs, policy, policyRule, zoneIn } from '../../kit/questions.ts';

const at = (condition: unknown, data = {}) => changesAtMs(condition, { now: kitNowMs, ...data }, kitNowMs);
const instant = (ms: number) => ({ instant: new Date(ms).toISOString() });

describe('the instant at which a condition changes by time alone', () => {
  it.each<[string, unknown, number | undefined]>([
    ['is exact for an instant ahead', { '<': [{ var: 'now' }, instant(kitNowMs + 90 * minuteMs)] }, kitNowMs + 90 * minuteMs],
    ['is exact for an age', { '<': [{ age: { var: 'since' } }, { duration: '6h' }] }, kitNowMs + 5 * hourMs],
    ['may be the very next one', { '<=': [{ var: 'now' }, instant(kitNowMs)] }, kitNowMs + 1],
    ['is none for an instant that has passed', { '<': [{ var: 'now' }, instant(ago(hourMs))] }, undefined],
    ['is none where no time is read', { '>': [{ var: 'since' }, 0] }, undefined],
    ['is none without a condition', undefined, undefined],
  ])('%s', (_, condition, expected) => {
    expect(at(condition, { since: ago(hourMs) })).toBe(expected);
  });

  it('is the time of the next evaluation of a blocked action', () => {
    const context = contextWith(group(), {
      policies: [policy({ rules: [policyRule({ effect: 'hold', when: { '<': [{ var: 'now' }, instant(kitNowMs + hourMs)] } })] })],
    });
    const [answer] = policyAnswer({ context, action: 'rollout', zone: zoneIn(context) }).results;
    expect(answer).toMatchObject({ outcome: 'wait', earliestMs: kitNowMs + hourMs });
  });
});
