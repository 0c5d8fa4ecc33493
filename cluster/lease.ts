// Which process may act: a Lease as client-go keeps it, with the time limits that make it safe to believe.
import type { ClusterEnv } from './env.ts';

export interface LeaseOptions {
  readonly env: ClusterEnv;
  readonly namespace: string;
  readonly name: string;
  /** Unique for each process, also across restarts. */
  readonly identity: string;
  /** 15 s, as a rule: how long others wait after the last renewal that they saw. */
  readonly durationMs: number;
  /** 10 s, as a rule: how long after the last successful renewal was sent the holder still acts. Less than `durationMs`. */
  readonly renewDeadlineMs: number;
  /** 2 s, as a rule: between renewals, and between looks at somebody else's Lease. */
  readonly retryPeriodMs: number;
  /** The largest epoch that is stored elsewhere, such as in ledgers: the next change of holder goes beyond it, also when the Lease was deleted. */
  readonly storedEpoch?: () => number | undefined;
  readonly onAcquired: (epoch: number) => void;
  /** From here on `mayAct` is false. */
  readonly onLost: (reason: string) => void;
  /** Somebody else, nobody (undefined), or this process holds it now. */
  readonly onHolder?: (holder: string | undefined) => void;
  /** Why the Lease cannot be read or written; undefined when it can again. */
  readonly onProblem?: (problem: LeaseProblem | undefined) => void;
}

export interface LeaseProblem {
  readonly reason: 'forbidden' | 'missing' | 'unreachable';
  readonly message: string;
}

export interface Lease {
  /**
   * Whether a request that takes up to `requestTimeoutMs` may be sent now: it ends before anybody else could hold the Lease. To be asked
   * immediately before each request that changes something.
   */
  readonly mayAct: (requestTimeoutMs: number) => boolean;
  /** leaseTransitions of the holding; grows with each change of holder. Undefined while this process does not hold the Lease. */
  readonly epoch: () => number | undefined;
  /** As last seen; undefined when nobody does or nothing is known. */
  readonly holder: () => string | undefined;
  readonly problem: () => LeaseProblem | undefined;
  /** Gives the Lease to whoever comes next and ends. Whatever was sent under it must be over. Never rejects. */
  readonly release: () => Promise<void>;
  /** Ends without giving it away, as a crash would. */
  readonly stop: () => void;
}

/** Starts at once. Never throws and never gives up by itself. */
export function startLease(_options: LeaseOptions): Lease {
  throw new Error('not there yet');
}
