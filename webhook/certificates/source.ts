// Defines the source of the certificate, for the server and for the injection of the CA certificate.

/** A certificate with its key and CA certificates, all as PEM. */
export interface TlsMaterial {
  readonly cert: string;
  readonly key: string;
  /** The CA certificates for `caBundle` of webhook configurations, two during a rotation. Absent if unknown. */
  readonly ca?: string;
}

/** The source of the certificate: a Secret that the agent renews, or watched files. */
export interface TlsSource {
  /** Returns the certificate to serve, if any. Without a certificate every handshake fails. */
  readonly current: () => TlsMaterial | undefined;
  /** Calls the listener after `current` changed. Returns a function that removes the listener. */
  readonly onChange: (listener: () => void) => () => void;
}

export interface CertificateSource extends TlsSource {
  /** Returns the CA certificates (PEM) that clients must trust, two during a rotation. Undefined if unknown. */
  readonly caBundle: () => string | undefined;
  /** Returns why the source has no certificate or keeps an old one; undefined without a problem. */
  readonly problem: () => string | undefined;
}

/** Listeners of one source. An exception in one listener does not affect the others. */
export class Listeners {
  readonly #listeners = new Set<() => void>();

  readonly add = (listener: () => void): (() => void) => {
    // Each call adds a new function, so that a listener that was added twice can be removed once.
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
