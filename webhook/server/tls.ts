// Supplies the server certificate, and replaces it while connections stay open.
import type { Server } from 'node:https';
import type { SecureContextOptions } from 'node:tls';
import type { Log } from '../../cluster/env.ts';
import { messageOf } from '../../policies/error-message.ts';

/** A certificate and what belongs to it, all PEM. */
export interface TlsMaterial {
  /** The leaf and the intermediate certificates. */
  readonly cert: string;
  readonly key: string;
  /**
   * The authority that clients need to trust `cert`: it belongs into `caBundle` of webhook configurations. The server itself does not need
   * it.
   */
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

/** The authentication of clients: none, or a certificate of `clientCa`. API servers send one only if configured. */
export type ClientAuthentication = 'none' | 'certificate';

/**
 * Returns the context of new connections; open ones keep theirs. Throws if the source supplies unusable material: a key of another
 * certificate, no PEM, or no client authority although it is required.
 */
function secureContextOf(material: TlsMaterial, clients: ClientAuthentication): SecureContextOptions {
  // Node treats an empty text as absent, and a context without certificate refuses every handshake.
  if (material.cert === '' || material.key === '') throw new Error('the certificate or its key is empty');
  // Without its own authority, OpenSSL would accept certificates of every public one.
  if (clients === 'certificate' && material.clientCa === undefined) {
    throw new Error('client certificates are required, but their authority is not configured');
  }
  return {
    cert: material.cert,
    key: material.key,
    minVersion: 'TLSv1.2',
    ...(clients === 'certificate' && material.clientCa !== undefined ? { ca: material.clientCa } : {}),
  };
}

interface FollowedTls {
  /** Returns whether a certificate is served. */
  readonly isLoaded: () => boolean;
  readonly stop: () => void;
}

interface FollowTlsOptions {
  readonly source: TlsSource;
  readonly clients: ClientAuthentication;
  readonly log: Log;
  /** Called after every attempt to load the certificate. */
  readonly loaded: (isLoaded: boolean) => void;
}

/**
 * Serves the certificate of the source, now and after each change. If loading fails, it logs the error and keeps the previous certificate.
 */
export function followTls(server: Pick<Server, 'setSecureContext'>, { source, clients, log, loaded }: FollowTlsOptions): FollowedTls {
  let isLoaded = false;
  const load = (): void => {
    const material = source.current();
    if (material === undefined) return;
    try {
      server.setSecureContext(secureContextOf(material, clients));
      isLoaded = true;
      loaded(true);
    } catch (error) {
      // OpenSSL's messages name the problem, never the text.
      log.error('the certificate cannot be served', {
        error: messageOf(error),
        isOldServed: isLoaded,
      });
      loaded(false);
    }
  };
  const stop = source.onChange(load);
  load();
  return { isLoaded: () => isLoaded, stop };
}
