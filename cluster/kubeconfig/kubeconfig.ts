// Loads the connection to an API server from kubeconfig files, the flags of kubectl or the service account of a pod.
import { join } from 'node:path';
import { type Connection, ConnectionFailure } from '../connection/connection.ts';
import type { Clock } from '../env.ts';
import { type Choice, choose, isEmpty } from './choice.ts';
import { Credentials, type Delegated } from './credentials.ts';
import { type Kubeconfig, readKubeconfigs } from './file.ts';
import { inCluster, isInCluster } from './in-cluster.ts';
import { environmentProxy } from './proxy.ts';

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

/** The parts of the process that are read. */
export interface ConnectionProcess {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly homeDir: string;
  /** Directory with the token, `ca.crt` and the namespace of the pod's service account. */
  readonly serviceAccountDir: string;
  readonly isWindows: boolean;
  /** Reports whether a person can answer on standard input. */
  readonly isTerminal: boolean;
  /** Output of credential plugins for a person: this process's standard error, or a file descriptor. */
  readonly pluginStderr: 'inherit' | number;
  /** Rejects with an Error that has a `code`, such as ENOENT. */
  readonly readFile: (path: string) => Promise<Buffer>;
  readonly clock: Clock;
}

/**
 * Finds the cluster and the credentials that these options mean, as kubectl does. Reads files, but asks no server and runs no plugin: that happens
 * at the first `authorize`. Rejects with ConnectionFailure.
 */
export async function loadConnection(given: ConnectionOptions, process: ConnectionProcess): Promise<Connection> {
  const options = withoutEmpty(given);
  const choice = choose(await kubeconfigOf(options, process), options);
  refuseContradictions(choice);
  const credentials = new Credentials(choice, process, delegateOf(choice, process));
  const proxyUrl = proxyOf(choice, process);
  const { contextName, clusterName, userName, server, origin } = choice;
  const requestTimeoutMs = options.requestTimeout === undefined ? undefined : timeoutOf(options.requestTimeout);
  return {
    server,
    ...(contextName !== undefined && { contextName }),
    ...(clusterName !== undefined && { clusterName }),
    ...(userName !== undefined && { userName }),
    namespace: choice.namespace ?? 'default',
    ...(requestTimeoutMs !== undefined && { requestTimeoutMs }),
    origin,
    authorize: () => credentials.authorize(),
    forget: (refused) => credentials.forget(refused),
    ...(proxyUrl !== undefined && {
      createProxyAgent: async (agentOptions) => (await import('./client-node.ts')).proxyAgent(server, proxyUrl, agentOptions),
    }),
  };
}

/** Drops empty flags, as kubectl does. An empty user to impersonate would use the caller's own rights; an empty timeout is a mistake. */
function withoutEmpty(options: ConnectionOptions): ConnectionOptions {
  return Object.fromEntries(Object.entries(options).filter(([key, value]) => value !== '' || key === 'as' || key === 'requestTimeout'));
}

async function kubeconfigOf(options: ConnectionOptions, process: ConnectionProcess): Promise<Kubeconfig> {
  const { source = 'auto', kubeconfig } = options;
  if (source === 'in-cluster') return inCluster(process);
  const { readFile } = process;
  if (kubeconfig !== undefined) return readKubeconfigs([kubeconfig], { readFile, isRequired: true });
  const listed = (process.env['KUBECONFIG'] ?? '').split(process.isWindows ? ';' : ':').filter((file) => file !== '');
  const files = listed.length > 0 ? listed : [join(process.homeDir, '.kube', 'config')];
  const found = await readKubeconfigs(files, { readFile, isRequired: false });
  // A named server or context does not mean the cluster of this pod.
  const isMeant = isEmpty(found) && options.server === undefined && options.context === undefined && options.cluster === undefined;
  return source === 'auto' && isMeant && (await isInCluster(process)) ? inCluster(process) : found;
}

/** A token goes before plugins, as for kubectl. */
function delegateOf(choice: Choice, process: ConnectionProcess): (() => Promise<Delegated>) | undefined {
  const { token, tokenFile, exec, authProvider } = choice.user;
  if (token !== undefined || tokenFile !== undefined) return undefined;
  if (exec !== undefined) return async () => (await import('./client-node.ts')).askPlugin(exec, choice, process);
  if (authProvider === undefined) return undefined;
  let provider: (() => Promise<Delegated>) | undefined;
  return async () => {
    provider ??= (await import('./client-node.ts')).authProvider(authProvider, choice, process);
    return provider();
  };
}

function refuseContradictions({ cluster, user, origin }: Choice): void {
  const hasAuthority = cluster.certificateAuthority !== undefined || cluster.certificateAuthorityData !== undefined;
  const hasCertificate = user.clientCertificate !== undefined || user.clientCertificateData !== undefined;
  const hasKey = user.clientKey !== undefined || user.clientKeyData !== undefined;
  if (hasAuthority && cluster.insecureSkipTlsVerify === true)
    throw problem(`${origin} has both a certificate authority and insecure-skip-tls-verify. Set only one of them`);
  if (hasCertificate !== hasKey)
    throw problem(
      `the user of ${origin} has a client ${hasKey ? 'key without a certificate' : 'certificate without a key'}. Both are required`,
    );
}

function proxyOf({ server, proxyUrl, origin }: Choice, { env }: ConnectionProcess): string | undefined {
  const isOfEnvironment = proxyUrl === undefined;
  const url = proxyUrl ?? environmentProxy(server, env);
  if (url === undefined) return undefined;
  // The address may hold a password, so it is not quoted.
  if (!URL.canParse(url) || !/^(?:https?|socks(?:4a?|5h?)?):$/.test(new URL(url).protocol))
    throw problem(
      `the proxy of ${isOfEnvironment ? 'HTTPS_PROXY or HTTP_PROXY' : origin} does not begin with http://, https:// or socks5://`,
    );
  return url;
}

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** Undefined for 0: no limit. */
function timeoutOf(text: string): number | undefined {
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g)];
  const isDuration = parts.length > 0 && parts.map(([part]) => part).join('') === text;
  if (!isDuration && !/^\d+$/.test(text))
    throw problem(`--request-timeout ${text} is neither a duration such as 30s or 2m nor a number of seconds`);
  const timeoutMs = isDuration
    ? parts.reduce((sum, [, number, unit]) => sum + Number(number) * (unitMs[unit ?? ''] ?? 0), 0)
    : Number(text) * 1000;
  return timeoutMs === 0 ? undefined : timeoutMs;
}

function problem(message: string): ConnectionFailure {
  return new ConnectionFailure('configuration', message);
}
