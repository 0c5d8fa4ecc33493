// The verbs abort and retry: abort ends the current run as failed, with or without a rollback; retry continues a failed run.
import type { Stop } from '../../engine/decision.ts';
import { strategyTraits } from '../../policies/strategies.ts';
import type { CommandContext } from '../context.ts';
import { type ExitCode, exitCodes, Failure, usageFailure } from '../failure.ts';
import { publishedRun, type RequestedGroup, type RequestFlags, readAndSubmit } from '../live/submit-request.ts';
import { podTotals } from '../output/group-text.ts';
import { reasonSuffix } from '../output/text.ts';

export interface AbortFlags extends RequestFlags {
  readonly rollback?: boolean;
}

export function abort(context: CommandContext, options: AbortFlags): Promise<ExitCode> {
  return readAndSubmit(context, options, (requested) => {
    const { name } = requested;
    const run = publishedRun(requested);
    if (run === undefined || run.outcome === 'completed') return { text: () => `${name}: no run is in progress; nothing was aborted\n` };
    if (run.outcome === 'failed') return { text: () => `${name}: run ${run.id} has already ended: ${run.failure ?? 'it failed'}\n` };
    if (options.rollback === true) refuseRollback(requested);
    return {
      needsRequester: true,
      // A retried run can be aborted again, which is a new request.
      key: `${run.id} ${requested.cluster.env.clock.nowMs()}`,
      spec: { action: 'abort', runId: run.id, ...(options.rollback === true ? { rollback: true } : {}) },
      text: (by) => resultText(requested, options, by ?? ''),
    };
  });
}

/** Throws Failure if the strategy keeps no previous version of the pods. */
function refuseRollback({ name, definition }: RequestedGroup): void {
  const strategy = definition?.rollout.strategy;
  if (strategy === undefined || strategyTraits[strategy].canRollBack) return;
  throw usageFailure(
    `${name} cannot be rolled back without a new pod template, because its strategy is ${strategy}; nothing was aborted`,
    `kubectl rollout-group undo ${name}`,
  );
}

/** Throws Failure for a run that an abort only pauses: it continues when the abort ends, so it needs no retry. */
function refuseRetry(name: string, { fact, endsWith }: Stop): never {
  throw new Failure({
    exitCode: exitCodes.refused,
    what: `retry was not sent: the run of ${name} has not failed`,
    why: `${fact}; such an abort only pauses`,
    todo: endsWith,
  });
}

function resultText({ name, live }: RequestedGroup, { reason, rollback }: AbortFlags, by: string): string {
  const { desired, updated } = podTotals(live.decision);
  const { wave } = live.decision;
  const next =
    rollback === true
      ? 'pods in flight finish, then the updated pods return to their previous revision'
      : 'pods in flight finish; no further pod is replaced until undo, retry or a new pod template';
  const at = wave === undefined ? '' : ` in wave ${wave.name}`;
  return [
    `${name} aborted${at} by ${by}${reasonSuffix(reason)}: ${updated} of ${desired} pods updated\n`,
    `  ${next}\n`,
    rollback === true ? '' : `  Roll back: kubectl rollout-group undo ${name}\n`,
    `  ${rollback === true ? 'Try again' : 'Continue'}: kubectl rollout-group retry ${name}\n`,
  ].join('');
}

/** Continues a failed or aborted run, replaces pods with the wrong revision again, or rolls out a rolled-back revision again. */
export function retry(context: CommandContext, options: RequestFlags): Promise<ExitCode> {
  return readAndSubmit(context, options, (requested) => {
    const { name, live } = requested;
    const run = publishedRun(requested);
    // Pods with the wrong revision after a restart block a run that has not failed.
    const isBlocked = live.decision.waits.some(({ rule }) => rule === 'pin-applied');
    const pausing = live.decision.stops?.find(({ isAbort }) => isAbort === true);
    if (pausing !== undefined && run?.outcome === 'running') refuseRetry(name, pausing);
    const isRolledBack = run?.rolledBack !== undefined && run.outcome === 'completed';
    if (run === undefined || (run.outcome !== 'failed' && !isRolledBack && !isBlocked))
      return { text: () => `${name} has no failed run; nothing was retried\n` };
    return {
      needsRequester: true,
      // A run can fail again. Then an equal request would already exist and have no effect.
      key: `${run.id} ${requested.cluster.env.clock.nowMs()}`,
      spec: { action: 'retry', runId: run.id },
      text: (by) =>
        isRolledBack
          ? `${name}: the revision that was rolled back is rolled out again, requested by ${by}\n  the last run failed: ${run.rolledBack?.because ?? ''}\n  a new run starts with the first wave\n`
          : run.outcome === 'failed'
            ? `${name}: run ${run.id} continues, requested by ${by}\n  it ended because: ${run.failure ?? 'it failed'}\n  soaks, gates and deadlines start over\n`
            : `${name}: pods with the wrong revision are replaced again, requested by ${by}\n`,
    };
  });
}
