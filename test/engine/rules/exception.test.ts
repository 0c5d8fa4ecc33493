import { describe, expect, it } from 'vitest';
import type { RuleResult } from '../../../engine/decision.ts';
import { unusedExceptions, withException } from '../../../engine/rules/exception.ts';
import type { ExceptionDefinition, PolicyRuleDefinition } from '../../../policies/definition.ts';
import { group } from '../../kit/groups.ts';
import { kitNowMs } from '../../kit/objects.ts';
import { ago, contextWith, exception, hourMs, line, policy, policyRule } from '../../kit/questions.ts';

const held: RuleResult = {
  rule: 'zone-gap',
  outcome: 'wait',
  fact: 'zone b shrank 1h ago',
  limit: '2h',
  source: line(1),
  earliestMs: kitNowMs + 5,
};
const permittedFor = (scope: string): RuleResult => ({
  ...permitted,
  fact: permitted.fact.replace('any amount in all zones', scope),
});
const permitted: RuleResult = {
  rule: 'zone-gap',
  outcome: 'ok',
  fact: 'zone b shrank 1h ago; permitted by exception exception-1 for any amount in all zones until 2026-03-02T13:00:00.000Z (see CHG-1)',
  limit: '2h',
  source: line(30),
  earliestMs: kitNowMs + hourMs,
  exception: 'exception-1',
};
const ask = (exceptions: readonly ExceptionDefinition[], answer = held, subject: object = {}) =>
  withException(contextWith(group(), { exceptions }), answer, { zone: 'a', ...subject });

describe('an exception', () => {
  it.each(['wait', 'no', 'unknown'] as const)('permits the result %s of a rule, and the answer has both', (outcome) => {
    expect(ask([exception('zone-gap')], { ...held, outcome })).toEqual(permitted);
  });

  it.each(['ok', 'skip'] as const)('does not change the result %s', (outcome) => {
    expect(ask([exception('zone-gap')], { ...held, outcome })).toEqual({ ...held, outcome });
  });

  const ofPolicyRule = (overrides: Partial<PolicyRuleDefinition>) => {
    const policies = [policy({ name: 'change', rules: [policyRule({ name: 'ask', ...overrides })] })];
    const context = contextWith(group(), { exceptions: [exception('change/ask')], policies });
    return withException(context, { ...held, rule: 'change/ask' }, { zone: 'a' }).outcome;
  };

  it.each<Partial<PolicyRuleDefinition>>([
    { effect: 'requireApproval' },
    { effect: 'requireApprovedPlan' },
    { onUnknown: 'requireApproval' },
  ])('never replaces the approval that a policy rule demands: %j', (overrides) => {
    expect(ofPolicyRule(overrides)).toBe('wait');
  });

  it('permits what a policy rule without approvals blocks', () => {
    expect(ofPolicyRule({ effect: 'hold' })).toBe('ok');
  });

  it('is absent without an object', () => {
    expect(ask([])).toEqual(held);
  });

  it.each<[string, Partial<ExceptionDefinition>]>([
    ['of another rule', { rule: 'paused' }],
    ['of another group', { group: 'store-gateway' }],
    ['of another namespace', { namespace: 'loki' }],
    ['of another zone', { zone: 'b' }],
    ['that has ended', { expiresMs: kitNowMs }],
    ['that has not begun', { notBeforeMs: kitNowMs + 1 }],
  ])('%s has no effect', (_name, overrides) => {
    expect(ask([exception('zone-gap', overrides)])).toEqual(held);
  });

  it.each<[string, Partial<ExceptionDefinition>, string]>([
    ['of the zone', { zone: 'a' }, 'any amount in zone a'],
    ['from this instant on', { notBeforeMs: kitNowMs }, 'any amount in all zones'],
    ['from a while ago on', { notBeforeMs: ago(hourMs) }, 'any amount in all zones'],
  ])('%s is in force', (_name, overrides, scope) => {
    expect(ask([exception('zone-gap', overrides)])).toEqual(permittedFor(scope));
  });

  it('does not apply if there are two, because neither is preferred', () => {
    expect(ask([exception('zone-gap'), exception('zone-gap', { name: 'exception-2' })])).toEqual({
      ...held,
      fact: 'zone b shrank 1h ago; 2 exceptions match, so no exception applies',
    });
  });

  const short = { ...held, fact: 'zone b shrank 1h ago; exception exception-1 does not allow this amount' };
  it.each<[string, ExceptionDefinition['allow'], object, RuleResult]>([
    ['of replicas allows that many', { replicasAtLeast: 3 }, { to: 3 }, permittedFor('3 replicas or more in all zones')],
    ['of replicas allows more', { replicasAtLeast: 3 }, { to: 4 }, permittedFor('3 replicas or more in all zones')],
    ['of replicas allows no fewer', { replicasAtLeast: 3 }, { to: 2 }, short],
    ['of replicas says nothing of pods', { replicasAtLeast: 3 }, { podCount: 1 }, short],
    ['of pods allows that many', { podsAtMost: 2 }, { podCount: 2 }, permittedFor('at most 2 pods in all zones')],
    ['of pods allows no more', { podsAtMost: 2 }, { podCount: 3 }, short],
    ['of pods says nothing of replicas', { podsAtMost: 2 }, { to: 1 }, short],
    ['of nothing allows nothing', {}, { to: 9, podCount: 0 }, short],
  ])('%s', (_name, allow, subject, expected) => {
    expect(ask([exception('zone-gap', { allow })], held, subject)).toEqual(expected);
  });
});

describe('unused exceptions', () => {
  const requestedBy = { user: 'anna', atMs: kitNowMs };
  const end = 'until 2026-03-02T13:00:00.000Z (see CHG-1)';
  const unused = (...exceptions: readonly ExceptionDefinition[]) =>
    unusedExceptions(contextWith(group(), { exceptions }), [{ ...permitted, exception: 'used' }]);

  it('have their rule, requester, limits, reason, place and end', () => {
    expect(unused(exception('no-downscale', { requestedBy }))).toEqual([
      {
        rule: 'no-downscale',
        outcome: 'skip',
        fact: `exception exception-1 of anna permits any amount in all zones ${end}; no step needs it now`,
        source: line(30),
        earliestMs: kitNowMs + hourMs,
        exception: 'exception-1',
      },
    ]);
  });

  it('are neither in use, nor of another group, nor expired', () => {
    const others: readonly Partial<ExceptionDefinition>[] = [{ name: 'used' }, { group: 'other' }, { expiresMs: kitNowMs }];
    expect(unused(...others.map((one) => exception('zone-gap', one)))).toEqual([]);
  });

  it('are sorted by their end, then by their name', () => {
    const [first, second, third] = [{ name: 'c', expiresMs: kitNowMs + 1 }, { name: 'a' }, { name: 'b' }];
    const rules = ['zone-gap', 'paused', 'window'] as const;
    const given = [third, second, first].map((one, index) => exception(rules[index] ?? '', one));
    expect(unused(...given).map((one) => one.exception)).toEqual(['c', 'a', 'b']);
  });

  it.each<[string, readonly ExceptionDefinition[], string]>([
    ['replicas', [exception('scale', { allow: { replicasAtLeast: 3 }, zone: 'a' })], `3 replicas or more in zone a ${end}; no step`],
    ['pods', [exception('window', { allow: { podsAtMost: 2 } })], `at most 2 pods in all zones ${end}; no step`],
    ['a start', [exception('window', { notBeforeMs: kitNowMs + 1 })], `in all zones from 2026-03-02T12:00:00.001Z ${end}; no step`],
    ['a rule without exceptions', [exception('paused')], `${end}, but the rule accepts no exception`],
    ['a conflict', [exception('window'), exception('window', { name: 'next', zone: 'a' })], 'no exception applies while next also matches'],
    [
      'another zone',
      [exception('window', { zone: 'b' }), exception('window', { name: 'next', zone: 'a' })],
      `in zone b ${end}; no step needs it now`,
    ],
  ])('name %s', (_name, exceptions, text) => {
    expect(unused(...exceptions)[0]?.fact).toContain(text);
  });
});
