// Defines how to reach the API server and with which credentials, and how that fails before a request is answered.
import type { Agent } from 'node:http';
import type { AgentOptions } from 'node:https';
import { ApiFailure, TransportFailure } from '../request/failure.ts';

/**
 * `configuration`: a file, a flag or an environment variable must be changed. `unauthenticated`: no credentials are to be had, or the server
 * does not accept them. `unreachable`: the server does not answer.
 */
type ConnectionProblem = 'configuration' | 'unauthenticated' | 'unreachable';

/** The connection cannot be used. The message says what, where and what to do, and holds no secret. */
export class ConnectionFailure extends Error {
  override readonly name = 'ConnectionFailure';
  readonly kind: ConnectionProblem;

  constructor(kind: ConnectionProblem, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.kind = kind;
  }
}

/** Returns a failure that only another file, flag or environment variable repairs. */
export function configurationFailure(message: string, cause?: unknown): ConnectionFailure {
  return new ConnectionFailure('configuration', message, { cause });
}

/** Why the cluster cannot be talked to, if the error says that; undefined for every other error. Status 403 is an answer, and not among them. */
export function connectionProblem(error: unknown): ConnectionProblem | undefined {
  if (error instanceof ConnectionFailure) return error.kind;
  if (error instanceof TransportFailure) return error.cause instanceof ConnectionFailure ? error.cause.kind : 'unreachable';
  return error instanceof ApiFailure && error.status === 401 ? 'unauthenticated' : undefined;
}

/** Certificates and keys are PEM. */
export interface TlsMaterial {
  /** The authorities to believe; those of Node.js when absent. */
  readonly ca?: Buffer;
  readonly cert?: Buffer;
  readonly key?: Buffer;
  /** The name in the server's certificate, when it is not the host of the address. */
  readonly serverName?: string;
  /** False: the server's certificate is not looked at. */
  readonly isVerified: boolean;
}

/** Credentials of one request. Secret. */
export interface Authorization {
  /** Names in the case in which they are sent. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  /** The same object until its bytes change. */
  readonly tls: TlsMaterial;
}

export interface Connection {
  /** `http:` or `https:`, host, port and perhaps a path; no slash at the end, no credentials. */
  readonly server: string;
  /** Absent in a cluster, and when only `--server` is given. */
  readonly contextName?: string;
  readonly clusterName?: string;
  readonly userName?: string;
  /** That of the flag, of the context or of the pod; `default` when none says any. */
  readonly namespace: string;
  /** `--request-timeout`; absent without one. */
  readonly requestTimeoutMs?: number;
  /** For messages: where all this was read, such as `context "prod" of /home/me/.kube/config`. */
  readonly origin: string;
  /**
   * Credentials for the next request; cheap when nothing has to be read again. Files are read again every minute, plugins run again when what
   * they gave has expired. Rejects with ConnectionFailure. A plugin may wait for a person's login, which takes longer than a request may: a command
   * for a person calls this once before its first request.
   */
  readonly authorize: () => Promise<Authorization>;
  /** The server rejected these credentials: renewable ones are renewed at the next `authorize`. Returns false if none is renewable. */
  readonly forget: (refused: Authorization) => boolean;
  /** Connects through the proxy of the configuration or the environment; absent without a proxy. */
  readonly createProxyAgent?: (options: AgentOptions) => Promise<Agent>;
}
