// Starts a control plane for a person, with an example group in it, and removes everything on Ctrl-C: `npm run cluster [-- FOLDER]`.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { findBinaries } from '../test/control-plane/binaries.ts';
import type { ApiClient } from '../test/control-plane/client.ts';
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

const example = process.argv[2] ?? 'examples/mimir-store-gateway/manifests';
/** Those that the examples ask for. */
const zones = ['eu-west-1a', 'eu-west-1b', 'eu-west-1c'];
/** Some examples keep the pods of a zone on different nodes. */
const nodesPerZone = 6;
const volumeCount = 50;

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

function readManifests(folder: string): readonly Manifest[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith('.yaml'))
    .sort()
    .flatMap((file) => parseAllDocuments(readFileSync(join(folder, file), 'utf8')).map((document) => document.toJS() as Manifest));
}

/** The path of an object, by asking the server for the kinds that it knows; undefined when it knows no such kind. */
async function pathOf(client: ApiClient, { apiVersion, kind, metadata }: Manifest): Promise<string | undefined> {
  const group = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const { body } = await client.ask<Resources>('GET', group);
  const resource = body.resources?.find((one) => one.kind === kind && !one.name.includes('/'));
  if (resource === undefined) return undefined;
  const namespace = resource.namespaced ? `/namespaces/${metadata.namespace ?? 'default'}` : '';
  return `${group}${namespace}/${resource.name}/${metadata.name}`;
}

/** Nobody provisions volumes here: claims bind to what is there. */
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

/** Applies what the server knows, and returns the names of the namespaces with the pods that each should have. */
async function applyExample({ client }: ControlPlane, manifests: readonly Manifest[]): Promise<ReadonlyMap<string, number>> {
  await createVolumes(client, manifests);
  const podCounts = new Map<string, number>();
  const apply = (path: string, object: unknown) => client.patch(`${path}?fieldManager=cluster`, 'apply', object);
  for (const manifest of manifests) {
    const path = await pathOf(client, manifest);
    if (path === undefined) {
      say(`${manifest.kind} ${manifest.metadata.name} is left out: this cluster does not know its kind`);
      continue;
    }
    const namespace = manifest.metadata.namespace ?? 'default';
    if (!podCounts.has(namespace)) {
      await apply(`/api/v1/namespaces/${namespace}`, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
    }
    const account = manifest.spec?.template?.spec.serviceAccountName;
    if (account !== undefined) {
      await apply(`/api/v1/namespaces/${namespace}/serviceaccounts/${account}`, {
        apiVersion: 'v1',
        kind: 'ServiceAccount',
        metadata: { name: account },
      });
    }
    await apply(path, manifest);
    const podCount = manifest.kind === 'StatefulSet' ? (manifest.spec?.replicas ?? 1) : 0;
    podCounts.set(namespace, (podCounts.get(namespace) ?? 0) + podCount);
  }
  return podCounts;
}

async function main(): Promise<void> {
  const binaries = await findBinaries((line) => process.stderr.write(`${line}\n`));
  if (binaries.kind === 'missing') throw new Error(`there is no control plane, for ${binaries.reason}`);
  const manifests = readManifests(example);
  const startedAt = Date.now();
  // Ctrl-C arrives twice, from the terminal and from npm: the second one must not interrupt what the first began.
  const leave = new Promise((settle) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, settle);
  });
  const cluster = await startControlPlane({ binaries: binaries.folder, zones, nodesPerZone });
  try {
    const isUp = await Promise.race([showExample(cluster, manifests, startedAt).then(() => true), leave.then(() => false)]);
    if (isUp) await leave;
  } finally {
    say('\nstopping ...');
    await cluster.stop();
  }
}

async function showExample(cluster: ControlPlane, manifests: readonly Manifest[], startedAt: number): Promise<void> {
  for (const [namespace, count] of await applyExample(cluster, manifests)) {
    await cluster.client.until<Pod>(
      `/api/v1/namespaces/${namespace}/pods`,
      `${count} pods Ready`,
      (pods) => pods.length === count && pods.every(isReady),
    );
    say(`${count} pods of ${example} are Ready in the namespace ${namespace}`);
  }
  say(`ready in ${((Date.now() - startedAt) / 1000).toFixed(1)} s at ${cluster.url}\n`);
  say(`  export KUBECONFIG=${cluster.identities.admin.kubeconfig}\n`);
  say('Ctrl-C stops it and removes everything.');
}

try {
  await main();
} catch (error) {
  process.stderr.write(`error: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
// The loop would live on for signal handlers and timers of a start that was given up.
process.exit();
