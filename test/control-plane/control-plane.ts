// Starts a control plane for one suite: etcd, API server, controllers, scheduler and kwok on three nodes, in a temporary folder.
import { existsSync, mkdirSync, mkdtempSync, renameSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { defined } from '../../policies/values/defined.ts';
import { type AuditEvent, AuditLog } from './audit.ts';
import { type CertificateAuthority, createCertificateAuthority, type Subject } from './certificates.ts';
import { ApiClient, type KubernetesObject } from './client.ts';
import { apiServer, auditLogOf, controllerManager, etcd, kwok, type Layout, scheduler, servicesSocket } from './components.ts';
import { createIdentities, createIdentity, type Identity, type IdentityName, kubeletRights, type Server } from './identities.ts';
import { Processes } from './processes.ts';

export interface ControlPlaneOptions {
  /** A folder with the five executables (`findBinaries`). */
  readonly binaries: string;
  /** The zones; default: zone-a, zone-b and zone-c. */
  readonly zones?: readonly string[];
  /** Nodes per zone, named node-ZONE-0 and so on; default: 1. */
  readonly nodesPerZone?: number;
  /** Additional controllers, by their names in `kube-controller-manager --controllers`. */
  readonly controllers?: readonly string[];
  /** Only etcd, the API server and these controllers, without nodes: the test acts as the kubelets. */
  readonly onlyControllers?: readonly string[];
  /** Additional flags of kube-controller-manager. */
  readonly controllerFlags?: readonly string[];
  /** Feature gates of the API server and of the controllers, such as `A=true,B=false`. */
  readonly featureGates?: string;
  /** Only etcd and the API server, without nodes and service accounts: only the test and the tested code change objects. */
  readonly isStill?: boolean;
  /** The stages of kwok, as an absolute path; default: stages.yaml in this folder. */
  readonly stages?: string;
  /** The API server connects to Services through the HTTP proxy at `servicesSocket` (CONNECT), which the caller starts. */
  readonly hasServices?: boolean;
}

export interface ControlPlane {
  readonly url: string;
  /** Also issues the certificates of the webhooks of a test. */
  readonly authority: CertificateAuthority;
  readonly identities: Readonly<Record<IdentityName, Identity>>;
  /** The client of the administrator. */
  readonly client: ApiClient;
  /** Returns the client of another user. It is closed with the control plane. */
  readonly clientOf: (identity: Identity) => ApiClient;
  /** Creates another user with a kubeconfig, and only the permissions of the groups. */
  readonly identityOf: (subject: Subject) => Identity;
  readonly auditLog: () => Promise<readonly AuditEvent[]>;
  /** A temporary folder. A suite may add files to it, and logs to its folder `logs`. */
  readonly folder: string;
  /** The socket of the proxy to Services, if the options request one. */
  readonly servicesSocket: string;
  readonly processIds: () => readonly number[];
  /** Kills another process too if this process ends for any reason. Returns the function to call when that process has ended. */
  readonly reap: (processId: number) => () => void;
  readonly memoryMiB: () => Readonly<Record<string, number>>;
  /**
   * Ends every process and removes the folder. With `keepLogs` the logs stay, and the result is their folder. Rejects if a process ended
   * unexpectedly before.
   */
  readonly stop: (options?: { readonly keepLogs?: boolean }) => Promise<string | undefined>;
}

interface Node extends KubernetesObject {
  readonly status: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

const startTimeoutMs = 120_000;

/** Starts a control plane and waits until its nodes are Ready. If a component fails, the others are stopped. */
export async function startControlPlane(options: ControlPlaneOptions): Promise<ControlPlane> {
  const folder = mkdtempSync(join(tmpdir(), 'rollout-group-cluster-'));
  mkdirSync(join(folder, 'logs'));
  const processes = new Processes(folder);
  try {
    const authority = createCertificateAuthority('test control plane');
    const port = await freePort();
    const server: Server = { url: `https://127.0.0.1:${port}`, authority };
    const { binaries, stages, hasServices = false, featureGates } = options;
    const identities = createIdentities(server, folder);
    const layout: Layout = { folder, binaries, port, authority, identities, hasServices, ...defined({ stages, featureGates }) };
    const client = new ApiClient(server, layout.identities.admin);
    await processes.during('the start of the control plane', start(layout, { ...options, processes, client }), startTimeoutMs);
    return handle({ layout, server, processes, client });
  } catch (error) {
    await processes.end();
    await processes.removeFolder();
    throw error;
  }
}

interface Starting extends ControlPlaneOptions {
  readonly processes: Processes;
  readonly client: ApiClient;
}

/** Starts each component only after the one that it needs answers: a component that is too early would back off for longer. */
async function start(layout: Layout, { processes, client, ...options }: Starting): Promise<void> {
  const { controllers = [], onlyControllers, controllerFlags = [], isStill = false } = options;
  processes.start(etcd(layout));
  const command = apiServer(layout);
  await poll(processes, async () => existsSync(join(layout.folder, 'etcd.sock')));
  processes.start(command);
  await poll(processes, async () => (await client.ask('GET', '/readyz')).status === 200);
  if (isStill) return;
  for (const { path, object } of kubeletRights) await client.create(path, object);
  processes.start(controllerManager(layout, { more: controllers, only: onlyControllers, flags: controllerFlags }));
  if (onlyControllers !== undefined) return;
  processes.start(scheduler(layout));
  processes.start(kwok(layout));
  const nodes = nodesOf(options);
  await Promise.all(nodes.map((node) => client.create('/api/v1/nodes', node)));
  await client.until<Node>('/api/v1/nodes', 'every node Ready', (seen) =>
    seen.every(({ status }) => status.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True')),
  );
  // The API server denies pods until their namespace has this account.
  await client.until('/api/v1/namespaces/default/serviceaccounts', 'the account default', (accounts) =>
    accounts.some(({ metadata }) => metadata.name === 'default'),
  );
}

/** Each node has room for every pod of a suite, so requested resources do not matter. */
function nodesOf({ zones = ['zone-a', 'zone-b', 'zone-c'], nodesPerZone = 1 }: Pick<ControlPlaneOptions, 'zones' | 'nodesPerZone'>) {
  const resources = { cpu: '10k', memory: '100Ti', pods: '2000', 'ephemeral-storage': '100Ti' };
  return zones.flatMap((zone) =>
    Array.from({ length: nodesPerZone }, (_, index) => {
      const name = `node-${zone}-${index}`;
      const labels = { 'kubernetes.io/hostname': name, 'kubernetes.io/os': 'linux', 'topology.kubernetes.io/zone': zone };
      return { metadata: { name, labels }, status: { allocatable: resources, capacity: resources } };
    }),
  );
}

interface Started {
  readonly layout: Layout;
  readonly server: Server;
  readonly processes: Processes;
  readonly client: ApiClient;
}

function handle({ layout, server, processes, client }: Started): ControlPlane {
  const { folder, identities, authority } = layout;
  const clients = [client];
  const log = new AuditLog(auditLogOf(folder));
  let count = 0;
  return {
    url: server.url,
    authority,
    identities,
    client,
    clientOf: (identity) => {
      const another = new ApiClient(server, identity);
      clients.push(another);
      return another;
    },
    identityOf: (subject) => createIdentity(server, subject, join(folder, `identity-${++count}.kubeconfig`)),
    auditLog: () => log.read((path) => client.get(path)),
    folder,
    servicesSocket: join(folder, servicesSocket),
    processIds: () => processes.ids(),
    reap: (processId) => processes.reap(processId),
    memoryMiB: () => processes.memoryMiB(),
    stop: async ({ keepLogs = false } = {}) => {
      for (const each of clients) each.close();
      await processes.end();
      const kept = keepLogs ? keep(folder) : undefined;
      await processes.removeFolder();
      if (processes.unexpectedEnd !== undefined) throw processes.unexpectedEnd;
      return kept;
    },
  };
}

function keep(folder: string): string {
  const kept = `${folder}-logs`;
  renameSync(join(folder, 'logs'), kept);
  return kept;
}

/** Polls what cannot be watched before a server answers. Ends with the processes; the caller sets the timeout. */
async function poll(processes: Processes, isSo: () => Promise<boolean>): Promise<void> {
  while (!processes.isStopping) {
    if (await isSo().catch(() => false)) return;
    await delay(20);
  }
}

/**
 * Finds a free port below 32768: Linux uses the ports above for outgoing connections, which could take one before the server starts. Two
 * control planes that start at the same time get the same port with a probability of one in twelve thousand.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 12_000);
    const isFree = await new Promise<boolean>((settle) => {
      const server = createServer();
      server.on('error', () => settle(false));
      server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => settle(true)));
    });
    if (isFree) return port;
  }
}
