import { describe, expect, it } from 'vitest';
import { stepChecks } from '../../../engine/decide/roll.ts';
import type { RuleResult } from '../../../engine/decision.ts';
import { endsByItself, reasonOf, ruleCatalog } from '../../../engine/rules/catalog.ts';
import { scaleDownChecks, scaleUpRules } from '../../../engine/rules/scale.ts';
import { rulesMarkdown } from '../../../scripts/generated/pages.ts';

const ids = ruleCatalog.map(({ id }) => id);

describe('the rule catalogue', () => {
  it('is sorted by id, without repetition, in kebab-case', () => {
    expect(ids).toEqual([...new Set(ids)].sort());
    expect(ids.filter((id) => !/^[a-z]+(-[a-z]+)*$/.test(id))).toEqual([]);
  });

  it('has every rule of a rollout step and of a change of replicas', () => {
    const groups = ['strategy', 'wave', 'policies'];
    const asked = [...stepChecks, ...scaleUpRules, ...scaleDownChecks].map(({ id }) => id).filter((id) => !groups.includes(id));
    expect(asked.filter((id) => !ids.includes(id))).toEqual([]);
  });

  it('lists the outcomes of every rule once and in the same order', () => {
    const order = ['ok', 'wait', 'no', 'skip', 'unknown'];
    const odd = ruleCatalog.filter(
      ({ outcomes }) =>
        outcomes.length === 0 || outcomes.join() !== order.filter((one) => outcomes.some((outcome) => outcome === one)).join(),
    );
    expect(odd).toEqual([]);
  });

  it('has a page with one row for each rule', () => {
    const page = rulesMarkdown();
    expect(page.startsWith('# Rules\n')).toBe(true);
    for (const { id, whenBlocked } of ruleCatalog)
      expect(page.includes(`### \`${id}\`\n\n${whenBlocked}\n`)).toBe(whenBlocked !== undefined);
    expect(page.split('\n').filter((row) => row.startsWith('| `'))).toEqual(
      ruleCatalog.map(
        ({ id, reason, title, outcomes }) =>
          `| \`${id}\` | ${reason === undefined ? '' : `\`${reason}\``} | ${title} | ${outcomes.join(', ')} |`,
      ),
    );
  });
});

describe('the reason of a rule', () => {
  /** Each reason must contain one of these words, so that `Ready=False` reads as a state that blocks. */
  const blockedWords =
    /Not|Missing|Exhausted|Closed|Incomplete|InFlight|InProgress|Paused|Protected|Failed|Full|Forbidden|Changed|TooLow|TooMany|TooFew|Unreadable|Unknown|Blocked|Elsewhere|WouldUpdate|ByRestart|RolledBack|Undone|Rejected/;
  const mayBlock = ruleCatalog.filter(({ outcomes }) => outcomes.some((outcome) => outcome !== 'ok' && outcome !== 'skip'));

  it('exists for every rule that may block and for no other rule', () => {
    expect(ruleCatalog.filter(({ reason }) => reason !== undefined)).toEqual(mayBlock);
  });

  it('is a different PascalCase name for each rule', () => {
    const reasons = mayBlock.map(({ id }) => reasonOf(id));
    expect(new Set(reasons).size).toBe(reasons.length);
    expect(reasons.filter((reason) => !/^[A-Z][A-Za-z]+$/.test(reason))).toEqual([]);
  });

  it('names the blocked state', () => {
    expect(mayBlock.filter(({ reason }) => !blockedWords.test(reason ?? ''))).toEqual([]);
    const passes = /Ready$|Available$|Complete$|Applied$|Passed$|Over$|Prepared$|Shrunk$|Expired$/;
    expect(mayBlock.filter(({ reason }) => passes.test(reason ?? '') && !/Not|In(?=complete)/.test(reason ?? ''))).toEqual([]);
  });

  it('follows from the name of a policy rule', () => {
    expect(['stateful-safety/queue.is-empty', '1-rule/x'].map(reasonOf)).toEqual(['StatefulSafetyQueueIsEmpty', 'Rule1RuleX']);
  });
});

describe('a wait', () => {
  const waiting = ruleCatalog.filter(({ outcomes }) => outcomes.includes('wait'));
  const wait = (rule: string, more: Partial<RuleResult> = {}): RuleResult => ({ rule, outcome: 'wait', fact: 'it waits', ...more });

  it('is ended by the agent except for these rules, or if its time is unknown', () => {
    const others = waiting.filter(({ id }) => !endsByItself(wait(id, { earliestMs: 1 }))).map(({ id }) => id);
    expect(others).toEqual([
      'agent-access',
      'approval',
      'approved-plan',
      'drift',
      'in-no-wave',
      'partition-kept',
      'paused',
      'pin-webhook',
      'protected',
      'protection-kept',
      'restart-version',
      'undone',
      'updated-by-restart',
      'write-accepted',
      'zone-images',
    ]);
    const dated = waiting.filter(({ id }) => endsByItself(wait(id, { earliestMs: 1 })) && !endsByItself(wait(id))).map(({ id }) => id);
    expect(dated).toEqual(['pin-applied', 'rolled-back', 'window']);
  });

  it('is not ended by the agent if a user must end it, if it is no wait, or if its rule is unknown', () => {
    expect(endsByItself(wait('soak'))).toBe(true);
    expect(endsByItself(wait('soak', { endsBy: 'person' }))).toBe(false);
    expect(endsByItself(wait('soak', { outcome: 'unknown' }))).toBe(false);
    expect([endsByItself(wait('safety/queue')), endsByItself(wait('later'))]).toEqual([false, false]);
  });
});
