// Defines the rules that a zone must pass before one of its pods is replaced, and the deadlines of the run.
import type { ZoneDefinition } from '../../policies/definition.ts';
import { formatDuration } from '../../policies/duration.ts';
import { type GroupContext, limitSource, minIntervalOf, sourceOf } from '../context.ts';
import type { RuleResult } from '../decision.ts';
import { openClaimLimit } from '../ledger/ledger.ts';
import { describeReadiness, type ZoneView } from '../observe/view.ts';
import { profileOf } from '../profiles.ts';
import { ageSince, earliest, result } from '../rule.ts';
import { activeMs, lastProgressMs } from '../run/durations.ts';
import { isVerified, objectOf, pauses, requesterText, undoRequest } from '../run/requests.ts';
import type { FailedRun, RunState } from '../run/run-state.ts';
import type { ZoneProgress } from '../run/waves.ts';
import { type IntentView, isUnknown, unappliedClaimMs } from '../snapshot.ts';
import { isShrinkHeld, mayRepairDespiteOthers } from './pod-state.ts';

export interface RollQuestion {
  readonly context: GroupContext;
  readonly run: RunState;
  readonly zone: ZoneProgress;
  /** True if this turn already changes replicas. */
  readonly isScaling: boolean;
}

export function viewComplete({ context }: RollQuestion): RuleResult {
  return firstUnread(context) ?? oldStatus(context) ?? result('view-complete', 'ok', 'every zone was read');
}

/** Returns the result that blocks a zone that cannot be evaluated; undefined if it can. */
export function unreadResult({ unknown, isShared }: ZoneView): RuleResult | undefined {
  if (unknown === undefined) return undefined;
  if (isShared === undefined) return result('view-complete', 'unknown', unknown);
  return result('view-complete', 'no', unknown, { endsWith: 'keep each StatefulSet in one zone of one RolloutGroup' });
}

/** Returns the result of the first zone that cannot be evaluated. */
export function firstUnread({ view }: GroupContext): RuleResult | undefined {
  return view.zones.map(unreadResult).find((unread) => unread !== undefined);
}

/** Returns a block while a status is older than its spec and may not show which pods are outdated; undefined for adopted groups. */
export function oldStatus({ group, view }: GroupContext): RuleResult | undefined {
  if (!profileOf(group).waitsForObservedGeneration) return undefined;
  return view.zones.map(oldStatusOf).find((old) => old !== undefined);
}

/** Returns the result that blocks a zone while its status is older than its spec. */
export function oldStatusOf({ zone, set }: ZoneView): RuleResult | undefined {
  const isOld = set !== undefined && set.status.observedGeneration < set.generation;
  if (!isOld) return undefined;
  const fact = `the StatefulSet controller has not observed the last change of ${zone.statefulSet}: observed generation ${set.status.observedGeneration}`;
  return result('view-complete', 'wait', fact, { limit: `generation ${set.generation}` });
}

export function notFailed({ context, run }: RollQuestion): RuleResult {
  if (run.outcome !== 'failed') return result('run-failed', 'ok', 'the run has not failed');
  return result('run-failed', 'no', run.failure, { source: sourceOf(context, 'rollout.onFailure') });
}

/** Returns the widest pause of the zone: of the group by a person, else by the settings of the zone, else of the zone by a person. */
export function notPaused(context: GroupContext, { name, paused }: ZoneDefinition): RuleResult {
  const pause = pauseOf(context, name);
  if (!paused || (pause !== undefined && pause.zone === undefined)) return pausedByPerson(context, name);
  return result('paused', 'wait', `zone ${name} is paused by its settings`, { source: sourceOf(context, `zones.${name}.paused`) });
}

export function pausedByPerson(context: GroupContext, zone: string): RuleResult {
  if (isUnknown(context.intents)) return result('paused', 'unknown', `pauses could not be read: ${context.intents.unknown}`);
  const pause = pauseOf(context, zone);
  if (pause === undefined) return result('paused', 'ok', 'no pause applies');
  return result('paused', 'wait', pauseFact(context, pause), { source: objectOf(pause), earliestMs: pause.expiresMs });
}

/** Returns the pause of the group by a person, else of the zone; undefined without a pause, or if the requests are unknown. */
function pauseOf(context: GroupContext, zone: string): IntentView | undefined {
  if (isUnknown(context.intents)) return undefined;
  const { run } = context.view.ledger;
  const found = context.intents.filter((intent) => pauses(context, intent, run));
  return found.find((intent) => intent.zone === undefined) ?? found.find((intent) => intent.zone === zone);
}

/** Returns a text such as `the group is paused by anna (INC-441)`. For an abort, the text says why the abort only pauses. */
export function pauseFact(context: Pick<GroupContext, 'nowMs'>, intent: IntentView): string {
  const { action, zone, requestedBy, reason } = intent;
  const { user = 'an unverified requester' } = requestedBy ?? {};
  const abort = isVerified(context, intent) ? `of ${user} that names no run` : 'without a verified requester';
  const who = action === 'abort' ? ` by an abort ${abort}` : ` by ${user}`;
  const why = reason === undefined ? '' : ` (${reason})`;
  return `${zone === undefined ? 'the group' : `zone ${zone}`} is paused${who}${why}`;
}

export function noReplicaWrite({ context, isScaling }: RollQuestion): RuleResult {
  if (isScaling) return result('replica-write-in-flight', 'wait', 'replicas change in this turn');
  if (!profileOf(context.group).waitsForShrinkingZones) return result('replica-write-in-flight', 'ok', 'no replicas change');
  const all = context.view.zones.filter((view) => view.surplus.length > 0 || view.claims.some((claim) => claim.verb === 'scaleDown'));
  const shrinking = all.find((view) => !isShrinkHeld(context, view));
  if (shrinking === undefined) {
    const held = all.map((view) => `zone ${view.zone.name} shrinks when its stuck pods are replaced`);
    return result('replica-write-in-flight', 'ok', held.length === 0 ? 'no zone is shrinking' : held.join(', '));
  }
  const count = shrinking.surplus.length;
  const remains = `${count} surplus ${count === 1 ? 'pod remains' : 'pods remain'}`;
  const fact = count === 0 ? describeReadiness(shrinking) : `zone ${shrinking.zone.name} is shrinking: ${remains}`;
  return result('replica-write-in-flight', 'wait', fact);
}

export function otherZonesReady({ context, zone }: RollQuestion): RuleResult {
  const { name } = zone.view.zone;
  const down = context.view.zones.filter((view) => !view.isReady);
  const isLenient = profileOf(context.group).ignoresPausedZone && down.length <= 1;
  const others = down.filter((view) => view.zone.name !== name && !(isLenient && view.zone.paused));
  const gone = context.view.ledger.claims.find((claim) => !context.group.zones.some((one) => one.name === claim.zone));
  if (gone !== undefined) {
    return result('other-zones-ready', 'wait', `zone ${gone.zone} left the group with an open claim`, {
      limit: `no open claim younger than ${formatDuration(unappliedClaimMs)}`,
    });
  }
  if (others.length === 0) {
    const counts = context.view.zones
      .filter((view) => view.zone.name !== name)
      .map((view) => `${view.zone.name} ${view.replicas}/${view.replicas}`);
    return result(
      'other-zones-ready',
      'ok',
      counts.length === 0 ? 'the group has no other zone' : `all pods of the other zones are available: ${counts.join(', ')}`,
    );
  }
  const fact = others.map(describeReadiness).join(', ');
  if (mayRepairDespiteOthers(context, zone.view)) {
    return result('other-zones-ready', 'ok', `${fact}; a stuck pod of zone ${name} may still be replaced`);
  }
  return result('other-zones-ready', 'wait', fact, { limit: 'all available', earliestMs: others[0]?.availableAtMs });
}

export function minInterval({ context, run }: RollQuestion): RuleResult {
  const intervalMs = minIntervalOf(context);
  if (intervalMs === 0) return result('min-interval', 'skip', 'no interval is set');
  const source =
    context.limits.minIntervalMs === intervalMs ? limitSource(context, 'minIntervalMs') : sourceOf(context, 'rollout.minInterval');
  const limit = formatDuration(intervalMs);
  if (run.lastDisruptionMs === undefined) return result('min-interval', 'ok', 'the run has replaced no pod', { limit, source });
  const passed = context.nowMs - run.lastDisruptionMs;
  const age = ageSince('ago', run.lastDisruptionMs, context.nowMs);
  const fact = `the last replacement was ${age.words}`;
  return passed >= intervalMs
    ? result('min-interval', 'ok', fact, { limit, source, age })
    : result('min-interval', 'wait', fact, { limit, source, age, earliestMs: run.lastDisruptionMs + intervalMs });
}

export function ledgerHasRoom({ context }: RollQuestion): RuleResult {
  const open = context.view.ledger.claims.length;
  const fact = `${open} ${open === 1 ? 'claim is' : 'claims are'} open`;
  return result('ledger-full', open < openClaimLimit ? 'ok' : 'wait', fact, { limit: `${openClaimLimit}` });
}

/** Returns the failure of the run by a deadline; undefined while the run is within its deadlines, and in a forecast. */
export function deadlineFailure(context: GroupContext, run: RunState): Pick<FailedRun, 'failure' | 'awaitsPods'> | undefined {
  const { progressMs, runMs } = context.group.rollout.deadlines;
  if (context.snapshot.hasAssumedTimes === true) return undefined;
  if (progressMs !== undefined && isInFlight(context) && context.nowMs - lastProgressMs(context.view.zones, run) >= progressMs) {
    return { failure: `no pod became available for ${formatDuration(progressMs)}`, awaitsPods: true };
  }
  if (runMs !== undefined && activeMs(run, context.nowMs) >= runMs) return { failure: `the run took longer than ${formatDuration(runMs)}` };
  return undefined;
}

export function progressDeadline(context: GroupContext, run: RunState): RuleResult {
  const { progressMs } = context.group.rollout.deadlines;
  if (progressMs === undefined) return result('progress-deadline', 'skip', 'no deadline is set');
  const details = { limit: formatDuration(progressMs), source: sourceOf(context, 'rollout.deadlines') };
  if (!isInFlight(context)) return result('progress-deadline', 'ok', 'no pod is in flight', details);
  const since = lastProgressMs(context.view.zones, run);
  const age = ageSince('ago', since, context.nowMs);
  return result('progress-deadline', 'ok', `the last progress was ${age.words}`, {
    ...details,
    age,
    ...(since + progressMs > context.nowMs ? { earliestMs: since + progressMs } : {}),
  });
}

export function runDeadline(context: GroupContext, run: RunState): RuleResult {
  const { runMs } = context.group.rollout.deadlines;
  if (runMs === undefined) return result('run-deadline', 'skip', 'no deadline is set');
  const spent = activeMs(run, context.nowMs);
  const details = { limit: formatDuration(runMs), source: sourceOf(context, 'rollout.deadlines') };
  const age = ageSince('for', context.nowMs - spent, context.nowMs);
  return result('run-deadline', 'ok', `the run has been active ${age.words}`, {
    ...details,
    ...(run.isMovable ? { age } : {}),
    ...(run.isMovable && spent < runMs ? { earliestMs: context.nowMs + runMs - spent } : {}),
  });
}

/** Returns the result of the deadline that fails the run first, at its `earliestMs`; undefined while no deadline counts, as in a forecast. */
export function nextDeadline(context: GroupContext, run: RunState | undefined): RuleResult | undefined {
  if (run?.outcome !== 'running' || context.snapshot.hasAssumedTimes === true) return undefined;
  const [progress, whole] = [progressDeadline(context, run), runDeadline(context, run)];
  const first = earliest([progress.earliestMs, whole.earliestMs]);
  return first === undefined ? undefined : progress.earliestMs === first ? progress : whole;
}

function isInFlight(context: GroupContext): boolean {
  return context.view.zones.some((view) => view.inFlight > 0);
}

/** Returns the result that blocks an undone update revision of the zone; undefined if no request undid the revision. */
export function undoneResult(context: GroupContext, { zone, set }: ZoneView): RuleResult | undefined {
  const undo = undoRequest(context, zone.name, set?.status.updateRevision);
  if (undo === undefined) return undefined;
  const fact = `update revision ${set?.status.updateRevision} of zone ${zone.name} was undone by ${requesterText(undo)}`;
  return result('undone', 'wait', fact, { limit: 'another template', source: objectOf(undo), earliestMs: undo.expiresMs });
}
