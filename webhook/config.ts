// Defines the settings of the webhook server and their defaults.

/** The limits against overload by clients. Times are in milliseconds. */
export interface WebhookLimits {
  /** Maximum size of a body. A review contains two objects, and API servers accept objects of at most 3 MiB. */
  readonly maxBodyBytes: number;
  /** Size from which a body counts as big. */
  readonly bigBodyBytes: number;
  /** Maximum number of big bodies in memory. A body stays in memory until its request is answered. */
  readonly maxBigBodies: number;
  /** Time for which a big body waits while `maxBigBodies` are in memory. Then its request is refused with 429. */
  readonly bigBodyWaitMs: number;
  /** Maximum nesting depth of objects and arrays in a body. */
  readonly maxDepth: number;
  /** Maximum number of JSON values in a body. */
  readonly maxValues: number;
  /** Maximum number of requests that endpoints process at the same time. */
  readonly maxInHandling: number;
  /** Two timers in a row that fire later than this mean an overloaded process. */
  readonly maxLoopDelayMs: number;
  readonly maxHeaderBytes: number;
  readonly handshakeTimeoutMs: number;
  /** Limit from the first byte of a request, or the start of a connection, to the end of the headers. */
  readonly headersTimeoutMs: number;
  /** Limit from the first byte of a request to its last. */
  readonly receiveTimeoutMs: number;
  /** A connection closes after this time without a byte, for example if the client does not read its answer. Longer than any deadline. */
  readonly stalledMs: number;
  /** Interval of the check for connections that exceed `headersTimeoutMs` or `receiveTimeoutMs`. */
  readonly checkEveryMs: number;
  /** Idle time after which we close a connection; API servers do so after 90 s. A request on a connection that we close may be lost. */
  readonly keepAliveMs: number;
  /** A connection closes after this many answers, so that load spreads to new replicas. */
  readonly maxRequestsPerConnection: number;
  readonly maxConnections: number;
  /** Limit per client address. API servers open one HTTP/1.1 connection per concurrent request, so a burst needs many connections. */
  readonly maxConnectionsPerPeer: number;
  /** Time in which the rest of a refused request is read and discarded, so that the client reads the answer. */
  readonly lingerMs: number;
}

export const defaultLimits: WebhookLimits = {
  maxBodyBytes: 7 * 1024 * 1024,
  bigBodyBytes: 256 * 1024,
  maxBigBodies: 8,
  bigBodyWaitMs: 2_000,
  maxDepth: 256,
  maxValues: 250_000,
  maxInHandling: 256,
  maxLoopDelayMs: 1_000,
  maxHeaderBytes: 16 * 1024,
  handshakeTimeoutMs: 5_000,
  headersTimeoutMs: 5_000,
  receiveTimeoutMs: 10_000,
  stalledMs: 60_000,
  checkEveryMs: 1_000,
  keepAliveMs: 180_000,
  maxRequestsPerConnection: 1_000,
  maxConnections: 1_024,
  maxConnectionsPerPeer: 640,
  lingerMs: 1_000,
};

/** The check of the header `X-Cluster`: requests must have it exactly once, with the value `label`. */
export interface ClusterValidation {
  readonly label: string;
  /** True if requests with another value are only counted and logged. */
  readonly isSoft: boolean;
  /** Literal fragments of paths without this check. Paths of webhooks belong here, because API servers never send the header. */
  readonly excludedPaths: readonly string[];
  readonly excludedUserAgents: readonly RegExp[];
}

/** The authentication of clients: none, or a certificate that `clientCa` verifies. API servers send a certificate only if configured. */
export type ClientAuthentication = 'none' | 'certificate';

/** The settings of one webhook server. Times are in milliseconds. */
export interface WebhookConfig {
  /** 0 selects a free port. */
  readonly port: number;
  /** All interfaces if omitted. */
  readonly address?: string;
  /** Value of `-server-tls.request-timeout`. An endpoint has nine tenths of this time. */
  readonly requestTimeoutMs: number;
  readonly clients: ClientAuthentication;
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
  clients: 'none',
  drainMs: 10_000,
  closeWithinMs: 10_000,
  limits: defaultLimits,
};
