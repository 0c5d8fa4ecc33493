// The verb retry: a run that failed, or was aborted, goes on where it is; one that was rolled back begins anew.
import type { CommandContext } from '../context.ts';
import type { ExitCode } from '../exit-code.ts';
import { type AskFlags, ask, publishedRun } from '../live/asking.ts';

export function run(context: CommandContext, options: AskFlags): Promise<ExitCode> {
  return ask(context, options, (asked) => {
    const { name, live } = asked;
    const run = publishedRun(asked);
    // Pods that did not come back as they should hold a run that has not failed.
    const isHeld = live.decision.waits.some(({ rule }) => rule === 'pin-applied');
    const isBack = run?.rolledBack !== undefined && run.outcome === 'completed';
    if (run === undefined || (run.outcome !== 'failed' && !isBack && !isHeld))
      return { text: () => `${name} has no run that failed; nothing is to be retried\n` };
    return {
      isPermit: true,
      // One that fails again needs another word, and so does one whose clock was behind that of the agent.
      key: `${run.id} ${asked.cluster.env.clock.nowMs()}`,
      spec: { action: 'retry', runId: run.id },
      text: (by) =>
        isBack
          ? `${name}: the revision that was rolled back is rolled out once more, as ${by} asks\n  it had failed: ${run.rolledBack?.because ?? ''}\n  a new run begins with the first wave\n`
          : run.outcome === 'failed'
            ? `${name}: run ${run.id} goes on, as ${by} asks\n  it had ended: ${run.failure ?? 'it failed'}\n  soak, gates and deadlines begin anew\n`
            : `${name}: pods that did not come back as they should go once more, as ${by} asks\n`,
    };
  });
}
