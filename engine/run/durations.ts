// Measures runs: the active time that deadlines count, the last progress, and the durations of the waves and runs that ended in a turn.
import type { GroupDecision, RuleResult } from '../decision.ts';
import { viewGroup, type ZoneView } from '../observe/view.ts';
import { blocks } from '../rule.ts';
import { ledgerOf, type Snapshot } from '../snapshot.ts';
import type { RunState } from './run-state.ts';

/** Returns for how many milliseconds the run was active until `atMs`: since its last retry, and without waits for a person or a window. */
export function activeMs(run: RunState, atMs: number): number {
  return run.movableMs + (run.isMovable ? Math.max(0, atMs - run.movableAsOfMs) : 0);
}

/** Returns the instant of the last progress: start or retry of the run, replacement, updated pod becoming ready, or first pod in flight. */
export function lastProgressMs(zones: readonly ZoneView[], run: RunState): number {
  let last = Math.max(run.startedMs, run.lastDisruptionMs ?? 0, run.retriedMs ?? 0, run.inFlightSinceMs ?? 0);
  for (const view of zones) {
    for (const pod of view.pods) {
      if (pod.isReady && pod.revision === view.desiredRevision && pod.readyChangedMs > last) last = pod.readyChangedMs;
    }
  }
  return last;
}

/** The rules whose waits time and measurements end as planned. */
const plannedWaits: ReadonlySet<string> = new Set(['soak', 'gate', 'min-interval']);

function isPlanned({ rule, outcome }: RuleResult): boolean {
  return outcome === 'wait' && plannedWaits.has(rule);
}

/**
 * Returns the instant of the last progress of the run in progress; undefined without one, and while the run waits as planned: for a person, a
 * window, a soak, a gate or the minimum interval.
 */
export function stalledSinceMs(
  snapshot: Snapshot,
  group: Snapshot['groups'][number],
  decision: Pick<GroupDecision, 'run' | 'steps'>,
): number | undefined {
  const { run, steps } = decision;
  if (run?.outcome !== 'running' || !run.isMovable) return undefined;
  if (steps.some(({ results }) => results.some((answer) => blocks(answer) && isPlanned(answer)))) return undefined;
  // A wave begins when the soak, the gates and the approval of the wave before it end.
  return Math.max(run.waveStartedMs, lastProgressMs(viewGroup(snapshot, group).zones, run));
}

interface EndedDurations {
  /** The duration of the wave that ended, with its soak, gates and approvals, in milliseconds. */
  readonly waveMs?: number;
  /** The run that ended, with its active time in milliseconds. */
  readonly run?: { readonly outcome: 'completed' | 'failed'; readonly activeMs: number };
}

/** Compares the stored run of the snapshot with the run after the decision. A run that begins and ends in one turn has no duration. */
export function endedDurations(snapshot: Snapshot, { namespace, group: name, run }: GroupDecision): EndedDurations {
  const { run: before } = ledgerOf(snapshot, { namespace, name });
  if (run === undefined || before?.id !== run.id) return {};
  const hasEnded = run.outcome !== 'running' && run.outcome !== before.outcome;
  const endMs = run.outcome === 'completed' ? run.completedMs : run.outcome === 'failed' ? run.failedMs : 0;
  return {
    ...(run.wave > before.wave ? { waveMs: run.waveStartedMs - before.waveStartedMs } : {}),
    ...(hasEnded ? { run: { outcome: run.outcome, activeMs: activeMs(run, endMs) } } : {}),
  };
}
