// Where a certificate comes from, as the server and the injection of its authority see it.

/** A certificate, its key, and the authorities by which clients trust it, all PEM. */
export interface ServedCertificate {
  readonly cert: string;
  readonly key: string;
  /** May hold several authorities, while one takes the place of another. Absent when it is not known. */
  readonly ca?: string;
}

/** A source of certificates; what the server serves comes from here. */
export interface CertificateSource {
  /** What to serve now; undefined while there is none. */
  readonly current: () => ServedCertificate | undefined;
  /** Calls back after `current` or `caBundle` has changed. The answer ends it. */
  readonly onChange: (listener: () => void) => () => void;
  /** What clients must trust now, PEM: the authority of what is served and of what is served next. Undefined when it is not known. */
  readonly caBundle: () => string | undefined;
}

/** Why there is no certificate, or not the wanted one; for people. */
export interface SourceProblem {
  readonly message: string;
  /** Wall clock, in milliseconds since 1970, of its first appearance. */
  readonly sinceMs: number;
}

/** Listeners of one source. What one of them throws does not keep the others from hearing. */
export class Listeners {
  readonly #listeners = new Set<() => void>();

  readonly add = (listener: () => void): (() => void) => {
    // A wrapper of its own, so that one function may be added twice and removed once.
    const own = (): void => listener();
    this.#listeners.add(own);
    return () => {
      this.#listeners.delete(own);
    };
  };

  /** Answers the first failure of a listener, when there is one. */
  call(): unknown {
    let failure: unknown;
    for (const listener of [...this.#listeners]) {
      try {
        listener();
      } catch (error) {
        failure ??= error;
      }
    }
    return failure;
  }
}
