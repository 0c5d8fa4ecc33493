// The way of a run through its waves: when a wave ends, and which wave follows.
import { waveTarget } from '../amount.ts';
import { type GroupContext, zoneNamed } from '../context.ts';
import type { RuleResult } from '../decision.ts';
import { blocks } from '../rule.ts';
import { afterWave } from '../rules/wave.ts';
import type { RunState, UnfinishedRun } from '../snapshot.ts';
import { type WaveProgress, waveProgress } from './progress.ts';
import { clearWaveAvailable, closeZone, completeRun, enterWave, failRun, markWaveAvailable } from './states.ts';

interface WaveChecks {
  /** Results of soak, gates and approval after the current wave, when all its pods are available. */
  readonly after: readonly RuleResult[];
  readonly observations: readonly RuleResult[];
  readonly wantedReadings: readonly { readonly gate: string; readonly fromMs: number }[];
}

/** A run after this decision. `progress` belongs to the current wave, if any. */
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
    const wave = waves[run.wave];
    if (wave === undefined) return { run: completeRun(run, nowMs), ...noChecks };
    const progress = waveProgress(context, wave, run.openZone, run.previous);
    if (!progress.isAvailable) return { run: clearWaveAvailable(run), progress, ...noChecks };
    const available = markWaveAvailable(run, nowMs);
    // A failed run asks no gate and no approval before a retry.
    if (available.outcome === 'failed') return { run: available, progress, ...noChecks };
    const { results, observations, wantedReadings, failure } = afterWave(context, wave, available);
    if (results.some(blocks)) {
      const next = failure === undefined ? available : failRun(available, failure, nowMs);
      return { run: next, progress, after: results, observations, wantedReadings };
    }
    const index = run.wave + 1;
    run = enterWave(available, index < waves.length ? index : (firstUnfilledWave(context, available) ?? index), nowMs);
  }
  return { run, ...noChecks };
}

/** Returns the run in an existing wave: when waves were removed, it continues in the first unfilled wave instead of being complete. */
function moveIntoWaves(context: GroupContext, run: UnfinishedRun): UnfinishedRun {
  if (run.wave < context.group.rollout.waves.length) return run;
  const index = firstUnfilledWave(context, run);
  return index === undefined ? run : enterWave(run, index, context.nowMs);
}

/**
 * Returns the index of the first wave with a pod to replace. A StatefulSet controller with a stale cache may have created an outdated pod in an
 * earlier wave, after that wave was done; without this check the run would complete and leave the pod outdated.
 */
function firstUnfilledWave(context: GroupContext, { previous }: RunState): number | undefined {
  const index = context.group.rollout.waves.findIndex((wave) => !waveProgress(context, wave, undefined, previous).isFilled);
  return index === -1 ? undefined : index;
}

/** Closes the open zone when all its pods are available and the wave replaces no further pod of it. */
function closeFinishedZone(context: GroupContext, run: UnfinishedRun): UnfinishedRun {
  const open = zoneNamed(context, run.openZone);
  const wave = context.group.rollout.waves[run.wave];
  if (open === undefined || !open.isReady || wave === undefined) return run;
  const hasMore = wave.zones.includes(open.zone.name) && waveTarget(wave.amount, open.replicas) > open.updated && open.outdated.length > 0;
  return hasMore ? run : closeZone(run);
}
