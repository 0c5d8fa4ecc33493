// Starts a local cluster with an example group and the agent: `npm run cluster [-- EXAMPLE]`. Ctrl-C removes everything.
import { spawn } from 'node:child_process';
import { mkdirSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { messageOf } from '../policies/error-message.ts';
import { findBinaries } from '../test/control-plane/binaries.ts';
import type { ApiClient, KubernetesObject } from '../test/control-plane/client.ts';
import { type ControlPlane, startControlPlane } from '../test/control-plane/control-plane.ts';
import { isReady, type Pod } from '../test/control-plane/workloads.ts';

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly spec?: {
    readonly replicas?: number;
    readonly template?: { readonly spec: { readonly serviceAccountName?: string } };
    readonly volumeClaimTemplates?: readonly { readonly spec: { readonly storageClassName: string } }[];
  };
}

interface Resources {
  readonly resources?: readonly { readonly name: string; readonly kind: string; readonly namespaced: boolean }[];
}

const example = process.argv[2] ?? 'examples/mimir-store-gateway';
/** The folder with the kubeconfig and the logs of the running cluster. It is always the same. */
const folder = '.cluster';
/** The zones of the nodes. */
const zones = ['eu-west-1a', 'eu-west-1b', 'eu-west-1c'];
/** Some examples keep the pods of a zone on different nodes. */
const nodesPerZone = 6;
const volumeCount = 50;

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

function readManifests(path: string): readonly Manifest[] {
  return readdirSync(path)
    .filter((file) => file.endsWith('.yaml'))
    .sort()
    .flatMap((file) => readDocuments(join(path, file)));
}

function readDocuments(file: string): readonly Manifest[] {
  return parseAllDocuments(readFileSync(file, 'utf8')).map((document) => document.toJS() as Manifest);
}

/** Returns the API path of an object, from the kinds that the server knows; undefined for an unknown kind. */
async function pathOf(client: ApiClient, { apiVersion, kind, metadata }: Manifest): Promise<string | undefined> {
  const group = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const { body } = await client.ask<Resources>('GET', group);
  const resource = body.resources?.find((one) => one.kind === kind && !one.name.includes('/'));
  if (resource === undefined) return undefined;
  const namespace = resource.namespaced ? `/namespaces/${metadata.namespace ?? 'default'}` : '';
  return `${group}${namespace}/${resource.name}/${metadata.name}`;
}

/** This cluster provisions no volumes: claims bind to existing volumes. */
async function createVolumes(client: ApiClient, manifests: readonly Manifest[]): Promise<void> {
  const classes = new Set(
    manifests.flatMap(({ spec }) => spec?.volumeClaimTemplates ?? []).map((template) => template.spec.storageClassName),
  );
  for (const storageClassName of classes) {
    for (let index = 0; index < volumeCount; index++) {
      await client.create('/api/v1/persistentvolumes', {
        metadata: { name: `${storageClassName}-${index}` },
        spec: { storageClassName, capacity: { storage: '1Ti' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/nonexistent' } },
      });
    }
  }
}

/** Applies the object like `kubectl rollout-group apply`, so that `apply` can change it later. */
function apply(client: ApiClient, path: string, object: unknown): Promise<unknown> {
  return client.patch(`${path}?fieldManager=kubectl-rollout-group`, 'apply', object);
}

/** Applies objects of this project. Throws if the server does not know a kind. */
async function applyOwn(client: ApiClient, objects: readonly Manifest[]): Promise<void> {
  for (const object of objects) {
    const path = await pathOf(client, object);
    if (path === undefined) throw new Error(`the API server does not know the kind ${object.kind}`);
    await apply(client, path, object);
  }
}

/** Installs every CRD of deploy/crds. The server needs a moment until it serves a new kind. */
async function applyKinds(client: ApiClient): Promise<void> {
  await applyOwn(client, readManifests('deploy/crds'));
  await client.until<Definition>('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', 'the kinds served', (definitions) =>
    definitions.every(({ status }) => status?.conditions?.some(({ type, status: is }) => type === 'Established' && is === 'True')),
  );
}

interface Definition extends KubernetesObject {
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

/** Creates the service account of deploy/rbac.yaml and binds its roles in these namespaces. */
async function applyRights(client: ApiClient, namespaces: readonly string[]): Promise<void> {
  await applyOwn(client, readDocuments('deploy/rbac.yaml'));
  for (const namespace of [agentNamespace, ...namespaces]) {
    await applyOwn(client, [
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'RoleBinding',
        metadata: { name: 'rollout-group-agent', namespace },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'rollout-group-agent' },
        subjects: [{ kind: 'ServiceAccount', name: 'rollout-group-agent', namespace: agentNamespace }],
      } as Manifest,
    ]);
  }
}

/** The service account of deploy/rbac.yaml. */
const agentNamespace = 'rollout-group';

/** Starts the agent with its service account. Its output goes to a file. */
function startAgent(cluster: ControlPlane, namespaces: readonly string[]): { readonly log: string; readonly stop: () => Promise<void> } {
  const log = join(folder, 'agent.log');
  const output = openSync(log, 'a');
  const args = [
    'dist/rollout-group-agent',
    `--kubernetes.api-url=${cluster.url}`,
    `--kubernetes.config-file=${cluster.identities.agent.kubeconfig}`,
    `--kubernetes.namespace=${agentNamespace}`,
    `--namespaces=${[...namespaces].join(',')}`,
    '--kubernetes.client-qps=0',
    '--publish.every=1s',
    '--server.address=127.0.0.1',
    '--server.port=0',
  ];
  const child = spawn(process.execPath, args, { stdio: ['ignore', output, output] });
  const ended = new Promise<void>((settle) => child.on('exit', () => settle()));
  return {
    log,
    stop: async () => {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

/** Applies the objects of kinds that the server knows. Returns the namespaces, with the number of pods that each should have. */
async function applyExample({ client }: ControlPlane, manifests: readonly Manifest[]): Promise<ReadonlyMap<string, number>> {
  await createVolumes(client, manifests);
  const podCounts = new Map<string, number>();
  for (const manifest of manifests) {
    const path = await pathOf(client, manifest);
    if (path === undefined) {
      say(`${manifest.kind} ${manifest.metadata.name} is left out: this cluster does not know its kind`);
      continue;
    }
    const namespace = manifest.metadata.namespace ?? 'default';
    if (!podCounts.has(namespace)) {
      await apply(client, `/api/v1/namespaces/${namespace}`, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
    }
    const account = manifest.spec?.template?.spec.serviceAccountName;
    if (account !== undefined) {
      await apply(client, `/api/v1/namespaces/${namespace}/serviceaccounts/${account}`, {
        apiVersion: 'v1',
        kind: 'ServiceAccount',
        metadata: { name: account },
      });
    }
    await apply(client, path, manifest);
    const podCount = manifest.kind === 'StatefulSet' ? (manifest.spec?.replicas ?? 1) : 0;
    podCounts.set(namespace, (podCounts.get(namespace) ?? 0) + podCount);
  }
  return podCounts;
}

async function main(): Promise<void> {
  const binaries = await findBinaries((line) => process.stderr.write(`${line}\n`));
  if (binaries.kind === 'missing') throw new Error(`there is no control plane, for ${binaries.reason}`);
  const manifests = readManifests(join(example, 'manifests'));
  const startedAt = Date.now();
  // Ctrl-C arrives twice, from the terminal and from npm. The second one must not interrupt the clean-up.
  const leave = new Promise<void>((settle) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => settle());
  });
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  const cluster = await startControlPlane({ binaries: binaries.folder, zones, nodesPerZone });
  const stops: (() => Promise<void>)[] = [];
  try {
    await Promise.race([showExample({ cluster, manifests, startedAt, stops }).then(() => leave), leave]);
  } finally {
    say('\nstopping ...');
    for (const stop of stops) await stop();
    await cluster.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Showing {
  readonly cluster: ControlPlane;
  readonly manifests: readonly Manifest[];
  readonly startedAt: number;
  /** What must stop before the control plane stops. */
  readonly stops: (() => Promise<void>)[];
}

async function showExample({ cluster, manifests, startedAt, stops }: Showing): Promise<void> {
  const { client } = cluster;
  await applyKinds(client);
  const podCounts = await applyExample(cluster, manifests);
  const namespaces = [...podCounts.keys()];
  await applyOwn(client, readManifests(join(example, 'policies')));
  for (const [namespace, count] of podCounts) {
    await client.until<Pod>(
      `/api/v1/namespaces/${namespace}/pods`,
      `${count} pods Ready`,
      (pods) => pods.length === count && pods.every(isReady),
    );
    say(`${count} pods of ${example} are Ready in the namespace ${namespace}`);
  }
  await applyRights(client, namespaces);
  const agent = startAgent(cluster, namespaces);
  stops.push(agent.stop);
  await client.until<Group>('/apis/rollout-group.dev/v1alpha1/rolloutgroups', 'a decision of the agent', (groups) =>
    groups.every(({ status }) => status?.decision !== undefined),
  );
  const kubeconfig = join(folder, 'kubeconfig');
  writeFileSync(kubeconfig, readFileSync(cluster.identities.admin.kubeconfig), { mode: 0o600 });
  say(`the agent watches ${namespaces.join(', ')}; its log is ${agent.log}`);
  say(`ready in ${((Date.now() - startedAt) / 1000).toFixed(1)} s at ${cluster.url}\n`);
  say(`  export KUBECONFIG="${resolve(kubeconfig)}"\n`);
  say('Ctrl-C stops it and removes everything.');
}

interface Group extends KubernetesObject {
  readonly status?: { readonly decision?: unknown };
}

try {
  await main();
} catch (error) {
  process.stderr.write(`error: ${messageOf(error)}\n`);
  process.exitCode = 1;
}
// Signal handlers and timers of a failed start would keep the process alive.
process.exit();
