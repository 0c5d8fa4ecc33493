// Tracks whether this process may act: as holder of the Lease, or without a Lease.
import { type Lease, type LeaseProblem, startLease } from '../cluster/lease/lease.ts';
import type { AgentConfig } from './config.ts';
import type { AgentEnv } from './env.ts';
import { areLeasesRefused } from './lease-proof.ts';
import type { Degradation } from './report.ts';

interface LeadershipState {
  readonly isLeader: boolean;
  readonly epoch?: number;
  readonly holder?: string;
}

export interface Leadership {
  /** Reports whether a request that takes up to `timeoutMs` may be sent now. To be asked immediately before each. */
  readonly mayAct: (timeoutMs: number) => boolean;
  /** Returns how long a request sent now may take, in milliseconds: 0 or less if none may be sent, infinite without a Lease. */
  readonly leftMs: () => number;
  /** Returns the epoch, which grows with each change of holder; 0 without a Lease, undefined while this process may not act. */
  readonly epoch: () => number | undefined;
  /** Reports whether this process acts without a Lease. */
  readonly isAlone: () => boolean;
  readonly state: () => LeadershipState;
  readonly degradation: () => Degradation | undefined;
  /** Releases the Lease. No write may be in flight. */
  readonly release: () => Promise<void>;
  /** Ends without giving the Lease away, as a crash would: it expires by itself. */
  readonly stop: () => void;
}

interface LeadershipListener {
  /** This process may act from now on, or not any more. */
  readonly onChange: (isLeader: boolean) => void;
  /** Holder or problem have changed. */
  readonly onState: () => void;
}

/** Pause between two checks: a starting server denies requests that it allows later, and another process may hold the Lease. */
const proofPauseMs = 5_000;

/** Runs for the Lease as the configuration says. In mode `off`, and in `auto` without permission for Leases, the process acts alone. */
export function startLeadership(
  env: AgentEnv,
  { lease: settings, agentNamespace, identity }: AgentConfig,
  listener: LeadershipListener,
): Leadership {
  let lease: Lease | undefined;
  let problem: LeaseProblem | undefined;
  let isAlone = settings.mode === 'off';
  /** Leases can be used here. */
  let isUsable = false;
  let isOver = false;
  let cancelProof: (() => void) | undefined;

  const noteProblem = (current: LeaseProblem | undefined): void => {
    problem = current;
    if (isInQuestion() && cancelProof === undefined) proveLater();
    listener.onState();
  };
  const isInQuestion = (): boolean => settings.mode === 'auto' && isImpossible(problem) && !isAlone && !isUsable && !isOver;

  /** Being alone is believed only when the refusal has lasted. */
  const proveLater = (): void => {
    cancelProof = env.timers.after(proofPauseMs, () => void prove());
  };
  const prove = async (): Promise<void> => {
    const isRefused = await areLeasesRefused(env, { namespace: agentNamespace, name: settings.name });
    cancelProof = undefined;
    if (!isInQuestion()) return;
    if (!isRefused) return proveLater();
    isAlone = true;
    env.log.warn('agent works without a lease: access to leases is forbidden', { problem: problem?.message });
    listener.onChange(true);
    listener.onState();
  };

  if (settings.mode !== 'off') {
    lease = startLease({
      env,
      namespace: agentNamespace,
      name: settings.name,
      identity,
      durationMs: settings.durationMs,
      renewDeadlineMs: settings.renewDeadlineMs,
      retryPeriodMs: settings.retryPeriodMs,
      onAcquired: (epoch) => {
        isUsable = true;
        isAlone = false;
        env.log.info('leadership acquired', { epoch });
        listener.onChange(true);
        listener.onState();
      },
      onLost: (reason) => {
        isAlone = false;
        env.log.warn('leadership lost', { reason });
        listener.onChange(false);
        listener.onState();
      },
      onHolder: (holder) => {
        isUsable = true;
        // Another process holds the Lease, so Leases can be used.
        if (isAlone && holder !== undefined && holder !== identity) {
          isAlone = false;
          listener.onChange(false);
        }
        listener.onState();
      },
      onProblem: noteProblem,
    });
  } else {
    // As with a Lease, the listener hears of it only after this function has returned.
    void Promise.resolve().then(() => {
      if (isOver) return;
      listener.onChange(true);
      listener.onState();
    });
  }

  const epoch = (): number | undefined => (isAlone ? 0 : lease?.epoch());
  return {
    mayAct: (timeoutMs) => !isOver && (isAlone || lease?.mayAct(timeoutMs) === true),
    leftMs: () => (isOver ? 0 : isAlone ? Number.POSITIVE_INFINITY : (lease?.leftMs() ?? 0)),
    epoch: () => (isOver ? undefined : epoch()),
    isAlone: () => isAlone,
    state: () => {
      const current = epoch();
      const holder = isAlone ? identity : lease?.holder();
      return {
        isLeader: current !== undefined,
        ...(current === undefined ? {} : { epoch: current }),
        ...(holder === undefined ? {} : { holder }),
      };
    },
    degradation: () =>
      problem === undefined ? undefined : { id: 'lease', reason: problem.reason, message: whatFollows(problem, isAlone) },
    release: async () => {
      isOver = true;
      cancelProof?.();
      await lease?.release();
    },
    stop: () => {
      isOver = true;
      cancelProof?.();
      lease?.stop();
    },
  };
}

function isImpossible(problem: LeaseProblem | undefined): boolean {
  return problem?.reason === 'forbidden' || problem?.reason === 'missing';
}

function whatFollows({ message }: LeaseProblem, isAlone: boolean): string {
  const consequence = isAlone ? 'the agent acts without a Lease; run only one process' : 'no action is taken until a process holds it';
  return `the Lease cannot be used (${message}); ${consequence}`;
}
