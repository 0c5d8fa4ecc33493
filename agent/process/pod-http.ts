// HTTP to pods: who asks, for which installation, and what is told of each exchange.
import type { Clock } from '../../cluster/env.ts';
import type { PodHttp } from '../env.ts';
import { createExchanges } from './http-exchange.ts';

interface PodHttpOptions {
  /** Environment of the process: HTTP_PROXY, HTTPS_PROXY and NO_PROXY in either case, as Go reads them. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly userAgent: string;
  /** Value of the header X-Cluster, which other installations refuse. */
  readonly cluster: string;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  /** Once for each exchange; `path` without its query. */
  readonly onAnswer?: (answered: { method: string; path: string; status: number | 'error'; durationMs: number }) => void;
  /** A pod says that the request was meant for another installation. */
  readonly onWrongCluster?: (route: string) => void;
}

export interface PodHttpClient extends PodHttp {
  readonly close: () => void;
}

/** As many pods are asked at once, and a few of another group. */
const mostSockets = 64;

export function createPodHttp(options: PodHttpOptions): PodHttpClient {
  const exchanges = createExchanges({ env: options.env, mostSockets });
  const headers = { 'User-Agent': options.userAgent, 'X-Cluster': options.cluster, Accept: 'application/json' };
  return {
    call: async (request) => {
      const startedMs = options.clock.monotonicMs();
      const { pathname: path } = new URL(request.url);
      const answered = (status: number | 'error') =>
        options.onAnswer?.({ method: request.method, path, status, durationMs: options.clock.monotonicMs() - startedMs });
      try {
        const { status, body } = await exchanges.exchange({ ...request, headers });
        answered(status);
        if (status === 511) options.onWrongCluster?.(routeOf(body));
        return { status, body };
      } catch (error) {
        answered('error');
        throw error;
      }
    },
    close: exchanges.close,
  };
}

function routeOf(body: string): string {
  try {
    const value: unknown = JSON.parse(body);
    const route = typeof value === 'object' && value !== null && 'route' in value ? value.route : undefined;
    return typeof route === 'string' ? route : '<unknown-route>';
  } catch {
    return '<unknown-route>';
  }
}
