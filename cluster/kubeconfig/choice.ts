// Chooses cluster, user and namespace from a kubeconfig and the flags of kubectl.

import { defined } from '../../policies/values/defined.ts';
import { type ConnectionFailure, configurationFailure } from '../connection/connection.ts';
import type { ClusterEntry, ContextEntry, Entry, Kubeconfig, UserEntry } from './file.ts';
import type { ConnectionOptions } from './kubeconfig.ts';

/** The chosen cluster and user, after the flags are applied. */
export interface Choice {
  readonly contextName?: string;
  readonly clusterName?: string;
  readonly userName?: string;
  readonly namespace?: string;
  readonly server: string;
  /** The proxy in the kubeconfig. If it is absent, the environment may name a proxy. */
  readonly proxyUrl?: string;
  readonly cluster: ClusterEntry;
  readonly user: UserEntry;
  readonly origin: string;
}

/** The name of the context for the service account of a pod. */
export const inClusterContext = 'in-cluster';

/** Reports whether the kubeconfig has no entries. In a pod, kubectl then uses the service account of the pod. */
export function isEmpty({ clusters, users, contexts }: Kubeconfig): boolean {
  return clusters.size + users.size + contexts.size === 0;
}

/** Chooses cluster, user and namespace. Throws ConnectionFailure for unknown names, and for a missing or invalid server. */
export function choose(kubeconfig: Kubeconfig, options: ConnectionOptions): Choice {
  const contextName = options.context ?? kubeconfig.currentContext?.value;
  const context = contextName === undefined ? undefined : contextOf(contextName, kubeconfig, options);
  const clusterName = options.cluster ?? context?.value.cluster;
  const userName = options.user ?? context?.value.user;
  const found = clusterOf(clusterName, { kubeconfig, options, context });
  const user = userOf(userName, { kubeconfig, options, context });
  const cluster = withClusterFlags(found?.value ?? {}, options);
  const file = context?.file ?? found?.file ?? user?.file;
  return {
    ...defined({ contextName, clusterName, userName, proxyUrl: cluster.proxyUrl }),
    ...defined({ namespace: (options.namespace ?? context?.value.namespace) || undefined }),
    server: serverOf(cluster, { kubeconfig, options, contextName, clusterName }),
    cluster,
    user: withUserFlags(user?.value ?? {}, options),
    origin: originOf(contextName, file),
  };
}

function contextOf(name: string, kubeconfig: Kubeconfig, options: ConnectionOptions): Entry<ContextEntry> | undefined {
  const context = kubeconfig.contexts.get(name);
  if (context !== undefined) return context;
  const isFlag = options.context !== undefined;
  // Unlike in kubectl, the context that current-context names need not exist if a flag names the server or cluster.
  if (!isFlag && (options.server !== undefined || options.cluster !== undefined)) return undefined;
  const known = [...kubeconfig.contexts.keys()];
  const available = known.length === 0 ? 'no context is defined' : `known contexts: ${listed(known)}`;
  const wanted = isFlag ? `the context "${name}" of --context` : `current-context "${name}" of ${kubeconfig.currentContext?.file}`;
  throw configurationFailure(`${wanted} does not exist in ${filesOf(kubeconfig)}: ${available}`);
}

interface Chosen {
  readonly kubeconfig: Kubeconfig;
  readonly options: ConnectionOptions;
  readonly context: Entry<unknown> | undefined;
}

/** Throws ConnectionFailure if the cluster does not exist and no flag names a server. */
function clusterOf(name: string | undefined, chosen: Chosen): Entry<ClusterEntry> | undefined {
  if (name === undefined) return undefined;
  const found = chosen.kubeconfig.clusters.get(name);
  if (found === undefined && chosen.options.server === undefined) throw missing('cluster', name, chosen);
  return found;
}

/** Throws ConnectionFailure if the user does not exist. */
function userOf(name: string | undefined, chosen: Chosen): Entry<UserEntry> | undefined {
  if (name === undefined) return undefined;
  const found = chosen.kubeconfig.users.get(name);
  if (found === undefined) throw missing('user', name, chosen);
  return found;
}

function missing(kind: 'cluster' | 'user', name: string, { kubeconfig, options, context }: Chosen): ConnectionFailure {
  const known = [...kubeconfig[`${kind}s`].keys()];
  const by = options[kind] !== undefined ? `--${kind} names` : `the context in ${context?.file} names`;
  const available = known.length === 0 ? `has no ${kind} at all` : `only has ${listed(known)}`;
  return configurationFailure(`${by} the ${kind} "${name}", but ${filesOf(kubeconfig)} ${available}`);
}

/** Applies flags. A flag about trust replaces all trust settings of the file. --server drops `tls-server-name` of the file. */
function withClusterFlags(entry: ClusterEntry, options: ConnectionOptions): ClusterEntry {
  const { certificateAuthority, certificateAuthorityData, insecureSkipTlsVerify, tlsServerName, ...rest } = entry;
  const isTrustGiven = options.insecureSkipTlsVerify === true || options.certificateAuthority !== undefined;
  const trust = isTrustGiven
    ? { certificateAuthority: options.certificateAuthority, insecureSkipTlsVerify: options.insecureSkipTlsVerify }
    : { certificateAuthority, certificateAuthorityData, insecureSkipTlsVerify };
  const isNameGiven = options.tlsServerName !== undefined || options.server !== undefined;
  const server = options.server ?? entry.server;
  return defined({ ...rest, ...trust, server, tlsServerName: isNameGiven ? options.tlsServerName : tlsServerName });
}

/** --token replaces the plugin and token of the file; --client-certificate and --client-key replace its certificate and key. */
function withUserFlags(entry: UserEntry, options: ConnectionOptions): UserEntry {
  const { exec, authProvider, token, tokenFile, ...rest } = entry;
  const user = defined({
    ...rest,
    ...(options.token === undefined ? { exec, authProvider, token, tokenFile } : { token: options.token }),
    ...(options.clientCertificate !== undefined && { clientCertificate: options.clientCertificate, clientCertificateData: undefined }),
    ...(options.clientKey !== undefined && { clientKey: options.clientKey, clientKeyData: undefined }),
    as: options.as ?? entry.as,
    asGroups: options.asGroups?.length ? options.asGroups : entry.asGroups,
    asUid: options.asUid ?? entry.asUid,
  });
  const hasDetails = (user.asGroups?.length ?? 0) > 0 || user.asUid !== undefined || Object.keys(user.asUserExtra ?? {}).length > 0;
  // Without a user to impersonate, the request would use the caller's own rights.
  if (user.as === '' || (hasDetails && user.as === undefined))
    throw configurationFailure('impersonation is configured without a user. Name the user with --as, or with `as` in the kubeconfig');
  return user;
}

interface ServerPlace {
  readonly kubeconfig: Kubeconfig;
  readonly options: ConnectionOptions;
  readonly contextName: string | undefined;
  readonly clusterName: string | undefined;
}

function serverOf(cluster: ClusterEntry, place: ServerPlace): string {
  const { kubeconfig, options, clusterName } = place;
  const { server } = cluster;
  if (server === undefined && clusterName === undefined) throw configurationFailure(noClusterText(place));
  if (server === undefined) throw configurationFailure(`the cluster "${clusterName}" of ${filesOf(kubeconfig)} has no server`);
  const isTls = cluster.certificateAuthority ?? cluster.certificateAuthorityData ?? cluster.insecureSkipTlsVerify;
  const text = server.includes('://') ? server : `${isTls ? 'https' : 'http'}://${server}`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.hostname === '')
    throw configurationFailure(
      `the server of ${options.server === undefined ? `the cluster "${clusterName}"` : '--server'} is not an http or https address`,
    );
  return `${url.protocol}//${url.host}${url.pathname.replace(/\/+$/, '')}`;
}

function noClusterText({ kubeconfig, contextName }: ServerPlace): string {
  const files = filesOf(kubeconfig);
  if (kubeconfig.files.length === 0)
    return `no cluster is configured: ${missingFiles(kubeconfig)}set KUBECONFIG, or name a file with --kubeconfig, or a server with --server`;
  if (contextName !== undefined)
    return `no cluster is chosen: the context "${contextName}" of ${files} names no cluster; name one with --cluster`;
  return `no cluster is chosen: ${files} has no current-context; choose one with --context, or by kubectl config use-context`;
}

function originOf(contextName: string | undefined, file: string | undefined): string {
  if (file === undefined) return 'the flags';
  if (contextName === undefined) return file;
  return contextName === inClusterContext ? `the service account in ${file}` : `context "${contextName}" of ${file}`;
}

function filesOf({ files }: Kubeconfig): string {
  return files.length === 0 ? 'the kubeconfig' : files.join(' and ');
}

function missingFiles({ missing }: Kubeconfig): string {
  return missing.length === 0 ? '' : `${missing.join(' and ')} ${missing.length === 1 ? 'does' : 'do'} not exist; `;
}

const longestList = 10;

function listed(names: readonly string[]): string {
  const shown = names.slice(0, longestList).map((name) => `"${name}"`);
  return `${shown.join(', ')}${names.length > longestList ? ` and ${names.length - longestList} more` : ''}`;
}
