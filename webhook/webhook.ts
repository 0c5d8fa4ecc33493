// Starts the admission webhook for the agent: endpoints behind an HTTPS server.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import express, { type NextFunction } from 'express';
import { sleep } from '../cluster/env.ts';
import type { TlsSource } from './certificates/source.ts';
import type { WebhookConfig } from './config.ts';
import type { WebhookEnv, WebhookObserver } from './env.ts';
import { answerExchange, type ServedEndpoint } from './server/exchange.ts';
import { startHttpsServer } from './server/https-server.ts';
import { slots, watchLoad } from './server/load.ts';

interface WebhookOptions {
  readonly config: WebhookConfig;
  readonly endpoints: readonly ServedEndpoint[];
  readonly tls: TlsSource;
  readonly observer: WebhookObserver;
  readonly env: Pick<WebhookEnv, 'clock' | 'timers' | 'log'>;
}

export interface Webhook {
  readonly port: number;
  /** Returns whether clients should send requests: a certificate is served, and `close` was not called. */
  readonly isReady: () => boolean;
  /**
   * Shuts down without losing a request. `isReady` returns false at once, and each connection closes after its next answer. After `drainMs`
   * the listener closes, and pending requests have `closeWithinMs`. A second call waits for the same shutdown.
   */
  readonly close: () => Promise<void>;
}

/** Starts the webhook. Resolves when the server listens, even without a certificate; rejects if it cannot listen. */
export async function startWebhook({ config, endpoints, tls, observer, env }: WebhookOptions): Promise<Webhook> {
  const { limits } = config;
  const load = watchLoad({ ...env, ...limits });
  const bigBodies = slots({ count: limits.maxBigBodies, waitMs: limits.bigBodyWaitMs, timers: env.timers });
  let closed: Promise<void> | undefined;
  const exchange = { config, env, observer, load, bigBodies, isClosing: () => closed !== undefined };
  const listener = routesOf(endpoints, (request, response, endpoint) => answerExchange(exchange, request, response, endpoint));
  try {
    const server = await startHttpsServer({ config, listener, tls, env, observer });
    const close = async (): Promise<void> => {
      await sleep(env, config.drainMs);
      await server.stop();
      load.stop();
    };
    return {
      port: server.port,
      isReady: () => closed === undefined && server.isListening(),
      close: () => {
        closed ??= close();
        return closed;
      },
    };
  } catch (error) {
    load.stop();
    throw error;
  }
}

/** The function that answers one request. `endpoint` is undefined for an unknown path. */
type Serve = (request: IncomingMessage, response: ServerResponse, endpoint: ServedEndpoint | undefined) => Promise<void>;

/** Returns a listener that matches paths exactly and answers every method, as grafana/rollout-operator does. */
function routesOf(endpoints: readonly ServedEndpoint[], serve: Serve): RequestListener {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.enable('case sensitive routing');
  app.enable('strict routing');
  for (const endpoint of endpoints) {
    app.all(endpoint.path, (request: IncomingMessage, response: ServerResponse) => serve(request, response, endpoint));
  }
  app.use((request: IncomingMessage, response: ServerResponse) => serve(request, response, undefined));
  // The router passes a malformed URL to the error handler. A handler with four parameters is an error handler.
  app.use((_error: unknown, request: IncomingMessage, response: ServerResponse, _next: NextFunction) =>
    serve(request, response, undefined),
  );
  return app;
}
