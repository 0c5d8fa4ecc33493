// Defines the settings of the webhook server and their defaults.

/** The limits against overload by clients. Times are in milliseconds. */
export interface WebhookLimits {
  /** Maximum size of a body. A review contains two objects, and API servers accept objects of at most 3 MiB. */
  readonly maxBodyBytes: number;
  /** Size from which a body counts as big. */
  readonly bigBodyBytes: number;
  /** Big bodies in memory at the same time, until each is answered. */
  readonly maxBigBodies: number;
  /** Time that a big body waits for a slot; then it is refused with 429. */
  readonly bigBodyWaitMs: number;
  /** Nesting depth of objects and arrays. */
  readonly maxDepth: number;
  /** JSON values in a body. */
  readonly maxValues: number;
  /** Requests that handlers process at the same time. */
  readonly maxInHandling: number;
  /** A timer that fires this late means an overloaded process. */
  readonly maxLoopDelayMs: number;
  readonly maxHeaderBytes: number;
  readonly handshakeTimeoutMs: number;
  /** Limit from the first byte of a request, or the start of a connection, to the end of the headers. */
  readonly headersTimeoutMs: number;
  /** Limit from the first byte of a request to its last. */
  readonly receiveTimeoutMs: number;
  /** Limit without a byte in either direction, for example if a client does not read its answer. Longer than any deadline. */
  readonly stalledMs: number;
  /** Interval of the check for connections that exceed one of these times. */
  readonly checkEveryMs: number;
  /** Idle time of a connection: longer than the 90 s of API servers, because a request on a closing connection may be lost. */
  readonly keepAliveMs: number;
  /** A connection closes after this many answers, so that load spreads to new replicas. */
  readonly maxRequestsPerConnection: number;
  readonly maxConnections: number;
  /** Limit per client address. API servers open one HTTP/1.1 connection per concurrent request, so a burst needs many. */
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

/** The authentication of clients: none, or a certificate of `clientCa`. API servers send one only if configured. */
export type ClientAuthentication = 'none' | 'certificate';

/** The settings of one webhook server. Times are in milliseconds. */
export interface WebhookConfig {
  /** 0 selects a free port. */
  readonly port: number;
  /** All interfaces if omitted. */
  readonly address?: string;
  /** `-server-tls.request-timeout`: an endpoint gets nine tenths of it. */
  readonly requestTimeoutMs: number;
  readonly clients: ClientAuthentication;
  readonly clusterValidation?: ClusterValidation;
  /** Time for which the server serves after it dropped readiness, until clients know. */
  readonly drainMs: number;
  /** Limit of the requests that are under way after `drainMs`. */
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
