// The verb reject: rejects a wave or a rule that waits for approval.
import type { CommandContext } from '../context.ts';
import type { ExitCode } from '../failure.ts';
import { type ApproveOptions, answer } from './approve.ts';

export function run(context: CommandContext, options: ApproveOptions): Promise<ExitCode> {
  return answer(context, options, 'reject');
}
