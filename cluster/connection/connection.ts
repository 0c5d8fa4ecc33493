// Defines a connection to the API server, its credentials, and its failures.
import type { Agent } from 'node:http';
import type { AgentOptions } from 'node:https';
import { ApiFailure, TransportFailure } from '../request/failure.ts';

/** `configuration`: a file, flag or variable must be changed. `unauthenticated`: the credentials are missing or were rejected. */
type ConnectionProblem = 'configuration' | 'unauthenticated' | 'unreachable';

/** The failure of a connection that cannot be used. The message names the problem and its place, and contains no secret. */
export class ConnectionFailure extends Error {
  override readonly name = 'ConnectionFailure';
  readonly kind: ConnectionProblem;

  constructor(kind: ConnectionProblem, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.kind = kind;
  }
}

export function configurationFailure(message: string, cause?: unknown): ConnectionFailure {
  return new ConnectionFailure('configuration', message, { cause });
}

/** Returns why the connection cannot be used. Returns undefined for every other error, for example for status 403. */
export function connectionProblem(error: unknown): ConnectionProblem | undefined {
  if (error instanceof ConnectionFailure) return error.kind;
  if (error instanceof TransportFailure) return error.cause instanceof ConnectionFailure ? error.cause.kind : 'unreachable';
  return error instanceof ApiFailure && error.status === 401 ? 'unauthenticated' : undefined;
}

/** The TLS settings of a connection. Certificates and keys are PEM. */
export interface TlsMaterial {
  /** The trusted CA certificates; if absent, the default CA certificates of Node.js. */
  readonly ca?: Buffer;
  readonly cert?: Buffer;
  readonly key?: Buffer;
  /** The name in the server's certificate, if it differs from the host of the address. */
  readonly serverName?: string;
  /** False if the server's certificate is not checked. */
  readonly isVerified: boolean;
}

/** The credentials of one request. They are secret. */
export interface Authorization {
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  /** The same object as before if its content is unchanged. */
  readonly tls: TlsMaterial;
}

export interface Connection {
  /** `http:` or `https:`, host, optional port and optional path, without a slash at the end and without credentials. */
  readonly server: string;
  /** `in-cluster` for the service account of a pod; absent if only flags name the cluster. */
  readonly contextName?: string;
  readonly clusterName?: string;
  readonly userName?: string;
  /** From the flag, the context or the pod; else `default`. */
  readonly namespace: string;
  readonly requestTimeoutMs?: number;
  /** The source of these values, for messages: for example `context "prod" of /home/me/.kube/config`. */
  readonly origin: string;
  /**
   * Returns the credentials for the next request, from memory if possible. Files are read every minute; plugins run again after expiry.
   * Rejects with ConnectionFailure. A plugin may wait for a login; the timeout of the request includes this wait.
   */
  readonly authorize: () => Promise<Authorization>;
  /** Drops rejected credentials, so that the next `authorize` renews them. Returns false if they cannot be renewed. */
  readonly forget: (refused: Authorization) => boolean;
  /** Creates an agent that connects through the proxy of the configuration or the environment; absent without a proxy. */
  readonly createProxyAgent?: (options: AgentOptions) => Promise<Agent>;
}
