// Computes for how long this process still holds its Lease, from the clocks of this process alone.
import type { ClusterEnv } from '../env.ts';

/**
 * The difference between the wall clock and the monotonic clock changes by more than this only after a clock was set or the machine was
 * suspended.
 */
const clockGapMs = 1000;

interface LeaseClockOptions {
  readonly env: Pick<ClusterEnv, 'clock' | 'timers'>;
  readonly renewDeadlineMs: number;
  readonly retryPeriodMs: number;
  /** Runs on a doubt: a clock jumped or the process was suspended. `mayAct` then returns false until a renewal sent later succeeds. */
  readonly onDoubt: () => void;
  /** Runs if the deadline passed without a renewal. */
  readonly onExpired: () => void;
}

/** The clocks and the number of doubts at the time a renewal was sent. */
interface SentRenewal {
  readonly sentMs: number;
  readonly wallOffsetMs: number;
  readonly doubts: number;
}

/**
 * Counts the validity of the Lease from the time the last renewal was sent. Other processes see it later, so their count ends later.
 * Checks for a suspension of the process twice per retry period.
 */
export class LeaseClock {
  readonly #options: LeaseClockOptions;
  #renewal: SentRenewal | undefined;
  #seenMs = 0;
  #doubts = 0;
  #isInDoubt = false;
  #isChecking = false;
  #lastSentMs = 0;
  #cancelCheck: () => void = () => undefined;

  constructor(options: LeaseClockOptions) {
    this.#options = options;
  }

  mayAct(requestTimeoutMs: number): boolean {
    return requestTimeoutMs < this.leftMs();
  }

  /** Returns for how many milliseconds this process certainly holds the Lease; 0 or less if that is uncertain. */
  leftMs(): number {
    this.#check();
    if (this.#renewal === undefined || this.#isInDoubt) return 0;
    return this.#renewal.sentMs + this.#options.renewDeadlineMs - this.#nowMs();
  }

  isInDoubt(): boolean {
    return this.#isInDoubt;
  }

  beforeSending(): SentRenewal {
    this.#check();
    this.#lastSentMs = this.#nowMs();
    if (!this.#isChecking) this.#scheduleCheck();
    return { sentMs: this.#lastSentMs, wallOffsetMs: this.#wallOffsetMs(), doubts: this.#doubts };
  }

  /** Records a successful renewal. A doubt that arose after the renewal was sent stays. */
  renewed(sent: SentRenewal): void {
    this.#renewal = sent;
    this.#check();
    this.#isInDoubt = this.#doubts !== sent.doubts;
    if (!this.#isChecking) this.#scheduleCheck();
  }

  stop(): void {
    this.#cancelCheck();
    this.#isChecking = false;
    this.#renewal = undefined;
    this.#isInDoubt = false;
  }

  #scheduleCheck(): void {
    const { env, retryPeriodMs, renewDeadlineMs, onExpired } = this.#options;
    this.#isChecking = true;
    this.#cancelCheck = env.timers.after(retryPeriodMs / 2, () => {
      this.#check();
      // The checks also run during the first renewal: they keep `#seenMs` recent, so that `renewed` does not take a slow answer for a
      // suspension.
      if (this.#nowMs() < (this.#renewal?.sentMs ?? this.#lastSentMs) + renewDeadlineMs) return this.#scheduleCheck();
      const hasExpired = this.#renewal !== undefined;
      this.stop();
      if (hasExpired) onExpired();
    });
  }

  #check(): void {
    const nowMs = this.#nowMs();
    const silentMs = nowMs - this.#seenMs;
    this.#seenMs = nowMs;
    if (this.#renewal === undefined) return;
    const isStalled = silentMs > this.#options.retryPeriodMs;
    const hasJumped = Math.abs(this.#wallOffsetMs() - this.#renewal.wallOffsetMs) > clockGapMs;
    if (!isStalled && !hasJumped) return;
    // A jump stays visible until the next renewal. It counts once: a doubt for each check would also arise while a renewal is under way, and
    // so no renewal could end the doubt.
    if (this.#isInDoubt && !isStalled) return;
    this.#doubts++;
    this.#isInDoubt = true;
    this.#options.onDoubt();
  }

  #nowMs(): number {
    return this.#options.env.clock.monotonicMs();
  }

  #wallOffsetMs(): number {
    return this.#options.env.clock.nowMs() - this.#options.env.clock.monotonicMs();
  }
}
