// The HTTPS server: its limits, its certificate, and an end in which no request is lost.
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
  /** Whether new connections come through: it listens, and has a certificate. */
  readonly isListening: () => boolean;
  /**
   * Takes no new connection and ends those that are idle; the others end with their answer, or after `closeWithinMs`. Whoever calls has told clients before
   * to go elsewhere.
   */
  readonly stop: () => Promise<void>;
}

/** Resolves when the server listens; rejects when it cannot. Without a certificate it listens, and every handshake fails. */
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

/** A connection that is new when the listener closes may have its first request on its way. */
const firstRequestMs = 1_000;

async function stop(
  server: Server,
  { destroyIdle, destroyAll }: Connections,
  { env, closeWithinMs }: { readonly env: Pick<WebhookEnv, 'timers'>; readonly closeWithinMs: number },
): Promise<void> {
  // What has arrived already is read first: a connection with a request in it is idle no more.
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
