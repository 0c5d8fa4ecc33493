// Runs the HTTPS server: limits, certificate, and a shutdown that loses no request.
import type { RequestListener } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { sleep } from '../../cluster/env.ts';
import type { WebhookConfig } from '../config.ts';
import type { WebhookEnv } from '../env.ts';
import { type Connections, watchConnections } from './connections.ts';
import type { WebhookObserver } from './observer.ts';
import { followTls, type TlsSource } from './tls.ts';

interface HttpsServerOptions {
  readonly config: WebhookConfig;
  readonly listener: RequestListener;
  readonly tls: TlsSource;
  readonly env: Pick<WebhookEnv, 'clock' | 'timers' | 'log'>;
  readonly observer: WebhookObserver;
}

interface HttpsServer {
  readonly port: number;
  /** Returns whether it listens and has a certificate. */
  readonly isListening: () => boolean;
  /** Accepts no new connection and closes idle ones; the others end with their answer, or after `closeWithinMs`. Drop readiness before. */
  readonly stop: () => Promise<void>;
}

/** Resolves when the server listens; rejects if it cannot. Without a certificate every handshake fails. */
export async function startHttpsServer({ config, listener, tls, env, observer }: HttpsServerOptions): Promise<HttpsServer> {
  const { limits } = config;
  const server = createServer(
    {
      requestCert: config.clients === 'certificate',
      rejectUnauthorized: config.clients === 'certificate',
      ALPNProtocols: ['http/1.1'],
      minVersion: 'TLSv1.2',
      handshakeTimeout: limits.handshakeTimeoutMs,
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: limits.receiveTimeoutMs,
      connectionsCheckingInterval: limits.checkEveryMs,
      keepAliveTimeout: limits.keepAliveMs,
      maxHeaderSize: limits.maxHeaderBytes,
      noDelay: true,
    },
    listener,
  );
  server.maxRequestsPerSocket = limits.maxRequestsPerConnection;
  server.timeout = limits.stalledMs;
  server.maxConnections = limits.maxConnections;
  const connections = watchConnections(server, { maxPerPeer: limits.maxConnectionsPerPeer, refused: observer.refusedConnection });
  server.on('tlsClientError', ({ message }) => {
    observer.refusedConnection('handshake');
    env.log.debug('a TLS handshake failed', { error: message });
  });
  const followed = followTls(server, { source: tls, clients: config.clients, log: env.log, loaded: observer.certificate });
  try {
    await listen(server, config);
  } catch (error) {
    followed.stop();
    throw error;
  }
  server.on('error', ({ message }) => env.log.warn('the webhook server failed', { error: message }));
  let stopped: Promise<void> | undefined;
  return {
    port: portOf(server),
    isListening: () => server.listening && followed.isLoaded(),
    stop: () => {
      stopped ??= stop(server, connections, { env, closeWithinMs: config.closeWithinMs }).finally(followed.stop);
      return stopped;
    },
  };
}

function listen(server: Server, { port, address }: WebhookConfig): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, ...(address === undefined ? {} : { host: address }) }, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

function portOf(server: Server): number {
  const address: AddressInfo | string | null = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

/** Time for the first request of a connection that was new when the listener closed. */
const firstRequestMs = 1_000;

async function stop(
  server: Server,
  { destroyIdle, destroyAll }: Connections,
  { env, closeWithinMs }: { readonly env: Pick<WebhookEnv, 'timers'>; readonly closeWithinMs: number },
): Promise<void> {
  // Read arrived data first: a connection with a request in it is not idle.
  await new Promise((resolve) => setImmediate(resolve));
  const over = new AbortController();
  const closed = new Promise<void>((resolve) => {
    server.close(() => {
      over.abort();
      resolve();
    });
  });
  server.closeIdleConnections();
  await sleep(env, Math.min(firstRequestMs, closeWithinMs), over.signal);
  destroyIdle();
  await sleep(env, Math.max(0, closeWithinMs - firstRequestMs), over.signal);
  if (!over.signal.aborted) destroyAll();
  await closed;
}
