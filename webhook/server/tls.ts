// The certificate by which the server is trusted: where it comes from, and how a new one takes its place while connections stay open.
import type { Server } from 'node:https';
import type { SecureContextOptions } from 'node:tls';
import type { Log } from '../../cluster/env.ts';
import { messageOf } from '../../policies/error-message.ts';

/** A certificate and what belongs to it, all PEM. */
export interface TlsMaterial {
  /** The leaf, and whatever certificates stand between it and the authority. */
  readonly cert: string;
  readonly key: string;
  /** The authority by which clients trust `cert`: it goes into `caBundle` of webhook configurations. The server itself does not need it. */
  readonly ca?: string;
  /** The authority of clients' certificates. Without it a server that asks clients for one lets nobody in. */
  readonly clientCa?: string;
}

/** Where the certificate comes from: a Secret that is renewed, or files that are watched. */
export interface TlsSource {
  /** What to serve now; undefined while there is none, and then every handshake fails. */
  readonly current: () => TlsMaterial | undefined;
  /** Calls back after `current` has changed. The answer ends it. */
  readonly onChange: (listener: () => void) => () => void;
}

/** How clients prove who they are: not at all, or by a certificate of `clientCa`. API servers send one only when they are told to. */
export type ClientAuthentication = 'none' | 'certificate';

/**
 * Context of new connections; those that are open keep the one they began with. Throws when the source has given what cannot be served: a key
 * of another certificate, no PEM, or no authority of clients although they must have one.
 */
function secureContextOf(material: TlsMaterial, clients: ClientAuthentication): SecureContextOptions {
  // Node takes an empty text for none, and a context without certificate refuses every handshake.
  if (material.cert === '' || material.key === '') throw new Error('the certificate or its key is empty');
  // Without an authority of its own, OpenSSL would take the certificates of every public one.
  if (clients === 'certificate' && material.clientCa === undefined) {
    throw new Error('clients must have a certificate, but the authority that issues theirs is not given');
  }
  return {
    cert: material.cert,
    key: material.key,
    minVersion: 'TLSv1.2',
    ...(clients === 'certificate' && material.clientCa !== undefined ? { ca: material.clientCa } : {}),
  };
}

interface FollowedTls {
  /** Whether a certificate is served. */
  readonly isLoaded: () => boolean;
  readonly stop: () => void;
}

interface FollowTlsOptions {
  readonly source: TlsSource;
  readonly clients: ClientAuthentication;
  readonly log: Log;
  /** Hears of every attempt to serve what the source has. */
  readonly loaded: (isLoaded: boolean) => void;
}

/** Serves what the source has, now and after each change. What cannot be served is logged, and the certificate before it stays. */
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
      // OpenSSL's messages name what is wrong with the text, never the text.
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
