// The exit codes of every command, and their order of severity for several groups.

/** The numbers are part of the public contract and never change their meaning. */
export const exitCodes = {
  /** Done, healthy, no changes, or the condition was met. */
  done: 0,
  /** `diff` found differences; with `plan --detailed-exitcode` an error. */
  differences: 1,
  /** `plan --detailed-exitcode` found changes. */
  changes: 2,
  /** The command line is not valid. */
  usage: 3,
  /** A finding, a failed case, or a broken invariant. */
  findings: 4,
  /** A policy denies the request, or the user answered no. */
  refused: 5,
  /** The rollout failed or was aborted. */
  failed: 6,
  /** The time ran out while the rollout still made progress. */
  timedOut: 7,
  /** The rollout waits for a person, or is paused. */
  waiting: 8,
  /** The plan is older than its inputs. */
  stale: 9,
  /** A file, a revision, a group or an object does not exist. */
  notFound: 10,
  /** Authentication or permission is missing. */
  notAllowed: 11,
  /** The cluster or the agent cannot be reached. */
  unreachable: 12,
  /** A defect of this program. */
  internal: 70,
  /** Ctrl-C while watching; the rollout continues. */
  interrupted: 130,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** From the most to the least serious. */
const bySeverity: readonly ExitCode[] = [130, 70, 3, 12, 11, 10, 6, 5, 9, 7, 4, 8, 2, 1, 0];

/** Returns the most severe code; 0 for none. */
export function mostSevere(codes: readonly ExitCode[]): ExitCode {
  return bySeverity.find((code) => codes.includes(code)) ?? exitCodes.done;
}
