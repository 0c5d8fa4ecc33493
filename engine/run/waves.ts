// Moves a run through its waves: measures the progress of a wave, and decides when the wave ends and which wave follows.
import type { WaveDefinition } from '../../policies/definition.ts';
import { type GroupContext, zoneNamed } from '../context.ts';
import type { RuleResult } from '../decision.ts';
import type { ZoneView } from '../observe/view.ts';
import { profileOf } from '../profiles.ts';
import { blocks } from '../rule.ts';
import { isStuck } from '../rules/pod-state.ts';
import { oldStatusOf } from '../rules/roll.ts';
import { addsNoPod, afterWave, beforeWave, type WaveAnswer, wavesDigestOf } from '../rules/wave.ts';
import type { PodView } from '../snapshot.ts';
import { podsOfWave, podsUpTo, zonesOfWave } from './included.ts';
import { digestOfWaves } from './requests.ts';
import type { RunState, UnfinishedRun } from './run-state.ts';
import { brokeBeforeRun, clearWaveAvailable, closeZone, completeRun, enterWave, failRun, markWaveAvailable } from './states.ts';

interface WaveChecks {
  /** Results of soak, gates and approval after the current wave. If a status is older than its spec, only the results of `unobserved`. */
  readonly after: readonly RuleResult[];
  readonly observations: readonly RuleResult[];
  readonly wantedReadings: readonly { readonly gate: string; readonly fromMs: number }[];
}

/** A run after this decision. `progress` is the progress of the current wave; undefined if the run is completed. */
export type AdvancedRun = WaveChecks &
  ({ readonly run: UnfinishedRun; readonly progress: WaveProgress } | { readonly run: RunState; readonly progress?: undefined });

const noChecks: WaveChecks = { after: [], observations: [], wantedReadings: [] };

/** Moves the run forward over every wave that is done, and completes it after the last wave. */
export function advanceWaves(context: GroupContext, started: RunState): AdvancedRun {
  if (started.outcome === 'completed') return { run: started, ...noChecks };
  const { nowMs } = context;
  const { waves } = context.group.rollout;
  let run = closeFinishedZone(context, moveIntoWaves(context, started));
  for (let guard = 0; guard <= waves.length; guard += 1) {
    const wave = currentWave(context, run);
    if (wave === undefined) return endRun(context, run);
    const progress = waveProgress(context, wave, run);
    if (!progress.isAvailable) return { run: clearWaveAvailable(run), progress, ...noChecks };
    const available = markWaveAvailable(run, nowMs);
    // A failed run checks no gate and no approval until a retry.
    if (available.outcome === 'failed') return { run: available, progress, ...noChecks };
    const { results, observations, wantedReadings, failure } = endOfWave(context, wave, available);
    const stale = unobserved(context);
    const after = stale.length > 0 ? stale : results;
    if (after.some(blocks)) {
      const next = failure === undefined ? available : failRun(available, failure, nowMs);
      return { run: next, progress, after, observations, wantedReadings };
    }
    run = { ...enterWave(available, waveAfter(context, available), nowMs), ...wavesDigestOf(context.group) };
  }
  return { run, ...noChecks };
}

/** Returns the checks that must pass before the run leaves a filled wave. A wave without a first pod has its checks before the pod here. */
function endOfWave(context: GroupContext, wave: WaveDefinition, run: UnfinishedRun): WaveAnswer {
  const before = addsNoPod(context, wave) ? beforeWave(context, wave, run) : undefined;
  return before?.results.some(blocks) === true ? before : afterWave(context, wave, run);
}

/** Returns the wave of the run; undefined after the last wave, and while zones return before the waves. */
function currentWave({ group: { rollout } }: GroupContext, { wave, returning }: UnfinishedRun): WaveDefinition | undefined {
  return returning === undefined ? rollout.waves[wave] : undefined;
}

/** Completes a run after its last wave, or after the return of some zones, but not while a pod is unavailable or a status is older than its spec. */
function endRun(context: GroupContext, run: UnfinishedRun): AdvancedRun {
  const last = context.group.rollout.waves.at(run.returning === undefined ? -1 : run.wave);
  const progress = last === undefined ? undefined : waveProgress(context, last, run);
  const after = unobserved(context);
  if (progress === undefined || (progress.isAvailable && after.length === 0)) return { run: completeRun(run, context.nowMs), ...noChecks };
  return { run, progress, ...noChecks, after };
}

/** Returns a block for each zone whose status is older than its spec: its update revision may still change. */
function unobserved({ view }: GroupContext): readonly RuleResult[] {
  return view.zones.flatMap((zone) => oldStatusOf(zone) ?? []);
}

/** Returns the index of the next wave. After the last wave, returns a wave that is unfilled again, else the number of waves: the run ends. */
function waveAfter(context: GroupContext, run: UnfinishedRun): number {
  const index = run.wave + 1;
  return index < context.group.rollout.waves.length ? index : (firstUnfilledWave(context, run) ?? index);
}

/**
 * Moves a run that is past the last wave to the first unfilled wave, if any. If the waves changed since the last replacement, also moves the
 * run back to an earlier unfilled wave, because the number of its wave may now name a later wave.
 */
function moveIntoWaves(context: GroupContext, run: UnfinishedRun): UnfinishedRun {
  const isPast = run.wave >= context.group.rollout.waves.length;
  const isChanged = run.waves !== undefined && run.returning === undefined && run.waves !== digestOfWaves(context.group);
  const index = isPast || isChanged ? firstUnfilledWave(context, run) : undefined;
  return index === undefined || (index >= run.wave && !isPast) ? run : enterWave(run, index, context.nowMs);
}

/** Moves a retried run to an earlier wave that is unfilled again, for example because a canary pod came back at its earlier revision. */
export function returnToUnfilledWave(context: GroupContext, run: UnfinishedRun): UnfinishedRun {
  const index = run.returning === undefined ? firstUnfilledWave(context, run) : undefined;
  return index === undefined || index >= run.wave ? run : enterWave(closeZone(run), index, context.nowMs);
}

/** Returns the index of the first unfilled wave, or undefined. A StatefulSet controller with a stale cache may unfill a completed wave. */
function firstUnfilledWave(context: GroupContext, run: UnfinishedRun): number | undefined {
  const closed = closeZone(run);
  const index = context.group.rollout.waves.findIndex((wave) => !waveProgress(context, wave, closed).isFilled);
  return index === -1 ? undefined : index;
}

/** Closes the open zone when all its pods are available and the wave replaces no further pod of it. */
function closeFinishedZone(context: GroupContext, run: UnfinishedRun): UnfinishedRun {
  const open = zoneNamed(context, run.openZone);
  const { group } = context;
  const wave = group.rollout.waves[run.wave];
  if (open === undefined || !open.isReady || wave === undefined) return run;
  const hasMore = zonesOfWave(group, run, wave).includes(open.zone.name) && podsUpTo(podsOfWave(group, run, open, wave), open) > 0;
  return hasMore ? run : closeZone(run);
}

export interface ZoneProgress {
  readonly view: ZoneView;
  /** The number of updated pods at which the wave is done with this zone. */
  readonly target: number;
  /** Number of pods of this zone that the wave still replaces, including stuck pods of the open zone. */
  readonly remaining: number;
}

export interface WaveProgress {
  readonly wave: WaveDefinition;
  readonly zones: readonly ZoneProgress[];
  /** True if every zone was read and no zone has remaining pods. */
  readonly isFilled: boolean;
  /** True if the wave is filled and every pod of the group is available. */
  readonly isAvailable: boolean;
}

/**
 * Reports whether every wave of the run may replace a pod that is stuck, because its zone blocks all other zones: a pod of the open zone, or a
 * pod that broke before the run. In native groups also a pod that is neither at `previous` nor at the target, for example after an unfinished
 * run. A new zone has no revision in `previous`.
 */
function mayRepair({ group }: GroupContext, run: RunState, { zone }: ZoneView, pod: PodView): boolean {
  if (zone.name === run.openZone || brokeBeforeRun(run, pod)) return true;
  return profileOf(group).repairsStuckPodsAcrossZones && run.previous[zone.name] !== pod.revision;
}

/** Returns the progress of a wave, or of the zones that return before it. Includes the stuck pods that the run may repair. */
export function waveProgress(context: GroupContext, wave: WaveDefinition, run?: RunState): WaveProgress {
  const stuckIn = (view: ZoneView): number =>
    run === undefined ? 0 : view.outdated.filter((pod) => mayRepair(context, run, view, pod) && isStuck(context, view, pod)).length;
  const broken = context.view.zones.filter((view) => stuckIn(view) > 0).map((view) => view.zone.name);
  const members = zonesOfWave(context.group, run, wave);
  const outside = [...(run?.openZone === undefined ? [] : [run.openZone]), ...broken].filter((name) => !members.includes(name));
  const zones = [...new Set([...outside, ...members])].flatMap((name) => {
    const view = zoneNamed(context, name);
    if (view === undefined) return [];
    const isInWave = members.includes(name);
    const target = isInWave ? podsOfWave(context.group, run, view, wave) : 0;
    // The StatefulSet controller replaces the pods that the partition exposes, also those beyond the wave.
    const exposed = isInWave ? view.exposedByPartition.length : 0;
    return [{ view, target, remaining: Math.max(stuckIn(view), exposed, podsUpTo(target, view)) }];
  });
  const isFilled = zones.every((zone) => zone.remaining === 0 && zone.view.unknown === undefined);
  return { wave, zones, isFilled, isAvailable: isFilled && context.view.zones.every((zone) => zone.isReady) };
}
