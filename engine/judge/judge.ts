// judge: may this API request pass, and why not. The same rules as decide, asked by somebody else.
import { labelKeys } from '../../policies/adopt/keys.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { formatDuration } from '../../policies/duration.ts';
import type { PolicyAction } from '../../policies/schema/rollout-policy.ts';
import { contextOf, type GroupContext, protectSource, sourceOf } from '../context.ts';
import type { Action, AdmissionRequest, Judgement, RuleResult } from '../decision.ts';
import { disruptionVerdict } from '../disruption/disruption.ts';
import { viewGroup, type ZoneView } from '../observe/view.ts';
import { profileOf } from '../profiles.ts';
import { blocks, denialText, isPreparation, leadingResult, result } from '../rule.ts';
import { withException } from '../rules/exception.ts';
import { type PolicyAnswer, policyAnswer } from '../rules/policy.ts';
import { prepareDownscale } from '../rules/prepare.ts';
import { leavingOrdinals, protectedFromOthers } from '../rules/protected.ts';
import { type ScaleQuestion, scaleCeiling, scaleDownRules, setLeavesRules } from '../rules/scale.ts';
import { strategyKept, type UpdateRequest } from '../rules/strategy.ts';
import { windowResult } from '../rules/window.ts';
import { type Claim, isUnknown, type PodView, type Snapshot, type StatefulSetView } from '../snapshot.ts';
import { releasedClaims } from '../strategies/partition/writes.ts';
import { announcedByAgent, grantedBefore, groupOf, podNamed, setNamed } from './admission-claims.ts';
import { namespaceEnds } from './exemption.ts';
import { protectionKept } from './protection.ts';
import { decisionId, describe } from './request-text.ts';

interface Verdict {
  readonly results: readonly RuleResult[];
  readonly policies?: PolicyAnswer;
  readonly warnings?: readonly string[];
  /** Calls that must be made before the request can pass. */
  readonly actions?: readonly Action[];
  /** HTTP status of a denial. */
  readonly code?: number;
}

/**
 * Judges one API request. Pure, like decide. Objects that no group and no label protects are always allowed. Whatever is unknown about a
 * protected object denies. With outcome `prepare` the caller makes the calls, adds the answers to the ledger and asks again; a denial may
 * carry calls too, which take back what was prepared.
 */
export function judge(snapshot: Snapshot, request: AdmissionRequest): Judgement {
  const verdict = verdictOn(snapshot, request);
  const warnings = [...(verdict.warnings ?? []), ...(verdict.policies?.warnings ?? []).map((answer) => `${answer.rule}: ${answer.fact}`)];
  const refusals = verdict.results.filter(blocks);
  const actions = verdict.actions ?? [];
  const asks = actions.some((action) => action.kind === 'callPods' && action.method === 'POST');
  const waitsForCalls = asks && refusals.every((answer) => isPreparation(answer) && answer.outcome === 'wait');
  const outcome = refusals.length === 0 ? 'allow' : waitsForCalls ? 'prepare' : 'deny';
  const leading = leadingResult(verdict.results);
  return {
    outcome,
    code: outcome === 'deny' ? (verdict.code === undefined || verdict.code === 200 ? 403 : verdict.code) : 200,
    request,
    message:
      leading === undefined
        ? `${describe(request)} is allowed`
        : denialText(`${describe(request)} in namespace ${request.namespace}`, leading),
    effect: effectOf(refusals, verdict.policies),
    results: verdict.results,
    warnings,
    actions: outcome === 'allow' ? [] : actions,
    decisionId: decisionId(snapshot, request, leading?.rule),
  };
}

function effectOf(refusals: readonly RuleResult[], policies: PolicyAnswer | undefined): Judgement['effect'] {
  const effects = policies?.effects ?? [];
  const own = refusals.filter((answer) => !answer.rule.includes('/'));
  if (own.some((answer) => answer.outcome !== 'wait')) return 'deny';
  const ofPolicies = refusals.length > own.length ? effects : [];
  if (ofPolicies.includes('deny')) return 'deny';
  if (own.length > 0 || ofPolicies.includes('hold')) return 'hold';
  if (ofPolicies.includes('requireApproval')) return 'requireApproval';
  return effects.includes('warn') ? 'warn' : 'allow';
}

function verdictOn(snapshot: Snapshot, request: AdmissionRequest): Verdict {
  const passing = namespaceEnds(snapshot, request) ?? announcedByAgent(snapshot, request);
  if (passing !== undefined) return { results: [passing] };
  const verdict = verdictOfRules(snapshot, request);
  const more = [...protectionKept(snapshot, request), ...grantedBefore(snapshot, request)];
  return more.length === 0 ? verdict : { ...verdict, results: [...verdict.results, ...more] };
}

function verdictOfRules(snapshot: Snapshot, request: AdmissionRequest): Verdict {
  switch (request.kind) {
    case 'scale':
      return onScale(snapshot, request);
    case 'update':
      return onUpdate(snapshot, request);
    case 'deleteStatefulSet':
      if (groupOf(snapshot, request.namespace, request.statefulSet) === undefined) return onDeleteOutsideGroups(snapshot, request);
      return onMember(snapshot, request, (context, zone) => {
        const own = protection(context, zone, 'noDelete', 'must not be deleted');
        const kept = protectedFromOthers(
          context,
          zone,
          zone.pods.map(({ ordinal }) => ordinal),
        );
        const podCount = Math.max(zone.replicas, request.pods ?? 0);
        return guarded(context, zone, 'delete', [...own, ...kept, ...podsMayLeave(context, zone, request.pods ?? 0)], {
          ...request,
          podCount,
        });
      });
    case 'restart':
      // Each of its pods is replaced, though one after the other.
      return onMember(snapshot, request, (context, zone) =>
        guarded(context, zone, 'restart', [], { ...request, podCount: Math.max(zone.replicas, zone.pods.length) }),
      );
    case 'deletePod':
    case 'evictPod':
      return onPod(snapshot, request);
  }
}

type Judge = (context: GroupContext, zone: ZoneView) => Verdict;

function onMember(snapshot: Snapshot, request: { readonly namespace: string; readonly statefulSet: string }, judgeMember: Judge): Verdict {
  const group = groupOf(snapshot, request.namespace, request.statefulSet);
  if (group === undefined) return { results: [] };
  const context = contextOf(snapshot, group);
  const zone = context.view.zones.find((view) => view.zone.statefulSet === request.statefulSet);
  return zone === undefined ? { results: [] } : judgeMember(context, zone);
}

/** `field` is that of `protect` which asks for it. */
function protection(context: GroupContext, zone: ZoneView, field: 'noDelete' | 'noEviction', what: string): readonly RuleResult[] {
  if (!zone.zone[field]) return [];
  const rule = field === 'noDelete' ? 'no-delete' : 'no-eviction';
  return [result(rule, 'no', `zone ${zone.zone.name} ${what}`, { source: protectSource(context, zone.zone.name, field) })];
}

function guarded(
  context: GroupContext,
  zone: ZoneView,
  action: PolicyAction,
  own: readonly RuleResult[],
  { podCount = 1, ...asked }: { readonly user?: string; readonly podCount?: number },
): Verdict {
  const policies = policyAnswer({ context, action, zone, ...userOf(asked) });
  const results = [...own, windowResult(context, action, 'nothing'), ...policies.results];
  return { results: results.map((answer) => withException(context, answer, { zone: zone.zone.name, podCount })), policies };
}

type ScaleRequest = Extract<AdmissionRequest, { kind: 'scale' }>;

function onScale(snapshot: Snapshot, request: ScaleRequest): Verdict {
  const group = groupOf(snapshot, request.namespace, request.statefulSet);
  if (group === undefined) return onScaleOutsideGroups(snapshot, request);
  if (profileOf(group).allowsNullReplicas && (request.from === undefined || request.to === undefined)) {
    return { results: [], warnings: request.from === request.to ? [] : ['old or new replicas are null'] };
  }
  // The API server fills in 1 where a manifest names no replicas, so that is what a null asks for.
  const from = request.from ?? 1;
  const to = request.to ?? 1;
  return onMember(snapshot, request, (context, zone) => (to < from ? onShrink : onGrow)(context, zone, { ...request, from, to }));
}

/** StatefulSets of no group are protected by the label of grafana/rollout-operator alone. */
function onScaleOutsideGroups(snapshot: Snapshot, request: ScaleRequest): Verdict {
  if (request.from === undefined || request.to === undefined || request.to >= request.from) return { results: [] };
  return { results: labelled(setNamed(snapshot, request.namespace, request.statefulSet), 'no-downscale', 'must not shrink') };
}

/** What may not shrink may not go as a whole either. */
function onDeleteOutsideGroups(snapshot: Snapshot, request: { readonly namespace: string; readonly statefulSet: string }): Verdict {
  return { results: labelled(setNamed(snapshot, request.namespace, request.statefulSet), 'no-delete', 'must not be deleted') };
}

function labelled(set: StatefulSetView | undefined, rule: string, what: string): readonly RuleResult[] {
  if (set?.labels[labelKeys.noDownscale] !== 'true') return [];
  const source = { object: `StatefulSet ${set.namespace}/${set.name}`, field: `metadata.labels[${labelKeys.noDownscale}]` };
  return [result(rule, 'no', `${set.name} ${what}`, { limit: `${labelKeys.noDownscale}=true`, source })];
}

type Change = ScaleRequest & { readonly from: number; readonly to: number };

function onGrow(context: GroupContext, zone: ZoneView, request: Change): Verdict {
  if (request.from === request.to) return { results: [] };
  const question = admissionQuestion(context, zone, request);
  const policies = policyAnswer({ context, action: 'scaleUp', zone, change: question, ...userOf(request) });
  const results = [scaleCeiling.evaluate(question), windowResult(context, 'scaleUp', 'nothing'), ...policies.results];
  return { results: results.map((answer) => withException(context, answer, { zone: zone.zone.name, to: request.to })), policies };
}

/** A person's number is the forced one when the group says so; whoever writes it carries out what was decided. */
function admissionQuestion(context: GroupContext, zone: ZoneView, { from, to }: Pick<Change, 'from' | 'to'>): ScaleQuestion {
  return { context, zone, from, to, isForced: zone.zone.forceReplicas === to, run: context.view.ledger.run, asker: 'admission' };
}

function userOf({ user }: { readonly user?: string }): { readonly user?: string } {
  return user === undefined ? {} : { user };
}

function onShrink(context: GroupContext, zone: ZoneView, request: Change): Verdict {
  const question = admissionQuestion(context, zone, request);
  const policies = policyAnswer({ context, action: 'scaleDown', zone, change: question, ...userOf(request) });
  const permit = (answer: RuleResult): RuleResult => withException(context, answer, { zone: zone.zone.name, to: request.to });
  const first = [
    ...scaleDownRules.map((rule) => rule.evaluate(question)),
    ...protectedFromOthers(context, zone, leavingOrdinals(zone, question)),
    ...delayKept(question),
    windowResult(context, 'scaleDown', 'nothing'),
    ...policies.results,
  ].map(permit);
  if (first.some(blocks)) return { results: first, policies };
  const prepared = prepareDownscale(question, request.to);
  // A dry run must not call a pod, so it is answered as if they were prepared.
  if (request.dryRun && blocks(prepared.result)) return { results: first, policies, warnings: ['pods would be asked to prepare'] };
  return { results: [...first, permit(prepared.result)], policies, actions: prepared.actions };
}

/** The pods of a StatefulSet leave with it: its zone goes down like one that shrinks to nothing. Adopted groups ask for nothing of the kind. */
function podsMayLeave(context: GroupContext, zone: ZoneView, podCount: number): readonly RuleResult[] {
  if (podCount === 0 || !profileOf(context.group).checksEveryDownscale) return [];
  const question = admissionQuestion(context, zone, { from: podCount, to: 0 });
  return setLeavesRules.map((rule) => rule.evaluate({ ...question, isForced: false }));
}

/** Only the agent waits out a delay, and it writes no replicas of zones that are scaled directly. */
function delayKept({ context, zone, isForced }: ScaleQuestion): readonly RuleResult[] {
  const { delayed, follows, replicas, name } = zone.zone;
  const isDirect = replicas.kind === 'leader' && follows === undefined && profileOf(context.group).checksEveryDownscale;
  if (delayed === undefined || !isDirect || isForced) return [];
  const fact = `zone ${name} is scaled directly, and only the agent can wait out its delay; give the group replicas.count or replicas.mirror`;
  const source = sourceOf(context, `zones.${name}.delayed`, 'scaling.down.delayed');
  return [result('delayed-downscale', 'no', fact, { limit: formatDuration(delayed.afterMs), source })];
}

function onUpdate(snapshot: Snapshot, request: UpdateRequest): Verdict {
  const scale = onScale(snapshot, { ...request, kind: 'scale' });
  if (scale.results.some(blocks)) return scale;
  const change = onMember(snapshot, request, (context, zone) => {
    const strategy = strategyKept(context, zone, request).map((answer) => withException(context, answer, { zone: zone.zone.name }));
    if (!request.isTemplateChanged) return { results: strategy };
    const policies = policyAnswer({ context, action: 'rollout', zone, ...userOf(request) });
    // A template may be written at any time, and the agent holds the rollout; only what policy denies is refused at the door.
    return { results: [...strategy, ...policies.results.filter((answer) => answer.outcome === 'no')], policies };
  });
  return { ...scale, ...change, results: [...scale.results, ...change.results] };
}

type PodRequest = Extract<AdmissionRequest, { kind: 'deletePod' | 'evictPod' }>;

function onPod(snapshot: Snapshot, request: PodRequest): Verdict {
  const owner = podNamed(snapshot, request.namespace, request.pod);
  if (owner === undefined) return request.kind === 'evictPod' ? unreadPod(snapshot, request) : { results: [] };
  const { set, pod } = owner;
  const group = groupOf(snapshot, request.namespace, set.name);
  const isEviction = request.kind === 'evictPod';
  if (group === undefined) return isEviction ? underBudget(snapshot, undefined, set, pod) : { results: [] };
  // A pod that already goes is let go: the kubelet's final removal passes the same way.
  if (!isEviction && (pod.isTerminating || group.disruption === undefined)) {
    return pod.isTerminating
      ? { results: [] }
      : onMember(snapshot, { ...request, statefulSet: set.name }, (context, zone) =>
          guarded(context, zone, 'delete', protectedFromOthers(context, zone, [pod.ordinal]), request),
        );
  }
  const guard = onMember(snapshot, { ...request, statefulSet: set.name }, (context, zone) =>
    guarded(
      context,
      zone,
      isEviction ? 'evict' : 'delete',
      [
        ...(isEviction ? protection(context, zone, 'noEviction', 'lets no pod be evicted') : []),
        ...protectedFromOthers(context, zone, [pod.ordinal]),
      ],
      request,
    ),
  );
  const budget = underBudget(snapshot, group, set, pod);
  return guard.results.some(blocks)
    ? { ...guard, results: [...guard.results, ...budget.results] }
    : { ...guard, ...budget, results: [...guard.results, ...budget.results] };
}

/** A pod that carries the name of a member whose pods could not be read may be one that a budget protects. */
function unreadPod(snapshot: Snapshot, { namespace, pod }: PodRequest): Verdict {
  const statefulSet = /^(.+)-\d+$/.exec(pod)?.[1];
  const group = statefulSet === undefined ? undefined : groupOf(snapshot, namespace, statefulSet);
  const zone = group === undefined ? undefined : viewGroup(snapshot, group).zones.find((view) => view.zone.statefulSet === statefulSet);
  return zone?.unknown === undefined ? { results: [] } : { results: [result('view-complete', 'unknown', zone.unknown)], code: 500 };
}

function underBudget(snapshot: Snapshot, group: GroupDefinition | undefined, set: StatefulSetView, pod: PodView): Verdict {
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

/** The announced disruptions, with a claim for each pod that an announced decrease takes away, or that a StatefulSet controller may replace. */
function announcedPods(snapshot: Snapshot, group: GroupDefinition): readonly Claim[] {
  const view = viewGroup(snapshot, group);
  if (!profileOf(group).checksEveryDownscale) return view.ledger.claims;
  const leaving = view.zones.flatMap(({ zone, claims, set, pods: members }) =>
    claims
      .filter((claim) => claim.verb === 'scaleDown')
      .flatMap(({ to = 0 }) => members.filter((pod) => pod.ordinal >= (set?.firstOrdinal ?? 0) + to))
      .map(({ uid, ordinal }): Claim => ({ verb: 'deletePod', zone: zone.name, uid, ordinal, atMs: snapshot.nowMs })),
  );
  return [...view.ledger.claims, ...leaving, ...releasedClaims({ view, nowMs: snapshot.nowMs })];
}
