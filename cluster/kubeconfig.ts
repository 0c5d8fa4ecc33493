// Which API server is meant and as whom: kubeconfig files, the flags of kubectl, or the service account of a pod.
import type { Connection } from './connection.ts';
import type { Clock } from './env.ts';

/** The flags of kubectl that choose a cluster and credentials. */
export interface ConnectionOptions {
  /** `in-cluster`: only the service account of the pod. `kubeconfig`: only files and flags. `auto`, and when absent: as kubectl. */
  readonly source?: 'auto' | 'kubeconfig' | 'in-cluster';
  /** The one file to read, instead of those in KUBECONFIG or ~/.kube/config. */
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly cluster?: string;
  readonly user?: string;
  readonly server?: string;
  readonly token?: string;
  readonly as?: string;
  readonly asGroups?: readonly string[];
  readonly asUid?: string;
  readonly certificateAuthority?: string;
  readonly clientCertificate?: string;
  readonly clientKey?: string;
  readonly insecureSkipTlsVerify?: boolean;
  readonly tlsServerName?: string;
  /** As written: `30s`, `2m`, or a number of seconds. `0`: none. */
  readonly requestTimeout?: string;
  readonly namespace?: string;
}

/** What is read of the process. */
export interface ConnectionProcess {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly homeDir: string;
  readonly isWindows: boolean;
  /** Whether a person can answer on standard input. */
  readonly isTerminal: boolean;
  /** Where credential plugins write what they have to say to a person: this process's standard error, or a file descriptor. */
  readonly pluginStderr: 'inherit' | number;
  /** Rejects with an Error that has a `code`, such as ENOENT. */
  readonly readFile: (path: string) => Promise<Buffer>;
  readonly clock: Clock;
}

/**
 * Finds the cluster and the credentials that these options mean, as kubectl does. Reads files, but asks no server and runs no plugin: that happens
 * at the first `authorize`. Rejects with ConnectionFailure.
 */
export async function loadConnection(_options: ConnectionOptions, _process: ConnectionProcess): Promise<Connection> {
  throw new Error('to come in the next commit');
}
