// Evaluates the rules and windows of RolloutPolicies, with the variables that their conditions read (docs/conditions.md).
import { evaluateCondition } from '../../policies/condition/condition.ts';
import { substitute } from '../../policies/condition/variables.ts';
import type { PolicyDefinition, PolicyRuleDefinition, WindowDefinition } from '../../policies/definition.ts';
import { formatDuration } from '../../policies/duration.ts';
import type { PolicyAction } from '../../policies/schema/rollout-policy.ts';
import { maskText } from '../../policies/text/credentials.ts';
import { keptByObject, putNewest } from '../../policies/values/map.ts';
import { joinWindows, windowState } from '../../policies/window/window.ts';
import type { GroupContext } from '../context.ts';
import type { RuleResult } from '../decision.ts';
import { noData as noDataReason } from '../observe/readings.ts';
import type { ZoneView } from '../observe/view.ts';
import { result } from '../rule.ts';
import { type Deviation, planDeviations } from '../run/approved-plan.ts';
import { phaseOfRun } from '../run/origin.ts';
import { digestOfRule } from '../run/requests.ts';
import type { RunState } from '../run/run-state.ts';
import { isUnknown, type MetricView, type Snapshot, type Unknown } from '../snapshot.ts';
import { approvalResults } from './approval.ts';
import { downscaleTimes } from './zone-gap.ts';

export interface Requester {
  readonly user?: string;
  /** Absent if the groups of the user are unknown. */
  readonly groups?: readonly string[];
}

export interface PolicyQuestion extends Requester {
  readonly context: GroupContext;
  readonly action: PolicyAction;
  readonly zone: ZoneView;
  readonly change?: { readonly from: number; readonly to: number };
  readonly run?: RunState;
}

export interface PolicyAnswer {
  readonly results: readonly RuleResult[];
  readonly warnings: readonly RuleResult[];
  readonly effects: readonly PolicyRuleDefinition['effect'][];
}

/** Returns a result if policies could not be read, because an unknown policy may bind the group; undefined if all policies were read. */
export function policiesRead({ unread = [] }: Pick<Snapshot, 'unread'>): RuleResult | undefined {
  const facts = unread.flatMap(({ kind, namespace, unknown }) => {
    const place = namespace === undefined ? '' : ` of namespace ${namespace}`;
    return kind === 'Policy' ? [`the RolloutPolicies${place} could not be read: ${unknown}`] : [];
  });
  return facts.length === 0 ? undefined : result('view-complete', 'unknown', facts.join('; '));
}

/** Evaluates every rule for the action, in every policy that binds the group. */
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
      if (answer.effect === 'warn') warnings.push(...answer.results);
      else results.push(...answer.results);
    }
  }
  return { results, warnings, effects };
}

interface RuleAnswer {
  readonly results: readonly RuleResult[];
  /** The effect that applied; absent if the rule did not apply. */
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
  const verdict = rule.when === undefined ? undefined : evaluateCondition(rule.when, data, question.context.nowMs);
  if (verdict?.kind === 'value' && !verdict.isTrue) return { results: [result(id, 'ok', 'the condition is false', { source })] };
  const isUnknownCondition = verdict?.kind === 'unknown';
  const effect = isUnknownCondition ? rule.onUnknown : rule.effect;
  const fact = verdict?.kind === 'unknown' ? unknownText(verdict) : ruleMessage(rule, data);
  // At `earliestMs`, time alone changes the condition, so the agent decides again then.
  const details = { source, earliestMs: changesAtMs(rule.when, data, question.context.nowMs) };
  switch (effect) {
    case 'allow':
      return { results: [result(id, 'skip', fact, { source })] };
    case 'warn':
      return { results: [result(id, 'ok', fact, { source })], effect };
    case 'hold': {
      if (isUnknownCondition) return { results: [result(id, 'unknown', fact, details)], effect };
      // A rule that reads neither progress nor time applies until a person changes something.
      const endsBy = ignoresProgress(rule) && !readsTime(rule.when) ? 'person' : undefined;
      return { results: [result(id, 'wait', fact, { ...details, endsBy })], effect };
    }
    case 'deny':
      return { results: [result(id, isUnknownCondition ? 'unknown' : 'no', fact, details)], effect };
    case 'requireApproval':
      return approvalAnswer(question, { policy, rule, fact, deviations: [] });
    case 'requireApprovedPlan':
      return planAnswer(question, policy, rule, fact);
  }
}

function planAnswer(question: PolicyQuestion, policy: PolicyDefinition, rule: PolicyRuleDefinition, fact: string): RuleAnswer {
  const { action, context, run } = question;
  const deviations = action === 'rollout' ? planDeviations(context, run) : [{ fact: `no approved plan covers ${action}` }];
  if (deviations.length > 0) return approvalAnswer(question, { policy, rule, fact, deviations });
  return { results: [result(`${policy.name}/${rule.name}`, 'ok', 'the rollout is the approved one', { source: rule.source })] };
}

interface AskedApproval {
  readonly policy: PolicyDefinition;
  readonly rule: PolicyRuleDefinition;
  /** Why the approval is necessary. */
  readonly fact: string;
  /** The differences from an approved plan that an approval must have seen. */
  readonly deviations: readonly Deviation[];
}

function approvalAnswer({ context, run }: PolicyQuestion, { policy, rule, fact, deviations }: AskedApproval): RuleAnswer {
  const id = `${policy.name}/${rule.name}`;
  const approvals = approvalResults({
    context,
    rule: id,
    approval: rule.approval,
    subject: { rule: id },
    digest: digestOfRule(policy, rule, deviations),
    source: rule.source,
    ...(run === undefined ? {} : { run }),
  });
  const why = [fact, ...deviations.map((one) => one.fact)].join('; ');
  return {
    results: approvals.map((one) => (one.outcome === 'ok' ? one : { ...one, fact: `${why}; ${one.fact}` })),
    effect: 'requireApproval',
  };
}

/** Returns the message of the rule without credentials: denials, events and comments show it, and its variables can be annotations. */
function ruleMessage({ message, when }: PolicyRuleDefinition, data: Readonly<Record<string, unknown>>): string {
  if (message !== undefined) return maskText(substitute(message, data));
  return when === undefined ? 'the rule always applies' : 'the condition is true';
}

function unknownText({ paths, reason }: Extract<ReturnType<typeof evaluateCondition>, { readonly kind: 'unknown' }>): string {
  return `${paths.join(', ') || 'the condition'} is unknown${reason ? ` (${reason})` : ''}`;
}

/** Returns the variables of a condition (docs/conditions.md). Unreadable values are unknown. */
export function conditionData(question: PolicyQuestion, policy: PolicyDefinition): Readonly<Record<string, unknown>> {
  const absent: Unknown = { unknown: 'not part of this request' };
  const { context, zone, change, user: name, groups = absent } = question;
  const { run } = context.view.ledger;
  const { set } = zone;
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
      ready: unread ?? zone.replicas - zone.unavailable,
      available: unread ?? zone.replicas - zone.unavailable,
      updated: unread ?? zone.updated,
      ...lastDownscale(question),
    },
    group: {
      name: context.group.name,
      namespace: context.group.namespace,
      labels: context.group.labels,
      phase: phaseOfRun(context.view, run),
      ...(run?.outcome === 'running' && run.returning === undefined ? { wave: context.group.rollout.waves[run.wave]?.name ?? '' } : {}),
      zones: context.view.zones.map(zoneData),
      notReadyZones: context.view.zones.some((candidate) => candidate.unknown !== undefined)
        ? { unknown: 'a zone could not be read' }
        : context.view.zones.filter((candidate) => !candidate.isReady).map((candidate) => candidate.zone.name),
    },
    inputs: { metrics: metricData(context, policy) },
    user: name === undefined ? absent : { name, groups },
    now: context.nowMs,
  };
}

function zoneData(view: ZoneView): unknown {
  const { name, statefulSet, follows = '' } = view.zone;
  if (view.unknown !== undefined) {
    const unread = { unknown: view.unknown };
    return { name, statefulSet, replicas: unread, ready: unread, updated: unread, available: unread, isReady: unread };
  }
  const { replicas, updated, isReady } = view;
  const ready = replicas - view.unavailable;
  return { name, statefulSet, follows, replicas, ready, available: ready, updated, isReady };
}

function metricData(context: GroupContext, policy: PolicyDefinition): Readonly<Record<string, number | Unknown>> {
  const values: Record<string, number | Unknown> = {};
  for (const [input, { maxAgeMs, noData }] of Object.entries(policy.metrics)) {
    const reading = context.snapshot.metrics.find(
      (metric) => metric.namespace === policy.namespace && metric.policy === policy.name && metric.input === input,
    );
    values[input] = reading === undefined ? { unknown: 'no reading' } : inputValue(reading, context.nowMs, { maxAgeMs, noData });
  }
  return values;
}

/** Returns the value of a metric input. A reading older than its maximum age is unknown. */
function inputValue(
  { value, atMs, problem }: MetricView,
  nowMs: number,
  { maxAgeMs, noData }: Pick<PolicyDefinition['metrics'][string], 'maxAgeMs' | 'noData'>,
): number | Unknown {
  if (nowMs - atMs > maxAgeMs) {
    return { unknown: `the reading is older than ${formatDuration(maxAgeMs)}${problem === undefined ? '' : `: ${problem}`}` };
  }
  return isUnknown(value) && value.unknown === noDataReason && noData === 'zero' ? 0 : value;
}

function lastDownscale({ context, zone }: PolicyQuestion): { readonly lastDownscaleAt?: number | Unknown } {
  const times = downscaleTimes(context, zone);
  if (typeof times === 'string') return { lastDownscaleAt: { unknown: times } };
  return times.length === 0 ? {} : { lastDownscaleAt: Math.max(...times) };
}

/** Matches the variables and operators whose result can change with progress, a reading or an admission request. */
const changing = /\b(?:change|user|inputs|replicas|ready|available|updated|lastDownscaleAt|zones|notReadyZones|phase|wave|missing)\b/;

/** Reports whether only a person or time can change the result of the condition. A rule without a condition always applies. */
export function ignoresProgress({ when }: Pick<PolicyRuleDefinition, 'when'>): boolean {
  return when === undefined || !changing.test(JSON.stringify(when));
}

/** The search for a change of a condition looks at most this many milliseconds ahead. A later decision finds later changes. */
const horizonMs = 400 * 24 * 3_600_000;

/** Returns whether the condition reads the variable `now` or the operator `age`. */
export function readsTime(condition: unknown): boolean {
  return /"(?:now|age)"/.test(JSON.stringify(condition ?? ''));
}

/** Returns whether the condition of the rule reads the requester: the variables `user.name` and `user.groups`. */
export function readsUser({ when }: Pick<PolicyRuleDefinition, 'when'>): boolean {
  return /"user[."]/.test(JSON.stringify(when ?? ''));
}

/** Returns when time alone changes the result; undefined if no change is found. Exact if the condition compares the time once. */
export function changesAtMs(condition: unknown, data: Readonly<Record<string, unknown>>, nowMs: number): number | undefined {
  if (!readsTime(condition)) return undefined;
  const answerAt = (atMs: number): boolean | undefined => {
    const answer = evaluateCondition(condition, { ...data, now: atMs }, atMs);
    return answer.kind === 'value' ? answer.isTrue : undefined;
  };
  const current = answerAt(nowMs);
  let same = nowMs;
  for (let aheadMs = 1000; aheadMs <= horizonMs; aheadMs *= 2) {
    if (answerAt(nowMs + aheadMs) !== current) return firstOther(same, nowMs + aheadMs, (atMs) => answerAt(atMs) === current);
    same = nowMs + aheadMs;
  }
  return undefined;
}

/** Returns the first instant with another answer. The answer is the same at `same` and another at `other`. */
function firstOther(same: number, other: number, isSame: (atMs: number) => boolean): number {
  let [low, high] = [same, other];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (isSame(middle)) low = middle;
    else high = middle;
  }
  return high;
}

/** The work in progress when a window closes. */
export type UnderWay = 'nothing' | 'zone' | 'run';

/** The latest states of the windows by action and instant. Each zone and each stop of a decision asks for them. */
const windowStates = keptByObject((_policies: GroupContext['policies']) => new Map<string, ReturnType<typeof joinWindows>>());

/** The actions, at a few instants. */
const keptStates = 32;

function windowsAt({ policies, nowMs }: GroupContext, action: PolicyAction): ReturnType<typeof joinWindows> {
  const known = windowStates(policies);
  const key = `${action} ${nowMs}`;
  const kept = known.get(key);
  if (kept !== undefined) return kept;
  const windows = policies.map((policy) => policy.windows);
  const state = joinWindows(windows, action, nowMs);
  putNewest(known, key, state, keptStates);
  return state;
}

/** Returns the result of all windows for the action. A closed window determines how much work in progress may finish. */
export function windowResult(context: GroupContext, action: PolicyAction, underWay: UnderWay): RuleResult {
  const windows = context.policies.flatMap((policy) => policy.windows);
  if (!windows.some((window) => window.actions.includes(action))) return result('window', 'skip', `no window restricts ${action}`);
  const state = windowsAt(context, action);
  const details = { earliestMs: state.changesMs };
  if (state.isOpen) return result('window', 'ok', `the windows are open for ${action}`, details);
  const closed = state.deniedBy === undefined ? (state.notAllowedBy ?? []) : [state.deniedBy];
  // Two policies may have windows of the same name; the state names the window that blocks.
  const isDeny = state.deniedBy !== undefined;
  const named = windows.filter(
    (window) => window.name === closed[0] && window.actions.includes(action) && (window.kind === 'deny') === isDeny,
  );
  const window = named.find((one) => windowState(one, context.nowMs).isOpen === isDeny) ?? named[0];
  const fact = isDeny ? `a deny window blocks ${action}${reasonOf(window, context.nowMs)}` : `no allow window is open for ${action}`;
  const held = { ...details, limit: closed.join(', '), source: window?.source };
  if (mayFinish(state.inFlight, underWay)) return result('window', 'ok', `${fact}; work in progress may finish`, held);
  return result('window', 'wait', fact, held);
}

/** Returns the reason of the range that is open now, such as `: Black Friday`; empty without a reason. */
function reasonOf(window: WindowDefinition | undefined, nowMs: number): string {
  const reason = window?.ranges?.find(({ fromMs, toMs }) => fromMs <= nowMs && nowMs < toMs)?.reason;
  return reason === undefined ? '' : `: ${reason}`;
}

function mayFinish(inFlight: 'finishPod' | 'finishZone' | 'finishAll', underWay: UnderWay): boolean {
  if (underWay === 'nothing') return false;
  return inFlight === 'finishAll' || (inFlight === 'finishZone' && underWay === 'zone');
}

/** Reports whether a window or a policy rule gave the result. A policy rule is named `policy/rule`. */
export function isOfCalendarOrPolicy({ rule }: RuleResult): boolean {
  return rule === 'window' || rule.includes('/');
}
