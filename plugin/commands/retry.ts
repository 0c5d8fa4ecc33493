// The verb retry: a run that failed, or was aborted, goes on where it is; one that was rolled back begins anew.
import type { CommandContext } from '../context.ts';
import type { ExitCode } from '../exit-code.ts';
import { type AskFlags, ask, publishedRun } from '../live/asking.ts';

export function run(context: CommandContext, options: AskFlags): Promise<ExitCode> {
  return ask(context, options, (asked) => {
    const { name } = asked;
    const run = publishedRun(asked);
    if (run === undefined || (run.outcome !== 'failed' && run.rolledBack === undefined))
      return { text: () => `${name} has no run that failed; nothing is to be retried\n` };
    return {
      isPermit: true,
      // One that fails again needs another word, and so does one whose clock was behind that of the agent.
      key: `${run.id} ${asked.cluster.env.clock.nowMs()}`,
      spec: { action: 'retry', runId: run.id },
      text: (by) =>
        run.rolledBack === undefined
          ? `${name}: run ${run.id} goes on, as ${by} asks\n  it had ended: ${run.failure ?? 'it failed'}\n  soak, gates and deadlines begin anew\n`
          : `${name}: the revision that was rolled back is rolled out once more, as ${by} asks\n  it had failed: ${run.rolledBack.because}\n  a new run begins with the first wave\n`,
    };
  });
}
