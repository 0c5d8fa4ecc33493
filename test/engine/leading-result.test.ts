import { describe, expect, it } from 'vitest';
import { judgementEvent } from '../../agent/admission/judgement-events.ts';
import { factsOf } from '../../agent/published/event-facts.ts';
import { decide } from '../../engine/decide/decide.ts';
import type { Judgement, RuleResult } from '../../engine/decision.ts';
import { judge } from '../../engine/judge/judge.ts';
import { publishedDecision } from '../../engine/publish/decision.ts';
import { groupStatus } from '../../engine/publish/status.ts';
import { blockingResults, leadingResult } from '../../engine/rule.ts';
import { reasonOf } from '../../engine/rules/catalog.ts';
import { refuseWhenDenied } from '../../plugin/live/members.ts';
import { renderFoundAgain } from '../../plugin/output/events.ts';
import { renderExplanation } from '../../plugin/output/explain.ts';
import type { PolicyRuleDefinition } from '../../policies/definition.ts';
import { messageOf } from '../../policies/error-message.ts';
import { auditOf, denialOf } from '../../webhook/native/denial.ts';
import { group } from '../kit/groups.ts';
import { kitNowMs, outdatedStatefulSet } from '../kit/objects.ts';
import { policy, policyRule } from '../kit/questions.ts';
import { snapshotOf } from '../kit/snapshots.ts';
import { look } from '../plugin/plan-kit.ts';

const plainLook = look();
const actions: PolicyRuleDefinition['actions'] = ['rollout', 'scaleDown'];
const rules = {
  wait: policyRule({ actions, effect: 'hold' }),
  unknown: policyRule({ actions, effect: 'hold', onUnknown: 'hold', when: { '<': [{ var: 'inputs.metrics.errors' }, 1] } }),
  no: policyRule({ actions, effect: 'deny' }),
};
type Answer = keyof typeof rules;
const orders: readonly (readonly Answer[])[] = [
  ['no', 'unknown', 'wait'],
  ['no', 'wait', 'unknown'],
  ['unknown', 'no', 'wait'],
  ['unknown', 'wait', 'no'],
  ['wait', 'no', 'unknown'],
  ['wait', 'unknown', 'no'],
  ['wait', 'unknown'],
  ['unknown', 'wait'],
];

/** A snapshot whose policies `p0`, `p1`, ... answer in this order. */
function snapshotWith(answers: readonly Answer[]) {
  const policies = answers.map((answer, index) => policy({ name: `p${index}`, rules: [rules[answer]] }));
  return snapshotOf({ groups: [group({ zones: ['a'] })], statefulSets: [outdatedStatefulSet({ name: 'ingester-zone-a' })], policies });
}

const subject = { namespace: 'mimir', nowMs: kitNowMs, isEviction: false, policyDigest: 'd' };
const eventSubject = { namespace: 'mimir', statefulSet: 'ingester-zone-a' };
const writer = { nowMs: kitNowMs, identity: 'agent-0' };

/** The rule that each output of a denial names first. */
function namedInDenial(judgement: Judgement): Readonly<Record<string, string | undefined>> {
  const messageRule = (text: string) => / denied by (\S+): /.exec(text)?.[1];
  let failure = '';
  try {
    refuseWhenDenied(judgement, 'mimir/ingester');
  } catch (error) {
    failure = messageOf(error);
  }
  return {
    judgement: messageRule(judgement.message),
    webhook: messageRule(denialOf(judgement, subject).message ?? ''),
    audit: auditOf(judgement, subject)['rule'],
    commandLine: messageRule(failure),
    explainDecision: /source +(\S+): /.exec(renderFoundAgain('0123', judgement, plainLook))?.[1],
  };
}

describe('the leading result', () => {
  it.each(orders.map((order) => [order.join(', '), order] as const))('is the same in every output of a denial: %s', (_name, order) => {
    const request = {
      kind: 'scale',
      namespace: 'mimir',
      statefulSet: 'ingester-zone-a',
      from: 3,
      to: 2,
      via: 'scale',
      dryRun: false,
    } as const;
    const judgement = judge(snapshotWith(order), request);
    const expected = leadingResult(judgement.results)?.rule ?? '';
    expect(expected).toBe(`p${order.indexOf(order.includes('no') ? 'no' : 'unknown')}/rule`);
    expect(new Set(Object.values(namedInDenial(judgement)))).toEqual(new Set([expected]));
    expect(judgementEvent(judgement, eventSubject, writer)).toMatchObject({ reason: reasonOf(expected) });
  });

  it.each(orders.map((order) => [order.join(', '), order] as const))('is the same in every output of a decision: %s', (_name, order) => {
    const snapshot = snapshotWith(order);
    const [one] = snapshot.groups;
    const [decision] = decide(snapshot).groups;
    if (one === undefined || decision === undefined) throw new Error('the snapshot has no group');
    const expected = leadingResult(decision.steps.flatMap(({ results }) => results))?.rule ?? '';
    const published = publishedDecision({ group: one, decision, snapshot, atMs: kitNowMs });
    const status = groupStatus(published);
    const explanation = renderExplanation({ decision, refused: [], nowMs: kitNowMs, showsAllRules: false }, plainLook);
    const report = { group: one, snapshot, decision, performed: [] } as unknown as Parameters<typeof factsOf>[0];
    expect(decision.waits[0]?.rule).toBe(expected);
    expect(published.waits[0]?.rule).toBe(expected);
    expect(explanation).toMatch(new RegExp(`blocked by .*\\n +\\S+ +${expected}\\b`));
    expect([status.reason, status.conditions[0]?.reason]).toEqual([reasonOf(expected), reasonOf(expected)]);
    expect(factsOf(report, undefined).facts.find(({ wait }) => wait !== undefined)?.reason).toBe(reasonOf(expected));
  });

  it('is not the preparation of pods while another rule blocks in the same way', () => {
    const results: readonly RuleResult[] = [
      { rule: 'prepare-downscale', outcome: 'wait', fact: '1 pod must prepare' },
      { rule: 'zone-gap', outcome: 'wait', fact: 'zone b shrank 1m ago' },
      { rule: 'window', outcome: 'skip', fact: 'no window' },
    ];
    expect(blockingResults(results).map(({ rule }) => rule)).toEqual(['zone-gap', 'prepare-downscale']);
    expect(leadingResult(results.slice(2))).toBeUndefined();
  });
});
