import { describe, expect, it } from 'vitest';
import type { Judgement, RuleResult } from '../../../engine/decision.ts';
import { auditOf, type DenialSubject, denialOf, unknownDenial } from '../../../webhook/native/denial.ts';

const nowMs = Date.UTC(2026, 0, 15, 12);
const subject: DenialSubject = { namespace: 'mimir', isEviction: false, group: 'mimir/ingester', policyDigest: 'd1' };

const request: Judgement['request'] = {
  kind: 'scale',
  namespace: 'mimir',
  statefulSet: 'ingester-zone-a',
  from: 3,
  to: 2,
  via: 'scale',
  dryRun: false,
};

function denied(results: readonly RuleResult[], overrides: Partial<Judgement> = {}): Judgement {
  return {
    outcome: 'deny',
    code: 429,
    effect: 'deny',
    message: 'it is refused by the rule',
    decisionId: '0123456789ab',
    request,
    results,
    warnings: [],
    actions: [],
    ...overrides,
  };
}

const wait = (earliestMs?: number): RuleResult => ({
  rule: 'zone-gap',
  outcome: 'wait',
  fact: 'zone b shrank',
  ...(earliestMs === undefined ? {} : { earliestMs }),
});
const no: RuleResult = { rule: 'no-downscale', outcome: 'no', fact: 'zone a must not shrink' };
const unknown: RuleResult = { rule: 'disruption-budget', outcome: 'unknown', fact: 'pods cannot be read' };

describe('a denial', () => {
  it('is temporary for an eviction that time may permit and for an unknown fact, and permanent otherwise', () => {
    const evicted = { ...subject, isEviction: true };
    expect(denialOf(denied([wait(nowMs + 20_000)]), evicted)).toMatchObject({ code: 429, reason: 'TooManyRequests' });
    expect(denialOf(denied([wait(nowMs + 20_000), no]), evicted)).toMatchObject({ code: 403 });
    expect(denialOf(denied([], { code: 500 }), evicted)).toMatchObject({ code: 429 });
    expect(denialOf(denied([unknown]), subject)).toMatchObject({ code: 429 });
    expect(denialOf(denied([no]), subject)).toMatchObject({ code: 403, reason: 'Forbidden' });
    expect(denialOf(denied([wait(nowMs + 20_000)]), subject)).toMatchObject({ code: 403 });
    expect(denialOf(denied([wait()], { outcome: 'prepare' }), subject)).toMatchObject({ code: 403 });
    expect(unknownDenial('UPDATE of statefulsets/a', 'the API server does not answer')).toMatchObject({ code: 429, retryAfterSeconds: 5 });
  });

  it.each([false, true])('names no retry seconds, because clients would repeat the request without output (eviction: %s)', (isEviction) => {
    for (const results of [[wait(nowMs + 2_500)], [wait()], [unknown], [no]])
      expect(denialOf(denied(results), { ...subject, isEviction })).not.toHaveProperty('retryAfterSeconds');
  });

  it('names the location of the rule, in a file or an object', () => {
    const inFile = { ...no, source: { file: 'policies/ingester.yaml', line: 7, column: 3, field: 'spec.protect' } };
    expect(denialOf(denied([inFile]), subject).message).toContain('; defined at policies/ingester.yaml:7:3 spec.protect;');
    const inObject = { ...no, source: { object: 'RolloutGroup mimir/ingester', field: 'spec.protect' } };
    expect(denialOf(denied([inObject]), subject).message).toContain('; defined at RolloutGroup mimir/ingester spec.protect;');
  });

  it('names no object of another namespace', () => {
    const source = { file: 'secret/payroll.yaml', line: 7, object: 'RolloutPolicy payroll/never-on-friday', field: 'spec.rules[0]' };
    const { message } = denialOf(denied([{ ...no, source }]), subject);
    expect(message).toContain('; defined at a policy of another namespace;');
    expect(message).not.toMatch(/payroll|friday|secret/);
    // A namespace whose name only begins alike is another one.
    expect(denialOf(denied([{ ...no, source: { object: 'RolloutPolicy mimir-2/x' } }]), subject).message).not.toContain('mimir-2');
  });

  it('omits the least important parts if there is no room', () => {
    const source = { object: 'RolloutGroup mimir/ingester', field: 'spec.protect' };
    const said = (fact: string) => denialOf(denied([{ ...no, fact, limit: 'noDownscale', source }]), subject).message ?? '';
    const explain = '; kubectl rollout-group explain decision/0123456789ab';
    const start = 'scale of statefulset/ingester-zone-a from 3 to 2';
    expect(said('it must not')).toBe(
      `${start} in namespace mimir is denied by no-downscale: it must not (limit: noDownscale); defined at RolloutGroup mimir/ingester spec.protect${explain}`,
    );
    expect(said('x'.repeat(40))).toBe(
      `${start} is denied by no-downscale: ${'x'.repeat(40)} (limit: noDownscale); defined at RolloutGroup mimir/ingester spec.protect${explain}`,
    );
    expect(said('x'.repeat(70))).toBe(
      `${start} is denied by no-downscale: ${'x'.repeat(70)}; defined at RolloutGroup mimir/ingester spec.protect${explain}`,
    );
    expect(said('x'.repeat(100))).toBe(`${start} is denied by no-downscale: ${'x'.repeat(100)} (limit: noDownscale)${explain}`);
    expect(said('x'.repeat(500))).toMatch(
      /^scale of .* is denied by no-downscale: x{100,}…; kubectl rollout-group explain decision\/0123456789ab$/,
    );
  });

  it('has at most 256 bytes, with the request, the rule, the fact and the id of the decision (threat 16)', () => {
    const texts = ['short', 'x'.repeat(253), 'ü'.repeat(200), '\u{1f600}'.repeat(100)];
    for (const name of texts) {
      for (const rule of ['no-downscale', `${'p'.repeat(253)}/${'r'.repeat(63)}`]) {
        for (const fact of texts) {
          const answer: RuleResult = {
            ...no,
            rule,
            fact,
            limit: fact,
            earliestMs: nowMs,
            source: { object: `RolloutGroup mimir/${name}` },
          };
          const asked = { ...request, statefulSet: name } as const;
          for (const outcome of ['deny', 'prepare'] as const) {
            const { message = '' } = denialOf(denied([answer], { request: asked, outcome }), { ...subject, namespace: name });
            expect(Buffer.byteLength(message), message).toBeLessThanOrEqual(256);
            expect(message).toMatch(
              /^scale of statefulset\/.+ is denied by [np].+: .+; kubectl rollout-group explain decision\/0123456789ab$/,
            );
          }
          expect(Buffer.byteLength(unknownDenial(`UPDATE of statefulsets/${name}`, fact).message ?? '')).toBeLessThanOrEqual(256);
        }
      }
    }
    const { message = '' } = denialOf(denied([], { message: 'x'.repeat(5_000), code: 500 }), subject);
    expect(Buffer.byteLength(message)).toBeLessThanOrEqual(256);
    expect(message).toMatch(/…; kubectl rollout-group explain decision\/0123456789ab$/);
  });

  it('names the policies and the rule in the audit log', () => {
    expect(denialOf(denied([wait(), no]), subject).auditAnnotations).toEqual({
      outcome: 'deny',
      decision: '0123456789ab',
      policy: 'd1',
      group: 'mimir/ingester',
      rule: 'no-downscale',
    });
    expect(auditOf(denied([], { outcome: 'allow' }), { policyDigest: 'd1' })).toEqual({
      outcome: 'allow',
      decision: '0123456789ab',
      policy: 'd1',
    });
  });
});
