// From the flags of the connection to an API server that can be asked. Nothing of Kubernetes is loaded before a verb needs it.
import type { ClusterEnv } from '../cluster/env.ts';

/** The values of the flags in verbs/connection.ts. */
export interface ConnectionFlags {
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly cluster?: string;
  readonly user?: string;
  readonly server?: string;
  readonly token?: string;
  readonly as?: string;
  readonly asGroup?: readonly string[];
  readonly asUid?: string;
  readonly certificateAuthority?: string;
  readonly clientCertificate?: string;
  readonly clientKey?: string;
  readonly insecureSkipTlsVerify?: boolean;
  readonly tlsServerName?: string;
  readonly requestTimeout?: string;
  readonly namespace?: string;
}

/** An API server with the credentials of the person who asks. */
export interface Cluster {
  readonly env: ClusterEnv;
  /** Of the flag, else of the context, else `default`. */
  readonly namespace: string;
  /** The address of the API server. */
  readonly server: string;
  /** Empty when none was chosen. */
  readonly contextName: string;
  /** For each request. */
  readonly timeoutMs: number;
  /** Closes the connections; without it the process would not end before they are idle for long enough. */
  readonly close: () => void;
}
