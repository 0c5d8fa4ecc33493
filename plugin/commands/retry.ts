// The verb retry: continues a failed or aborted run, and restarts a run that was rolled back.
import type { CommandContext } from '../context.ts';
import type { ExitCode } from '../failure.ts';
import { type AskFlags, ask, publishedRun } from '../live/submit-request.ts';

export function run(context: CommandContext, options: AskFlags): Promise<ExitCode> {
  return ask(context, options, (asked) => {
    const { name, live } = asked;
    const run = publishedRun(asked);
    // Pods with the wrong revision after a restart block a run that has not failed.
    const isBlocked = live.decision.waits.some(({ rule }) => rule === 'pin-applied');
    const isRolledBack = run?.rolledBack !== undefined && run.outcome === 'completed';
    if (run === undefined || (run.outcome !== 'failed' && !isRolledBack && !isBlocked))
      return { text: () => `${name} has no failed run; nothing was retried\n` };
    return {
      isPermit: true,
      // A run that fails again needs a new request, and so does a request written by a clock behind that of the agent.
      key: `${run.id} ${asked.cluster.env.clock.nowMs()}`,
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
