// Decides how the run of a group continues: which transition of `states.ts` applies now, and whether a failed run is rolled back.
import { traitsOf } from '../../policies/strategies.ts';
import { isSameValue } from '../../policies/values/canonical-json.ts';
import { defined } from '../../policies/values/defined.ts';
import { contextOf, type GroupContext, zoneNamed } from '../context.ts';
import type { RuleResult } from '../decision.ts';
import type { ZoneView } from '../observe/view.ts';
import { result } from '../rule.ts';
import { freezingPartition } from '../rules/pod-state.ts';
import { hasChecks } from '../rules/wave.ts';
import { type IntentView, isUnknown, isWithinClockSkew } from '../snapshot.ts';
import { lastProgressMs } from './durations.ts';
import { whyNotRolledBack } from './effects.ts';
import { hasPodsLeft, isInWave, podsLeft, zonesOfFailedRun } from './included.ts';
import {
  addsZones,
  causedBy,
  continuesChange,
  interruptedOf,
  isRollingBack,
  joinChange,
  originOf,
  rolledBackZones,
  withOrigin,
} from './origin.ts';
import { abortRequests, requesterText, unanswered, type VerifiedRequest, withAnswered } from './requests.ts';
import {
  countRevisions,
  keptInReturn,
  mostFrequent,
  newRevisions,
  type PresentZone,
  revisionsAfter,
  revisionsBefore,
  revisionsKept,
  revisionsToReturn,
} from './revisions.ts';
import type { FailedRun, RunCore, RunningRun, RunState, UnfinishedRun } from './run-state.ts';
import {
  closeZone,
  enterWave,
  failRun,
  hasReplacedSince,
  type RunChange,
  retryRun,
  startRun,
  trackInFlight,
  withoutFutureInstants,
} from './states.ts';
import { type AdvancedRun, advanceWaves, returnToUnfilledWave } from './waves.ts';

/** Returns the run after this decision: a new run or the stored run. Undefined if no run is stored and no wave has a pod to replace. */
export function advanceRun(context: GroupContext): AdvancedRun | undefined {
  const { run: stored } = context.view.ledger;
  const followed = currentRun(context);
  if (followed === undefined) return undefined;
  const current = joinChange(withOrigin(context, followed, stored, originOf(stored, followed)), stored);
  const isInFlight = context.view.zones.some(({ inFlight }) => inFlight > 0);
  const advanced = advanceWaves(context, trackInFlight(current, isInFlight, context.nowMs));
  // If no StatefulSet names a rolled-back revision when the run completes, no later event causes a decision that removes the revision.
  return advanced.progress === undefined ? { ...advanced, run: withoutReturned(context, advanced.run) } : advanced;
}

function currentRun(context: GroupContext): RunState | undefined {
  const { nowMs } = context;
  const { run: stored } = context.view.ledger;
  const target = targetOf(context);
  // Most decisions are about groups without an outdated pod, for which no following run is computed.
  const hasOutdated = context.view.zones.some(({ outdated }) => outdated.length > 0);
  if (stored === undefined) {
    if (!hasOutdated) return undefined;
    const previous = majorityRevisions(context);
    const kept = revisionsKept(undefined, { target, previous }, presentZones(context));
    const first = followingRun(context, { kind: 'rollout', target, previous, ...defined({ kept }) });
    return mayBegin(context, first) ? first : undefined;
  }
  const timely = withoutFutureInstants(stored, (instantMs) => isWithinClockSkew(context, instantMs), nowMs);
  const known = withoutReturned(context, withoutFormerZones(timely, target, nowMs));
  if (!isSameValue(known.target, target)) return afterChange(context, known, target);
  if (hasOutdated && (known.outcome === 'completed' || endsReturn(context, known))) {
    const rest = rollRest(context, known, target);
    if (mayBegin(context, rest)) return rest;
  }
  const current = known.outcome === 'failed' ? continued(context, known, target) : known;
  return current.outcome === 'running' ? abortWhenRequested(context, current) : current;
}

/** Returns the run that continues a failed run: after a retry, and a return by itself. Otherwise returns the failed run. */
function continued(context: GroupContext, known: FailedRun, target: RunCore['target']): UnfinishedRun {
  const { nowMs } = context;
  const retry = retryRequest(context, known, known.failedMs);
  const retried = (): UnfinishedRun => returnToUnfilledWave(context, retryRun(known, nowMs));
  // An abort that is newer than the retry still stops the run.
  if (retry !== undefined) return withAnswered(context, retried(), ['retry', 'abort'], retry.requestedBy.atMs);
  // While requests are unknown, an abort may be among them.
  if (known.kind !== 'rollback' || isUnknown(context.intents) || abortRequests(context, known).length > 0) return known;
  if (isRollingBack(known) && hasEarlierTemplates(context, known, target)) return returnByTemplates(context, known, target);
  return mayContinue(context, known) ? retried() : known;
}

/** Reports whether a return that failed because no pod became available has no more pod in flight, because a pod became available since. */
function mayContinue({ view: { zones } }: GroupContext, known: FailedRun): boolean {
  const isInFlight = zones.some(({ inFlight }) => inFlight > 0);
  return known.awaitsPods === true && !isInFlight && lastProgressMs(zones, known) > known.failedMs;
}

/** Reports whether the StatefulSets of a failed rollback got the earlier template since: all whose pods are left, or all without such a pod. */
function hasEarlierTemplates(context: GroupContext, known: FailedRun, target: RunCore['target']): boolean {
  if (hasUnreadZone(context) || isUnfrozen(context) || zonesOfFailedRun(context, known).length > 0) return false;
  return context.view.zones.some(({ zone: { name }, set }) => {
    return known.rolledBack?.revisions[name] !== undefined && set?.status.updateRevision === target[name];
  });
}

/** Returns the run that brings the pods of a failed rollback to the earlier template, which StatefulSets now have. */
function returnByTemplates(context: GroupContext, known: FailedRun, target: RunCore['target']): RunningRun {
  const { kept, restores, rolledBack } = known;
  const written = context.view.zones.flatMap(({ zone: { name }, set }): [string, string][] => {
    const failed = rolledBack?.revisions[name];
    return failed !== undefined && set?.status.updateRevision === target[name] ? [[name, failed]] : [];
  });
  const started = followingRun(context, { kind: 'rollback', target, previous: target, ...defined({ kept }) }, known);
  const run = { ...started, from: { ...target, ...Object.fromEntries(written) }, ...defined({ restores, rolledBack }) };
  return withNamedRevisions(context, run);
}

/**
 * Reports whether a run may begin: it has a pod to replace, and no partition still has to freeze exposed pods. Otherwise the run would count
 * these pods as its own.
 */
function mayBegin(context: GroupContext, run: RunState): boolean {
  return hasPodsLeft(context, run) && !isUnfrozen(context);
}

/**
 * Returns the run that replaces the outdated pods which `known` leaves. `known` is completed, or it no longer returns zones before the others.
 * The new run is a rollback only if it replaces only pods at rolled-back revisions, for example after a scale-up. Other pods need soaks and
 * approvals.
 */
function rollRest(context: GroupContext, known: RunState, target: RunCore['target']): RunningRun {
  const returning = rolledBackZones(context.view, known).filter(({ outdated }) => outdated.length > 0);
  const returns = ({ zone }: ZoneView): boolean => returning.some((one) => one.zone.name === zone.name);
  const isBack =
    returning.length > 0 && context.view.zones.every((view) => returns(view) || podsLeft(context.group, undefined, view) === 0);
  const kind = isBack ? 'rollback' : 'rollout';
  const present = presentZones(context);
  const isReturned = known.kind === 'rollback' && known.returning === undefined;
  // The pods left the `previous` revisions of a return, so no other run may return to these revisions.
  const previous = isBack ? known.previous : isReturned ? revisionsAfter(known, present) : revisionsBefore(known);
  const kept = isBack ? known.kept : revisionsKept(known, { target, previous }, present);
  return keepRolledBack(context, followingRun(context, { kind, target, previous, ...defined({ kept }) }, known), known);
}

function presentZones({ view }: GroupContext): readonly PresentZone[] {
  return view.zones.map(({ zone, desiredRevision, pods }) => ({
    zone: zone.name,
    updateRevision: desiredRevision,
    pods: countRevisions(pods),
  }));
}

/** Reports whether zones no longer return before the others, because the group now has `skipOnRollback: false`: all zones roll in order. */
function endsReturn({ group: { rollout } }: GroupContext, { outcome, returning }: RunState): boolean {
  return outcome === 'running' && returning !== undefined && !rollout.skipOnRollback;
}

function withoutReturned(context: GroupContext, run: RunState): RunState {
  return run.outcome === 'completed' ? withNamedRevisions(context, run) : run;
}

/**
 * Returns the run without the rolled-back revisions that no StatefulSet names any more: another template ended the block. A revision that is
 * still the current revision stays, because Kubernetes creates pods at it.
 */
function withNamedRevisions<Run extends RunState>({ view }: GroupContext, run: Run): Run {
  const { rolledBack } = run;
  if (rolledBack === undefined) return run;
  const isNamed = ([zone, failed]: readonly [string, string]): boolean => {
    const known = view.zones.find((one) => one.zone.name === zone);
    // A StatefulSet that was created again has no update revision until its controller observes it.
    if (known?.set === undefined || known.unknown !== undefined) return true;
    const { updateRevision, currentRevision } = known.set.status;
    return updateRevision === failed || currentRevision === failed;
  };
  return { ...run, rolledBack: { ...rolledBack, revisions: Object.fromEntries(Object.entries(rolledBack.revisions).filter(isNamed)) } };
}

/** Returns the run without the zones that left the group. Requests about the run still count. The waves start over: they may differ. */
function withoutFormerZones(run: RunState, target: RunCore['target'], nowMs: number): RunState {
  const kept = Object.entries(run.target).filter(([zone]) => target[zone] !== undefined);
  if (kept.length === Object.keys(run.target).length) return run;
  const rest = { ...run, target: Object.fromEntries(kept) };
  if (rest.outcome === 'completed') return rest;
  return enterWave(target[rest.openZone ?? ''] === undefined ? closeZone(rest) : rest, 0, nowMs);
}

function afterChange(context: GroupContext, known: RunState, target: RunCore['target']): RunState {
  const { group, view } = context;
  // While a zone is unread, its outdated pods are unknown, so no other run starts.
  if (hasUnreadZone(context) || isUnfrozen(context)) return known;
  const next = supersede(context, known, target);
  const isConcerned = (zone: ZoneView): boolean => isInWave(group, zone.zone.name) || podsLeft(group, next, zone) > 0;
  // A new template of a zone that no wave includes does not change the run.
  if (!view.zones.some((zone) => target[zone.zone.name] !== known.target[zone.zone.name] && isConcerned(zone)))
    return withTemplates(known, next);
  if (known.outcome === 'failed') {
    // A zone that joins the group is no reason to continue a failed run.
    if (Object.keys(known.target).every((zone) => known.target[zone] === target[zone])) return { ...known, target };
    if (staysFailed(context, known)) return known;
  }
  if (hasPodsLeft(context, next)) return next;
  // Pods that run the new templates already may still be unavailable, so the run completes only after the checks that end every run.
  return known.outcome === 'completed' ? withTemplates(known, next) : { ...next, wave: group.rollout.waves.length };
}

/**
 * Returns the known run with new templates that begin no run. After a completed run, an undo of these templates restores the revisions that an
 * undo of `next` would restore. If `next` is a return, an undo restores the same revisions as before this return.
 */
function withTemplates(known: RunState, { kind, target, previous, kept }: RunCore): RunState {
  if (known.outcome !== 'completed' || kind === 'rollback') return { ...known, target };
  const { kept: _kept, ...rest } = known;
  return { ...rest, target, previous, ...defined({ kept }) };
}

/** Reports whether a zone with pods to replace still has the template of the failed run, and no retry was requested. */
function staysFailed(context: GroupContext, known: FailedRun): boolean {
  return zonesOfFailedRun(context, known).length > 0 && retryRequest(context, known, known.failedMs) === undefined;
}

function hasUnreadZone({ view }: GroupContext): boolean {
  return view.zones.some(({ unknown }) => unknown !== undefined);
}

function isUnfrozen(context: GroupContext): boolean {
  return context.view.zones.some((view) => freezingPartition(context, view) !== undefined);
}

function abortWhenRequested(context: GroupContext, run: RunningRun): RunState {
  const [request] = abortRequests(context, run);
  if (request === undefined) return run;
  const onFailure = request.rollback === true ? 'rollback' : 'pause';
  return failRun(run, `aborted by ${requesterText(request)}`, context.nowMs, { onFailure });
}

/** Returns the run after a template change: a rollback if zones return to their revision before the run, else a rollout. */
function supersede(context: GroupContext, known: RunState, target: RunCore['target']): RunningRun {
  const restores = { ...revisionsToReturn(known), ...returnedAlone(known, target) };
  const { isBack, returning } = returnOf(context, known, { target, restores });
  const present = presentZones(context);
  const included = context.view.zones.filter((view) => podsLeft(context.group, undefined, view) > 0).map(({ zone }) => zone.name);
  const changed = present.filter(({ zone }) => target[zone] !== known.target[zone] || included.includes(zone));
  const previous = revisionsAfter(known, changed);
  const others = revisionsKept(known, { target, previous }, returning === undefined && isBack ? [] : present);
  const kept = isBack ? keptInReturn(known, returning, others) : others;
  const change = { kind: isBack ? ('rollback' as const) : ('rollout' as const), target, previous, ...defined({ kept }) };
  const started = followingRun(context, change, known);
  const continues = started.kind === known.kind ? continuesChange : addsZones;
  const isContinued = known.outcome === 'running' && continues(started, known);
  const from = isContinued ? (known.from ?? known.previous) : known.target;
  const base = !isContinued ? undefined : addsZones(started, known) ? known.base : known.target;
  const interrupted = returning === undefined ? undefined : interruptedOf(known);
  return {
    ...keepRolledBack(context, started, known),
    from,
    ...defined({ base, returning, interrupted, earlier: isBack ? undefined : earlierRevisions(known, target) }),
    ...(isBack ? { restores } : {}),
  };
}

/** Returns the revisions of `earlier` of the running run to which zones return now. Members are written one by one, in any order. */
function returnedAlone({ outcome, earlier = {} }: RunState, target: RunCore['target']): RunCore['target'] {
  if (outcome !== 'running') return {};
  return Object.fromEntries(Object.entries(earlier).filter(([zone, revision]) => target[zone] === revision));
}

/** Returns `earlier` of the rollout after this run: of the zones that it does not change. */
function earlierRevisions(known: RunState, target: RunCore['target']): RunCore['earlier'] {
  const earlier = Object.entries({ ...revisionsToReturn(known), ...known.earlier });
  const unchanged = earlier.filter(([zone, revision]) => target[zone] === known.target[zone] && target[zone] !== revision);
  return unchanged.length === 0 ? undefined : Object.fromEntries(unchanged);
}

/**
 * Reports whether a template change is a rollback. If only some of the zones with pods to replace return, `returning` has these zones. They go
 * first, because they skip soaks and approvals. If no wave has a soak or an approval, all zones roll in the usual order.
 */
function returnOf(
  { view, group }: GroupContext,
  known: RunState,
  { target, restores }: Pick<RunCore, 'target' | 'restores'>,
): { readonly isBack: boolean; readonly returning?: readonly string[] } {
  const isChanged = ({ zone: { name } }: ZoneView): boolean => target[name] !== known.target[name];
  const isRestored = ({ zone: { name } }: ZoneView): boolean => target[name] === restores?.[name];
  // A zone that joins the group with its earlier template does not return.
  const goesBack = (view: ZoneView): boolean =>
    isChanged(view) ? known.target[view.zone.name] !== undefined : (known.returning?.includes(view.zone.name) ?? known.kind === 'rollback');
  const mayBeBack = view.zones.some(isChanged) && (known.kind === 'rollback' || view.zones.some((one) => isChanged(one) && goesBack(one)));
  const isAtRest = (one: ZoneView): boolean => !isChanged(one) && podsLeft(group, undefined, one) === 0;
  if (mayBeBack && view.zones.every((one) => isRestored(one) || isAtRest(one))) return { isBack: true };
  const zones = view.zones.filter((one) => isRestored(one) && goesBack(one) && one.outdated.length > 0).map(({ zone }) => zone.name);
  return zones.length > 0 && group.rollout.waves.some(hasChecks) && group.rollout.skipOnRollback
    ? { isBack: true, returning: zones }
    : { isBack: false };
}

/**
 * Returns the run with the rolled-back revisions that StatefulSets still name. A new template of one zone does not affect other zones. A
 * zone that left the group keeps its revisions until another rollout.
 */
function keepRolledBack(context: GroupContext, run: RunningRun, { rolledBack, restores = {} }: RunState): RunningRun {
  if (rolledBack === undefined || !traitsOf(context.group).canRollBack) return run;
  const kept = Object.entries(rolledBack.revisions).filter(([zone, failed]) => {
    const view = zoneNamed(context, zone);
    if (view === undefined) return run.kind === 'rollback';
    return view.unknown !== undefined || view.set?.status.updateRevision === failed;
  });
  if (kept.length === 0) return run;
  const earlier = kept.flatMap(([zone]) => (restores[zone] === undefined ? [] : [[zone, restores[zone]] as const]));
  return { ...run, restores: Object.fromEntries(earlier), rolledBack: { ...rolledBack, revisions: Object.fromEntries(kept) } };
}

/** Returns the target revision per zone. An unreadable zone keeps its revision, so that a failed read starts no run. */
function targetOf(context: GroupContext): Readonly<Record<string, string>> {
  const known = context.view.ledger.run?.target ?? {};
  const entries = context.view.zones.flatMap((view): [string, string][] => {
    const revision = view.desiredRevision || view.set?.status.updateRevision || known[view.zone.name];
    return revision === undefined ? [] : [[view.zone.name, revision]];
  });
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/**
 * Returns the most frequent revision of the available pods per zone, as the revision before the first run. A zone without an available pod is
 * left out: no revision is known to work there, so every wave may repair its stuck pods.
 */
function majorityRevisions(context: GroupContext): Readonly<Record<string, string>> {
  const revisions: Record<string, string> = {};
  for (const view of context.view.zones) {
    const most = mostFrequent(countRevisions(view.pods.filter(({ ordinal }) => view.available.has(ordinal))));
    if (most !== undefined) revisions[view.zone.name] = most;
  }
  return revisions;
}

/** Starts the run after `before`. An open zone of `before` stays open. If `before` has no open zone, the zone to repair opens. */
function followingRun(context: GroupContext, change: RunChange, before?: RunState): RunningRun {
  const { nowMs, group } = context;
  const started = zoneNamed(context, before?.openZone);
  const open = (started ?? zoneToRepair(context))?.zone.name;
  const run = startRun({ change, group: `${group.namespace}/${group.name}`, nowMs, openZone: open, before });
  return { ...run, ...defined({ completed: before === undefined ? undefined : completedBefore(before, change) }) };
}

/**
 * Returns `completed` of the run after `before`; undefined for a rollout whose `previous` has the same revisions. A return that replaced no pod
 * counts as unfinished: members are written one by one, and the next one may return a zone that is updated already.
 */
function completedBefore(before: RunState, { kind }: RunChange): RunCore['completed'] {
  const isReached = before.outcome === 'completed' && (before.kind === 'rollout' || hasReplacedSince(before, before.startedMs));
  if (isReached) return kind === 'rollback' ? before.target : undefined;
  return before.completed ?? (kind === 'rollback' && before.kind === 'rollout' ? before.previous : undefined);
}

/** Returns the only zone with unavailable pods, if one of them is outdated: its repair must come before any other replacement. */
function zoneToRepair({ view }: GroupContext): ZoneView | undefined {
  const [only, ...others] = view.zones.filter(({ isReady }) => !isReady);
  return others.length === 0 && only?.outdated.some(({ ordinal }) => !only.available.has(ordinal)) === true ? only : undefined;
}

/** Returns the newest retry of the run that has had no effect yet. */
function retryRequest(context: GroupContext, run: RunState, endedMs: number): VerifiedRequest | undefined {
  return unanswered(context, run, 'retry', endedMs).reduce<VerifiedRequest | undefined>(
    (newest, one) => (newest === undefined || one.requestedBy.atMs > newest.requestedBy.atMs ? one : newest),
    undefined,
  );
}

/** Returns the run of a decision. If a retry may follow the end of the run, then the retries that are present at its end are answered. */
export function withEarlierRetries(context: GroupContext, run: RunState): RunState {
  const before = context.view.ledger.run;
  if (before?.outcome !== 'running' || before.id !== run.id) return run;
  return run.outcome === 'failed' || (run.outcome === 'completed' && isRollingBack(run)) ? withAnswered(context, run, ['retry']) : run;
}

/** The time from a failure to the rollback in milliseconds: enough to publish and notify the failure. */
export const rollbackDelayMs = 1_000;

/**
 * Returns the context with the rollback of a failed run, or with the new run that a person requests by `retry` after a rollback. Otherwise
 * returns the given context. A rollback has the same waves and restores the previous revision. Only the strategy `pinned` can do that
 * without another template. The failed template is ignored until it changes or a person retries. A failed rollback is not rolled back.
 */
export function withRollback(context: GroupContext): GroupContext {
  const { run } = context.view.ledger;
  // While a zone is unread, the pods to restore are unknown.
  if (run === undefined || hasUnreadZone(context)) return context;
  const next = startRollback(context, run) ?? restartRolledBack(context, run);
  if (next === undefined) return context;
  const { ledger } = context.view;
  const others = context.snapshot.ledgers.filter(({ namespace, group }) => namespace !== ledger.namespace || group !== ledger.group);
  return contextOf(
    { ...context.snapshot, ledgers: [...others, { ...ledger, run: { ...next, ...defined({ seen: run.seen }) } }] },
    context.group,
  );
}

function startRollback(context: GroupContext, run: RunState): RunState | undefined {
  if (run.outcome !== 'failed' || !rollsBack(context, run) || context.nowMs < rollbackMs(context, run)) return undefined;
  const revisions = newRevisions(run);
  const target = Object.fromEntries(Object.entries(run.target).map(([zone, revision]) => [zone, run.previous[zone] ?? revision]));
  const kept = keptInReturn(run);
  const back = followingRun(context, { kind: 'rollback', target, previous: run.target, ...defined({ kept }) }, run);
  const request = failsWithRollback(context, run) ? undefined : rollbackRequest(context, run);
  const because = request === undefined ? run.failure : `${run.failure}; rollback requested by ${requesterText(request)}`;
  return {
    ...back,
    restores: { ...run.restores, ...target },
    rolledBack: { revisions: { ...run.rolledBack?.revisions, ...revisions }, because },
  };
}

/** Returns when a failed run is rolled back; at once if a fast clock dated the failure in the future. */
function rollbackMs(context: GroupContext, { failedMs }: FailedRun): number {
  return isWithinClockSkew(context, failedMs) ? failedMs + rollbackDelayMs : 0;
}

/** Reports whether a rollback of the unfinished run would return a pod. */
export function mayRollBack({ rollout: { strategy } }: Pick<GroupContext['group'], 'rollout'>, run: RunState): boolean {
  const isChange = Object.keys(newRevisions(run)).length > 0;
  return whyNotRolledBack({ strategy, isReturn: run.kind === 'rollback', isChange }) === undefined;
}

/** Reports whether a failed run is rolled back: by `onFailure`, or by an abort with a rollback. The abort may follow the failure. */
export function rollsBack(context: GroupContext, run: RunState): boolean {
  if (run.outcome !== 'failed' || !mayRollBack(context.group, run)) return false;
  // An unread request may be a retry.
  if (isUnknown(context.intents) || retryRequest(context, run, run.failedMs) !== undefined) return false;
  return failsWithRollback(context, run) || rollbackRequest(context, run) !== undefined;
}

/** Reports whether the failure causes a rollback without a further request. An abort that ended the run decides, else the group. */
function failsWithRollback({ group }: GroupContext, { onFailure = group.rollout.onFailure }: FailedRun): boolean {
  return onFailure === 'rollback';
}

function rollbackRequest(context: GroupContext, run: FailedRun): IntentView | undefined {
  return abortRequests(context, run).find(({ rollback }) => rollback === true);
}

/** Returns a new run to the rolled-back revision, from the first wave, if a person requests a retry after the rollback. */
function restartRolledBack(context: GroupContext, run: RunState): RunState | undefined {
  if (run.outcome !== 'completed' || rolledBackZones(context.view, run).length === 0) return undefined;
  const request = retryRequest(context, run, run.completedMs);
  if (request === undefined) return undefined;
  const target = Object.fromEntries(
    context.view.zones.flatMap(({ zone, set }) => (set === undefined ? [] : [[zone.name, set.status.updateRevision] as const])),
  );
  const retry = followingRun(context, { kind: 'rollout', target, previous: run.target, ...defined({ kept: run.kept }) }, run);
  return { ...retry, origin: causedBy(`retried by ${requesterText(request)}`) };
}

/** Returns the warnings of a group that was rolled back or is about to be. */
export function rollbackWarnings(context: GroupContext, run: RunState | undefined): readonly RuleResult[] {
  if (run === undefined) return [];
  if (run.outcome === 'failed' && rollsBack(context, run)) {
    const fact = 'the run has failed, and every pod returns to its previous revision';
    // Time does not end this wait: the agent must read every zone first.
    if (hasUnreadZone(context)) return [result('rolled-back', 'unknown', fact)];
    return [result('rolled-back', 'wait', fact, { earliestMs: Math.max(context.nowMs + 1, rollbackMs(context, run)) })];
  }
  const { rolledBack } = run;
  return rolledBackZones(context.view, run).map((view) => {
    const { zone, set, desiredRevision } = view;
    const does = podsLeft(context.group, run, view) > 0 ? 'returns to' : 'stays at';
    const fact = `zone ${zone.name} ${does} ${desiredRevision}, because ${set.status.updateRevision} failed: ${rolledBack?.because ?? ''}`;
    return result('rolled-back', 'wait', fact, {
      limit: run.outcome === 'completed' ? 'another template, or retry' : 'another template',
      source: { object: `StatefulSet ${set.namespace}/${set.name}`, field: 'spec.template' },
    });
  });
}
