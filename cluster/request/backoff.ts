// Computes retry delays that double with each failure and vary at random.

interface BackoffLimits {
  readonly firstMs: number;
  readonly lastMs: number;
}

/** The delays of client-go's reflector: short enough for a restarting server, long enough for an overloaded one. */
export const soon: BackoffLimits = { firstMs: 800, lastMs: 30_000 };

/** The delays for problems that a person must solve, such as a missing permission or CRD. */
export const slow: BackoffLimits = { firstMs: 30_000, lastMs: 300_000 };

export class Backoff {
  readonly #random: () => number;
  readonly #limits: BackoffLimits;
  #baseMs: number;

  constructor(random: () => number, limits: BackoffLimits) {
    this.#random = random;
    this.#limits = limits;
    this.#baseMs = limits.firstMs;
  }

  /** Returns one to two times a base that doubles with each call up to half of `lastMs`, so that the last delays vary too. */
  nextMs(): number {
    const baseMs = this.#baseMs;
    this.#baseMs = Math.min(baseMs * 2, this.#limits.lastMs / 2);
    return Math.min(this.#limits.lastMs, baseMs * (1 + this.#random()));
  }

  /** Starts again with the first delay after a success. */
  reset(): void {
    this.#baseMs = this.#limits.firstMs;
  }
}
