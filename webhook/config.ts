// Defines the settings of the webhook server and their defaults.
import type { ClusterValidation } from '../cluster/connection/http-server.ts';

/** The default limits against overload by clients. Times are in milliseconds. */
export const defaultLimits = {
  /** Maximum size of a body. A review contains two objects, and API servers accept objects of at most 3 MiB. */
  maxBodyBytes: 7 * 1024 * 1024,
  /** Size from which a body counts as big. */
  bigBodyBytes: 256 * 1024,
  /** Maximum number of big bodies in memory. A body stays in memory until its request is answered. */
  maxBigBodies: 8,
  /** Time for which a big body waits while `maxBigBodies` are in memory. Then its request is refused with 429. */
  bigBodyWaitMs: 2_000,
  /** Maximum nesting depth of objects and arrays in a body. */
  maxDepth: 256,
  /** Maximum number of JSON values in a body. */
  maxValues: 250_000,
  /** Maximum number of requests that endpoints process at the same time. */
  maxInHandling: 256,
  /** The process is overloaded if two timers in a row fire late by more than this time. */
  maxLoopDelayMs: 1_000,
  maxHeaderBytes: 16 * 1024,
  handshakeTimeoutMs: 5_000,
  /** Limit from the first byte of a request, or the start of a connection, to the end of the headers. */
  headersTimeoutMs: 5_000,
  /** Limit from the first byte of a request to its last. */
  receiveTimeoutMs: 10_000,
  /** During a request, a connection closes after this time without a byte, for example if the client does not read its answer. */
  stalledMs: 60_000,
  /** Interval of the check for connections that exceed `headersTimeoutMs` or `receiveTimeoutMs`. */
  checkEveryMs: 1_000,
  /** Idle time after which we close a connection; API servers do so after 90 s. A request on a connection that we close may be lost. */
  keepAliveMs: 180_000,
  /** A connection closes after this many answers, so that load spreads to new replicas. */
  maxRequestsPerConnection: 1_000,
  maxConnections: 1_024,
  /** Limit per client address. API servers open one HTTP/1.1 connection per concurrent request, so a burst needs many connections. */
  maxConnectionsPerPeer: 640,
  /** Time in which the rest of a refused request is read and discarded, so that the client reads the answer. */
  lingerMs: 1_000,
};

export type WebhookLimits = Readonly<Record<keyof typeof defaultLimits, number>>;

export interface WebhookConfig {
  /** 0 selects a free port. */
  readonly port: number;
  /** All interfaces if omitted. */
  readonly address?: string;
  /** Value of `-server-tls.request-timeout`. An endpoint has at most nine tenths of this time. */
  readonly requestTimeoutMs: number;
  /** The CA certificate (PEM) for client certificates; absent if clients need none. API servers send a certificate only if configured. */
  readonly clientCa?: string;
  readonly clusterValidation?: ClusterValidation;
  /** Time for which the server still answers requests after it reports not ready, until clients use other replicas. */
  readonly drainMs: number;
  /** Time after `drainMs` in which requests in progress must end. */
  readonly closeWithinMs: number;
  readonly limits: WebhookLimits;
}

/** The defaults. Port and request timeout are those of grafana/rollout-operator. */
export const defaultConfig: WebhookConfig = {
  port: 8443,
  requestTimeoutMs: 10_000,
  drainMs: 10_000,
  closeWithinMs: 10_000,
  limits: defaultLimits,
};
