// The verb version: prints the version.
import type { CommandContext } from '../context.ts';
import { type ExitCode, exitCodes } from '../failure.ts';
import { writeDocument } from '../output/formats.ts';
import { version } from '../version.ts';

export interface VersionOptions {
  readonly output: 'text' | 'json' | 'yaml';
}

export async function run({ stdout }: CommandContext, { output }: VersionOptions): Promise<ExitCode> {
  if (output === 'text') stdout.write(`kubectl rollout-group ${version}\n`);
  else await writeDocument(stdout, output, { kind: 'Version', client: { version, node: process.versions.node } });
  return exitCodes.done;
}
