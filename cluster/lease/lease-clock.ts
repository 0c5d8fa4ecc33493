// Determines for how long a held Lease is valid, from the clocks of this process alone.
import type { ClusterEnv } from '../env.ts';

/** The wall clock and the monotonic clock drift apart by more than this only if a clock was set or the machine was suspended. */
const clockGapMs = 1000;

interface LeaseClockOptions {
  readonly env: Pick<ClusterEnv, 'clock' | 'timers'>;
  readonly renewDeadlineMs: number;
  readonly retryPeriodMs: number;
  /** Runs if a clock jumped or the process paused. Until the next renewal, `mayAct` returns false and `leftMs` returns 0. */
  readonly onDoubt: () => void;
  /** Runs if the deadline passed without a renewal. */
  readonly onExpired: () => void;
}

/** The clocks when a renewal was sent. */
interface Sent {
  readonly sentMs: number;
  readonly wallOffsetMs: number;
  readonly doubts: number;
}

/** Measures from the *sending* of the last renewal: other processes see it later. Checks for a suspension twice per retry period. */
export class LeaseClock {
  readonly #options: LeaseClockOptions;
  #renewal: Sent | undefined;
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

  /** Returns for how many milliseconds the Lease is certainly held; 0 or less if that is uncertain. */
  leftMs(): number {
    this.#check();
    if (this.#renewal === undefined || this.#isInDoubt) return 0;
    return this.#renewal.sentMs + this.#options.renewDeadlineMs - this.#nowMs();
  }

  isInDoubt(): boolean {
    return this.#isInDoubt;
  }

  beforeSending(): Sent {
    this.#check();
    this.#lastSentMs = this.#nowMs();
    if (!this.#isChecking) this.#scheduleCheck();
    return { sentMs: this.#lastSentMs, wallOffsetMs: this.#wallOffsetMs(), doubts: this.#doubts };
  }

  /** Records a successful renewal. A doubt that arose after the sending of the renewal stays. */
  renewed(sent: Sent): void {
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
      // The checks also run during the first renewal, because the process may pause while it waits for the answer.
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
    // A jump stays visible until the next renewal. It counts once; otherwise each check would add a doubt that no renewal can end.
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
