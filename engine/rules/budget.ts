// Chooses the pods of a zone to replace now, by its budget, the disruption budget and the eviction budget.
import type { ExceptionDefinition, Source } from '../../policies/definition.ts';
import { exceptionFor } from '../../policies/join.ts';
import { desiredHealthy, type ZeroBudget, zeroBudgetOf } from '../../policies/objects/pod-budget.ts';
import { traitsOf } from '../../policies/strategies.ts';
import { counted } from '../../policies/wording.ts';
import { unavailableLimit } from '../amount.ts';
import { sourceOf } from '../context.ts';
import type { RuleResult } from '../decision.ts';
import { type DisruptionVerdict, disruptionVerdict } from '../disruption/disruption.ts';
import { budgetHealth, budgetsFor, healthFact } from '../disruption/pod-budget.ts';
import { openClaimLimit } from '../ledger/ledger.ts';
import { claimNote } from '../observe/view.ts';
import { blocks, earliest, result } from '../rule.ts';
import { type Claim, isUnknown, type PodBudgetView, type PodView } from '../snapshot.ts';
import { exposedClaims } from '../strategies/partition.ts';
import { type ChosenPod, strategyOf } from '../strategies/strategy.ts';
import { permissionText, withException } from './exception.ts';
import { isClaimed, isShrinkHeld, isStuck, isUp, mayRepairDespiteOthers, stuckInstants } from './pod-state.ts';
import { isProtected, protectedResult } from './protected.ts';
import { notPaused, type RollQuestion } from './roll.ts';

export interface PodChoice {
  readonly chosen: readonly ChosenPod[];
  /** Every pod that the wave still replaces, in the order of replacement. */
  readonly queue: readonly PodView[];
  readonly results: readonly RuleResult[];
  /** The answers of the zone-aware disruption budgets, one for each pod within the budget of the zone. */
  readonly answers: readonly DisruptionVerdict[];
}

interface ZoneLimit {
  readonly limit: number;
  readonly source: RuleResult['source'];
  /** A clause that names the PodDisruptionBudget with a limit of 0 and the cause; absent for every other limit. */
  readonly because?: string;
  /** Number of healthy pods that the PodDisruptionBudget requires; only for a limit of 0 that ends when another pod becomes healthy. */
  readonly desired?: number;
  readonly exception?: ExceptionDefinition;
}

function zoneLimit({ context, zone }: RollQuestion): ZoneLimit {
  const { view } = zone;
  const { maxUnavailable, name } = view.zone;
  const budget = maxUnavailable === 'fromBudget' ? budgetLimit({ context, zone }) : undefined;
  const own = maxUnavailable === 'fromBudget' ? (budget?.limit ?? 1) : unavailableLimit(maxUnavailable, view.replicas);
  // A count and a percentage can be compared only for a known number of replicas, so the strictest limit is found here and not in `join.ts`.
  const caps = context.policies.flatMap(({ limits, limitSources }) =>
    limits.maxUnavailable === undefined
      ? []
      : [{ limit: unavailableLimit(limits.maxUnavailable, view.replicas), source: limitSources['maxUnavailable'] }],
  );
  const cap = caps.sort((a, b) => a.limit - b.limit)[0];
  const permitted = permittedAt({ context, zone }, context.nowMs);
  if (permitted !== undefined && permitted.limit > Math.min(own, cap?.limit ?? own)) return permitted;
  // If both limits are 0, the permanent limit counts.
  if (cap !== undefined && (cap.limit < own || (cap.limit === 0 && budget?.desired !== undefined))) return cap;
  if (budget?.because !== undefined) return budget;
  return { limit: own, source: sourceOf(context, `zones.${name}.maxUnavailable`) };
}

/** Returns how many pods the single exception in force at an instant permits, and where it is defined. */
function permittedAt({ context, zone: { view } }: Pick<RollQuestion, 'context' | 'zone'>, atMs: number): ZoneLimit | undefined {
  const found = exceptionFor(context.exceptions, 'zone-budget', { group: context.group.name, zone: view.zone.name }, atMs);
  if (found.kind !== 'one') return undefined;
  const { exception } = found;
  const { allow, source } = exception;
  return { limit: allow.anything === true ? view.replicas : (allow.podsAtMost ?? 0), source, exception };
}

/** Returns the first future instant at which an exception permits a pod. If exceptions overlap, no exception applies until one ends. */
function permittedAgainMs(question: RollQuestion): number | undefined {
  const { exceptions, nowMs } = question.context;
  const instants = exceptions.flatMap(({ notBeforeMs, expiresMs }) => [notBeforeMs ?? nowMs, expiresMs]);
  return earliest(instants.filter((atMs) => atMs > nowMs && (permittedAt(question, atMs)?.limit ?? 0) > 0));
}

/**
 * Returns how many pods of the zone the PodDisruptionBudgets allow to be unavailable; undefined without a budget. If a budget requires at
 * least as many pods as the zone has, the limit is 1 while more pods are healthy than it requires: a budget may select several zones.
 */
function budgetLimit({ context, zone }: Pick<RollQuestion, 'context' | 'zone'>): ZoneLimit | undefined {
  const { replicas, set, unavailableCount } = zone.view;
  const limits = budgetsFor(context.snapshot, context.group.namespace, set?.podLabels ?? {}).map((budget): ZoneLimit => {
    const zeroBudget = zeroBudgetOf(budget);
    if (zeroBudget !== undefined) {
      const because = `PodDisruptionBudget ${budget.name} allows no disruption: ${zeroBudget.text}`;
      return { limit: 0, source: sourceIn(budget, zeroBudget), because };
    }
    const own = replicas - desiredHealthy(budget, replicas);
    if (own > 0) return { limit: own, source: undefined };
    const { healthy, expected, desired } = budgetHealth(context.snapshot, budget);
    // Unavailable pods of the zone already use their part of the budget.
    if (Math.max(0, healthy - desired) + unavailableCount > 0) return { limit: 1, source: undefined };
    const because = `PodDisruptionBudget ${budget.name} requires ${desired} of ${expected} pods: ${healthy} healthy`;
    return { limit: 0, source: { object: `PodDisruptionBudget ${budget.namespace}/${budget.name}` }, because, desired };
  });
  // If two limits are 0, the permanent limit counts.
  return limits.sort((a, b) => a.limit - b.limit || Number(a.desired !== undefined) - Number(b.desired !== undefined))[0];
}

/** Returns the field of the budget that allows no disruption. */
function sourceIn({ namespace, name }: PodBudgetView, { field }: ZeroBudget): Source {
  return { object: `PodDisruptionBudget ${namespace}/${name}`, ...(field === undefined ? {} : { field: `spec.${field}` }) };
}

/** Returns the limit of the zone, or the lower number of pods that the exception permits at once. */
function withinException(own: ZoneLimit, exception: ExceptionDefinition | undefined): ZoneLimit {
  const { allow: { podsAtMost } = {}, source } = exception ?? {};
  return podsAtMost === undefined || podsAtMost >= own.limit ? own : { limit: podsAtMost, source };
}

/**
 * Chooses the pods to replace now. The order of the input lists does not matter. `exception` permits the step: it limits the pods that are
 * unavailable at once.
 */
export function choosePods(question: RollQuestion, exception?: ExceptionDefinition): PodChoice {
  const { view } = question.zone;
  const allowed = withinException(zoneLimit(question), exception);
  const { limit } = allowed;
  const { context } = question;
  const strategy = strategyOf(context.group);
  const queue = strategy.queuePods(question);
  const free = Math.max(0, limit - view.unavailableCount);
  // The StatefulSet controller would create the successors of several pods one after the other.
  const cap = view.set?.podManagementPolicy === 'OrderedReady' ? 1 : Math.max(1, limit);
  const pickable = strategy.choosePods(question, queue, { free, cap });
  const isRepair = mayRepairDespiteOthers(context, view) || context.view.zones.some((one) => isShrinkHeld(context, one));
  const candidates = isRepair ? pickable.filter(({ because }) => because === 'stuck').slice(0, 1) : pickable;
  // Every replacement needs a claim, so the free claims of the ledger limit the number of pods.
  const announceable = candidates.slice(0, Math.max(0, openClaimLimit - context.view.ledger.claims.length));
  const open = announceable.filter(({ pod }) => !isProtected(context, view, pod.ordinal));
  const picked = strategy.withoutDenied(announceable, open);
  const fact = `${view.unavailableCount} of at most ${counted(limit, 'pod')} unavailable in zone ${view.zone.name}${claimNote(view)}`;
  const budget = picked.length > 0 || free > 0 ? withinLimit(fact, allowed) : spent(question, queue, fact, allowed);
  const disruption = underDisruptionBudget(question, picked, limit);
  const evicted = underEvictionBudget(question, disruption.chosen, queue);
  const withheld = announceable.length > 0 && picked.length === 0 ? announceable.map(({ pod }) => pod.ordinal) : [];
  // The protection of a whole zone has its own result.
  const kept = protectedResult(context, view) === undefined ? protectedResult(context, view, (one) => withheld.includes(one)) : undefined;
  return {
    chosen: evicted.chosen,
    queue,
    results: [budget, ...(withheld.length === 0 || kept === undefined ? [] : [kept]), ...disruption.results, ...evicted.results],
    answers: disruption.answers,
  };
}

function withinLimit(fact: string, { limit, source, exception }: ZoneLimit): RuleResult {
  const details = { limit: `${limit}`, source };
  if (exception === undefined) return result('zone-budget', 'ok', fact, details);
  const permitted = { ...details, earliestMs: exception.expiresMs };
  return { ...result('zone-budget', 'ok', `${fact}; ${permissionText(exception)}`, permitted), exception: exception.name };
}

/** Returns the result of an exhausted budget: `no` if the limit is 0 and only a person can raise it, otherwise `wait`. */
function spent(question: RollQuestion, queue: readonly PodView[], fact: string, allowed: ZoneLimit): RuleResult {
  const { context, zone } = question;
  const { limit, source, because, desired } = allowed;
  // With a limit of 0, the next pod is one that becomes stuck: a stuck pod needs no budget.
  const freed = [zone.view.availableAtMs, ...(limit === 0 ? stuckInstants(context, zone.view, queue) : [])];
  const none = `no pod of zone ${zone.view.zone.name} may be replaced${because === undefined ? '' : `: ${because}`}`;
  if (desired !== undefined)
    return result('zone-budget', 'wait', none, {
      limit: `${desired} healthy`,
      source,
      earliestMs: earliest([...freed, permittedAgainMs(question)]),
    });
  const permittedMs = limit === 0 ? permittedAgainMs(question) : undefined;
  if (limit === 0 && permittedMs === undefined && needsPerson(question, queue))
    return result('zone-budget', 'no', none, { limit: '0', source });
  const details = { limit: `${limit}`, source, earliestMs: earliest([...freed, permittedMs]) };
  return result('zone-budget', 'wait', permittedMs === undefined ? fact : `${none} until an exception applies`, details);
}

/** Reports whether a limit of 0 blocks these pods until a person acts. Stuck pods need no budget, and a pause is intended. */
function needsPerson(question: RollQuestion, candidates: readonly PodView[]): boolean {
  const { context, zone } = question;
  if (blocks(notPaused(context, zone.view.zone))) return false;
  const movable = candidates.filter((pod) => pod.nodeReady && !pod.isTerminating && !isClaimed(zone.view, pod));
  const canGetStuck = (pod: PodView): boolean => isStuck(context, zone.view, { ...pod, waitingReasons: ['CrashLoopBackOff'] });
  return movable.length > 0 && !movable.some(canGetStuck);
}

interface Filtered {
  readonly chosen: readonly ChosenPod[];
  readonly results: readonly RuleResult[];
}

/** Checks each pod against the zone-aware disruption budget. A chosen pod counts as disrupted for the pods after it. */
function underDisruptionBudget(
  question: RollQuestion,
  picked: readonly ChosenPod[],
  override: number,
): Filtered & Pick<PodChoice, 'answers'> {
  const { context, zone } = question;
  const { snapshot, group } = context;
  const { set } = zone.view;
  const { zoneBudgets } = snapshot;
  if (set === undefined || picked.length === 0) return { chosen: picked, results: [], answers: [] };
  const chosen: ChosenPod[] = [];
  const answers: DisruptionVerdict[] = [];
  const claims: Claim[] = [...context.view.ledger.claims, ...exposedClaims(context)];
  let denial: RuleResult | undefined;
  let allowance: RuleResult | undefined;
  for (const candidate of picked) {
    const { pod, because } = candidate;
    // A stuck pod is down already, so its replacement uses no budget. Else stuck pods of two zones would keep each other.
    if (because === 'stuck') {
      chosen.push(candidate);
      continue;
    }
    const verdict = disruptionVerdict({ snapshot, group, set, pod, claims, override, requester: 'rollout' });
    answers.push(verdict);
    const answer = disruptionResult(question, pod, verdict, downAtOnce(question, [...chosen, candidate]));
    if (blocks(answer)) {
      denial ??= answer;
      continue;
    }
    allowance ??= answer;
    chosen.push(candidate);
    claims.push({ verb: 'deletePod', zone: zone.view.zone.name, uid: pod.uid, ordinal: pod.ordinal, atMs: context.nowMs });
  }
  if (isUnknown(zoneBudgets)) {
    const unread = result('disruption-budget', 'unknown', `disruption budgets could not be read: ${zoneBudgets.unknown}`);
    const answerFor = (count: number): RuleResult =>
      withException(context, unread, { zone: zone.view.zone.name, podCount: downAtOnce(question, picked.slice(0, count)) });
    const permittedCount = picked.findLastIndex((_, index) => !blocks(answerFor(index + 1))) + 1;
    const permitted = strategyOf(group).withoutDenied(picked, picked.slice(0, permittedCount));
    return { chosen: permitted, results: [answerFor(Math.max(1, permittedCount))], answers };
  }
  if (zoneBudgets.length === 0 && group.disruption === undefined) return { chosen: picked, results: [], answers };
  const permitted = strategyOf(group).withoutDenied(picked, chosen);
  const answer = permitted.length > 0 ? allowance : denial;
  return { chosen: permitted, results: answer === undefined ? [] : [answer], answers };
}

/** Returns how many pods of the zone are unavailable at once if these pods are replaced. */
function downAtOnce({ context, zone: { view } }: RollQuestion, replaced: readonly ChosenPod[]): number {
  return view.unavailableCount + replaced.filter(({ pod }) => isUp(context, view, pod)).length;
}

/** Returns the result for one pod. `podCount` is the number of pods that would be unavailable at once, for exceptions. */
function disruptionResult({ context, zone }: RollQuestion, pod: PodView, verdict: DisruptionVerdict, podCount: number): RuleResult {
  const source = verdict.budget === undefined ? sourceOf(context, 'disruption') : { object: verdict.budget };
  const limit = verdict.limit === undefined ? undefined : `${verdict.limit}`;
  if (verdict.allowed) return result('disruption-budget', 'ok', verdict.message, { limit, source });
  const { earliestMs } = verdict;
  // Time or progress ends the denial of an exhausted budget (429). A person must end any other denial.
  const outcome = verdict.code === 429 ? 'wait' : 'no';
  const denial = result('disruption-budget', outcome, `${pod.name}: ${verdict.message}`, { limit, source, earliestMs });
  return withException(context, denial, { zone: zone.view.zone.name, podCount });
}

/**
 * Returns the pods that the PodDisruptionBudgets allow to be evicted, because the eviction API rejects the others. Stuck pods are deleted,
 * not evicted.
 */
function underEvictionBudget(question: RollQuestion, picked: readonly ChosenPod[], queue: readonly PodView[]): Filtered {
  const { context, zone } = question;
  // The StatefulSet controller checks no budget, so the agent checks the budgets before it exposes pods.
  const isForController = traitsOf(context.group).lowersPartition;
  if ((context.group.rollout.rotateBy !== 'evict' && !isForController) || picked.length === 0) return { chosen: picked, results: [] };
  const { podBudgets } = context.snapshot;
  if (isUnknown(podBudgets))
    return { chosen: [], results: [result('eviction-budget', 'unknown', `PodDisruptionBudgets could not be read: ${podBudgets.unknown}`)] };
  const budgets = budgetsFor(context.snapshot, context.group.namespace, picked[0]?.pod.labels ?? {});
  const spare = (one: PodBudgetView): number => {
    const { healthy, desired } = budgetHealth(context.snapshot, one);
    return healthy - desired;
  };
  const budget = isForController ? [...budgets].sort((a, b) => spare(a) - spare(b))[0] : budgets[0];
  if (budget === undefined) return { chosen: picked, results: [] };
  const source = { object: `PodDisruptionBudget ${budget.namespace}/${budget.name}` };
  if (budgets.length > 1 && !isForController) {
    const fact = `${budgets.length} PodDisruptionBudgets select these pods (${budgets.map(({ name }) => name).join(', ')}); the eviction API accepts at most one`;
    const stuck = picked.filter(({ because }) => because === 'stuck');
    return { chosen: stuck, results: [result('eviction-budget', stuck.length > 0 ? 'ok' : 'no', fact, { source })] };
  }
  const health = budgetHealth(context.snapshot, budget);
  const { healthy, desired } = health;
  // Pods that the controller is about to replace still count as healthy in the budget, so they are subtracted.
  const exposedCount = zone.view.exposedByPartition.filter((pod) => isUp(context, zone.view, pod)).length;
  let left = Math.max(0, healthy - desired - exposedCount);
  const permitted = picked.filter(
    (candidate) => candidate.because === 'stuck' || (isUp(context, zone.view, candidate.pod) ? left-- > 0 : healthy >= desired),
  );
  const chosen = strategyOf(context.group).withoutDenied(picked, permitted);
  const zeroBudget = zeroBudgetOf(budget);
  if (chosen.length === 0 && zeroBudget !== undefined && needsPerson(question, queue)) {
    const fact = `PodDisruptionBudget ${budget.name} allows no eviction: ${zeroBudget.text}`;
    return { chosen, results: [result('eviction-budget', 'no', fact, { limit: '0', source: sourceIn(budget, zeroBudget) })] };
  }
  const fact = healthFact(budget, health);
  const details = { limit: `${desired} healthy`, source, earliestMs: zone.view.availableAtMs };
  return { chosen, results: [result('eviction-budget', chosen.length > 0 ? 'ok' : 'wait', fact, details)] };
}
