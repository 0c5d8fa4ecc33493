// The two deadlines of a run: of progress while a pod is in flight, and of the time in which the group was free to replace pods.
import { formatDuration } from '../../policies/duration.ts';
import { type GroupContext, sourceOf } from '../context.ts';
import type { RuleResult } from '../decision.ts';
import { result } from '../rule.ts';
import type { RunState } from '../snapshot.ts';

/** Returns the failure of the run by a deadline; undefined while it is in time. */
export function deadlineFailure(context: GroupContext, run: RunState): string | undefined {
  const { progressMs, runMs } = context.group.rollout.deadlines;
  if (progressMs !== undefined && isInFlight(context) && context.nowMs - lastProgressMs(context, run) >= progressMs) {
    return `no pod became available for ${formatDuration(progressMs)}`;
  }
  if (runMs !== undefined && movableMs(context, run) >= runMs) return `the run took longer than ${formatDuration(runMs)}`;
  return undefined;
}

/** Returns the progress deadline as a result. */
export function progressDeadline(context: GroupContext, run: RunState): RuleResult {
  const { progressMs } = context.group.rollout.deadlines;
  if (progressMs === undefined) return result('progress-deadline', 'skip', 'no deadline is set');
  const details = { limit: formatDuration(progressMs), source: sourceOf(context, 'rollout.deadlines') };
  if (!isInFlight(context)) return result('progress-deadline', 'ok', 'no pod is in flight', details);
  const since = lastProgressMs(context, run);
  const fact = `the last progress was ${formatDuration(context.nowMs - since)} ago`;
  return result('progress-deadline', 'ok', fact, {
    ...details,
    ...(since + progressMs > context.nowMs ? { earliestMs: since + progressMs } : {}),
  });
}

/** Returns the run deadline as a result. */
export function runDeadline(context: GroupContext, run: RunState): RuleResult {
  const { runMs } = context.group.rollout.deadlines;
  if (runMs === undefined) return result('run-deadline', 'skip', 'no deadline is set');
  const spent = movableMs(context, run);
  const details = { limit: formatDuration(runMs), source: sourceOf(context, 'rollout.deadlines') };
  return result('run-deadline', 'ok', `the run has been active for ${formatDuration(spent)}`, {
    ...details,
    ...(run.isMovable && spent < runMs ? { earliestMs: context.nowMs + runMs - spent } : {}),
  });
}

function movableMs(context: GroupContext, run: RunState): number {
  return run.movableMs + (run.isMovable ? Math.max(0, context.nowMs - run.movableAsOfMs) : 0);
}

function isInFlight(context: GroupContext): boolean {
  return context.view.zones.some((view) => view.inFlight > 0);
}

/** Returns the last progress: a replacement, an updated pod that became ready, a retry, or the first pod in flight. */
function lastProgressMs(context: GroupContext, run: RunState): number {
  let last = Math.max(run.startedMs, run.lastDisruptionMs ?? 0, run.retriedMs ?? 0, run.inFlightSinceMs ?? 0);
  for (const view of context.view.zones) {
    for (const pod of view.pods) {
      if (pod.isReady && pod.revision === view.desiredRevision && pod.readyChangedMs > last) last = pod.readyChangedMs;
    }
  }
  return last;
}
