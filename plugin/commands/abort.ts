// The verb abort: the run under way ends as failed, and everything stays as it is, or goes back to what it was.
import { strategyTraits } from '../../policies/strategies.ts';
import type { CommandContext } from '../context.ts';
import { type ExitCode, exitCodes } from '../exit-code.ts';
import { Failure } from '../failure.ts';
import { type AskFlags, ask, publishedRun } from '../live/asking.ts';
import { podTotals } from '../output/group-words.ts';
import { plural } from '../output/words.ts';

export interface AbortFlags extends AskFlags {
  readonly rollback?: boolean;
}

export function run(context: CommandContext, options: AbortFlags): Promise<ExitCode> {
  return ask(context, options, (asked) => {
    const { name, live, definition } = asked;
    const run = publishedRun(asked);
    if (run === undefined || run.outcome === 'completed') return { text: () => `${name} does not roll; nothing was aborted\n` };
    if (run.outcome === 'failed') return { text: () => `run ${run.id} of ${name} has ended already: ${run.failure ?? 'it failed'}\n` };
    const strategy = definition?.rollout.strategy;
    if (options.rollback === true && strategy !== undefined && !strategyTraits[strategy].canRollBack) {
      throw new Failure({
        exitCode: exitCodes.usage,
        what: `the strategy ${strategy} of ${name} cannot bring pods back without another template; nothing was aborted`,
        todo: `kubectl rollout-group undo ${name} writes the template of before`,
      });
    }
    const { desired, updated } = podTotals(live.decision);
    const { wave } = live.decision;
    const why = options.reason === undefined ? '' : ` (${options.reason})`;
    return {
      // A run that was retried may be aborted again, which is another word.
      key: `${run.id} ${asked.cluster.env.clock.nowMs()}`,
      spec: { action: 'abort', runId: run.id, ...(options.rollback === true ? { rollback: true } : {}) },
      text: (by) => {
        const end =
          by === undefined
            ? 'nobody vouches for who asked, so that it is held until the intent is taken back'
            : options.rollback === true
              ? 'pods on their way finish, then the new ones go back to what they ran before'
              : 'pods on their way finish; nothing else moves until somebody goes back, forward or on';
        const at = wave === undefined ? '' : ` in wave ${wave.name}`;
        return [
          `${name} aborted${at}${by === undefined ? '' : ` by ${by}`}${why}: ${plural(updated, 'pod')} new, ${desired - updated} old\n`,
          `  ${end}\n`,
          `  back: kubectl rollout-group undo ${name}   on: kubectl rollout-group ${by === undefined ? 'cancel' : 'retry'} ${name}\n`,
        ].join('');
      },
    };
  });
}
