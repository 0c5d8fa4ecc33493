// Loads a connection to the API server from kubeconfig files, the flags of kubectl or the service account of a pod.
import { BlockList, isIP, isIPv6 } from 'node:net';
import { join } from 'node:path';
import { messageOf } from '../../policies/error-message.ts';
import { defined } from '../../policies/values/defined.ts';
import { type Connection, configurationFailure } from '../connection/connection.ts';
import type { Clock } from '../env.ts';
import { type Choice, choose, inClusterContext, isEmpty } from './choice.ts';
import { Credentials, type Delegated } from './credentials.ts';
import { type ClusterEntry, type Kubeconfig, readKubeconfigs, type UserEntry } from './file.ts';

/** The flags of kubectl that choose a cluster and credentials. */
export interface ConnectionOptions
  extends Pick<ClusterEntry, 'server' | 'certificateAuthority' | 'insecureSkipTlsVerify' | 'tlsServerName'>,
    Pick<UserEntry, 'token' | 'as' | 'asGroups' | 'asUid' | 'clientCertificate' | 'clientKey'> {
  /** `in-cluster`: only the service account of the pod. `kubeconfig`: only files and flags. `auto` (default): as kubectl. */
  readonly source?: 'auto' | 'kubeconfig' | 'in-cluster';
  /** The only file, instead of KUBECONFIG and ~/.kube/config. */
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly cluster?: string;
  readonly user?: string;
  /** A duration such as `30s` or `2m`, or a number of seconds. `0` means the default of the caller. */
  readonly requestTimeout?: string;
  readonly namespace?: string;
}

export interface ConnectionProcess {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly homeDir: string;
  /** The directory with the token, `ca.crt` and the namespace of the pod's service account. */
  readonly serviceAccountDir: string;
  readonly isWindows: boolean;
  /** True if a person can answer on standard input. */
  readonly isTerminal: boolean;
  /** The standard error of credential plugins: `inherit` for that of this process, `ignore` for none, or a file descriptor. */
  readonly pluginStderr: 'inherit' | 'ignore' | number;
  /** Rejects with an Error that has a `code`, such as ENOENT. */
  readonly readFile: (path: string) => Promise<Buffer>;
  readonly clock: Clock;
}

/** Finds the cluster and the credentials as kubectl does. Sends no request and runs no plugin. Rejects with ConnectionFailure. */
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
    ...defined({ contextName, clusterName, userName, requestTimeoutMs }),
    namespace: choice.namespace ?? 'default',
    origin,
    authorize: () => credentials.authorize(),
    forget: (refused) => credentials.forget(refused),
    ...(proxyUrl !== undefined && {
      createProxyAgent: async (agentOptions) => (await import('./client-node.ts')).proxyAgent(server, proxyUrl, agentOptions),
    }),
  };
}

export async function contextsOf(options: Pick<ConnectionOptions, 'kubeconfig'>, process: ConnectionProcess): Promise<readonly string[]> {
  return [...(await kubeconfigOf(options, process)).contexts.keys()];
}

/** Drops empty flags, as kubectl does. An empty user to impersonate or an empty timeout stays, so that later checks reject it. */
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
  // If flags name a server, context or cluster, the user does not mean the cluster of this pod.
  const isInClusterMeant = isEmpty(found) && options.server === undefined && options.context === undefined && options.cluster === undefined;
  return source === 'auto' && isInClusterMeant && (await isInCluster(process)) ? inCluster(process) : found;
}

/** Returns a function that calls the plugin or auth provider. A token has precedence over both, as in kubectl. */
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
  const hasCa = cluster.certificateAuthority !== undefined || cluster.certificateAuthorityData !== undefined;
  const hasCertificate = user.clientCertificate !== undefined || user.clientCertificateData !== undefined;
  const hasKey = user.clientKey !== undefined || user.clientKeyData !== undefined;
  if (hasCa && cluster.insecureSkipTlsVerify === true)
    throw configurationFailure(`${origin} has both a certificate authority and insecure-skip-tls-verify. Set only one of them`);
  if (hasCertificate !== hasKey)
    throw configurationFailure(
      `the user of ${origin} has a client ${hasKey ? 'key without a certificate' : 'certificate without a key'}. Both are required`,
    );
}

function proxyOf({ server, proxyUrl, origin }: Choice, { env }: ConnectionProcess): string | undefined {
  const isOfEnvironment = proxyUrl === undefined;
  const url = proxyUrl ?? environmentProxy(server, env);
  if (url === undefined) return undefined;
  // The address may contain a password, so the message does not quote it.
  if (!URL.canParse(url) || !/^(?:https?|socks(?:4a?|5h?)?):$/.test(new URL(url).protocol))
    throw configurationFailure(
      `the proxy of ${isOfEnvironment ? 'HTTPS_PROXY or HTTP_PROXY' : origin} does not begin with http://, https:// or socks5://`,
    );
  return url;
}

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** Returns the timeout in milliseconds; undefined for `0`. */
function timeoutOf(text: string): number | undefined {
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g)];
  const isDuration = parts.length > 0 && parts.map(([part]) => part).join('') === text;
  if (!isDuration && !/^\d+$/.test(text))
    throw configurationFailure(`--request-timeout ${text} is neither a duration such as 30s or 2m nor a number of seconds`);
  const timeoutMs = isDuration
    ? parts.reduce((sum, [, number, unit]) => sum + Number(number) * (unitMs[unit ?? ''] ?? 0), 0)
    : Number(text) * 1000;
  return timeoutMs === 0 ? undefined : timeoutMs;
}

export async function isInCluster(process: ConnectionProcess): Promise<boolean> {
  if (!process.env['KUBERNETES_SERVICE_HOST'] || !process.env['KUBERNETES_SERVICE_PORT']) return false;
  return (await read(process, 'token')) !== undefined;
}

/** Returns the service account of the pod as a kubeconfig. Rejects with a ConnectionFailure that names the missing file or variable. */
export async function inCluster(process: ConnectionProcess): Promise<Kubeconfig> {
  const host = process.env['KUBERNETES_SERVICE_HOST'];
  const port = process.env['KUBERNETES_SERVICE_PORT'];
  if (!host || !port)
    throw configurationFailure(
      'KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set, so this process does not run in a pod. Name a kubeconfig with --kubeconfig',
    );
  const file = process.serviceAccountDir;
  for (const name of ['token', 'ca.crt'] as const)
    if ((await read(process, name)) === undefined)
      throw configurationFailure(`${file}/${name} is missing. The pod needs a service account with automountServiceAccountToken enabled`);
  const namespace = process.env['POD_NAMESPACE'] || (await read(process, 'namespace'))?.trim();
  const name = inClusterContext;
  const server = `https://${isIPv6(host) ? `[${host}]` : host}:${port}`;
  return {
    files: [file],
    missing: [],
    currentContext: { file, value: name },
    clusters: new Map([[name, { file, value: { server, certificateAuthority: `${file}/ca.crt` } }]]),
    users: new Map([[name, { file, value: { tokenFile: `${file}/token` } }]]),
    contexts: new Map([[name, { file, value: { cluster: name, user: name, ...(namespace && { namespace }) } }]]),
  };
}

/** Returns undefined for a missing or empty file. */
async function read(process: ConnectionProcess, name: 'token' | 'ca.crt' | 'namespace'): Promise<string | undefined> {
  const file = `${process.serviceAccountDir}/${name}`;
  try {
    return (await process.readFile(file)).toString('utf8') || undefined;
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) return undefined;
    throw configurationFailure(`${file} cannot be read: ${messageOf(error)}`);
  }
}

/** Returns the proxy for a server; undefined for a direct connection, for example to a server on this machine. */
export function environmentProxy(server: string, env: Readonly<Record<string, string | undefined>>): string | undefined {
  const { protocol, hostname, port } = new URL(server);
  const either = (name: string): string => env[name] || env[name.toLowerCase()] || '';
  const proxy = protocol === 'https:' ? either('HTTPS_PROXY') : either('HTTP_PROXY');
  const host = hostname.replace(/^\[|\]$/g, '').toLowerCase();
  if (proxy === '' || isLoopback(host)) return undefined;
  const target = { host, port: port || (protocol === 'https:' ? '443' : '80') };
  const isExempt = either('NO_PROXY')
    .split(',')
    .some((rule) => exempts(rule.trim().toLowerCase(), target));
  if (isExempt) return undefined;
  return proxy.includes('://') ? proxy : `http://${proxy}`;
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

/** Evaluates a rule of NO_PROXY: `*`, an address, a range of addresses, or a domain with its subdomains; the port is optional. */
function exempts(rule: string, { host, port }: { readonly host: string; readonly port: string }): boolean {
  if (rule === '' || rule === '*') return rule === '*';
  if (rule.includes('/')) return isInRange(rule, host);
  const [, bracketed, name = bracketed ?? rule, rulePort] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d+))?$/.exec(rule) ?? [];
  if (rulePort !== undefined && rulePort !== port) return false;
  if (isIP(name) !== 0) return name === host;
  const domain = name.replace(/^\*?\./, '');
  return host.endsWith(`.${domain}`) || (host === domain && !name.startsWith('.') && !name.startsWith('*'));
}

function isInRange(rule: string, host: string): boolean {
  const family = isIP(host);
  const [network = '', bits = ''] = rule.split('/');
  if (family === 0 || isIP(network) !== family || !/^\d{1,3}$/.test(bits)) return false;
  const version = family === 4 ? 'ipv4' : 'ipv6';
  const list = new BlockList();
  try {
    list.addSubnet(network, Number(bits), version);
  } catch {
    return false;
  }
  return list.check(host, version);
}
