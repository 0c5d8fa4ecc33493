// Prints errors in files that stop a command.
import { countFindings, type Finding } from '../../policies/findings/finding.ts';
import type { CommandContext } from '../context.ts';
import { type ExitCode, exitCodes } from '../failure.ts';
import { findingBlocks } from './findings/text.ts';
import { plural } from './plural.ts';

/** Prints the findings with their number on standard error, and returns the exit code. */
export function writeErrors({ stderr }: Pick<CommandContext, 'stderr'>, findings: readonly Finding[]): ExitCode {
  for (const block of findingBlocks(findings, stderr)) stderr.write(`${block}\n`);
  stderr.write(`${plural(countFindings(findings).error, 'error')} in the files; nothing was planned\n`);
  return exitCodes.findings;
}
