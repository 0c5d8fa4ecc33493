// Defines a certificate source for the server and for the injection of its authority.

/** A certificate, its key, and the authorities that clients trust, all PEM. */
export interface ServedCertificate {
  readonly cert: string;
  readonly key: string;
  /** Contains two authorities during a rotation. Absent if unknown. */
  readonly ca?: string;
}

/** Supplies the certificates of the server. */
export interface CertificateSource {
  /** Returns the certificate to serve, if any. */
  readonly current: () => ServedCertificate | undefined;
  /** Calls back after `current` or `caBundle` changed. Returns a function that ends it. */
  readonly onChange: (listener: () => void) => () => void;
  /** Returns what clients must trust now, PEM: the authorities of the served and the next certificate. Undefined if unknown. */
  readonly caBundle: () => string | undefined;
}

/** Why there is no certificate, or not the wanted one; for people. */
export interface SourceProblem {
  readonly message: string;
  /** Wall clock, in milliseconds since 1970, of its first appearance. */
  readonly sinceMs: number;
}

/** Listeners of one source. An exception in one listener does not affect the others. */
export class Listeners {
  readonly #listeners = new Set<() => void>();

  readonly add = (listener: () => void): (() => void) => {
    // Wrapped, so that one function can be added twice and removed once.
    const own = (): void => listener();
    this.#listeners.add(own);
    return () => {
      this.#listeners.delete(own);
    };
  };

  /** Calls all listeners. Returns the first failure, if any. */
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
