import { describe, expect, it } from 'vitest';
import { approvalResults } from '../../../engine/rules/approval.ts';
import type { IntentView, Known } from '../../../engine/snapshot.ts';
import type { ApprovalDefinition } from '../../../policies/definition.ts';
import { group } from '../../kit/groups.ts';
import { kitNowMs } from '../../kit/objects.ts';
import { ago, contextWith, hourMs, intent, line, minuteMs } from '../../kit/questions.ts';

const digest = 'd'.repeat(32);
const run = { id: 'run-1', startedMs: ago(hourMs) };

function askAll(
  approval: Partial<ApprovalDefinition>,
  intents: Known<readonly IntentView[]>,
  asked: { readonly run?: typeof run; readonly sinceMs?: number } = { run },
) {
  return approvalResults({
    context: contextWith(group(), { intents }),
    rule: 'approval',
    approval: { count: 1, from: ['oncall'], ...approval },
    subject: { wave: 'canary' },
    digest,
    source: line(1),
    ...asked,
  });
}

function ask(...question: Parameters<typeof askAll>) {
  return askAll(...question)[0];
}

const by = (user: string, overrides: Partial<IntentView> = {}) =>
  intent({
    name: `by-${user}`,
    wave: 'canary',
    digest,
    requestedBy: { user, groups: ['oncall'], atMs: ago(minuteMs) },
    ...overrides,
  });
const anonymous = (name: string): IntentView => {
  const { requestedBy: _nobody, ...rest } = by(name);
  return rest;
};
const one = { limit: '1 from oncall', source: line(1) };
const none = { rule: 'approval', outcome: 'wait', fact: '0 of 1 approvals from oncall', ...one, digest };

describe('an approval', () => {
  it('is waited for', () => {
    expect(ask({}, [])).toEqual(none);
    expect(ask({ from: [] }, [])).toEqual({
      rule: 'approval',
      outcome: 'wait',
      fact: '0 of 1 approvals',
      limit: '1',
      source: line(1),
      digest,
    });
    expect(ask({ count: 2, from: ['oncall', 'lead'] }, [by('kim')])).toEqual({
      rule: 'approval',
      outcome: 'wait',
      fact: '1 of 2 approvals from oncall or lead',
      limit: '2 from oncall or lead',
      source: line(1),
      digest,
    });
  });

  it('is complete with enough users of the right groups', () => {
    expect(ask({}, [by('kim')])).toEqual({ rule: 'approval', outcome: 'ok', fact: 'approved by kim', ...one });
    expect(ask({ count: 2 }, [by('zoe'), by('kim')])).toMatchObject({ outcome: 'ok', fact: 'approved by kim, zoe' });
  });

  it('of one user counts once', () => {
    expect(ask({ count: 2 }, [by('kim'), by('kim', { name: 'again' })])).toMatchObject({
      outcome: 'wait',
      fact: '1 of 2 approvals from oncall',
    });
  });

  it('counts from any user if no group is named', () => {
    expect(ask({ from: [] }, [by('kim', { requestedBy: { user: 'kim', groups: [], atMs: ago(1) } })])).toMatchObject({ outcome: 'ok' });
  });

  it.each<[string, Partial<IntentView>]>([
    ['of another group of people', { requestedBy: { user: 'kim', groups: ['dev'], atMs: ago(minuteMs) } }],
    ['of another wave', { wave: 'rest' }],
    ['of a rule', { rule: 'safety/x' }],
    ['of another run', { runId: 'run-0' }],
    ['from before the run', { requestedBy: { user: 'kim', groups: ['oncall'], atMs: run.startedMs - 1 } }],
    ['that has expired', { expiresMs: kitNowMs }],
    ['of another group', { group: 'store-gateway' }],
    ['that asks for something else', { action: 'pause' }],
  ])('%s does not count', (_name, overrides) => {
    expect(ask({}, [by('kim', overrides)])).toEqual(none);
  });

  it('of another definition or without a definition does not count, and the result names it', () => {
    const { digest: _none, ...bare } = by('ben');
    const asked = ask({ count: 2 }, [by('kim', { digest: 'e'.repeat(32) }), by('zoe'), by('zoe', { digest: 'e'.repeat(32) }), bare]);
    expect(asked).toMatchObject({
      outcome: 'wait',
      fact: '1 of 2 approvals from oncall; kim approved an older version; the approval of ben has no digest',
      digest,
    });
  });

  it('that names the run counts at any time; without a run any age counts', () => {
    const early = { requestedBy: { user: 'kim', groups: ['oncall'], atMs: run.startedMs - 1 } };
    expect(ask({}, [by('kim', { ...early, runId: 'run-1' })])).toMatchObject({ outcome: 'ok' });
    expect(ask({}, [by('kim', early)], {})).toMatchObject({ outcome: 'ok' });
    expect(ask({}, [by('kim', { requestedBy: { ...early.requestedBy, atMs: run.startedMs } })])).toMatchObject({ outcome: 'ok' });
  });

  it('that is older than its wave does not count', () => {
    expect(ask({}, [by('kim')], { run, sinceMs: ago(minuteMs) })).toMatchObject({ outcome: 'ok' });
    expect(ask({}, [by('kim')], { run, sinceMs: ago(minuteMs) + 1 })).toEqual(none);
  });

  it('expires after its time, and the result names the expiry', () => {
    expect(ask({ expiresMs: hourMs }, [by('kim')])).toMatchObject({ outcome: 'ok', earliestMs: ago(minuteMs) + hourMs });
    expect(ask({ expiresMs: minuteMs }, [by('kim')])).toEqual(none);
    expect(ask({}, [by('kim', { expiresMs: kitNowMs + 5 })])).toMatchObject({ outcome: 'ok', earliestMs: kitNowMs + 5 });
  });

  it('without an identity does not count, and the result names the missing part', () => {
    expect(ask({ from: [] }, [anonymous('x'), anonymous('y')])).toEqual({
      rule: 'approval',
      outcome: 'unknown',
      fact: '0 of 1 approvals, and 2 without an identity (the webhook was not called)',
      limit: '1',
      source: line(1),
      digest,
    });
    expect(ask({}, [anonymous('x'), by('kim')])).toMatchObject({ outcome: 'ok' });
  });

  const ahead = (user: string, aheadMs: number, overrides: Partial<IntentView> = {}) =>
    by(user, { requestedBy: { user, groups: ['oncall'], atMs: kitNowMs + aheadMs }, ...overrides });

  it('with a future time does not count, with any end, and the result says so', () => {
    const standing = ahead('kim', 365 * 24 * hourMs, { name: 'standing' });
    expect(ask({ expiresMs: hourMs }, [standing])).toEqual({
      rule: 'approval',
      outcome: 'unknown',
      fact: '0 of 1 approvals from oncall, and 1 with a time in the future (spec.requestedBy.at)',
      ...one,
      digest,
    });
    expect(ask({}, [ahead('kim', 30_001)])).toMatchObject({ outcome: 'unknown' });
    expect(ask({}, [ahead('kim', 30_000)])).toMatchObject({ outcome: 'ok', fact: 'approved by kim' });
    expect(ask({}, [standing, by('zoe')])).toMatchObject({ outcome: 'ok', fact: 'approved by zoe' });
    // It would not count then either.
    expect(ask({ from: ['lead'] }, [standing])).toMatchObject({ outcome: 'wait', fact: '0 of 1 approvals from lead' });
    expect(ask({}, [standing, anonymous('x')])?.fact).toMatch(
      /^0 of 1 approvals from oncall, and 1 without an identity.*, and 1 with a time/,
    );
  });

  it('is unknown when it cannot be read', () => {
    expect(ask({}, { unknown: 'forbidden' })).toEqual({
      rule: 'approval',
      outcome: 'unknown',
      fact: 'approvals could not be read: forbidden',
      source: line(1),
    });
  });
});

describe('a rejection', () => {
  it('counts with any time, also before an approval of the same user, because the clocks of two webhooks may differ', () => {
    const at = (aheadMs: number) => ({ requestedBy: { user: 'zoe', groups: ['oncall'], atMs: kitNowMs + aheadMs } });
    for (const aheadMs of [-hourMs, 0, hourMs]) {
      const rejected = by('zoe', { action: 'reject', ...at(aheadMs) });
      expect(ask({}, [by('kim'), by('zoe', at(-1)), rejected])).toMatchObject({ outcome: 'no', fact: 'zoe rejected wave canary' });
    }
  });

  it('outweighs every approval, with its reason', () => {
    const rejected = by('zoe', { action: 'reject', reason: 'the queue grows' });
    expect(ask({}, [by('kim'), rejected])).toEqual({
      rule: 'approval',
      outcome: 'no',
      fact: 'zoe rejected wave canary: the queue grows',
      limit: '1 from oncall',
      source: { object: 'RolloutIntent mimir/by-zoe' },
    });
    expect(ask({}, [by('zoe', { action: 'reject' })])).toMatchObject({ outcome: 'no', fact: 'zoe rejected wave canary' });
  });

  it('blocks until it expires, next to every other rejection', () => {
    const rejected = ['ben', 'zoe'].map((user) => by(user, { action: 'reject', expiresMs: kitNowMs + hourMs }));
    expect(askAll({}, [by('kim'), ...rejected])).toMatchObject([
      { fact: 'ben rejected wave canary', source: { object: 'RolloutIntent mimir/by-ben' }, earliestMs: kitNowMs + hourMs },
      { fact: 'zoe rejected wave canary', source: { object: 'RolloutIntent mimir/by-zoe' } },
    ]);
    expect(ask({}, [by('kim'), by('zoe', { action: 'reject', expiresMs: kitNowMs })])).toMatchObject({ outcome: 'ok' });
  });

  it('counts only from users who may approve', () => {
    expect(ask({}, [by('kim', { action: 'reject', requestedBy: { user: 'kim', groups: ['dev'], atMs: ago(1) } })])).toEqual(none);
    expect(ask({}, [{ ...anonymous('x'), action: 'reject' }])).toEqual(none);
  });
});
