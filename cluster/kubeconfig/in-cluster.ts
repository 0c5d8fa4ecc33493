// The service account of a pod: where its files lie, and how the API server is reached from inside the cluster.
import { isIPv6 } from 'node:net';
import { messageOf } from '../../policies/error-message.ts';
import { ConnectionFailure } from '../connection/connection.ts';
import { inClusterContext } from './choice.ts';
import type { Kubeconfig } from './file.ts';
import type { ConnectionProcess } from './kubeconfig.ts';

/** Reports whether this process runs in a pod that has a service account. */
export async function isInCluster(process: ConnectionProcess): Promise<boolean> {
  if (!process.env['KUBERNETES_SERVICE_HOST'] || !process.env['KUBERNETES_SERVICE_PORT']) return false;
  return (await read(process, 'token')) !== undefined;
}

/** As a kubeconfig, so that flags mean the same. Rejects with ConnectionFailure that names the file or variable that is missing. */
export async function inCluster(process: ConnectionProcess): Promise<Kubeconfig> {
  const host = process.env['KUBERNETES_SERVICE_HOST'];
  const port = process.env['KUBERNETES_SERVICE_PORT'];
  if (!host || !port)
    throw problem(
      'KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set, so this process does not run in a pod. Name a kubeconfig with --kubeconfig',
    );
  const file = process.serviceAccountDir;
  for (const name of ['token', 'ca.crt'] as const)
    if ((await read(process, name)) === undefined)
      throw problem(`${file}/${name} is missing. The pod needs a service account with automountServiceAccountToken enabled`);
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

/** Undefined when there is no such file, or it is empty. */
async function read(process: ConnectionProcess, name: 'token' | 'ca.crt' | 'namespace'): Promise<string | undefined> {
  const file = `${process.serviceAccountDir}/${name}`;
  try {
    return (await process.readFile(file)).toString('utf8') || undefined;
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) return undefined;
    throw problem(`${file} cannot be read: ${messageOf(error)}`);
  }
}

function problem(message: string): ConnectionFailure {
  return new ConnectionFailure('configuration', message);
}
