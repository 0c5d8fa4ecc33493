// Defines every transition between the states of a rollout run. Each transition returns the next run.
//
//                     startRun
//                        |
//                        v             failRun
//                  +-----------+ -------------------> +--------+
//                  |  running  |                      | failed |
//                  +-----------+ <------------------- +--------+
//                        |             retryRun            |
//            completeRun |                                 | completeRun
//                        v                                 |
//                  +-----------+                           |
//                  | completed | <-------------------------+
//                  +-----------+
//
// startRun also follows a stored run (`run.ts`): a run in any state after a template change, a failed run for a rollback, a running return of
// some zones if the group no longer updates them first, and a completed run if pods are outdated again or a person retries after a rollback.
//
// A failed run replaces no pod and passes no soak, gate or approval. These are the transitions inside a wave:
//
//   enterWave --> recordReplacement (opens a zone) --> closeZone --> markWaveAvailable --> soak, gates, approval --> enterWave
//                        |        ^                                        |
//                        +--------+                                        +--> clearWaveAvailable (a pod became unavailable)
import { extended } from '../../policies/values/defined.ts';
import { hashText } from '../../policies/values/hash.ts';
import type { PodView } from '../snapshot.ts';
import type { CompletedRun, FailedRun, RunCore, RunningRun, RunState, UnfinishedRun } from './run-state.ts';

export type RunChange = Pick<RunCore, 'kind' | 'target' | 'previous' | 'kept'>;

interface Start {
  readonly change: RunChange;
  /** `namespace/name` of the group. */
  readonly group: string;
  readonly nowMs: number;
  readonly openZone?: string | undefined;
  readonly before?: RunState | undefined;
}

/** Starts a run in its first wave. */
export function startRun({ change, group, nowMs, openZone, before }: Start): RunningRun {
  return {
    id: hashText(`${group} ${JSON.stringify(change.target)} ${nowMs}`).slice(0, 10),
    ...change,
    startedMs: nowMs,
    wave: 0,
    waveStartedMs: nowMs,
    ...(openZone === undefined ? {} : { openZone }),
    ...replacedBefore(before, nowMs),
    movableMs: 0,
    movableAsOfMs: nowMs,
    isMovable: false,
    outcome: 'running',
  };
}

/** Records a failure. The group's `onFailure` decides what follows; after an abort, the choice of its requester decides. */
export function failRun(
  run: RunningRun,
  failure: string,
  nowMs: number,
  more: Pick<FailedRun, 'onFailure' | 'awaitsPods'> = {},
): FailedRun {
  return { ...run, outcome: 'failed', failure, failedMs: nowMs, ...more };
}

/** Continues a failed run in its wave, or in an earlier wave that is unfilled again (`waves.ts`). Gates, soaks and deadlines start over. */
export function retryRun(run: FailedRun, nowMs: number): RunningRun {
  const { openZone } = run;
  return {
    ...coreOf(run),
    ...(openZone === undefined ? {} : { openZone }),
    outcome: 'running',
    retriedMs: nowMs,
    movableMs: 0,
    movableAsOfMs: nowMs,
  };
}

/** Completes a running or failed run: its waves are done, or no pod is outdated. */
export function completeRun(run: RunState, nowMs: number): CompletedRun {
  return extended(coreOf(run), { outcome: 'completed', completedMs: nowMs } as const);
}

function coreOf(run: RunState): RunCore {
  const { openZone: _openZone, waveAvailableMs: _waveAvailableMs, outcome: _outcome, ...inState } = run;
  const { failure: _failure, failedMs: _failedMs, onFailure: _onFailure, awaitsPods: _awaitsPods, ...ofRun }: FieldsOfStates = inState;
  const { completedMs: _completedMs, ...core } = ofRun;
  return core;
}

type FieldsOfStates = RunCore &
  Partial<Pick<FailedRun, 'failure' | 'failedMs' | 'onFailure' | 'awaitsPods'> & Pick<CompletedRun, 'completedMs'>>;

export function enterWave<Run extends UnfinishedRun>(run: Run, wave: number, nowMs: number): UnfinishedRun {
  return { ...clearWaveAvailable(run), ...replacedBefore(run, nowMs), wave, waveStartedMs: nowMs };
}

/** Records since when the wave has no pod left to replace and every pod of the group is available. Later calls keep the first instant. */
export function markWaveAvailable(run: UnfinishedRun, nowMs: number): UnfinishedRun {
  return run.waveAvailableMs === undefined ? extended(run, { waveAvailableMs: nowMs }) : run;
}

/** Removes `waveAvailableMs`: the wave has pods left to replace, or a pod of the group is not available. */
export function clearWaveAvailable(run: UnfinishedRun): UnfinishedRun {
  const { waveAvailableMs, ...rest } = run;
  return waveAvailableMs === undefined ? run : rest;
}

/** Records the replacement of pods of a zone. `digest` is empty for one wave without an approval before its first pod. */
export function recordReplacement(
  run: UnfinishedRun,
  { zone, digest, nowMs }: { readonly zone: string; readonly digest: Pick<RunCore, 'waves'>; readonly nowMs: number },
): UnfinishedRun {
  const { inFlightSinceMs = nowMs } = run;
  return extended(run, { ...digest, openZone: zone, lastDisruptionMs: nowMs, inFlightSinceMs });
}

/**
 * Reports whether a decision ends a wave or the run, or continues a failed run. A later decision does not undo this, so the decision must know
 * the current requests: a rejection or a cancellation that it missed would stop nothing.
 */
export function passesCheckpoint(before: RunState | undefined, after: RunState | undefined): boolean {
  if (before === undefined || after?.id !== before.id) return false;
  return after.wave > before.wave || (after.outcome !== before.outcome && after.outcome !== 'failed');
}

export function closeZone(run: UnfinishedRun): UnfinishedRun {
  const { openZone: _openZone, ...rest } = run;
  return rest;
}

/** Reports whether a pod was replaced at or after this instant, such as the start of the run or of its wave. */
export function hasReplacedSince({ lastDisruptionMs }: Pick<RunCore, 'lastDisruptionMs'>, sinceMs: number): boolean {
  return (lastDisruptionMs ?? -1) >= sinceMs;
}

/**
 * Reports whether a pod that is not ready broke before the run, or the running run has replaced no pod yet. If not, the run may be the
 * cause, and the pod is replaced in its wave.
 */
export function brokeBeforeRun(run: RunState, { readyChangedMs }: Pick<PodView, 'readyChangedMs'>): boolean {
  return (run.outcome === 'running' && !hasReplacedSince(run, run.startedMs)) || readyChangedMs < run.startedMs;
}

/**
 * Records the instant since which pods are in flight (`ZoneView.inFlight`), or removes it if no pod is in flight. Applies to completed runs
 * too: pods also fail for other reasons than the run.
 */
export function trackInFlight<Run extends RunState>(run: Run, isInFlight: boolean, nowMs: number): RunState {
  const { inFlightSinceMs, ...rest }: RunState = run;
  if (!isInFlight) return inFlightSinceMs === undefined ? run : rest;
  return inFlightSinceMs === undefined ? { ...run, inFlightSinceMs: nowMs } : run;
}

/** Adds the time since the last decision if no person and no window blocked the run then. Stores `isMovable` for the next decision. */
export function countMovableTime(run: UnfinishedRun, isMovable: boolean, nowMs: number): UnfinishedRun {
  const passedMs = run.isMovable ? Math.max(0, nowMs - run.movableAsOfMs) : 0;
  return { ...run, movableMs: run.movableMs + passedMs, movableAsOfMs: nowMs, isMovable };
}

/** Undoes `recordReplacement` after all replacements were denied or not sent. The open zone stays if `before` is another run. */
export function revertProgress(run: RunState, before: RunState | undefined): RunState {
  if (run.outcome === 'completed') return run;
  const { openZone: zone, lastDisruptionMs, inFlightSinceMs, ...rest } = run;
  // If pods were in flight before this replacement, then the instant stays.
  const flight = inFlightSinceMs === undefined || inFlightSinceMs === lastDisruptionMs ? {} : { inFlightSinceMs };
  const isSame = before?.id === run.id;
  const open = isSame ? before.openZone : zone;
  const lastMs = before?.lastDisruptionMs;
  const isSameWave = isSame && before.wave === run.wave;
  const last = lastMs === undefined ? {} : { lastDisruptionMs: isSameWave ? lastMs : Math.min(lastMs, run.waveStartedMs - 1) };
  return { ...rest, ...(open === undefined ? {} : { openZone: open }), ...last, ...flight };
}

/** Returns the revision to which the zone returned from `revision`; undefined if the run did not roll this revision back. */
export function restoredRevision(
  run: Pick<RunCore, 'target' | 'restores' | 'rolledBack'> | undefined,
  zone: string,
  revision: string | undefined,
): string | undefined {
  if (revision === undefined || run?.rolledBack?.revisions[zone] !== revision) return undefined;
  return run.target[zone] ?? run.restores?.[zone];
}

/** Returns the last replacement as an instant before now, so that a wave or run that begins now does not count it as its own. */
function replacedBefore(run: Pick<RunCore, 'lastDisruptionMs'> | undefined, nowMs: number): Pick<RunCore, 'lastDisruptionMs'> {
  return run?.lastDisruptionMs === undefined ? {} : { lastDisruptionMs: Math.min(run.lastDisruptionMs, nowMs - 1) };
}

const instants: ReadonlySet<string> = new Set([
  'startedMs',
  'waveStartedMs',
  'waveAvailableMs',
  'lastDisruptionMs',
  'inFlightSinceMs',
  'failedMs',
  'retriedMs',
  'completedMs',
]);

/** Sets instants in the future, which a fast clock recorded, to `nowMs`. Waiting times then start at `nowMs`. */
export function withoutFutureInstants(run: RunState, isBelievable: (instantMs: number) => boolean, nowMs: number): RunState {
  const future = Object.entries(run).filter(
    ([name, value]: readonly [string, unknown]) => typeof value === 'number' && instants.has(name) && !isBelievable(value),
  );
  const believed: RunState = { ...run, ...Object.fromEntries(future.map(([name]) => [name, nowMs])) };
  const { lastDisruptionMs: last } = run;
  if (last === undefined || last >= run.waveStartedMs) return believed;
  return { ...believed, lastDisruptionMs: Math.min(believed.lastDisruptionMs ?? last, believed.waveStartedMs - 1) };
}
