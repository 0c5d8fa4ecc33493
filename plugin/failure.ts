// Defines the failures that the user can fix, with exit codes: what happened, why, and what to do.

export interface FailureDetails {
  readonly exitCode: ExitCode;
  /** One sentence, subject first. */
  readonly what: string;
  /** The cause: a sentence, or a code such as `EACCES`. */
  readonly why?: string;
  readonly todo?: string;
  /** The finding code, if `docs CODE` explains it. */
  readonly code?: string;
  /** The webhook that did not answer the API server, if that is the cause. */
  readonly webhook?: UncalledWebhook;
}

export interface UncalledWebhook {
  readonly name: string;
  /** `Service NAMESPACE/NAME`, or the address of the webhook; undefined if the API server names neither. */
  readonly place: string | undefined;
  readonly namespace: string | undefined;
  /** The cause in a few words, such as `connection refused`. */
  readonly why: string;
}

/** A failure that the user can fix. The entry point prints it. Any other error is a defect of this program. */
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

export function usageFailure(what: string, todo = 'kubectl rollout-group --help'): Failure {
  return new Failure({ exitCode: exitCodes.usage, what, todo });
}

type Reason = Pick<FailureDetails, 'why' | 'todo'>;

/** Returns the failure for a request that is denied or would have no effect. */
export function refusedFailure(what: string, reason: Reason = {}): Failure {
  return new Failure({ exitCode: exitCodes.refused, what, ...reason });
}

/** Returns the failure for a file, a revision, a group or an object that does not exist. */
export function notFoundFailure(what: string, reason: Reason = {}): Failure {
  return new Failure({ exitCode: exitCodes.notFound, what, ...reason });
}

export function unwritable(path: string, error: unknown, todo?: string): Failure {
  const why = (error as NodeJS.ErrnoException).code ?? String(error);
  return new Failure({ exitCode: exitCodes.notAllowed, what: `${path} is not writable`, why, ...(todo !== undefined && { todo }) });
}

/** Returns the lines for standard error, without a final newline. */
export function failureLines({ what, why, todo, code }: FailureDetails): readonly string[] {
  const lines = [`error: ${code === undefined ? '' : `${code} `}${what}`];
  if (why !== undefined) lines.push(`  why: ${why}`);
  if (todo !== undefined) lines.push(`  do:  ${todo}`);
  return lines;
}

/** The exit codes. They are part of the public interface and never change their meaning. */
export const exitCodes = {
  /** Done, healthy, no changes, or the condition was met. */
  done: 0,
  /** `diff` found differences. With `--detailed-exitcode`: an error. */
  differences: 1,
  /** There are changes, with `--detailed-exitcode`. */
  changes: 2,
  usage: 3,
  /** A finding, a failed case, or a broken invariant. */
  findings: 4,
  /** The request is denied or would have no effect, or the user answered no. */
  refused: 5,
  /** The rollout failed or was aborted. */
  failed: 6,
  /** The time ran out while the rollout still made progress. */
  timedOut: 7,
  /** The rollout waits for a person, or is paused. */
  waiting: 8,
  /** The plan is older than its inputs, or an object changed during the command. */
  stale: 9,
  /** A file, a revision, a group or an object does not exist. */
  notFound: 10,
  /** Authentication or permission is missing. */
  notAllowed: 11,
  /** The cluster or the forge cannot be reached, or the agent does not run. */
  unreachable: 12,
  /** A defect of this program. */
  internal: 70,
  /** Ctrl-C while watching; the rollout continues. */
  interrupted: 130,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

const bySeverity: readonly ExitCode[] = [130, 70, 3, 12, 11, 10, 6, 5, 9, 7, 4, 8, 2, 1, 0];

export function mostSevere(codes: readonly ExitCode[]): ExitCode {
  return bySeverity.find((code) => codes.includes(code)) ?? exitCodes.done;
}
