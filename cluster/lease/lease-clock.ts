// Limits how long a held Lease is valid by the clocks of this process alone.
import type { ClusterEnv } from '../env.ts';

/** Wall and monotonic clock drift apart by more than this only when one was set, or when the machine slept. */
const clockGapMs = 1000;

interface LeaseClockOptions {
  readonly env: Pick<ClusterEnv, 'clock' | 'timers'>;
  readonly renewDeadlineMs: number;
  readonly retryPeriodMs: number;
  /** The holding is not believed until it is renewed: a clock jumped, or the process stood still. */
  readonly onDoubt: () => void;
  /** The deadline passed without a renewal. */
  readonly onExpired: () => void;
}

/** The moment at which a renewal was sent. */
interface Sent {
  readonly sentMs: number;
  readonly wallOffsetMs: number;
  readonly doubts: number;
}

/**
 * Everything is measured from when the last successful renewal was *sent*: others count from when they see it, which is later. While it runs it
 * looks at the clocks twice in each retry period, so that a process that stood still notices.
 */
export class LeaseClock {
  readonly #options: LeaseClockOptions;
  #renewal: Sent | undefined;
  #seenMs = 0;
  #doubts = 0;
  #isInDoubt = false;
  #isLooking = false;
  #lastSentMs = 0;
  #cancelLook: () => void = () => undefined;

  constructor(options: LeaseClockOptions) {
    this.#options = options;
  }

  mayAct(requestTimeoutMs: number): boolean {
    return requestTimeoutMs < this.leftMs();
  }

  /** States how long the holding is certain from now on, in milliseconds; 0 or less when it is not. */
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
    if (!this.#isLooking) this.#look();
    return { sentMs: this.#lastSentMs, wallOffsetMs: this.#wallOffsetMs(), doubts: this.#doubts };
  }

  /** The renewal that was sent then has succeeded. A doubt that arose since stays. */
  renewed(sent: Sent): void {
    this.#renewal = sent;
    this.#check();
    this.#isInDoubt = this.#doubts !== sent.doubts;
    if (!this.#isLooking) this.#look();
  }

  stop(): void {
    this.#cancelLook();
    this.#isLooking = false;
    this.#renewal = undefined;
    this.#isInDoubt = false;
  }

  #look(): void {
    const { env, retryPeriodMs, renewDeadlineMs, onExpired } = this.#options;
    this.#isLooking = true;
    this.#cancelLook = env.timers.after(retryPeriodMs / 2, () => {
      this.#check();
      // Also while the first renewal is under way: a process that stood still in the meantime must not believe its answer.
      if (this.#nowMs() < (this.#renewal?.sentMs ?? this.#lastSentMs) + renewDeadlineMs) return this.#look();
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
    // A jump stays visible until the next renewal; it is one doubt, or no renewal could ever end it.
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
