// Defines the source of the certificate, for the server and for the injection of its authority.

/** A certificate and what belongs to it, all PEM. */
export interface TlsMaterial {
  /** The leaf and the intermediate certificates. */
  readonly cert: string;
  readonly key: string;
  /** The authorities for `caBundle` of webhook configurations, two during a rotation. Absent if unknown. */
  readonly ca?: string;
  /** The authority of client certificates. Without it a server that requires client certificates accepts no client. */
  readonly clientCa?: string;
}

/** Supplies the certificate: from a Secret that is renewed, or from watched files. */
export interface TlsSource {
  /** Returns the certificate to serve, if any. Without a certificate every handshake fails. */
  readonly current: () => TlsMaterial | undefined;
  /** Calls back after `current` changed. Returns a function that ends it. */
  readonly onChange: (listener: () => void) => () => void;
}

export interface CertificateSource extends TlsSource {
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
