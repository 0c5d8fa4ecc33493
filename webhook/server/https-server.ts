// Runs the HTTPS server: connections, certificate, and a shutdown that loses no request.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { Socket } from 'node:net';
import type { SecureContextOptions, TLSSocket } from 'node:tls';
import { listen } from '../../cluster/connection/http-server.ts';
import { sleep } from '../../cluster/env.ts';
import { messageOf } from '../../policies/error-message.ts';
import type { TlsMaterial, TlsSource } from '../certificates/source.ts';
import type { WebhookConfig } from '../config.ts';
import type { WebhookEnv, WebhookObserver } from '../env.ts';

interface HttpsServerOptions {
  readonly config: WebhookConfig;
  readonly listener: RequestListener;
  readonly tls: TlsSource;
  readonly env: Pick<WebhookEnv, 'clock' | 'timers' | 'log'>;
  readonly observer: WebhookObserver;
}

interface HttpsServer {
  readonly port: number;
  readonly isListening: () => boolean;
  /** Closes the listener and idle connections, then all others after their answer or `closeWithinMs`. Callers first report not ready. */
  readonly stop: () => Promise<void>;
}

/** Resolves when the server listens; rejects if it cannot. Without a certificate every handshake fails. */
export async function startHttpsServer(options: HttpsServerOptions): Promise<HttpsServer> {
  const { config, listener, env, observer } = options;
  const { limits } = config;
  const server = createServer(
    {
      requestCert: config.clientCa !== undefined,
      rejectUnauthorized: config.clientCa !== undefined,
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
  const followed = followTls(server, options);
  const port = await listen(server, config.port, config.address).catch((error: unknown) => {
    followed.stop();
    throw error;
  });
  server.on('error', ({ message }) => env.log.warn('the webhook server failed', { error: message }));
  let stopped: Promise<void> | undefined;
  return {
    port,
    isListening: () => server.listening && followed.isLoaded(),
    stop: () => {
      stopped ??= stop(server, connections, { env, closeWithinMs: config.closeWithinMs }).finally(followed.stop);
      return stopped;
    },
  };
}

/** Time for the first request on connections that were new when the listener closed. */
const firstRequestMs = 1_000;

async function stop(
  server: Server,
  { destroyIdle, destroyAll }: Connections,
  { env, closeWithinMs }: { readonly env: Pick<WebhookEnv, 'timers'>; readonly closeWithinMs: number },
): Promise<void> {
  await readArrived();
  const over = new AbortController();
  const closed = new Promise<void>((resolve) => {
    server.close(() => {
      over.abort();
      resolve();
    });
  });
  server.closeIdleConnections();
  await sleep(env, Math.min(firstRequestMs, closeWithinMs), over.signal);
  await readArrived();
  destroyIdle();
  await sleep(env, Math.max(0, closeWithinMs - firstRequestMs), over.signal);
  if (!over.signal.aborted) destroyAll();
  await closed;
}

/** Lets Node read data that arrived before a timer fired. Otherwise a connection with an unread request would be closed as idle. */
function readArrived(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

interface Connections {
  /** Closes connections without a request in progress, also unused ones that clients keep open. */
  readonly destroyIdle: () => void;
  readonly destroyAll: () => void;
}

/** Counts connections. Closes those beyond `maxPerPeer` per address at once, before the TLS handshake costs CPU. */
function watchConnections(
  server: Server,
  { maxPerPeer, refused }: { readonly maxPerPeer: number; readonly refused: (why: 'limit' | 'peer-limit') => void },
): Connections {
  const open = new Set<Socket>();
  const perPeer = new Map<string, number>();
  server.on('connection', (socket: Socket) => {
    // Undefined if the client already disconnected.
    const address = socket.remoteAddress ?? '';
    const count = perPeer.get(address) ?? 0;
    if (count >= maxPerPeer) {
      refused('peer-limit');
      socket.destroy();
      return;
    }
    perPeer.set(address, count + 1);
    open.add(socket);
    socket.once('close', () => {
      open.delete(socket);
      const left = (perPeer.get(address) ?? 1) - 1;
      if (left === 0) perPeer.delete(address);
      else perPeer.set(address, left);
    });
  });
  server.on('drop', () => refused('limit'));
  /** Requests under way per connection, after the handshake. */
  const requestCounts = new Map<Socket, number>();
  const change = (socket: Socket, by: 1 | -1): void => {
    const count = requestCounts.get(socket);
    if (count !== undefined) requestCounts.set(socket, count + by);
  };
  server.on('secureConnection', (socket: TLSSocket) => {
    requestCounts.set(socket, 0);
    socket.once('close', () => requestCounts.delete(socket));
  });
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    change(socket, 1);
    response.once('close', () => change(socket, -1));
  });
  return {
    destroyIdle: () => {
      for (const [socket, count] of requestCounts) if (count === 0) socket.destroy();
    },
    destroyAll: () => {
      server.closeAllConnections();
      for (const socket of open) socket.destroy();
    },
  };
}

/** Returns the TLS context of new connections. Throws Error if a text is empty. */
function secureContextOf({ cert, key }: TlsMaterial, { clientCa }: WebhookConfig): SecureContextOptions {
  // Node treats an empty text as absent, and a context without certificate refuses every handshake.
  if (cert === '' || key === '') throw new Error('the certificate or its key is empty');
  // Without `ca`, Node would accept client certificates of every public CA.
  if (clientCa === '') throw new Error('client certificates are required, but their CA certificate is empty');
  return { cert, key, minVersion: 'TLSv1.2', ...(clientCa === undefined ? {} : { ca: clientCa }) };
}

/** Serves the certificate of the source, now and after each change. Logs a failure and keeps the previous certificate. */
function followTls(
  server: Server,
  { tls, config, env }: HttpsServerOptions,
): { readonly isLoaded: () => boolean; readonly stop: () => void } {
  let isLoaded = false;
  const load = (): void => {
    const material = tls.current();
    if (material === undefined) return;
    try {
      server.setSecureContext(secureContextOf(material, config));
      isLoaded = true;
      env.log.info('certificate is served', {});
    } catch (error) {
      // OpenSSL's messages never contain the key.
      env.log.error('the certificate cannot be served', { error: messageOf(error), isOldServed: isLoaded });
    }
  };
  const stop = tls.onChange(load);
  load();
  return { isLoaded: () => isLoaded, stop };
}
