// The run: which revision the group moves to, which wave it is in, and since when. Moved forward by every decision.

import type { WaveDefinition } from '../../policies/definition.ts';
import { traitsOf } from '../../policies/strategies.ts';
import { waveTarget } from '../amount.ts';
import { type GroupContext, zoneNamed } from '../context.ts';
import type { RuleResult } from '../decision.ts';
import { hashText } from '../hash.ts';
import { isWithinClockSkew } from '../observe/clock-skew.ts';
import type { ZoneView } from '../observe/view.ts';
import { profileOf } from '../profiles.ts';
import { blocks } from '../rule.ts';
import { isStuck } from '../rules/stuck.ts';
import { afterWave } from '../rules/wave.ts';
import type { PodView, RunState } from '../snapshot.ts';
import { abortOf, requesterText, requestsFor } from './requests.ts';

export interface ZoneProgress {
  readonly view: ZoneView;
  /** Updated pods when the wave is done. */
  readonly target: number;
  /** Pods of this zone still to be replaced in this wave, among them stuck ones of the open zone. */
  readonly remaining: number;
}

export interface WaveProgress {
  readonly wave: WaveDefinition;
  readonly zones: readonly ZoneProgress[];
  /** Whether every zone has its amount of updated pods. */
  readonly isFilled: boolean;
  /** Whether, moreover, every pod of the group is available. */
  readonly isAvailable: boolean;
}

export interface AdvancedRun {
  readonly run: RunState;
  /** The wave under way; absent when the run is over. */
  readonly progress?: WaveProgress;
  /** What was asked after the wave under way, when all its pods are available. */
  readonly after: readonly RuleResult[];
  readonly observations: readonly RuleResult[];
  readonly wantedReadings: readonly { readonly gate: string; readonly fromMs: number }[];
}

/**
 * How far the zones of a wave are. Stuck pods of the open zone are part of every wave, also when their zone is not: until they are replaced no
 * zone may go, so a run would wait for ever on what an earlier one, or an earlier wave, has broken. In native groups so are those of any zone
 * which a run in between has left, of a revision that is neither `previous` nor wanted; what ran before keeps its wave.
 */
export function waveProgress(
  context: GroupContext,
  wave: WaveDefinition,
  openZone?: string,
  previous: RunState['previous'] = {},
): WaveProgress {
  const isLeftBehind = ({ zone }: ZoneView, pod: PodView): boolean =>
    profileOf(context.group).repairsStuckPodsAcrossZones && previous[zone.name] !== undefined && previous[zone.name] !== pod.revision;
  const stuckIn = (view: ZoneView): number =>
    view.outdated.filter((pod) => (view.zone.name === openZone || isLeftBehind(view, pod)) && isStuck(context, view, pod)).length;
  const broken = context.view.zones.filter((view) => stuckIn(view) > 0).map((view) => view.zone.name);
  const outside = [...(openZone === undefined ? [] : [openZone]), ...broken].filter((name) => !wave.zones.includes(name));
  const zones = [...new Set([...outside, ...wave.zones])].flatMap((name) => {
    const view = zoneNamed(context, name);
    if (view === undefined) return [];
    const target = wave.zones.includes(name) ? waveTarget(wave.amount, view.replicas) : 0;
    // What the StatefulSet controller may replace is replaced, whether the wave asks for it or not.
    const going = wave.zones.includes(name) ? view.exposedByPartition.length : 0;
    // A pod that has gone, and whose successor is not made yet, is one of those that the wave has taken.
    const left = Math.min(target - view.updated - view.pendingPods, view.outdated.length);
    return [{ view, target, remaining: Math.max(0, stuckIn(view), going, left) }];
  });
  const isFilled = zones.every((zone) => zone.remaining === 0 && zone.view.unknown === undefined);
  return { wave, zones, isFilled, isAvailable: isFilled && context.view.zones.every((zone) => zone.isReady) };
}

/**
 * The run as it stands at this instant: a new one when the template changed, the next wave when the last one is done. undefined when nothing
 * was ever rolled and nothing is outdated.
 */
export function advanceRun(context: GroupContext): AdvancedRun | undefined {
  const started = currentRun(context);
  return started === undefined ? undefined : advanceWaves(context, trackInFlight(context, openZoneToRepair(context, started)));
}

/** Pods go down for other reasons than the run too, and long after its last replacement: what they take counts from when they did. */
function trackInFlight({ view, nowMs }: GroupContext, run: RunState): RunState {
  const { inFlightSinceMs, ...rest } = run;
  if (!view.zones.some(({ inFlight }) => inFlight > 0)) return inFlightSinceMs === undefined ? run : rest;
  return inFlightSinceMs === undefined ? { ...run, inFlightSinceMs: nowMs } : run;
}

/**
 * The last replacement as of before this instant. A wave or run that begins now has replaced nothing, also when the clock went back since;
 * whoever asks whether it has begun compares these instants.
 */
function beforeNow({ nowMs }: GroupContext, run: Pick<RunState, 'lastDisruptionMs'> | undefined): Pick<RunState, 'lastDisruptionMs'> {
  return run?.lastDisruptionMs === undefined ? {} : { lastDisruptionMs: Math.min(run.lastDisruptionMs, nowMs - 1) };
}

/**
 * The run without instants that lie ahead, as one leaves them behind whose clock was fast. What was to be waited for from then on is waited for
 * from now on, and not for as long as that clock was wrong.
 */
function withoutFutureInstants(context: GroupContext, run: RunState): RunState {
  const { nowMs } = context;
  const since = (instant: number): number => (isWithinClockSkew(context, instant) ? instant : nowMs);
  const entries = instantsOfRun.flatMap((name) => (run[name] === undefined ? [] : [[name, since(run[name])] as const]));
  const believed: RunState = { ...run, ...Object.fromEntries(entries) };
  const { lastDisruptionMs: last } = run;
  if (last === undefined || last >= run.waveStartedMs) return believed;
  return { ...believed, lastDisruptionMs: Math.min(believed.lastDisruptionMs ?? last, believed.waveStartedMs - 1) };
}

const instantsOfRun = [
  'startedMs',
  'waveStartedMs',
  'waveAvailableMs',
  'lastDisruptionMs',
  'inFlightSinceMs',
  'failedMs',
  'retriedMs',
  'completedMs',
] as const satisfies readonly (keyof RunState)[];

function currentRun(context: GroupContext): RunState | undefined {
  const { run: stored } = context.view.ledger;
  const known = stored && withoutFutureInstants(context, stored);
  const target = targetOf(context);
  const hasOutdated = context.view.zones.some((zone) => zone.outdated.length > 0);
  if (known === undefined)
    return hasOutdated ? newRun(context, { kind: 'rollout', target, previous: majorityRevisions(context) }) : undefined;
  if (!isSame(known.target, target)) {
    // Which pods are outdated is not known yet, so neither is whether this is another run.
    if (context.view.zones.some((view) => view.unknown !== undefined)) return known;
    if (!hasOutdated) return completed(context, { ...known, target });
    return superseding(context, known, target);
  }
  if (known.outcome === 'completed' && hasOutdated) {
    // A pod that came at the revision which was rolled back, as by a scale-up, goes back like the others.
    const kind = known.rolledBack === undefined ? 'rollout' : 'rollback';
    return withRolledBack(context, newRun(context, { kind, target, previous: known.previous }), known);
  }
  const current = known.outcome === 'failed' && isRetried(context, known) ? retried(known, context.nowMs) : known;
  const abort = current.outcome === 'running' ? abortOf(context, current) : undefined;
  if (abort === undefined) return current;
  return {
    ...fail(current, `aborted by ${requesterText(abort)}`, context.nowMs),
    onFailure: abort.rollback === true ? 'rollback' : 'pause',
  };
}

/** The run is over, whatever became of it before: every pod runs what is asked for. */
function completed(context: GroupContext, run: RunState): RunState {
  const { failure: _failure, failedMs: _failedMs, onFailure: _onFailure, ...rest } = run;
  return { ...rest, outcome: 'completed', wave: context.group.rollout.waves.length, completedMs: context.nowMs };
}

/**
 * The run that follows when the template changes. Going back to what ran before is a rollback, also of some zones now and of the others a moment later, as manifests
 * are written one after the other; but going forth again after one is not, since that template has failed once.
 */
function superseding(context: GroupContext, known: RunState, target: RunState['target']): RunState {
  const restores = known.restores ?? (known.kind === 'rollout' ? known.previous : {});
  const changed = Object.keys(target).filter((zone) => target[zone] !== known.target[zone]);
  const isBack = changed.length > 0 && changed.every((zone) => target[zone] === restores[zone]);
  // What a rollback goes back to is what ran before; what it takes away has failed.
  const previous = known.outcome === 'completed' || isGoingBack(known) ? known.target : known.previous;
  const next = withRolledBack(context, newRun(context, { kind: isBack ? 'rollback' : 'rollout', target, previous }, known), known);
  return isBack ? { ...next, restores } : next;
}

/** Whether the run brings pods back from a template that failed and is still asked for. */
function isGoingBack({ kind, rolledBack }: RunState): boolean {
  return kind === 'rollback' && rolledBack !== undefined;
}

/** The run with the revisions that were rolled back and are still asked for: another template of one zone is none of the others. */
function withRolledBack({ view, group }: GroupContext, run: RunState, { rolledBack }: RunState): RunState {
  // Other engines cannot make pods at another revision.
  if (rolledBack === undefined || !traitsOf(group).canRollBack) return run;
  const asked = view.zones.flatMap(({ zone, set }) => {
    const failed = rolledBack.revisions[zone.name];
    return failed !== undefined && (set === undefined || set.status.updateRevision === failed) ? [[zone.name, failed] as const] : [];
  });
  return asked.length === 0 ? run : { ...run, rolledBack: { ...rolledBack, revisions: Object.fromEntries(asked) } };
}

/**
 * Whether a run only takes in zones that had no new template when the run before it began, as when the manifests of a group are applied one
 * after another: the same change, for people. It is another run all the same, since nobody approved of its target.
 */
export function isJoinOf(run: Pick<RunState, 'target'>, before: Pick<RunState, 'target' | 'previous'>): boolean {
  const changed = Object.keys(run.target).filter((zone) => run.target[zone] !== before.target[zone]);
  return changed.length > 0 && changed.every((zone) => before.target[zone] === before.previous[zone]);
}

/** What failed is asked anew: gates count, waves soak and deadlines run from now on. */
function retried(run: RunState, nowMs: number): RunState {
  const { failure: _failure, failedMs: _failedMs, onFailure: _onFailure, waveAvailableMs: _waveAvailableMs, ...rest } = run;
  return { ...rest, outcome: 'running', retriedMs: nowMs, movableMs: 0, movableAsOfMs: nowMs };
}

/** A zone that cannot be read keeps the revision it had, so that a failed read starts no new run. */
function targetOf(context: GroupContext): Readonly<Record<string, string>> {
  const known = context.view.ledger.run?.target ?? {};
  const entries = context.view.zones.flatMap((view): [string, string][] => {
    const revision = view.desiredRevision || view.set?.status.updateRevision || known[view.zone.name];
    return revision === undefined ? [] : [[view.zone.name, revision]];
  });
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}

function isSame(one: Readonly<Record<string, string>>, other: Readonly<Record<string, string>>): boolean {
  const names = Object.keys(one);
  return names.length === Object.keys(other).length && names.every((name) => one[name] === other[name]);
}

/** What most pods of each zone ran before anything was recorded; of those that are available, if any is: what never started ran nothing. */
function majorityRevisions(context: GroupContext): Readonly<Record<string, string>> {
  const revisions: Record<string, string> = {};
  for (const view of context.view.zones) {
    const counts = new Map<string, number>();
    const available = view.pods.filter(({ ordinal }) => !view.unavailable.has(ordinal));
    for (const pod of available.length > 0 ? available : view.pods) counts.set(pod.revision, (counts.get(pod.revision) ?? 0) + 1);
    const most = [...counts].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1))[0];
    if (most !== undefined) revisions[view.zone.name] = most[0];
  }
  return revisions;
}

/**
 * A zone that is open stays open: it is finished, or made whole, before another one is begun. Without one it is the zone to be cured first.
 */
export function newRun(context: GroupContext, run: Pick<RunState, 'kind' | 'target' | 'previous'>, before?: RunState): RunState {
  const { nowMs, group } = context;
  const id = hashText(`${group.namespace}/${group.name} ${JSON.stringify(run.target)} ${nowMs}`).slice(0, 10);
  const started = before?.outcome === 'completed' ? undefined : zoneNamed(context, before?.openZone);
  const open = (started ?? curedBeforeAll(context))?.zone.name;
  return {
    id,
    ...run,
    startedMs: nowMs,
    wave: 0,
    waveStartedMs: nowMs,
    ...(open === undefined ? {} : { openZone: open }),
    ...beforeNow(context, before),
    movableMs: 0,
    movableAsOfMs: nowMs,
    isMovable: false,
    outcome: 'running',
  };
}

/** The single zone that is not whole, when an outdated pod is what it lacks: nothing else can go before it. */
function curedBeforeAll({ view }: GroupContext): ZoneView | undefined {
  const [only, ...others] = view.zones.filter(({ isReady }) => !isReady);
  return others.length === 0 && only?.outdated.some(({ ordinal }) => only.unavailable.has(ordinal)) === true ? only : undefined;
}

/**
 * The run with the zone to be cured first open, as long as it has replaced nothing: when it began another zone may have been down as well, for a
 * reason that has passed since. Pods that break while a run is under way keep their wave.
 */
function openZoneToRepair(context: GroupContext, run: RunState): RunState {
  const cured = isUnbegun(run) && run.openZone === undefined ? curedBeforeAll(context) : undefined;
  return cured?.outdated.some((pod) => isStuck(context, cured, pod)) === true ? { ...run, openZone: cured.zone.name } : run;
}

/** Whether the run has replaced no pod yet. */
export function isUnbegun({ outcome, lastDisruptionMs, startedMs }: RunState): boolean {
  return outcome === 'running' && (lastDisruptionMs ?? -1) < startedMs;
}

function isRetried(context: GroupContext, run: RunState): boolean {
  return requestsFor(context, run, 'retry').some(({ requestedBy }) => requestedBy.atMs > (run.failedMs ?? 0));
}

function advanceWaves(context: GroupContext, started: RunState): AdvancedRun {
  const { waves } = context.group.rollout;
  let run = settleOpenZone(context, withinWaves(context, started));
  for (let guard = 0; guard <= waves.length; guard += 1) {
    const wave = waves[run.wave];
    if (wave === undefined || run.outcome === 'completed') {
      const { openZone: _openZone, waveAvailableMs: _waveAvailableMs, ...rest } = run;
      const over: RunState = run.outcome === 'completed' ? rest : { ...rest, outcome: 'completed', completedMs: context.nowMs };
      return { run: over, after: [], observations: [], wantedReadings: [] };
    }
    const progress = waveProgress(context, wave, run.openZone, run.previous);
    if (!progress.isAvailable) {
      const { waveAvailableMs: _waveAvailableMs, ...rest } = run;
      return { run: rest, progress, after: [], observations: [], wantedReadings: [] };
    }
    const available: RunState = { ...run, waveAvailableMs: run.waveAvailableMs ?? context.nowMs };
    // A failed run has asked its questions; they are asked anew when somebody tries again.
    if (run.outcome === 'failed') return { run: available, progress, after: [], observations: [], wantedReadings: [] };
    const asked = afterWave(context, wave, available);
    if (asked.results.some(blocks)) {
      const failed = asked.failure === undefined ? available : fail(available, asked.failure, context.nowMs);
      return { run: failed, progress, after: asked.results, observations: asked.observations, wantedReadings: asked.wantedReadings };
    }
    const { waveAvailableMs: _waveAvailableMs, ...rest } = available;
    const next = run.wave + 1;
    const index = next < waves.length ? next : (undoneWave(context, rest) ?? next);
    run = { ...rest, ...beforeNow(context, rest), wave: index, waveStartedMs: context.nowMs };
  }
  return { run, after: [], observations: [], wantedReadings: [] };
}

/** The run in a wave that there is: with fewer waves than before it goes on in the first that is not done, and is not taken for complete. */
function withinWaves(context: GroupContext, run: RunState): RunState {
  if (run.outcome === 'completed' || run.wave < context.group.rollout.waves.length) return run;
  const index = undoneWave(context, run);
  return index === undefined ? run : { ...run, ...beforeNow(context, run), wave: index, waveStartedMs: context.nowMs };
}

/**
 * The first wave that is not done any more. While a later one was under way a StatefulSet controller that works with the past may have put an
 * outdated pod where another one had been lost, and no event tells again of a pod that is available: a run that ended beside it would leave it.
 */
function undoneWave(context: GroupContext, { previous }: RunState): number | undefined {
  const index = context.group.rollout.waves.findIndex((wave) => !waveProgress(context, wave, undefined, previous).isFilled);
  return index === -1 ? undefined : index;
}

function settleOpenZone(context: GroupContext, run: RunState): RunState {
  const open = zoneNamed(context, run.openZone);
  const wave = context.group.rollout.waves[run.wave];
  if (open === undefined || !open.isReady || wave === undefined) return run;
  const stillWanted =
    wave.zones.includes(open.zone.name) && waveTarget(wave.amount, open.replicas) > open.updated && open.outdated.length > 0;
  if (stillWanted) return run;
  const { openZone: _openZone, ...rest } = run;
  return rest;
}

/**
 * The run of a decision whose replacements were all refused, or never asked for. It has not moved: gates before the wave are asked again, a
 * window that closes finds nothing under way, and the deadline for progress goes on. `before` is the run as it was decided upon.
 */
export function revertProgress(run: RunState, before: RunState | undefined): RunState {
  const { openZone, lastDisruptionMs, inFlightSinceMs, ...rest } = run;
  // What is down for another reason is so since an earlier instant, or is noted again by the next decision.
  const flight = inFlightSinceMs === undefined || inFlightSinceMs === lastDisruptionMs ? {} : { inFlightSinceMs };
  const isSame = before?.id === run.id;
  const open = isSame ? before.openZone : openZone;
  const lastMs = before?.lastDisruptionMs;
  const isSameWave = isSame && before.wave === run.wave;
  const last = lastMs === undefined ? {} : { lastDisruptionMs: isSameWave ? lastMs : Math.min(lastMs, run.waveStartedMs - 1) };
  return { ...rest, ...(open === undefined ? {} : { openZone: open }), ...last, ...flight };
}

/** The run with a failure recorded; what follows is the group's `onFailure`. */
export function fail(run: RunState, failure: string, nowMs: number): RunState {
  return { ...run, outcome: 'failed', failure, failedMs: nowMs };
}
