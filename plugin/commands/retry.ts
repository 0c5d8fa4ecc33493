// The verb retry: a run that failed, or was aborted, goes on where it is.
import type { CommandContext } from '../context.ts';
import type { ExitCode } from '../exit-code.ts';
import { type AskFlags, ask, publishedRun } from '../live/asking.ts';

export function run(context: CommandContext, options: AskFlags): Promise<ExitCode> {
  return ask(context, options, (asked) => {
    const { name } = asked;
    const run = publishedRun(asked);
    if (run?.outcome !== 'failed') return { text: () => `${name} has no run that failed; nothing is to be retried\n` };
    return {
      isPermit: true,
      // One that fails again needs another word, and so does one whose clock was behind that of the agent.
      key: `${run.id} ${asked.cluster.env.clock.nowMs()}`,
      spec: { action: 'retry', runId: run.id },
      text: (by) =>
        `${name}: run ${run.id} goes on, as ${by} asks\n  it had ended: ${run.failure ?? 'it failed'}\n  soak, gates and deadlines begin anew\n`,
    };
  });
}
