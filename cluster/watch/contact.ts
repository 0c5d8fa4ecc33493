// When a server was last heard from, and as of when what it tells is certain.
import type { Clock } from '../env.ts';

/** Lines of a watch that catches up arrive within this time and count as one message. */
const wordMs = 1000;

/**
 * A server that fell behind, or whose lines were held up on the way, goes on with what happened when it fell silent. So its latest word may be as
 * old as the silence before it, and what it tells is certain only as of the word before.
 */
export class Contact {
  readonly #clock: Clock;
  #heardMs: number | undefined;
  #heardWallMs: number;
  /** When the latest word began and, so far, ended. */
  #begunMs = Number.NEGATIVE_INFINITY;
  #toldMs = Number.NEGATIVE_INFINITY;
  #certainMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#heardWallMs = clock.nowMs();
  }

  /** A sign of life, which need not say anything new. */
  heard(): void {
    this.#heardMs = this.#clock.monotonicMs();
    this.#heardWallMs = this.#clock.nowMs();
  }

  /** Something new was told. */
  told(): void {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#begunMs >= wordMs) {
      this.#certainMs = Math.max(this.#certainMs, this.#toldMs);
      this.#begunMs = nowMs;
    }
    this.#toldMs = nowMs;
  }

  /** Everything was told, as it was at that instant of the monotonic clock or later. */
  toldAll(asOfMs: number): void {
    this.#begunMs = this.#clock.monotonicMs();
    this.#toldMs = asOfMs;
    this.#certainMs = Math.max(this.#certainMs, asOfMs);
  }

  /** Wall clock of the last sign of life; of the beginning when there was none. */
  heardWallMs(): number {
    return this.#heardWallMs;
  }

  /** Since the last sign of life; undefined before the first. */
  silentMs(): number | undefined {
    return this.#heardMs === undefined ? undefined : this.#clock.monotonicMs() - this.#heardMs;
  }

  /** Returns the maximum age of the state; infinite before the first complete list. */
  ageMs(): number {
    return this.#clock.monotonicMs() - this.#certainMs;
  }
}
