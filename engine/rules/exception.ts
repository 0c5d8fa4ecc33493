// Applies exceptions to the results of rules. The rule is evaluated first, so that the result shows both its fact and the exception.
import type { ExceptionDefinition } from '../../policies/definition.ts';
import { preciseText } from '../../policies/instant.ts';
import { exceptionFor } from '../../policies/join.ts';
import { canOverride } from '../../policies/rollout/rules-without-exception.ts';
import { compareText } from '../../policies/values/compare-text.ts';
import { counted, listed } from '../../policies/wording.ts';
import type { GroupContext } from '../context.ts';
import type { RuleResult } from '../decision.ts';
import { blocks, result } from '../rule.ts';

interface ExceptionSubject {
  readonly zone: string;
  readonly to?: number;
  /** Pods that would be disrupted now. */
  readonly podCount?: number;
}

/** Returns the result of a rule, permitted if exactly one exception in force allows this amount. */
export function withException(context: GroupContext, answer: RuleResult, subject: ExceptionSubject): RuleResult {
  if (!blocks(answer) || !canOverride(answer.rule, context.policies)) return answer;
  const found = exceptionFor(context.exceptions, answer.rule, { group: context.group.name, zone: subject.zone }, context.nowMs);
  if (found.kind === 'none') return answer;
  if (found.kind === 'several')
    return { ...answer, fact: `${answer.fact}; ${found.names.length} exceptions match, so no exception applies` };
  const { allow, expiresMs, name, source } = found.exception;
  const isEnough =
    allow.anything === true ||
    (allow.replicasAtLeast !== undefined && subject.to !== undefined && subject.to >= allow.replicasAtLeast) ||
    (allow.podsAtMost !== undefined && subject.podCount !== undefined && subject.podCount <= allow.podsAtMost);
  if (!isEnough) return { ...answer, fact: `${answer.fact}; exception ${name} does not allow this amount` };
  return {
    ...answer,
    outcome: 'ok',
    fact: `${answer.fact}; ${permissionText(found.exception)}`,
    source,
    earliestMs: expiresMs,
    exception: name,
  };
}

/**
 * Returns the exception that permits the fewest pods at once, of the exceptions that one of these blocking results needs. Absent if none
 * of them limits the pods.
 */
export function tightestException(context: GroupContext, answers: readonly RuleResult[], zone: string): ExceptionDefinition | undefined {
  const mostPods = ({ allow }: ExceptionDefinition): number =>
    allow.anything === true ? Number.POSITIVE_INFINITY : (allow.podsAtMost ?? Number.POSITIVE_INFINITY);
  const needed = answers.filter((answer) => blocks(answer) && canOverride(answer.rule, context.policies));
  const limiting = needed.flatMap(({ rule }) => {
    const found = exceptionFor(context.exceptions, rule, { group: context.group.name, zone }, context.nowMs);
    return found.kind === 'one' && mostPods(found.exception) < Number.POSITIVE_INFINITY ? [found.exception] : [];
  });
  return limiting.sort((a, b) => mostPods(a) - mostPods(b) || compareText(a.name, b.name))[0];
}

/** Returns a clause with the name, the requester, the limits, the zone, the end and the reason of an exception. */
export function permissionText(exception: ExceptionDefinition): string {
  const { name, requestedBy, expiresMs, reason } = exception;
  const by = requestedBy === undefined ? '' : ` of ${requestedBy.user}`;
  return `permitted by exception ${name}${by} for ${scopeText(exception)} until ${preciseText(expiresMs)} (${reason})`;
}

/** Returns a text such as `at most 2 pods in zone b`. */
function scopeText({ allow, zone }: Pick<ExceptionDefinition, 'allow' | 'zone'>): string {
  const amounts = [
    ...(allow.anything === true ? ['any amount'] : []),
    ...(allow.replicasAtLeast === undefined ? [] : [`${counted(allow.replicasAtLeast, 'replica')} or more`]),
    ...(allow.podsAtMost === undefined ? [] : [`at most ${counted(allow.podsAtMost, 'pod')}`]),
  ];
  return `${listed(amounts, 'or')} ${zone === undefined ? 'in all zones' : `in zone ${zone}`}`;
}

/** Returns the results that pass only because of an exception, each once, sorted by the end of the exception. */
export function permittedResults(results: readonly RuleResult[]): readonly RuleResult[] {
  const permitted = results.filter(({ exception, outcome }) => exception !== undefined && outcome === 'ok');
  const distinct = new Map(permitted.map((one) => [`${one.rule} ${one.exception}`, one]));
  return [...distinct.values()].sort((a, b) => (a.earliestMs ?? 0) - (b.earliestMs ?? 0));
}

/**
 * Returns the unexpired exceptions that permit none of these results, sorted by their end. The result of each has the outcome `skip`: the
 * exception permits a later step or request.
 */
export function unusedExceptions(
  context: Pick<GroupContext, 'exceptions' | 'nowMs' | 'policies'>,
  permitted: readonly RuleResult[],
): readonly RuleResult[] {
  const used = new Set(permitted.map(({ exception }) => exception));
  const open = context.exceptions.filter(({ name, expiresMs }) => expiresMs > context.nowMs && !used.has(name));
  const sorted = open.toSorted((a, b) => a.expiresMs - b.expiresMs || compareText(a.name, b.name));
  return sorted.map((one) => {
    const { rule, source, expiresMs, name } = one;
    return { ...result(rule, 'skip', unusedText(context, one), { source, earliestMs: expiresMs }), exception: name };
  });
}

function unusedText({ exceptions, nowMs, policies }: Parameters<typeof unusedExceptions>[0], one: ExceptionDefinition): string {
  const { name, requestedBy, notBeforeMs = nowMs, expiresMs, reason, rule } = one;
  const by = requestedBy === undefined ? '' : ` of ${requestedBy.user}`;
  const from = notBeforeMs > nowMs ? ` from ${preciseText(notBeforeMs)}` : '';
  const fact = `exception ${name}${by} permits ${scopeText(one)}${from} until ${preciseText(expiresMs)} (${reason})`;
  if (!canOverride(rule, policies)) return `${fact}, but the rule accepts no exception`;
  const others = exceptions.filter((other) => other.name !== name && other.rule === rule && overlap(one, other, nowMs));
  if (others.length === 0) return `${fact}; no step needs it now`;
  const names = others.map((other) => other.name).sort();
  return `${fact}, but no exception applies while ${listed(names, 'and')} also matches`;
}

/** Reports whether both exceptions are in force now and cover the same zone. */
function overlap(a: ExceptionDefinition, b: ExceptionDefinition, nowMs: number): boolean {
  const isInForce = ({ notBeforeMs = nowMs, expiresMs }: ExceptionDefinition): boolean => notBeforeMs <= nowMs && nowMs < expiresMs;
  return isInForce(a) && isInForce(b) && (a.zone === undefined || b.zone === undefined || a.zone === b.zone);
}

/** Returns the command that overrides the rule. It first cancels exceptions that do not allow enough, because exceptions never combine. */
export function overrideCommand(
  { group, exceptions, nowMs }: Pick<GroupContext, 'group' | 'exceptions' | 'nowMs'>,
  { rule, zone }: { readonly rule: string; readonly zone: string | undefined },
): string {
  const name = `${group.namespace}/${group.name}`;
  const inForce = exceptions
    .filter((one) => one.rule === rule && one.expiresMs > nowMs && (one.zone === undefined || zone === undefined || one.zone === zone))
    .map((one) => `kubectl rollout-group cancel ${name} ${one.name} && `)
    .sort();
  const place = zone === undefined ? '' : ` --zone ${zone}`;
  return `${inForce.join('')}kubectl rollout-group override ${name} --rule ${rule}${place} --duration 1h --reason REASON --yes`;
}
