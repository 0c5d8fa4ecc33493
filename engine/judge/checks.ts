// Checks API requests by the rules of a group, with one function for each kind of request.

import { labelKeys } from '../../policies/adopt/keys.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { defined } from '../../policies/values/defined.ts';
import { counted, zonesText } from '../../policies/wording.ts';
import { contextOf, type GroupContext, sourceOf } from '../context.ts';
import { decideGroup } from '../decide/decide.ts';
import { desiredReplicas } from '../decide/replicas.ts';
import { newPodsFact } from '../decide/scale.ts';
import { endedStops, mayBlockTemplate, templateStops } from '../decide/stops.ts';
import type { RuleResult, Stop } from '../decision.ts';
import { disruptionVerdict, zoneBudgetsFor } from '../disruption/disruption.ts';
import { denyingBudget, healthFact } from '../disruption/pod-budget.ts';
import { statefulSetInName } from '../observe/cluster.ts';
import { viewGroup, type ZoneView } from '../observe/view.ts';
import { profileOf } from '../profiles.ts';
import { blocks, type Check, result, resultsOf } from '../rule.ts';
import { withException } from '../rules/exception.ts';
import { type PolicyAnswer, type PolicyQuestion, policyAnswer, type Requester, windowResult } from '../rules/policy.ts';
import { type PrepareAnswer, prepareDownscale } from '../rules/prepare.ts';
import { protectedFromOthers } from '../rules/protected.ts';
import { checkReplicas, type ScaleQuestion, scaledObject, setLeavesRules } from '../rules/scale.ts';
import { strategyKept, type UpdateRequest } from '../rules/strategy.ts';
import { zonesOfFailedRun } from '../run/included.ts';
import { cancelRequest } from '../run/requests.ts';
import { newRevisions } from '../run/revisions.ts';
import { type Claim, isUnknown, type PodView, podsNamed, type Snapshot, type StatefulSetView, setNamed } from '../snapshot.ts';
import { exposedClaims } from '../strategies/partition.ts';
import { groupOf, podNamed, type RequestOf } from './admission-claims.ts';
import type { Verdict } from './judge.ts';
import { isReturn } from './restart.ts';

type Change = RequestOf<'scale'> & { readonly from: number; readonly to: number };

interface Member {
  readonly context: GroupContext;
  readonly zone: ZoneView;
}

/** Checks a change of replicas. Without a group, only the label `grafana.com/no-downscale` protects a StatefulSet. */
export function checkScale(snapshot: Snapshot, request: RequestOf<'scale'>): Verdict {
  const verdict = checkReplicaChange(snapshot, request);
  if (verdict.results.some(blocks)) return verdict;
  const { warnings = [] } = forMember(snapshot, request, (member) => ({ results: [], warnings: startsEarly(member, request) }));
  return warnings.length === 0 ? verdict : { ...verdict, warnings: [...(verdict.warnings ?? []), ...warnings] };
}

/** Returns a warning if the scale-up starts pods at a template that the rollout may not bring to them now. */
function startsEarly({ context, zone }: Member, { from = 1, to = 1 }: RequestOf<'scale'>): readonly string[] {
  const { snapshot, group } = context;
  const isUpdated = zone.pods.length > 0 && zone.outdated.length === 0;
  if (to <= from || (isUpdated && !mayBlockTemplate(snapshot, group))) return [];
  return [newPodsFact(context, zone, { from, to }, decideGroup(snapshot, group)) ?? []].flat();
}

function checkReplicaChange(snapshot: Snapshot, request: RequestOf<'scale'>): Verdict {
  const { namespace, statefulSet, from, to } = request;
  const group = groupOf(snapshot, namespace, statefulSet);
  if (group === undefined) {
    const isShrink = from !== undefined && to !== undefined && to < from;
    return { results: isShrink ? forbiddenByLabel(setNamed(snapshot, namespace, statefulSet), 'no-downscale', 'must not shrink') : [] };
  }
  if (profileOf(group).allowsNullReplicas && (from === undefined || to === undefined)) {
    return { results: [], warnings: from === to ? [] : ['old or new replicas are null'] };
  }
  // The API server sets 1 for a manifest without replicas, so null means 1.
  const change = { ...request, from: from ?? 1, to: to ?? 1 };
  return forMember(snapshot, request, (member) => {
    const verdict = change.to < change.from ? checkShrink(member, change) : checkGrowth(member, change);
    return verdict.results.some(blocks) ? verdict : { ...verdict, warnings: [...(verdict.warnings ?? []), ...setBack(member, change)] };
  });
}

function checkGrowth({ context, zone }: Member, request: Change): Verdict {
  return request.from === request.to ? { results: [] } : checkReplicas(scaleQuestionOf(context, zone, request), userOf(request));
}

/** Returns a warning if the agent will change the requested replicas again; [] if other clients set them, or if their number is unknown. */
function setBack({ context, zone }: Member, { from, to }: Change): readonly string[] {
  const desired = from === to ? undefined : desiredReplicas(context, zone);
  if (desired === undefined || blocks(desired.answer) || desired.replicas === to) return [];
  if (desired.replicas < to && cancelRequest(context, zone.zone.name, desired.replicas) !== undefined) return [];
  return [`the agent sets zone ${zone.zone.name} to ${counted(desired.replicas, 'replica')}, because ${desired.answer.fact}`];
}

function checkShrink({ context, zone }: Member, request: Change): Verdict {
  const question = scaleQuestionOf(context, zone, request);
  const { results, policies } = checkReplicas(question, userOf(request));
  if (results.some(({ outcome }) => outcome === 'no')) return { results, policies };
  const prepared = prepareByWebhook(question, request.to);
  const permitted = withException(context, prepared.result, { zone: zone.zone.name, to: request.to });
  // A request that waits for a rule is denied at once if it can never pass.
  if (results.some(blocks)) return { results: prepared.isByAgent ? [...results, permitted] : results, policies };
  // A dry run must not call a pod. It passes as if the pods were prepared.
  const isCalled = profileOf(context.group).preparesInDropInWebhook;
  if (request.dryRun && isCalled && blocks(prepared.result))
    return { results, policies, warnings: ['the pods would be called to prepare'] };
  return { results: [...results, permitted], policies, actions: prepared.actions };
}

interface PreparedByWebhook extends Omit<PrepareAnswer, 'permitted'> {
  /** True if the preparation blocks, and the webhook calls no pod: then the request can never pass. */
  readonly isByAgent: boolean;
}

/** Evaluates the preparation for the write of another client than the agent. Only the webhook of drop-in groups calls pods for such a write. */
function prepareByWebhook(question: ScaleQuestion, to: number): PreparedByWebhook {
  const { result: answer, actions } = prepareDownscale(question, to);
  const isByAgent = blocks(answer) && !profileOf(question.context.group).preparesInDropInWebhook;
  if (!isByAgent) return { result: answer, actions, isByAgent };
  const { rule, fact, source } = answer;
  const text = `${fact}, and only the agent prepares pods: ${wayToShrink(question)}`;
  return { result: result(rule, 'no', text, { source }), actions: [], isByAgent };
}

/** Returns what a person changes so that the agent shrinks the zone. */
function wayToShrink({ context, zone: { zone } }: ScaleQuestion): string {
  const isDirect = zone.replicas.kind === 'leader' && zone.follows === undefined;
  return isDirect ? 'set replicas.count or replicas.mirror' : `scale ${scaledObject(context, zone)} instead`;
}

/** Checks a write of a StatefulSet: its change of replicas, its update strategy and, with a new template, the policies of rollouts. */
export function checkUpdate(snapshot: Snapshot, request: UpdateRequest): Verdict {
  const check = request.isTemplateChanged ? checkReplicaChange : checkScale;
  const scale = check(snapshot, { ...request, kind: 'scale' });
  if (scale.results.some(blocks)) return scale;
  const change = forMember(snapshot, request, ({ context, zone }) => {
    const strategy = strategyKept(context, zone, request).map((one) => withException(context, one, { zone: zone.zone.name }));
    if (!request.isTemplateChanged) return { results: strategy };
    const policies = policyAnswer({ context, action: 'rollout', zone, ...userOf(request) });
    // A policy that holds delays the rollout, not the write of the template. A policy that denies blocks the write itself.
    const denials = policies.results.filter(({ outcome }) => outcome === 'no');
    const permitted = denials.map((one) => withException(context, one, { zone: zone.zone.name, podCount: 1 }));
    const warnings = blocksEndedBy(context, zone).map(({ rule, fact }) => `${rule}: the new template ends a block: ${fact}`);
    return { results: [...strategy, ...permitted], policies, warnings };
  });
  const warnings = [...(scale.warnings ?? []), ...(change.warnings ?? [])];
  return { ...scale, ...change, results: [...scale.results, ...change.results], warnings };
}

/** Returns the stops of the present template of the zone. Another template ends these stops without a request. */
function blocksOfTemplate({ snapshot, group }: GroupContext, { zone }: ZoneView): readonly Stop[] {
  const stops = mayBlockTemplate(snapshot, group) ? templateStops(decideGroup(snapshot, group).stops) : [];
  return stops.filter(({ zones }) => zones.includes(zone.name));
}

/** Returns the stops that a new template of the zone ends. If another zone still has the template of a failed run, the stop of this run stays. */
function blocksEndedBy(context: GroupContext, zone: ZoneView): readonly Stop[] {
  const { snapshot, group } = context;
  const blocked = blocksOfTemplate(context, zone);
  if (blocked.length === 0) return [];
  const written = snapshot.statefulSets.map((set) =>
    set.namespace === group.namespace && set.name === zone.zone.statefulSet
      ? { ...set, status: { ...set.status, updateRevision: `${set.name}-next` } }
      : set,
  );
  return endedStops(blocked, decideGroup({ ...snapshot, statefulSets: written }, group).stops);
}

/** Checks the deletion of a StatefulSet. Without a group, the label that forbids a downscale forbids the deletion too. */
export function checkStatefulSetDeletion(snapshot: Snapshot, request: RequestOf<'deleteStatefulSet'>): Verdict {
  const { namespace, statefulSet, pods = 0 } = request;
  if (groupOf(snapshot, namespace, statefulSet) === undefined) {
    return { results: forbiddenByLabel(setNamed(snapshot, namespace, statefulSet), 'no-delete', 'must not be deleted') };
  }
  return forMember(snapshot, request, ({ context, zone }) => {
    const ordinals = new Set(zone.pods.map(({ ordinal }) => ordinal));
    const question = { context, action: 'delete' as const, zone, ...userOf(request) };
    const asked = { ...question, podCount: pods, removes: (ordinal: number) => ordinals.has(ordinal) };
    return verdictOf(setDeletionChecks, asked, Math.max(zone.replicas, pods));
  });
}

/**
 * Checks a restart, which replaces every pod, one after another. A restart changes the template. So it would end the block of a failed,
 * rolled-back or undone template, and roll this template out. The return to an earlier template is not checked as a restart.
 */
export function checkRestart(snapshot: Snapshot, request: RequestOf<'restart'>): Verdict {
  return forMember(snapshot, request, ({ context, zone }) => {
    if (isReturn(context, zone, request)) return { results: [] };
    const question = { context, action: 'restart' as const, zone, ...userOf(request) };
    return verdictOf(restartChecks, question, Math.max(zone.replicas, zone.pods.length));
  });
}

function templateAllowed({ context, zone }: Member): readonly RuleResult[] {
  return blocksOfTemplate(context, zone).map(({ rule, fact, source, untilMs: earliestMs, isBlocking }) => {
    const limit = `another template${rule === 'rolled-back' && isBlocking ? ', or retry' : ''}`;
    const details = { source, earliestMs, ...(rule === 'run-failed' ? {} : { limit }) };
    return result(rule, rule === 'run-failed' ? 'no' : 'wait', `a restart would ${restartEffect(context, zone, rule)}: ${fact}`, details);
  });
}

/** Returns what a restart under a block of templates would do. In a zone with another template than the failed one, it waits for the other zones. */
function restartEffect(context: GroupContext, { zone: { name }, set }: ZoneView, rule: Stop['rule']): string {
  const { run } = context.view.ledger;
  const isBlocked =
    rule !== 'run-failed' ||
    run === undefined ||
    [newRevisions(run)[name], run.rolledBack?.revisions[name]].includes(set?.status.updateRevision);
  const failed = isBlocked ? [] : zonesOfFailedRun(context, run);
  if (failed.length === 0) return 'roll out a blocked template';
  const have = failed.length === 1 ? 'has' : 'have';
  return `replace no pod while ${zonesText(failed.map(({ zone }) => zone.name))} ${have} the template of the failed run`;
}

export function checkPod(snapshot: Snapshot, request: RequestOf<'deletePod' | 'evictPod'>): Verdict {
  const isEviction = request.kind === 'evictPod';
  const owner = podNamed(snapshot, request.namespace, request.pod);
  if (owner === undefined) return checkUnreadPod(snapshot, request);
  const { set, pod } = owner;
  const group = groupOf(snapshot, request.namespace, set.name);
  if (group === undefined) return isEviction ? checkDisruptionBudget(snapshot, undefined, owner) : { results: [] };
  // The kubelet removes a terminating pod with the same request.
  if (!isEviction && pod.isTerminating) return { results: [] };
  return forMember(snapshot, { namespace: set.namespace, statefulSet: set.name }, ({ context, zone }) => {
    const question = { context, action: isEviction ? ('evict' as const) : ('delete' as const), zone, ...userOf(request) };
    const guard = verdictOf(podChecks, { ...question, removes: (ordinal: number) => ordinal === pod.ordinal }, 1);
    if (!isEviction && group.disruption === undefined) return guard;
    const { code, results: unpermitted } = checkDisruptionBudget(snapshot, group, owner);
    // Each request asks for one pod, so an exception with a limit counts the pods that are down already.
    const podCount = zone.unavailable + 1;
    const budget = unpermitted.map((answer) => withException(context, answer, { zone: zone.zone.name, podCount }));
    const results = [...guard.results, ...budget, ...(isEviction ? deniedByPodBudget(snapshot, owner) : [])];
    if (guard.results.some(blocks)) return { ...guard, results };
    return { ...guard, results, ...defined({ code: budget.some(blocks) ? code : 429 }) };
  });
}

/**
 * Returns the result of a PodDisruptionBudget that denies the eviction; [] if every budget allows it. The eviction API checks the budget after
 * the webhooks. If the eviction passed here, its claim would block the group, and no step of the group could make the budget allow it.
 */
function deniedByPodBudget(snapshot: Snapshot, { set, pod }: OwnedPod): readonly RuleResult[] {
  const denying = denyingBudget(snapshot, set.namespace, pod);
  if (denying === undefined) return [];
  const { budget, health } = denying;
  const details = { limit: `${health.desired} healthy`, source: { object: `PodDisruptionBudget ${budget.namespace}/${budget.name}` } };
  return [result('eviction-budget', 'wait', healthFact(budget, health), details)];
}

function forMember(
  snapshot: Snapshot,
  { namespace, statefulSet }: { readonly namespace: string; readonly statefulSet: string },
  check: (member: Member) => Verdict,
): Verdict {
  const group = groupOf(snapshot, namespace, statefulSet);
  if (group === undefined) return { results: [] };
  const context = contextOf(snapshot, group);
  const zone = context.view.zones.find((view) => view.zone.statefulSet === statefulSet);
  return zone === undefined ? { results: [] } : check({ context, zone });
}

interface PodsQuestion extends PolicyQuestion {
  /** Reports whether the request removes the pod with this ordinal. */
  readonly removes: (ordinal: number) => boolean;
}

interface SetDeletionQuestion extends PodsQuestion {
  readonly podCount: number;
}

type WithPolicies<Question> = Question & { readonly policies: PolicyAnswer };

const calendarAndPolicies: readonly Check<WithPolicies<PolicyQuestion>>[] = [
  { id: 'window', evaluate: ({ context, action }) => windowResult(context, action, 'nothing') }, // the windows are open
  { id: 'policies', evaluate: ({ policies }) => policies.results }, // no rule of a RolloutPolicy blocks
];

/** The checks of the deletion or eviction of a pod. The budgets follow: an exception for a budget counts the pods that are down already. */
const podChecks: readonly Check<WithPolicies<PodsQuestion>>[] = [
  { id: 'no-eviction', evaluate: evictionAllowed }, // the zone allows evictions
  { id: 'protected', evaluate: ({ context, zone, removes }) => protectedFromOthers(context, zone, removes) }, // no person protects the pod
  ...calendarAndPolicies,
];

/** The checks of the deletion of a StatefulSet. */
const setDeletionChecks: readonly Check<WithPolicies<SetDeletionQuestion>>[] = [
  { id: 'no-delete', evaluate: deletionAllowed }, // the StatefulSet may be deleted
  { id: 'protected', evaluate: ({ context, zone, removes }) => protectedFromOthers(context, zone, removes) }, // no person protects a pod
  { id: 'scale-down', evaluate: podsMayLeave }, // the zone may shrink to 0
  ...calendarAndPolicies,
];

/** The checks of a restart. */
const restartChecks: readonly Check<WithPolicies<PolicyQuestion>>[] = [
  { id: 'template', evaluate: templateAllowed }, // no stop blocks the present template
  ...calendarAndPolicies,
];

/** Runs the checks. An exception for this number of pods may permit any result. */
function verdictOf<Question extends PolicyQuestion>(
  checks: readonly Check<WithPolicies<Question>>[],
  question: Question,
  podCount: number,
): Verdict {
  const { context, zone } = question;
  const policies = policyAnswer(question);
  const results = checks.flatMap((check) => resultsOf(check, { ...question, policies }));
  return { results: results.map((one) => withException(context, one, { zone: zone.zone.name, podCount })), policies };
}

function evictionAllowed({ context, action, zone: { zone } }: PodsQuestion): RuleResult | undefined {
  if (action !== 'evict' || !zone.noEviction) return undefined;
  return result('no-eviction', 'no', `zone ${zone.name} allows no eviction`, { source: sourceOf(context, `zones.${zone.name}.protect`) });
}

function deletionAllowed({ context, zone: { zone } }: Member): RuleResult | undefined {
  if (!zone.noDelete) return undefined;
  return result('no-delete', 'no', `zone ${zone.name} must not be deleted`, { source: sourceOf(context, `zones.${zone.name}.protect`) });
}

function forbiddenByLabel(set: StatefulSetView | undefined, rule: string, what: string): readonly RuleResult[] {
  if (set?.labels[labelKeys.noDownscale] !== 'true') return [];
  const source = { object: `StatefulSet ${set.namespace}/${set.name}`, field: `metadata.labels[${labelKeys.noDownscale}]` };
  return [result(rule, 'no', `${set.name} ${what}`, { limit: `${labelKeys.noDownscale}=true`, source })];
}

/** Returns the question of the scale rules. A number equal to the forced number of the zone counts as forced. */
function scaleQuestionOf(context: GroupContext, zone: ZoneView, { from, to }: Pick<Change, 'from' | 'to'>): ScaleQuestion {
  return { context, zone, from, to, isForced: zone.zone.forceReplicas === to, run: context.view.ledger.run, asker: 'admission' };
}

function userOf({ user, groups }: Requester): Requester {
  return defined({ user, groups });
}

/** Returns the results of a downscale to 0, because the deletion removes the pods too; [] without pods and for adopted groups. */
function podsMayLeave({ context, zone, podCount }: SetDeletionQuestion): readonly RuleResult[] {
  if (podCount === 0 || !profileOf(context.group).checksEveryDownscale) return [];
  const question = scaleQuestionOf(context, zone, { from: podCount, to: 0 });
  return setLeavesRules.map((rule) => rule({ ...question, isForced: false }));
}

interface OwnedPod {
  readonly set: StatefulSetView;
  readonly pod: PodView;
}

/**
 * Blocks the eviction of an unread pod if its name shows that it belongs to a member, or that a budget may select it. Does not judge the
 * deletion of a member's pod, because the kubelet removes a terminating pod with the same request.
 */
function checkUnreadPod(snapshot: Snapshot, { kind, namespace, pod }: RequestOf<'deletePod' | 'evictPod'>): Verdict {
  const statefulSet = statefulSetInName(pod);
  const group = statefulSet === undefined ? undefined : groupOf(snapshot, namespace, statefulSet);
  const zone = group === undefined ? undefined : viewGroup(snapshot, group).zones.find((view) => view.zone.statefulSet === statefulSet);
  if (kind === 'deletePod') return { results: [], ...defined({ unjudged: zone?.unknown }) };
  const unknown = zone === undefined ? unreadUnderBudget(snapshot, setNamed(snapshot, namespace, statefulSet ?? '')) : zone.unknown;
  return unknown === undefined ? { results: [] } : { results: [result('view-complete', 'unknown', unknown)], code: 500 };
}

/** Returns why the pods of the StatefulSet are unknown, if a ZoneAwarePodDisruptionBudget may select them. */
function unreadUnderBudget({ pods, zoneBudgets }: Snapshot, set: StatefulSetView | undefined): string | undefined {
  const known = set === undefined ? undefined : podsNamed({ pods }, set.namespace, set.name);
  if (set === undefined || known === undefined || !isUnknown(known)) return undefined;
  const isSelected = isUnknown(zoneBudgets) || zoneBudgetsFor(zoneBudgets, set.namespace, set.podLabels).length > 0;
  return isSelected ? `the pods of ${set.name} could not be read: ${known.unknown}` : undefined;
}

/** Returns the verdict of the disruption budget, counting the disruptions of open claims as if they had happened. */
function checkDisruptionBudget(snapshot: Snapshot, group: GroupDefinition | undefined, { set, pod }: OwnedPod): Verdict {
  if (isUnknown(snapshot.zoneBudgets)) {
    return {
      results: [result('disruption-budget', 'unknown', `disruption budgets could not be read: ${snapshot.zoneBudgets.unknown}`)],
      code: 500,
    };
  }
  const claims = group === undefined ? [] : announcedPods(snapshot, group);
  const verdict = disruptionVerdict({ snapshot, set, pod, claims, requester: 'eviction', ...(group === undefined ? {} : { group }) });
  const source = verdict.budget === undefined ? group?.sources['disruption'] : { object: verdict.budget };
  const details = { source, earliestMs: verdict.earliestMs, ...(verdict.limit === undefined ? {} : { limit: `${verdict.limit}` }) };
  return {
    results: [result('disruption-budget', verdict.allowed ? 'ok' : verdict.code === 429 ? 'wait' : 'no', verdict.message, details)],
    code: verdict.code,
  };
}

/** Returns the open claims, and a claim for each pod that the claim of a scale-down removes or that a partition exposes. */
function announcedPods(snapshot: Snapshot, group: GroupDefinition): readonly Claim[] {
  const view = viewGroup(snapshot, group);
  if (!profileOf(group).checksEveryDownscale) return view.ledger.claims;
  const leaving = view.zones.flatMap(({ zone, claims, set, pods: members }) =>
    claims
      .filter((claim) => claim.verb === 'scaleDown')
      .flatMap(({ to = 0 }) => members.filter((pod) => pod.ordinal >= (set?.firstOrdinal ?? 0) + to))
      .map(({ uid, ordinal }): Claim => ({ verb: 'deletePod', zone: zone.name, uid, ordinal, atMs: snapshot.nowMs })),
  );
  return [...view.ledger.claims, ...leaving, ...exposedClaims({ view, nowMs: snapshot.nowMs })];
}
