// Serves /ready, /healthz and /metrics over plain HTTP, for the kubelet and for Prometheus.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import {
  type ClusterValidation,
  type HttpServerObserver,
  listen,
  type PlainAnswer,
  pathOf,
  wrongCluster,
} from '../../cluster/connection/http-server.ts';
import type { Clock } from '../../cluster/env.ts';
import { messageOf } from '../../policies/error-message.ts';
import type { Log } from '../env.ts';

export interface HttpServerOptions {
  /** The port of the server; 0 chooses a free port. */
  readonly port: number;
  /** The address that the server binds; all addresses if absent. */
  readonly address?: string;
  readonly isReady: () => boolean;
  readonly metrics: () => Promise<{ readonly contentType: string; readonly text: string }>;
  readonly clusterValidation?: ClusterValidation;
  readonly observer: HttpServerObserver;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly log: Log;
}

export interface HttpServer {
  readonly port: number;
  /** Stops listening and closes all connections. */
  readonly close: () => Promise<void>;
}

/** The timeout for reading a request, and for writing an answer. */
const exchangeTimeoutMs = 10_000;
/** The longest time that a connection may be idle between two requests. */
const idleTimeoutMs = 180_000;
/** The most connections. Only the kubelet and a few collectors send requests. */
const connectionLimit = 256;

/** Starts the server. Resolves when it listens; rejects if it cannot listen. */
export async function startHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const server = createServer((request, response) => void answer(options, request, response));
  server.headersTimeout = exchangeTimeoutMs;
  server.requestTimeout = exchangeTimeoutMs;
  server.setTimeout(exchangeTimeoutMs);
  server.keepAliveTimeout = idleTimeoutMs;
  server.maxConnections = connectionLimit;
  const port = await listen(server, options.port, options.address);
  server.on('error', ({ message }) => options.log.warn('HTTP server failed', { error: message }));
  return { port, close: () => close(server) };
}

async function close(server: Server): Promise<void> {
  await new Promise<void>((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

type Answer = Omit<PlainAnswer, 'contentType'> & Partial<PlainAnswer>;

type Route = (options: HttpServerOptions) => Answer | Promise<Answer>;

const text = 'text/plain; charset=utf-8';

const routes: Readonly<Record<string, Route>> = {
  '/ready': ({ isReady }) => ({ status: isReady() ? 200 : 500, body: '' }),
  // A process that hangs does not answer at all, so the kubelet restarts it.
  '/healthz': () => ({ status: 200, contentType: text, body: 'ok\n' }),
  '/metrics': async ({ metrics }) => {
    const { contentType, text: body } = await metrics();
    return { status: 200, contentType, body };
  },
};

async function answer(options: HttpServerOptions, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { observer, clock, log } = options;
  const startedMs = clock.monotonicMs();
  const method = request.method ?? 'GET';
  const path = pathOf(request.url ?? '/');
  const known = Object.hasOwn(routes, path) ? routes[path] : undefined;
  const route = known === undefined ? 'other' : path.slice(1);
  observer.inflight(method, route, 1);
  let requestBytes = 0;
  // The request body is read and dropped, so that the connection can be used again.
  request.on('data', (chunk: Buffer) => {
    requestBytes += chunk.length;
  });
  let given: Answer;
  try {
    given = refusal(options, request, known === undefined ? '<unknown-route>' : route) ?? (await (known ?? missing)(options));
  } catch (error) {
    log.error('HTTP request failed', { route, error: messageOf(error) });
    given = { status: 500, contentType: text, body: 'internal error\n' };
  }
  const body = Buffer.from(given.body);
  response.once('close', () => {
    observer.inflight(method, route, -1);
    observer.answered({
      method,
      route,
      status: given.status,
      requestBytes,
      responseBytes: method === 'HEAD' ? 0 : body.length,
      durationMs: clock.monotonicMs() - startedMs,
    });
  });
  response.writeHead(given.status, {
    ...(given.contentType === undefined ? {} : { 'Content-Type': given.contentType }),
    'Content-Length': body.length,
    'X-Content-Type-Options': 'nosniff',
  });
  response.end(body);
}

const missing: Route = () => ({ status: 404, contentType: text, body: '404 page not found\n' });

/** Counts and logs a request for another installation. Returns its denial; undefined if the request passes. */
function refusal({ clusterValidation, observer, log }: HttpServerOptions, request: IncomingMessage, route: string): Answer | undefined {
  if (pathOf(request.url ?? '/').includes('/healthz')) return undefined;
  const wrong = wrongCluster(clusterValidation, request, route);
  if (wrong === undefined) return undefined;
  const { wanted, given } = wrong;
  observer.wrongCluster({ route, wanted, given });
  log.warn('a request has a wrong X-Cluster value', { route, wanted, given, isRefused: wrong.refusal !== undefined });
  return wrong.refusal;
}
