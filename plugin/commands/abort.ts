// The verb abort: ends the current run as failed. Pods stay as they are, or return to their previous revision with --rollback.
import { strategyTraits } from '../../policies/strategies.ts';
import type { CommandContext } from '../context.ts';
import { type ExitCode, exitCodes, Failure } from '../failure.ts';
import { type Asked, type AskFlags, ask, publishedRun } from '../live/submit-request.ts';
import { podTotals } from '../output/group-text.ts';
import { reasonSuffix } from '../output/request-text.ts';

export interface AbortFlags extends AskFlags {
  readonly rollback?: boolean;
}

export function run(context: CommandContext, options: AbortFlags): Promise<ExitCode> {
  return ask(context, options, (asked) => {
    const { name } = asked;
    const run = publishedRun(asked);
    if (run === undefined || run.outcome === 'completed') return { text: () => `${name}: no run is in progress; nothing was aborted\n` };
    if (run.outcome === 'failed') return { text: () => `${name}: run ${run.id} has already ended: ${run.failure ?? 'it failed'}\n` };
    if (options.rollback === true) refuseRollback(asked);
    return {
      // A retried run can be aborted again, which is a new request.
      key: `${run.id} ${asked.cluster.env.clock.nowMs()}`,
      spec: { action: 'abort', runId: run.id, ...(options.rollback === true ? { rollback: true } : {}) },
      text: (by) => resultText(asked, options, by),
    };
  });
}

/** @throws Failure if the strategy keeps no previous version of the pods. */
function refuseRollback({ name, definition }: Asked): void {
  const strategy = definition?.rollout.strategy;
  if (strategy === undefined || strategyTraits[strategy].canRollBack) return;
  throw new Failure({
    exitCode: exitCodes.usage,
    what: `${name} cannot be rolled back without a new pod template, because its strategy is ${strategy}; nothing was aborted`,
    todo: `kubectl rollout-group undo ${name}`,
  });
}

function resultText({ name, live }: Asked, { reason, rollback }: AbortFlags, by: string | undefined): string {
  const { desired, updated } = podTotals(live.decision);
  const { wave } = live.decision;
  const next =
    by === undefined
      ? 'the requester could not be verified; the group stays paused until the request is deleted'
      : rollback === true
        ? 'pods in flight finish, then the updated pods return to their previous revision'
        : 'pods in flight finish; no further pod is replaced until undo, retry or a new pod template';
  const at = wave === undefined ? '' : ` in wave ${wave.name}`;
  return [
    `${name} aborted${at}${by === undefined ? '' : ` by ${by}`}${reasonSuffix(reason)}: ${updated} of ${desired} pods updated\n`,
    `  ${next}\n`,
    `  Roll back: kubectl rollout-group undo ${name}\n`,
    `  Continue: kubectl rollout-group ${by === undefined ? 'cancel' : 'retry'} ${name}\n`,
  ].join('');
}
