// A control plane for one suite: etcd, API server, controllers, scheduler and kwok on three nodes, in a folder of its own.
import { existsSync, mkdirSync, mkdtempSync, renameSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type AuditEvent, AuditLog } from './audit.ts';
import { type CertificateAuthority, createCertificateAuthority, type Subject } from './certificates.ts';
import { ApiClient, type KubernetesObject } from './client.ts';
import { apiServer, auditLogOf, controllerManager, etcd, kwok, type Layout, scheduler } from './components.ts';
import { createIdentities, createIdentity, type Identity, type IdentityName, kubeletRights, type Server } from './identities.ts';
import { Processes } from './processes.ts';

export interface ControlPlaneOptions {
  /** A folder with the five executables (`findBinaries`). */
  readonly binaries: string;
  /** zone-a, zone-b and zone-c when absent. */
  readonly zones?: readonly string[];
  /** Named node-ZONE-0 and so on; 1 when absent. */
  readonly nodesPerZone?: number;
  /** Controllers beside the usual ones, by the names of `kube-controller-manager --controllers`. */
  readonly controllers?: readonly string[];
  /** Only etcd and the API server: nobody but the test and what it tests changes an object. There are no nodes and no service accounts. */
  readonly isStill?: boolean;
}

export interface ControlPlane {
  readonly url: string;
  /** Issues also the certificates of a test's webhooks. */
  readonly authority: CertificateAuthority;
  readonly identities: Readonly<Record<IdentityName, Identity>>;
  /** As the administrator. */
  readonly client: ApiClient;
  /** As somebody else. Closed with the control plane. */
  readonly clientOf: (identity: Identity) => ApiClient;
  /** Somebody more, with a kubeconfig and no rights but those of the groups. */
  readonly identityOf: (subject: Subject) => Identity;
  readonly auditLog: () => Promise<readonly AuditEvent[]>;
  /** Temporary; a suite may put files of its own into it, and its logs into `logs`. */
  readonly folder: string;
  readonly processIds: () => readonly number[];
  readonly memoryMiB: () => Readonly<Record<string, number>>;
  /**
   * Ends every process, waits until all have ended, and removes the folder. With `keepLogs` the logs stay, and their folder is the answer.
   * Rejects when a process had ended before without being asked.
   */
  readonly stop: (options?: { readonly keepLogs?: boolean }) => Promise<string | undefined>;
}

interface Node extends KubernetesObject {
  readonly status: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

const startTimeoutMs = 120_000;

/** Starts a control plane and waits until its nodes are Ready. What had started is ended again when something fails. */
export async function startControlPlane(options: ControlPlaneOptions): Promise<ControlPlane> {
  const folder = mkdtempSync(join(tmpdir(), 'rollout-group-cluster-'));
  mkdirSync(join(folder, 'logs'));
  const processes = new Processes(folder);
  try {
    const authority = createCertificateAuthority('test control plane');
    const port = await freePort();
    const server: Server = { url: `https://127.0.0.1:${port}`, authority };
    const layout: Layout = { folder, binaries: options.binaries, port, authority, identities: createIdentities(server, folder) };
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

/** Each component starts when the one it needs answers: a client that comes too early backs off for longer than it would have waited. */
async function start(layout: Layout, { processes, client, controllers = [], isStill = false, ...options }: Starting): Promise<void> {
  processes.start(etcd(layout));
  const command = apiServer(layout);
  await poll(processes, async () => existsSync(join(layout.folder, 'etcd.sock')));
  processes.start(command);
  await poll(processes, async () => (await client.ask('GET', '/readyz')).status === 200);
  if (isStill) return;
  for (const { path, object } of kubeletRights) await client.create(path, object);
  processes.start(controllerManager(layout, controllers));
  processes.start(scheduler(layout));
  processes.start(kwok(layout));
  const nodes = nodesOf(options);
  await Promise.all(nodes.map((node) => client.create('/api/v1/nodes', node)));
  await client.until<Node>('/api/v1/nodes', 'every node Ready', (seen) =>
    seen.every(({ status }) => status.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True')),
  );
  // Pods are refused until their namespace has this account.
  await client.until('/api/v1/namespaces/default/serviceaccounts', 'the account default', (accounts) =>
    accounts.some(({ metadata }) => metadata.name === 'default'),
  );
}

/** Each is big enough for every pod of a suite: what a pod requests is never the question here. */
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
    processIds: () => processes.ids(),
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

/** For what cannot be watched because nobody answers yet. Ends with the processes; their owner keeps the time. */
async function poll(processes: Processes, isSo: () => Promise<boolean>): Promise<void> {
  while (!processes.isStopping) {
    if (await isSo().catch(() => false)) return;
    await delay(20);
  }
}

/**
 * A port that nobody listens on now. Ports from 32768 on are those that Linux gives to outgoing connections, which could take one between
 * this question and the start of the server; two control planes that start together are kept apart by chance, one in twelve thousand.
 */
async function freePort(): Promise<number> {
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
