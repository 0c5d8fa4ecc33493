// Computes retry delays that double with each failure and vary at random.

interface BackoffLimits {
  readonly firstMs: number;
  readonly lastMs: number;
}

/** The delays of client-go's reflector: short enough for a restarting server, long enough for an overloaded one. */
export const soon: BackoffLimits = { firstMs: 800, lastMs: 30_000 };

/** The delays for problems that a person must solve, such as a missing permission or CRD. */
export const slow: BackoffLimits = { firstMs: 30_000, lastMs: 300_000 };

/** Returns one to two times a base. The base doubles with each further failure, but is at most half of `lastMs`. */
export function pauseAfter(failures: number, { firstMs, lastMs }: BackoffLimits, random: number): number {
  return Math.min(lastMs / 2, firstMs * 2 ** (failures - 1)) * (1 + random);
}

export class Backoff {
  readonly #random: () => number;
  readonly #limits: BackoffLimits;
  #failures = 0;

  constructor(random: () => number, limits: BackoffLimits) {
    this.#random = random;
    this.#limits = limits;
  }

  nextMs(): number {
    this.#failures += 1;
    return pauseAfter(this.#failures, this.#limits, this.#random());
  }

  reset(): void {
    this.#failures = 0;
  }
}
