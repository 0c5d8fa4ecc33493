// The verb lint.
import type { CommandContext } from '../context.ts';
import { type ExitCode, exitCodes } from '../exit-code.ts';

export async function run({ stderr }: CommandContext, _options: unknown): Promise<ExitCode> {
  stderr.write('error: lint is not in this build\n');
  return exitCodes.internal;
}
