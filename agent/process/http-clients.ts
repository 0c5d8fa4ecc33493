// The HTTP clients of the agent for pods and for notification services.

import { createExchanges, type Exchanges, publicMessage } from '../../cluster/connection/http-exchange.ts';
import type { Answered } from '../../cluster/connection/transport.ts';
import type { Clock } from '../../cluster/env.ts';
import { asJsonObject } from '../../cluster/request/json.ts';
import { tryParseJson } from '../../policies/values/try-parse-json.ts';
import type { NotifyHttp, PodHttp } from '../env.ts';

interface PodHttpOptions {
  /** Environment of the process: HTTP_PROXY, HTTPS_PROXY and NO_PROXY in upper or lower case, as Go reads them. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly userAgent: string;
  /** The value of the header X-Cluster. Pods of other installations expect another value and reject the request. */
  readonly cluster: string;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  /** Called once for each exchange. `path` has no query. */
  readonly onAnswer?: (answered: Answered) => void;
  /** Called when a pod answers that the request was meant for another installation. */
  readonly onWrongCluster?: (route: string) => void;
}

export interface PodHttpClient extends PodHttp {
  readonly close: () => void;
}

/** The most connections to one pod at the same time. */
const maxSockets = 64;

export function createPodHttp(options: PodHttpOptions): PodHttpClient {
  const exchanges = createExchanges({ env: options.env, maxSockets });
  const headers = { 'User-Agent': options.userAgent, 'X-Cluster': options.cluster, Accept: 'application/json' };
  return {
    call: async (request) => {
      const startedMs = options.clock.monotonicMs();
      const { pathname: path } = new URL(request.url);
      const answered = (status: number | 'error') =>
        options.onAnswer?.({ method: request.method, path, status, durationMs: options.clock.monotonicMs() - startedMs });
      try {
        // grafana/rollout-operator sends this type with its calls, although they have no body. A probe is a GET request.
        const type = request.method === 'GET' ? {} : { 'Content-Type': 'application/json' };
        const { status, body } = await exchanges.exchange({ ...request, headers: { ...headers, ...type } });
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
  const { route } = asJsonObject(tryParseJson(body));
  return typeof route === 'string' ? route : '<unknown-route>';
}

export function createNotifyHttp({ exchange }: Pick<Exchanges, 'exchange'>, userAgent: string): NotifyHttp {
  return {
    call: async ({ site: _site, headers, ...request }) => {
      try {
        return await exchange({ ...request, headers: { 'User-Agent': userAgent, Accept: 'application/json', ...headers } });
      } catch (error) {
        throw new Error(publicMessage(error));
      }
    },
  };
}
