// The exit codes of every command, and which one wins when several groups end differently.

/** What each exit code means. Numbers are part of the public contract and never change their meaning. */
export const exitCodes = {
  /** Done, healthy, no changes, or the condition was met. */
  done: 0,
  /** `diff` found differences; with `plan --detailed-exitcode` an error. */
  differences: 1,
  /** `plan --detailed-exitcode` found changes. */
  changes: 2,
  /** The command line could not be understood. */
  usage: 3,
  /** A finding, a failed case, or a broken invariant. */
  findings: 4,
  /** Policy does not allow what was asked for, or the person who was asked said no. */
  refused: 5,
  /** The rollout failed or was aborted. */
  failed: 6,
  /** Time ran out while the rollout was still moving. */
  timedOut: 7,
  /** It waits for a person, or is paused. */
  waiting: 8,
  /** The plan is older than what it was made from. */
  stale: 9,
  /** A file, a revision, a group or an object does not exist. */
  notFound: 10,
  /** Authentication or permission is missing. */
  notAllowed: 11,
  /** The cluster or the agent cannot be reached. */
  unreachable: 12,
  /** A defect of this program. */
  internal: 70,
  /** Ctrl-C while it watched; the rollout goes on. */
  interrupted: 130,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** From the most to the least serious. */
const bySeverity: readonly ExitCode[] = [130, 70, 3, 12, 11, 10, 6, 5, 9, 7, 4, 8, 2, 1, 0];

/** The code that speaks for several results: the most serious one; 0 for none. */
export function mostSevere(codes: readonly ExitCode[]): ExitCode {
  return bySeverity.find((code) => codes.includes(code)) ?? exitCodes.done;
}
