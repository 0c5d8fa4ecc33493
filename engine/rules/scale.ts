// Defines the rules that a change of replicas must pass, upwards and downwards.

import type { ZoneDefinition } from '../../policies/definition.ts';
import { formatDuration } from '../../policies/duration.ts';
import { defined, extended } from '../../policies/values/defined.ts';
import { counted } from '../../policies/wording.ts';
import { boundSource, type GroupContext, sourceOf, zoneNamed } from '../context.ts';
import type { RuleResult } from '../decision.ts';
import { claimNote, describeReadiness, isServing, type ZoneView } from '../observe/view.ts';
import { profileOf } from '../profiles.ts';
import { type Check, result, resultsOf } from '../rule.ts';
import type { RunState } from '../run/run-state.ts';
import type { StatefulSetView } from '../snapshot.ts';
import { agentAccess } from './agent-access.ts';
import { withException } from './exception.ts';
import { isLeaving } from './leaving.ts';
import { type PolicyAnswer, policyAnswer, type Requester, windowResult } from './policy.ts';
import { protectedFromOthers, protectedResult } from './protected.ts';
import { firstUnread, oldStatus, pausedByPerson, unreadResult } from './roll.ts';
import { zoneGap } from './zone-gap.ts';

export interface ScaleQuestion {
  readonly context: GroupContext;
  readonly zone: ZoneView;
  readonly from: number;
  readonly to: number;
  /** True if a person forced this number of replicas. */
  readonly isForced: boolean;
  readonly run: RunState | undefined;
  /** `agent` for writes of the agent, `admission` for writes of other clients. */
  readonly asker: 'agent' | 'admission';
}

function viewComplete({ context, zone, from, to }: ScaleQuestion): RuleResult {
  const unread = unreadResult(zone) ?? firstUnread(context);
  if (unread !== undefined) return unread;
  return (to < from ? oldStatus(context) : undefined) ?? result('view-complete', 'ok', 'every zone was read');
}

function mayScale({ context, zone, from, to, asker }: ScaleQuestion): RuleResult {
  const { name, scalingHold, scaleDownHold } = zone.zone;
  const why = (asker === 'agent' ? scalingHold : undefined) ?? (to < from ? scaleDownHold : undefined);
  if (why === undefined) return result('scaling-hold', 'ok', 'no setting blocks scaling');
  return result('scaling-hold', 'no', why, { source: sourceOf(context, `zones.${name}.scaling`) });
}

function leaderReady({ context, zone }: ScaleQuestion): RuleResult {
  const source = sourceOf(context, `zones.${zone.zone.name}.scaling`);
  const leader = zoneNamed(context, zone.zone.follows);
  if (leader?.set === undefined || zone.zone.followersWaitFor === 'nothing')
    return result('leader-ready', 'skip', 'the zone waits for no leader', { source });
  const readsStatus = profileOf(context.group).countsPodsFromStatus;
  const ready = readsStatus ? leader.set.status.readyReplicas : leader.replicas - leader.unavailable;
  const fact = `leader zone ${leader.zone.name} has ${ready} of ${leader.replicas} pods ready${readsStatus ? '' : claimNote(leader)}`;
  return result('leader-ready', ready === leader.replicas ? 'ok' : 'wait', fact, {
    limit: 'all ready',
    source,
    earliestMs: leader.availableAtMs,
  });
}

/**
 * Blocks growth while a pod of the open zone is in flight. A claim of the agent shows this also if a later template made the successor
 * outdated before it was available.
 */
function noPodInFlight({ context, zone, run }: ScaleQuestion): RuleResult {
  const source = sourceOf(context, `zones.${zone.zone.name}.scaling`);
  if (zone.zone.duringRollout === 'allow') return result('rollout-in-progress', 'ok', 'the zone may grow during a rollout', { source });
  const open = run?.outcome === 'running' ? zoneNamed(context, run.openZone) : undefined;
  const isClaimedByAgent = open?.claims.some(({ ordinal, epoch }) => ordinal !== undefined && epoch !== undefined) === true;
  const rolling = open !== undefined && (open.inFlight > 0 || isClaimedByAgent) ? open : undefined;
  if (rolling === undefined) return result('rollout-in-progress', 'ok', 'no pod is being replaced', { source });
  return result('rollout-in-progress', 'wait', `pods of zone ${rolling.zone.name} are being replaced${claimNote(rolling)}`, { source });
}

function noDownscale({ context, zone }: ScaleQuestion): RuleResult {
  const source = sourceOf(context, `zones.${zone.zone.name}.protect`);
  if (!zone.zone.noDownscale) return result('no-downscale', 'ok', 'the zone may shrink');
  // Users search for the label, and scripts match it.
  const limit = profileOf(context.group).noDownscaleLimit;
  return result('no-downscale', 'no', `zone ${zone.zone.name} must not shrink`, { limit, source });
}

function scaleFloor({ context, zone, to, isForced }: ScaleQuestion): RuleResult {
  if (isForced) return result('scale-floor', 'skip', 'replicas are forced');
  const least = profileOf(context.group).leastReplicas;
  const floor = Math.max(least, zone.zone.bounds.min ?? 0, context.limits.minReplicas ?? 0);
  if (floor === 0) return result('scale-floor', 'skip', 'no floor is set');
  // No field of the group or of a policy permits fewer replicas than the least number. Only an exception does.
  const source = floor === least ? undefined : boundSource(context, zone.zone.name, 'minReplicas', floor);
  return result('scale-floor', to >= floor ? 'ok' : 'no', `zone ${zone.zone.name} would have ${counted(to, 'replica')}`, {
    limit: `at least ${floor}`,
    source,
  });
}

/** Blocks growth beyond the bounds. People and autoscalers that scale a leader do not know the bounds of its followers. */
export function scaleCeiling({ context, zone, to, isForced }: ScaleQuestion): RuleResult {
  const ceiling = Math.min(zone.zone.bounds.max ?? Number.POSITIVE_INFINITY, context.limits.maxReplicas ?? Number.POSITIVE_INFINITY);
  if (isForced) return result('scale-ceiling', 'skip', 'replicas are forced');
  if (!Number.isFinite(ceiling)) return result('scale-ceiling', 'skip', 'no ceiling is set');
  const source = boundSource(context, zone.zone.name, 'maxReplicas', ceiling);
  return result('scale-ceiling', to <= ceiling ? 'ok' : 'no', `zone ${zone.zone.name} would have ${counted(to, 'replica')}`, {
    limit: `at most ${ceiling}`,
    source,
  });
}

function leaderFloor({ context, zone, to, isForced }: ScaleQuestion): RuleResult {
  const leader = zoneNamed(context, zone.zone.follows);
  if (leader?.set === undefined || isForced || !profileOf(context.group).checksEveryDownscale)
    return result('leader-floor', 'skip', 'the zone waits for no leader');
  const floor = Math.max(leader.replicas, leader.pods.length);
  const fact = `leader zone ${leader.zone.name} has ${counted(leader.replicas, 'replica')} and ${counted(leader.pods.length, 'pod')}`;
  return result('leader-floor', to >= floor ? 'ok' : 'wait', fact, {
    limit: `at least ${floor}`,
    source: sourceOf(context, `zones.${zone.zone.name}.follows`),
  });
}

interface Shortfall {
  /** `status.replicas` minus ready pods; negative if the status does not count new pods yet. */
  readonly notReady: number;
  /** `status.replicas` minus `status.updatedReplicas`. */
  readonly notUpdated: number;
}

/** Returns the shortfall of a zone as grafana/rollout-operator defines it; undefined if every pod is ready and updated. */
export function shortfall(
  { replicas, updatedReplicas }: StatefulSetView['status'],
  members: readonly Parameters<typeof isServing>[0][],
): Shortfall | undefined {
  const serving = members.filter(isServing).length;
  if (serving === replicas && serving === updatedReplicas) return undefined;
  return { notReady: replicas - serving, notUpdated: replicas - updatedReplicas };
}

function otherZonesReady({ context, zone, isForced }: ScaleQuestion): RuleResult {
  const checksAll = profileOf(context.group).checksEveryDownscale;
  // A forced number of an adopted zone is prepared like any other number, so the other zones must be ready.
  if (checksAll ? isForced : zone.zone.prepare === undefined)
    return result('other-zones-ready', 'skip', 'the downscale does not wait for other zones');
  for (const view of context.view.zones) {
    if (view.zone.name === zone.zone.name) continue;
    const short = !checksAll && view.set !== undefined ? shortfall(view.set.status, view.pods) : undefined;
    if (short !== undefined) {
      const fact = `zone ${view.zone.name} has ${counted(short.notReady, 'pod')} not ready and ${short.notUpdated} not updated`;
      return result('other-zones-ready', 'wait', fact, { limit: 'all ready and updated' });
    }
    // An announced downscale may arrive at any moment, so the StatefulSet may still show the old number.
    const isShrinking = view.claims.some(({ verb }) => verb === 'scaleDown');
    if (checksAll && (!view.isReady || isShrinking)) {
      return result('other-zones-ready', 'wait', describeReadiness(view), { limit: 'all available', earliestMs: view.availableAtMs });
    }
  }
  return result('other-zones-ready', 'ok', 'all pods of every other zone are available');
}

function rolloutOver({ context, zone, run, isForced }: ScaleQuestion): RuleResult {
  const source = sourceOf(context, `zones.${zone.zone.name}.scaling`);
  if (isForced || !profileOf(context.group).checksEveryDownscale)
    return result('rollout-in-progress', 'skip', 'the downscale does not wait for a rollout', { source });
  const isRunning = run !== undefined && run.outcome === 'running';
  if (!isRunning) return result('rollout-in-progress', 'ok', 'no rollout runs', { source });
  if (zone.zone.duringRollout === 'wait') return result('rollout-in-progress', 'wait', 'a rollout runs', { source });
  const elsewhere = run.openZone !== undefined && run.openZone !== zone.zone.name;
  const fact = elsewhere ? `a rollout replaces pods of zone ${run.openZone}` : 'no rollout replaces pods of another zone';
  return result('rollout-in-progress', elsewhere ? 'wait' : 'ok', fact, { source });
}

function notPaused({ context, zone, asker }: ScaleQuestion): RuleResult {
  return asker === 'agent' ? pausedByPerson(context, zone.zone.name) : result('paused', 'skip', 'a pause blocks only the agent');
}

function replicasOwned({ context, zone, to, asker }: ScaleQuestion): RuleResult {
  const { replicas } = zone.zone;
  if (asker === 'agent' || !profileOf(context.group).ownsReplicas)
    return result('replicas-owned', 'skip', 'the group does not own the replicas');
  const source = sourceOf(context, `zones.${zone.zone.name}.replicas`);
  const announced = zone.claims.some((claim) => claim.verb === 'scaleDown' && claim.to === to);
  if (announced) return result('replicas-owned', 'ok', 'the agent opened a claim for this scale-down', { source });
  const deny = (fact: string): RuleResult =>
    result('replicas-owned', 'no', `${fact}; scale ${scaledObject(context, zone.zone)} instead`, { source });
  if (zone.zone.follows !== undefined) return deny(`zone ${zone.zone.name} follows zone ${zone.zone.follows}`);
  if (replicas.kind === 'count') return deny('the group sets the replicas');
  if (replicas.kind === 'mirror') return deny('the replicas are mirrored');
  return result('replicas-owned', 'ok', 'the replicas are written directly', { source });
}

/** Returns the object that a person scales to change the replicas of a zone: that of the zone at the head of its leaders. */
export function scaledObject({ group }: ScaleQuestion['context'], zone: ZoneDefinition): string {
  let head = zone;
  // Zones that follow each other in a cycle have no head, so the search ends after each zone was the head once.
  for (const _ of group.zones) head = group.zones.find(({ name }) => name === head.follows) ?? head;
  const { replicas } = head;
  if (replicas.kind === 'count') return `RolloutGroup ${group.name}`;
  return replicas.kind === 'mirror' ? `${replicas.resourceKind} ${replicas.name}` : `zone ${head.name}`;
}

/** Blocks the direct downscale of a zone with a delay: only the agent applies delays, but it does not write these replicas. */
function delayKept({ context, zone, isForced, asker }: ScaleQuestion): RuleResult | undefined {
  const { delayed, follows, replicas, name } = zone.zone;
  const isDirect = replicas.kind === 'leader' && follows === undefined && profileOf(context.group).checksEveryDownscale;
  if (asker === 'agent' || delayed === undefined || !isDirect || isForced) return undefined;
  const fact = `zone ${name} is scaled directly, but only the agent can apply its delay: set replicas.count or replicas.mirror in the group`;
  const source = sourceOf(context, `zones.${name}.delayed`);
  return result('delayed-downscale', 'no', fact, { limit: formatDuration(delayed.afterMs), source });
}

/** The rules of growth. A paused group still grows, because more pods endanger no data. */
export const scaleUpRules: readonly Check<ScaleQuestion>[] = [
  { id: 'view-complete', evaluate: viewComplete },
  { id: 'scaling-hold', evaluate: mayScale },
  { id: 'scale-ceiling', evaluate: scaleCeiling },
  { id: 'leader-ready', evaluate: leaderReady },
  { id: 'rollout-in-progress', evaluate: noPodInFlight },
];

/** Evaluates the rules of growth. Other clients may grow a zone within its bounds. A forced number skips the rules of the agent. */
function checkGrowth(question: ScaleQuestion): RuleResult | readonly RuleResult[] {
  if (question.asker === 'admission') return scaleCeiling(question);
  return question.isForced ? [] : scaleUpRules.flatMap((rule) => resultsOf(rule, question));
}

interface ScaleStepQuestion extends ScaleQuestion {
  /** The result of `replica-source`; absent in admission, where the request names the number. */
  readonly source?: RuleResult;
  readonly policies: PolicyAnswer;
}

/** The checks of a scale-up, in the order in which plans and explanations print the results. */
export const scaleUpChecks: readonly Check<ScaleStepQuestion>[] = [
  { id: 'replica-source', evaluate: ({ source }) => source }, // the wanted number of replicas could be read
  { id: 'agent-access', evaluate: mayPatch }, // the agent may write replicas
  { id: 'scale-up', evaluate: checkGrowth }, // the zone may grow
  { id: 'window', evaluate: ({ context }) => windowResult(context, 'scaleUp', 'nothing') }, // the windows are open
  { id: 'policies', evaluate: ({ policies }) => policies.results }, // no rule of a RolloutPolicy blocks
];

/** The checks of a scale-down. The leaving pods prepare only after all checks pass, because a prepared pod serves less. */
export const scaleDownChecks: readonly Check<ScaleStepQuestion>[] = [
  { id: 'replica-source', evaluate: ({ source }) => source }, // the wanted number of replicas could be read
  { id: 'agent-access', evaluate: mayPatch }, // the agent may write replicas
  { id: 'view-complete', evaluate: viewComplete }, // every zone was read and its status is current
  { id: 'scaling-hold', evaluate: mayScale }, // no setting blocks scaling
  { id: 'paused', evaluate: notPaused }, // no person paused the zone
  { id: 'replicas-owned', evaluate: replicasOwned }, // the request changes the object that owns the replicas
  { id: 'no-downscale', evaluate: noDownscale }, // the zone may shrink
  { id: 'scale-floor', evaluate: scaleFloor }, // the zone keeps its minimum number of replicas
  { id: 'leader-floor', evaluate: leaderFloor }, // a follower keeps at least as many replicas as its leader
  { id: 'rollout-in-progress', evaluate: rolloutOver }, // no rollout blocks the change
  { id: 'other-zones-ready', evaluate: otherZonesReady }, // all pods of every other zone are available
  { id: 'zone-gap', evaluate: zoneGap }, // the last downscale of another zone was long enough ago
  { id: 'protected', evaluate: leavingPodsProtected }, // no person protects the zone or a leaving pod
  { id: 'delayed-downscale', evaluate: delayKept }, // another client does not bypass the delay
  { id: 'window', evaluate: ({ context }) => windowResult(context, 'scaleDown', 'nothing') }, // the windows are open
  { id: 'policies', evaluate: ({ policies }) => policies.results }, // no rule of a RolloutPolicy blocks
];

function mayPatch({ context, asker }: ScaleQuestion): RuleResult | undefined {
  return asker === 'agent' ? agentAccess(context, 'scale') : undefined;
}

function leavingPodsProtected({ context, zone, from, to, asker }: ScaleQuestion): RuleResult | readonly RuleResult[] | undefined {
  const leaves = (ordinal: number): boolean => isLeaving(zone, { from, to }, ordinal);
  return asker === 'agent' ? protectedResult(context, zone, leaves) : protectedFromOthers(context, zone, leaves);
}

/** Runs every check of a change of replicas; `from` and `to` differ. An exception may allow a result that blocks. */
export function checkReplicas(
  question: ScaleQuestion,
  { source, ...requester }: Requester & { readonly source?: RuleResult },
): { readonly results: readonly RuleResult[]; readonly policies: PolicyAnswer } {
  const { context, zone, from, to } = question;
  const isShrink = to < from;
  const action = isShrink ? 'scaleDown' : 'scaleUp';
  const policies = policyAnswer({ context, action, zone, change: { from, to }, ...requester });
  const asked = extended(question, defined({ source, policies }));
  const results = (isShrink ? scaleDownChecks : scaleUpChecks).flatMap((check) => resultsOf(check, asked));
  return { results: results.map((answer) => withException(context, answer, { zone: zone.zone.name, to })), policies };
}

/** The rules of the deletion of a StatefulSet with its pods. */
export const setLeavesRules: readonly ((question: ScaleQuestion) => RuleResult)[] = [viewComplete, rolloutOver, otherZonesReady, zoneGap];
