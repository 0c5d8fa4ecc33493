// The rules of RolloutPolicies as rules of the engine: condition in, effect out, unknown handled as the rule says.
import { evaluateCondition } from '../../policies/condition.ts';
import type { PolicyDefinition, PolicyRuleDefinition } from '../../policies/definition.ts';
import type { PolicyAction } from '../../policies/schema/rollout-policy.ts';
import { substitute } from '../../policies/variables.ts';
import type { GroupContext } from '../context.ts';
import type { RuleResult } from '../decision.ts';
import { result } from '../rule.ts';
import { isUnknown, type RunState, type Unknown } from '../snapshot.ts';
import type { ZoneView } from '../view.ts';
import { approvalResult } from './approval.ts';

export interface PolicyQuestion {
  readonly context: GroupContext;
  readonly action: PolicyAction;
  readonly zone: ZoneView;
  readonly change?: { readonly from: number; readonly to: number };
  /** The run that the action is part of. */
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

function askRule(question: PolicyQuestion, policy: PolicyDefinition, rule: PolicyRuleDefinition, data: unknown): RuleAnswer {
  const id = `${policy.name}/${rule.name}`;
  const source = rule.source;
  const verdict = rule.when === undefined ? undefined : evaluateCondition(rule.when, data, { nowMs: question.context.nowMs });
  if (verdict?.kind === 'value' && !verdict.isTrue) return { result: result(id, 'ok', 'its condition does not hold', { source }) };
  const isUnknownCondition = verdict?.kind === 'unknown';
  const effect = isUnknownCondition ? rule.onUnknown : rule.effect;
  const unread = isUnknownCondition
    ? `${verdict.paths.join(', ') || 'its condition'} is unknown${verdict.reason ? ` (${verdict.reason})` : ''}`
    : undefined;
  const fact = unread ?? (rule.message === undefined ? 'its condition holds' : substitute(rule.message, data));
  switch (effect) {
    case 'allow':
      return { result: result(id, 'skip', fact, { source }) };
    case 'warn':
      return { result: result(id, 'ok', fact, { source }), effect };
    case 'hold':
      return { result: result(id, isUnknownCondition ? 'unknown' : 'wait', fact, { source }), effect };
    case 'deny':
      return { result: result(id, isUnknownCondition ? 'unknown' : 'no', fact, { source }), effect };
    case 'requireApproval': {
      const { context, run } = question;
      const approval = approvalResult({
        context,
        rule: id,
        approval: rule.approval,
        subject: { rule: id },
        source,
        ...(run === undefined ? {} : { run }),
      });
      return { result: approval.outcome === 'ok' ? approval : { ...approval, fact: `${fact}; ${approval.fact}` }, effect };
    }
  }
}

/** The variables of a condition (docs/conditions.md). What the engine cannot know stands as unknown. */
function conditionData(question: PolicyQuestion, policy: PolicyDefinition): unknown {
  const { context, zone, change } = question;
  const { set } = zone;
  const absent: Unknown = { unknown: 'not part of this request' };
  const unread = zone.unknown === undefined ? undefined : { unknown: zone.unknown };
  return {
    action: question.action,
    change: change === undefined ? absent : { from: change.from, to: change.to, delta: change.to - change.from },
    target: {
      name: zone.zone.statefulSet,
      namespace: context.group.namespace,
      zone: zone.zone.name,
      labels: set?.labels ?? absent,
      annotations: set?.annotations ?? absent,
      replicas: unread ?? zone.replicas,
      ready: unread ?? zone.replicas - zone.unavailable.size,
      available: unread ?? zone.replicas - zone.unavailable.size,
      updated: unread ?? zone.updated,
    },
    group: {
      name: context.group.name,
      namespace: context.group.namespace,
      labels: context.group.labels,
      zones: context.view.zones.map(zoneData),
      notReadyZones: context.view.zones.some((candidate) => candidate.unknown !== undefined)
        ? { unknown: 'a zone could not be read' }
        : context.view.zones.filter((candidate) => !candidate.isReady).map((candidate) => candidate.zone.name),
    },
    inputs: { metrics: metricData(context, policy) },
    user: question.user === undefined ? absent : { name: question.user },
    now: context.nowMs,
  };
}

function zoneData(view: ZoneView): unknown {
  if (view.unknown !== undefined) {
    const unread = { unknown: view.unknown };
    return {
      name: view.zone.name,
      statefulSet: view.zone.statefulSet,
      replicas: unread,
      ready: unread,
      updated: unread,
      available: unread,
      isReady: unread,
    };
  }
  const ready = view.replicas - view.unavailable.size;
  return {
    name: view.zone.name,
    statefulSet: view.zone.statefulSet,
    follows: view.zone.follows ?? '',
    replicas: view.replicas,
    ready,
    available: ready,
    updated: view.updated,
    isReady: view.isReady,
  };
}

function metricData(context: GroupContext, policy: PolicyDefinition): Readonly<Record<string, number | Unknown>> {
  const values: Record<string, number | Unknown> = {};
  for (const [input, { maxAgeMs, noData }] of Object.entries(policy.metrics)) {
    const reading = context.snapshot.metrics.find(
      (metric) => metric.namespace === policy.namespace && metric.policy === policy.name && metric.input === input,
    );
    if (reading === undefined) values[input] = { unknown: 'no reading' };
    else if (isUnknown(reading.value)) values[input] = noData === 'zero' && reading.value.unknown === 'no data' ? 0 : reading.value;
    else if (context.nowMs - reading.atMs > maxAgeMs) values[input] = { unknown: 'the reading is too old' };
    else values[input] = reading.value;
  }
  return values;
}
