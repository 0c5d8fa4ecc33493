// The rules of RolloutPolicies as rules of the engine: a condition decides whether the effect applies.
import { evaluateCondition } from '../../policies/condition/condition.ts';
import { substitute } from '../../policies/condition/variables.ts';
import type { PolicyDefinition, PolicyRuleDefinition } from '../../policies/definition.ts';
import type { PolicyAction } from '../../policies/schema/rollout-policy.ts';
import type { GroupContext } from '../context.ts';
import type { RuleResult } from '../decision.ts';
import type { ZoneView } from '../observe/view.ts';
import { result } from '../rule.ts';
import { digestOfRule } from '../run/requests.ts';
import type { RunState } from '../snapshot.ts';
import { approvalResult } from './approval.ts';
import { changesAtMs } from './condition-time.ts';
import { conditionData } from './policy-data.ts';

export interface PolicyQuestion {
  readonly context: GroupContext;
  readonly action: PolicyAction;
  readonly zone: ZoneView;
  readonly change?: { readonly from: number; readonly to: number };
  /** The run of the action. */
  readonly run?: RunState;
  readonly user?: string;
}

export interface PolicyAnswer {
  readonly results: readonly RuleResult[];
  readonly warnings: readonly RuleResult[];
  /** The strictest effect among the rules that applied. */
  readonly effects: readonly PolicyRuleDefinition['effect'][];
}

/** Asks every rule of every policy that binds the group and names the action. */
export function policyAnswer(question: PolicyQuestion): PolicyAnswer {
  const results: RuleResult[] = [];
  const warnings: RuleResult[] = [];
  const effects: PolicyRuleDefinition['effect'][] = [];
  for (const policy of question.context.policies) {
    const rules = policy.rules.filter((rule) => rule.actions.includes(question.action));
    if (rules.length === 0) continue;
    const data = conditionData(question, policy);
    for (const rule of rules) {
      const answer = askRule(question, policy, rule, data);
      if (answer.effect !== undefined) effects.push(answer.effect);
      if (answer.effect === 'warn') warnings.push(answer.result);
      else results.push(answer.result);
    }
  }
  return { results, warnings, effects };
}

interface RuleAnswer {
  readonly result: RuleResult;
  /** The effect that applied; absent when the rule did not apply. */
  readonly effect?: PolicyRuleDefinition['effect'];
}

function askRule(
  question: PolicyQuestion,
  policy: PolicyDefinition,
  rule: PolicyRuleDefinition,
  data: Readonly<Record<string, unknown>>,
): RuleAnswer {
  const id = `${policy.name}/${rule.name}`;
  const source = rule.source;
  const verdict = rule.when === undefined ? undefined : evaluateCondition(rule.when, data, { nowMs: question.context.nowMs });
  if (verdict?.kind === 'value' && !verdict.isTrue) return { result: result(id, 'ok', 'the condition is false', { source }) };
  const isUnknownCondition = verdict?.kind === 'unknown';
  const effect = isUnknownCondition ? rule.onUnknown : rule.effect;
  const unread = isUnknownCondition
    ? `${verdict.paths.join(', ') || 'the condition'} is unknown${verdict.reason ? ` (${verdict.reason})` : ''}`
    : undefined;
  const fact = unread ?? (rule.message === undefined ? 'the condition is true' : substitute(rule.message, data));
  // Without the instant the agent would not evaluate a time condition again when it ends.
  const details = { source, earliestMs: changesAtMs(rule.when, data, question.context.nowMs) };
  switch (effect) {
    case 'allow':
      return { result: result(id, 'skip', fact, { source }) };
    case 'warn':
      return { result: result(id, 'ok', fact, { source }), effect };
    case 'hold':
      return { result: result(id, isUnknownCondition ? 'unknown' : 'wait', fact, details), effect };
    case 'deny':
      return { result: result(id, isUnknownCondition ? 'unknown' : 'no', fact, details), effect };
    case 'requireApproval': {
      const { context, run } = question;
      const approval = approvalResult({
        context,
        rule: id,
        approval: rule.approval,
        subject: { rule: id },
        digest: digestOfRule(policy, rule),
        source,
        ...(run === undefined ? {} : { run }),
      });
      return { result: approval.outcome === 'ok' ? approval : { ...approval, fact: `${fact}; ${approval.fact}` }, effect };
    }
  }
}
