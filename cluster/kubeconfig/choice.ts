// Chooses cluster, user and namespace from a kubeconfig and the flags of kubectl.
import { type ConnectionFailure, configurationFailure } from '../connection/connection.ts';
import { type ClusterEntry, type ContextEntry, type Entry, type Kubeconfig, present, type UserEntry } from './file.ts';
import type { ConnectionOptions } from './kubeconfig.ts';

/** A cluster and a user, each with its place in files and what flags changed. */
export interface Choice {
  readonly contextName?: string;
  readonly clusterName?: string;
  readonly userName?: string;
  /** That of the flag or the context. */
  readonly namespace?: string;
  readonly server: string;
  /** Proxy of the cluster; the environment may name another one. */
  readonly proxyUrl?: string;
  readonly cluster: ClusterEntry;
  readonly user: UserEntry;
  readonly origin: string;
}

/** The name given to the context of a pod's own service account. */
export const inClusterContext = 'in-cluster';

/** Reports whether nothing is configured. kubectl then uses the service account of a pod. */
export function isEmpty({ clusters, users, contexts }: Kubeconfig): boolean {
  return clusters.size + users.size + contexts.size === 0;
}

/** @throws {ConnectionFailure} for names that do not exist and values that exclude each other */
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
    ...(contextName !== undefined && { contextName }),
    ...(clusterName !== undefined && { clusterName }),
    ...(userName !== undefined && { userName }),
    ...namespaceOf(options.namespace ?? context?.value.namespace),
    server: serverOf(cluster, { kubeconfig, clusterName }),
    ...(cluster.proxyUrl !== undefined && { proxyUrl: cluster.proxyUrl }),
    cluster,
    user: withUserFlags(user?.value ?? {}, options),
    origin: originOf(contextName, file),
  };
}

function contextOf(name: string, kubeconfig: Kubeconfig, options: ConnectionOptions): Entry<ContextEntry> | undefined {
  const context = kubeconfig.contexts.get(name);
  if (context !== undefined) return context;
  const isFlag = options.context !== undefined;
  // A current-context that is not there does not matter when flags say everything, as for kubectl.
  if (!isFlag && (options.server !== undefined || options.cluster !== undefined)) return undefined;
  const known = [...kubeconfig.contexts.keys()];
  const there = known.length === 0 ? 'no context is defined' : `known contexts: ${listed(known)}`;
  const who = isFlag ? `the context "${name}" of --context` : `current-context "${name}" of ${kubeconfig.currentContext?.file}`;
  throw configurationFailure(`${who} does not exist in ${filesOf(kubeconfig)}: ${there}`);
}

interface Chosen {
  readonly kubeconfig: Kubeconfig;
  readonly options: ConnectionOptions;
  readonly context: Entry<unknown> | undefined;
}

/** @throws {ConnectionFailure} if the cluster does not exist and no flag names a server */
function clusterOf(name: string | undefined, { kubeconfig, options, context }: Chosen): Entry<ClusterEntry> | undefined {
  if (name === undefined) return undefined;
  const found = kubeconfig.clusters.get(name);
  if (found === undefined && options.server === undefined) throw missing('cluster', { name, kubeconfig, flag: options.cluster, context });
  return found;
}

/** @throws {ConnectionFailure} if the user does not exist */
function userOf(name: string | undefined, { kubeconfig, options, context }: Chosen): Entry<UserEntry> | undefined {
  if (name === undefined) return undefined;
  const found = kubeconfig.users.get(name);
  if (found === undefined) throw missing('user', { name, kubeconfig, flag: options.user, context });
  return found;
}

function missing(
  kind: 'cluster' | 'user',
  at: {
    readonly name: string;
    readonly kubeconfig: Kubeconfig;
    readonly flag: string | undefined;
    readonly context: Entry<unknown> | undefined;
  },
): ConnectionFailure {
  const known = [...(kind === 'cluster' ? at.kubeconfig.clusters : at.kubeconfig.users).keys()];
  const by = at.flag !== undefined ? `--${kind} names` : `the context in ${at.context?.file} names`;
  const there = known.length === 0 ? `no ${kind} at all` : listed(known);
  return configurationFailure(
    `${by} the ${kind} "${at.name}", but ${filesOf(at.kubeconfig)} ${known.length === 0 ? 'has' : 'only has'} ${there}`,
  );
}

/** A flag that says how to trust the server replaces everything that the file says about that; so do --server and the name in its certificate. */
function withClusterFlags(entry: ClusterEntry, options: ConnectionOptions): ClusterEntry {
  const { certificateAuthority, certificateAuthorityData, insecureSkipTlsVerify, tlsServerName, ...rest } = entry;
  const isTrustGiven = options.insecureSkipTlsVerify === true || options.certificateAuthority !== undefined;
  const trust = isTrustGiven
    ? { certificateAuthority: options.certificateAuthority, insecureSkipTlsVerify: options.insecureSkipTlsVerify }
    : { certificateAuthority, certificateAuthorityData, insecureSkipTlsVerify };
  const isNameGiven = options.tlsServerName !== undefined || options.server !== undefined;
  const server = options.server ?? entry.server;
  return present({ ...rest, ...trust, server, tlsServerName: isNameGiven ? options.tlsServerName : tlsServerName });
}

/** A token of the command line goes before any plugin; a file of the command line before data of the kubeconfig. */
function withUserFlags(entry: UserEntry, options: ConnectionOptions): UserEntry {
  const { exec, authProvider, token, tokenFile, ...rest } = entry;
  const user = present({
    ...rest,
    ...(options.token === undefined ? { exec, authProvider, token, tokenFile } : { token: options.token }),
    ...(options.clientCertificate !== undefined && { clientCertificate: options.clientCertificate, clientCertificateData: undefined }),
    ...(options.clientKey !== undefined && { clientKey: options.clientKey, clientKeyData: undefined }),
    as: options.as ?? entry.as,
    asGroups: options.asGroups?.length ? options.asGroups : entry.asGroups,
    asUid: options.asUid ?? entry.asUid,
  });
  const isMore = (user.asGroups?.length ?? 0) > 0 || user.asUid !== undefined || Object.keys(user.asUserExtra ?? {}).length > 0;
  // An empty name would leave the request with the caller's own rights, which is not what was asked for.
  if (user.as === '' || (isMore && user.as === undefined))
    throw configurationFailure(
      'a group or uid to impersonate is set without a user. Add --as, or `as` next to `as-groups` in the kubeconfig',
    );
  return user;
}

function serverOf(cluster: ClusterEntry, at: { readonly kubeconfig: Kubeconfig; readonly clusterName: string | undefined }): string {
  const { server } = cluster;
  if (server === undefined && at.clusterName === undefined)
    throw configurationFailure(
      at.kubeconfig.files.length === 0
        ? `no cluster is configured: ${missingFiles(at.kubeconfig)}set KUBECONFIG, or name a file with --kubeconfig, or a server with --server`
        : `no cluster is chosen: ${filesOf(at.kubeconfig)} has no current-context; choose one with --context, or by kubectl config use-context`,
    );
  if (server === undefined) throw configurationFailure(`the cluster "${at.clusterName}" of ${filesOf(at.kubeconfig)} has no server`);
  const isTls = cluster.certificateAuthority ?? cluster.certificateAuthorityData ?? cluster.insecureSkipTlsVerify;
  const text = server.includes('://') ? server : `${isTls ? 'https' : 'http'}://${server}`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.hostname === '')
    throw configurationFailure(
      `the server of ${at.clusterName === undefined ? '--server' : `the cluster "${at.clusterName}"`} is not an http or https address`,
    );
  return `${url.protocol}//${url.host}${url.pathname.replace(/\/+$/, '')}`;
}

function namespaceOf(namespace: string | undefined): { readonly namespace?: string } {
  return namespace === undefined || namespace === '' ? {} : { namespace };
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
