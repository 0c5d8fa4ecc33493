// Defines the parts that the HTTP servers of the process share: the start, the observer of requests, and the check of the header X-Cluster.
import type { IncomingMessage, Server } from 'node:http';

export interface AnsweredRequest {
  readonly method: string;
  /** The label of the path in metrics; `other` for every unknown path. */
  readonly route: string;
  /** 0 if a client of the webhooks disconnected before the answer. */
  readonly status: number;
  readonly durationMs: number;
  readonly requestBytes: number;
  readonly responseBytes: number;
}

/** The observer of requests, for the metrics. Must not throw. */
export interface HttpServerObserver {
  readonly inflight: (method: string, route: string, change: 1 | -1) => void;
  readonly answered: (request: AnsweredRequest) => void;
  /** `given` is the value of the header; empty if the request has no such header or several. The route of an unknown path is `<unknown-route>`. */
  readonly wrongCluster: (request: { readonly route: string; readonly wanted: string; readonly given: string }) => void;
}

/** Listens on the port (0 chooses a free port) and the address (all addresses if absent). Resolves with the port; rejects if it cannot listen. */
export async function listen(server: Pick<Server, 'once' | 'off' | 'listen' | 'address'>, port: number, address?: string): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, ...(address === undefined ? {} : { host: address }) }, () => {
      server.off('error', reject);
      resolve();
    });
  });
  const bound = server.address();
  return typeof bound === 'object' && bound !== null ? bound.port : 0;
}

/** The check of the header `X-Cluster`: requests must have it exactly once, with the value `label`. */
export interface ClusterValidation {
  readonly label: string;
  /** True if requests with a wrong value are counted and logged, but not rejected. */
  readonly isSoft: boolean;
  /** Literal fragments of paths that are exempt. Paths of webhooks belong here, because API servers never send the header. */
  readonly excludedPaths: readonly string[];
  readonly excludedUserAgents: readonly RegExp[];
}

export interface PlainAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

interface WrongCluster {
  readonly wanted: string;
  readonly given: string;
  /** Absent if such requests are only reported. */
  readonly refusal?: PlainAnswer;
}

/** Returns how the request fails the check; undefined if it passes or is exempt. */
export function wrongCluster(
  validation: ClusterValidation | undefined,
  { headers, headersDistinct, url = '/' }: IncomingMessage,
  route: string,
): WrongCluster | undefined {
  if (validation === undefined) return undefined;
  const { label: wanted, isSoft, excludedPaths, excludedUserAgents } = validation;
  const fragments = ['metrics', 'debug/pprof', 'ready', ...excludedPaths];
  const path = pathOf(url);
  if (fragments.some((fragment) => path.includes(`/${fragment}`))) return undefined;
  if (excludedUserAgents.some((pattern) => pattern.test(headers['user-agent'] ?? ''))) return undefined;
  const values = headersDistinct['x-cluster'] ?? [];
  const given = values.length === 1 ? (values[0] ?? '') : '';
  if (given === wanted) return undefined;
  if (isSoft) return { wanted, given };
  const message = `rejected request with wrong cluster validation label ${JSON.stringify(given)}: it should be ${JSON.stringify(wanted)}`;
  const body = JSON.stringify({ cluster_validation_error_message: message, route });
  return { wanted, given, refusal: { status: 511, contentType: 'application/json', body } };
}

export function pathOf(url: string): string {
  return url.replace(/[?#][\s\S]*$/, '');
}
