// Errors in files that keep a command from its work: shown on standard error, with the exit code that says so.
import { countFindings, type Finding } from '../../policies/findings/finding.ts';
import type { CommandContext } from '../context.ts';
import { type ExitCode, exitCodes } from '../exit-code.ts';
import { findingBlocks } from './findings/text.ts';
import { plural } from './plural.ts';

/** Prints the findings and what they add up to. */
export function writeErrors({ stderr }: Pick<CommandContext, 'stderr'>, findings: readonly Finding[]): ExitCode {
  for (const block of findingBlocks(findings, stderr)) stderr.write(`${block}\n`);
  stderr.write(`${plural(countFindings(findings).error, 'error')} in the files; nothing was planned\n`);
  return exitCodes.findings;
}
