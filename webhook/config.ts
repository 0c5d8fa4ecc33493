// What the webhook server is told when it starts, and what holds when it is told nothing else.
import type { ClusterValidation } from './server/cluster-validation.ts';
import type { ClientAuthentication } from './server/tls.ts';

/** Bounds on what others can make the process do. Times are in milliseconds. */
export interface WebhookLimits {
  /** An object has at most 3 MiB, as API servers take it; a review holds two, and what is around them. */
  readonly maxBodyBytes: number;
  /** A longer body is a big one. */
  readonly bigBodyBytes: number;
  /** Of big bodies, in memory at the same time, until each is answered. */
  readonly maxBigBodies: number;
  /** For which a big body waits until another is answered; afterwards it is refused with 429. */
  readonly bigBodyWaitMs: number;
  /** Objects and arrays within one another. */
  readonly maxDepth: number;
  /** Of JSON, in a body. */
  readonly maxValues: number;
  /** Requests that handlers work on at the same time. */
  readonly maxInHandling: number;
  /** A timer that comes so much too late tells of a process that has more to compute than time. */
  readonly maxLoopDelayMs: number;
  readonly maxHeaderBytes: number;
  readonly handshakeTimeoutMs: number;
  /** From the first byte of a request, or from the start of a connection, to the end of the headers. */
  readonly headersTimeoutMs: number;
  /** From the first byte of a request to its last. */
  readonly receiveTimeoutMs: number;
  /** Without a byte in either direction, while a request is in hand: also for clients that do not take their answers. Longer than any deadline. */
  readonly stalledMs: number;
  /** How often connections are looked through for such that are over one of these times. */
  readonly checkEveryMs: number;
  /**
   * Between two requests of a connection. Longer than the 90 s after which API servers close connections that they do not use: whoever closes
   * first may cross a request on its way, and a POST is not sent again.
   */
  readonly keepAliveMs: number;
  /** Afterwards the connection is closed with an answer, so that load spreads over replicas that have come since. */
  readonly maxRequestsPerConnection: number;
  readonly maxConnections: number;
  /** From one address. API servers use HTTP/1.1 towards webhooks, a connection for each request that is open, so that a burst takes many. */
  readonly maxConnectionsPerPeer: number;
  /** For which the rest of a refused request is read and forgotten, so that the sender gets to read why. */
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

/** The settings of one webhook server. Times are in milliseconds. */
export interface WebhookConfig {
  /** 0 takes a free one. */
  readonly port: number;
  /** All interfaces when left out. */
  readonly address?: string;
  /** `-server-tls.request-timeout`: nine tenths of it are the time that an endpoint has. */
  readonly requestTimeoutMs: number;
  readonly clients: ClientAuthentication;
  readonly clusterValidation?: ClusterValidation;
  /** After readiness has dropped the server serves on for so long, until whoever sends requests has heard of it. */
  readonly drainMs: number;
  /** After that, what is still in hand may take so long. */
  readonly closeWithinMs: number;
  readonly limits: WebhookLimits;
}

/** Settings as they are when nobody sets them: the port and the request timeout are those of grafana/rollout-operator. */
export const defaultConfig: WebhookConfig = {
  port: 8443,
  requestTimeoutMs: 10_000,
  clients: 'none',
  drainMs: 10_000,
  closeWithinMs: 10_000,
  limits: defaultLimits,
};
