// A failure that the user can fix: what happened, why, and what to do.
import { type ExitCode, exitCodes } from './exit-code.ts';

export interface FailureDetails {
  readonly exitCode: ExitCode;
  /** One sentence, subject first. */
  readonly what: string;
  /** One sentence with the fact behind it. */
  readonly why?: string;
  /** The next step: a command, or a sentence. */
  readonly todo?: string;
  /** Finding code, if `docs CODE` explains it. */
  readonly code?: string;
}

/** Thrown by the parts with effects and printed by the entry point. Any other error is a defect. */
export class Failure extends Error {
  readonly exitCode: ExitCode;
  readonly details: FailureDetails;

  constructor(details: FailureDetails) {
    super(details.what);
    this.name = 'Failure';
    this.exitCode = details.exitCode;
    this.details = details;
  }
}

/** Returns the failure for a command line that is not valid. */
export function usageFailure(what: string, todo = 'kubectl rollout-group --help'): Failure {
  return new Failure({ exitCode: exitCodes.usage, what, todo });
}

/** Returns the lines for standard error, without a final newline. */
export function failureLines({ what, why, todo, code }: FailureDetails): readonly string[] {
  const lines = [`error: ${code === undefined ? '' : `${code} `}${what}`];
  if (why !== undefined) lines.push(`  why: ${why}`);
  if (todo !== undefined) lines.push(`  do:  ${todo}`);
  return lines;
}
