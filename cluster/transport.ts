// Requests to the API server over HTTP/1.1: connections that are kept, one deadline each, and the truth about what may have been carried out.
import type { Connection } from './connection.ts';
import type { Clock, KubernetesHttp, KubernetesRequest, Timers } from './env.ts';
import type { RateLimit } from './rate-limit.ts';

export interface Answered {
  readonly method: KubernetesRequest['method'];
  /** With its query. */
  readonly path: string;
  /** HTTP status code, or `error` when no whole answer came. */
  readonly status: number | 'error';
  /** Without the time spent waiting for the rate limiter. */
  readonly durationMs: number;
}

export interface TransportOptions {
  readonly userAgent: string;
  /** None when absent. Clients that shall not hold each other up have one each. */
  readonly rateLimit?: RateLimit;
  /** Sent with every request. */
  readonly extraHeaders?: Readonly<Record<string, string>>;
  /** Whether long answers may come compressed: better over slow networks, worse inside a cluster. */
  readonly isCompressed?: boolean;
  /** Once for each exchange with the server; of a watch, when it opens. */
  readonly onAnswer?: (answered: Answered) => void;
  /** A request was not sent because the rate limiter had no room before its deadline. */
  readonly onThrottled?: (apiGroup: string) => void;
  /** The real ones when absent. */
  readonly clock?: Clock;
  readonly timers?: Timers;
}

export interface KubernetesTransport extends KubernetesHttp {
  /** Closes every connection; what is under way fails. */
  readonly close: () => void;
}

/** Talks to the API server of a connection. Redirects are never followed; nothing is repeated but a GET that found its kept connection closed. */
export function createKubernetesHttp(_connection: Connection, _options: TransportOptions): KubernetesTransport {
  throw new Error('to come in the next commit');
}
