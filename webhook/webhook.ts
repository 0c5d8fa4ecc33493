// Composes the admission webhook: endpoints behind an HTTPS server.
import { sleep } from '../cluster/env.ts';
import type { WebhookConfig } from './config.ts';
import type { WebhookEnv } from './env.ts';
import { answerExchange, type ServedEndpoint } from './server/exchange.ts';
import { startHttpsServer } from './server/https-server.ts';
import { watchLoad } from './server/load.ts';
import type { WebhookObserver } from './server/observer.ts';
import { routesOf } from './server/routes.ts';
import { slots } from './server/slots.ts';
import type { TlsSource } from './server/tls.ts';

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
   * Shuts down without losing a request: readiness drops at once, and for `drainMs` requests are answered with `Connection: close`. Then
   * the listener closes, and requests under way have `closeWithinMs`. A second call waits for the same end.
   */
  readonly close: () => Promise<void>;
}

/** Resolves when the server listens, even without a certificate; rejects if it cannot listen. */
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
