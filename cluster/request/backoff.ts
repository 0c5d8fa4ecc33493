// How long to wait before trying again: doubled from failure to failure, and different for everybody who failed at the same moment.

interface BackoffLimits {
  readonly firstMs: number;
  readonly lastMs: number;
}

/** What client-go's reflector waits: soon enough for a server that restarts, rarely enough for one that is overloaded. */
export const soon: BackoffLimits = { firstMs: 800, lastMs: 30_000 };

/** For what a person has to change first: a permission, a CRD. */
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

  /** Between `firstMs` and `lastMs`: once to twice a base that doubles with each call and stays at half of `lastMs`, so that the last one varies too. */
  nextMs(): number {
    const baseMs = this.#baseMs;
    this.#baseMs = Math.min(baseMs * 2, this.#limits.lastMs / 2);
    return Math.min(this.#limits.lastMs, baseMs * (1 + this.#random()));
  }

  /** After a success: the next failure waits as little as the first. */
  reset(): void {
    this.#baseMs = this.#limits.firstMs;
  }
}
