// Starts a local cluster with an example group, the agent and its webhooks: `npm run cluster`. The usage is in options.ts.
import { execFile } from 'node:child_process';
import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { messageOf } from '../../policies/error-message.ts';
import { findBinaries } from '../../test/control-plane/binaries.ts';
import type { KubernetesObject } from '../../test/control-plane/client.ts';
import { type ControlPlane, startControlPlane } from '../../test/control-plane/control-plane.ts';
import { startPodServer } from '../../test/control-plane/pod-server.ts';
import { untilTrusted } from '../../test/control-plane/webhook.ts';
import { Agents } from './agents.ts';
import { applyExample, imagesOf, namespacesOf, untilReady } from './example.ts';
import { createFolder } from './folder.ts';
import { readKeys } from './keys.ts';
import { applyObjects, readManifests } from './objects.ts';
import { type ClusterOptions, readOptions, usage } from './options.ts';
import { applyRights, type Person, peopleOf, writeKubeconfig } from './people.ts';
import { startServices } from './services.ts';
import { stagesWith } from './stages.ts';

/** The zones of the nodes, as the examples name them. */
const zones = ['eu-west-1a', 'eu-west-1b', 'eu-west-1c'];
/** Some examples keep the pods of a zone on different nodes. */
const nodesPerZone = 6;
const agentNamespace = 'rollout-group';

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** The functions that stop the parts of the cluster. The part that started last stops first. */
type Stops = (() => Promise<unknown>)[];

async function main(): Promise<void> {
  const options = readOptions(process.argv.slice(2));
  if (options === undefined) {
    process.stdout.write(usage);
    return;
  }
  const stops: Stops = [];
  let restart = (): void => {};
  // Ctrl-C can arrive twice, from the terminal and from npm. The second one must not interrupt the clean-up.
  const leave = new Promise<void>((settle) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => settle());
    // A cluster without a terminal receives no keys.
    process.on('SIGUSR2', () => restart());
    readKeys((key) => {
      if (key === 'q') settle();
      if (key === 'r') restart();
    });
  });
  const show = async (): Promise<void> => {
    const agents = await start(options, stops);
    restart = () => void agents.restart();
    await leave;
  };
  try {
    await Promise.race([show(), leave]);
  } finally {
    say('\nstopping ...');
    while (stops.length > 0) await stops.pop()?.();
  }
}

async function start(options: ClusterOptions, stops: Stops): Promise<Agents> {
  const { example, readySeconds, isBroken } = options;
  const binaries = await findBinaries((line) => process.stderr.write(`${line}\n`));
  if (binaries.kind === 'missing') throw new Error(`there is no control plane: ${binaries.reason}`);
  const startedAt = Date.now();
  const manifests = readManifests(join(example, 'manifests'));
  const policies = readManifests(join(example, 'policies'));
  const brokenImages = isBroken ? imagesOf(readManifests(join(example, 'manifests-next'))) : [];
  const folder = createFolder();
  stops.push(async () => rmSync(folder, { recursive: true, force: true }));
  const stages = resolve(folder, 'stages.yaml');
  writeFileSync(stages, stagesWith(readySeconds, brokenImages));
  say('starting etcd, API server, controllers and scheduler ...');
  const cluster = await startControlPlane({
    binaries: binaries.folder,
    zones,
    nodesPerZone,
    stages,
    hasServices: true,
    controllers: ['endpointslice-controller'],
  });
  stops.push(() => cluster.stop());
  for (const object of await applyExample(cluster, manifests)) {
    say(`${object.kind} ${object.metadata.name} is left out: this cluster does not know its kind`);
  }
  const agents = await install(cluster, { folder, example, stops });
  const podCount = await untilReady(cluster, manifests, 60_000 + readySeconds * 5_000);
  await applyObjects(cluster.client, policies);
  await cluster.client.until<Group>('/apis/rollout-group.dev/v1alpha1/rolloutgroups', 'a decision of the agent', (groups) =>
    groups.every(({ status }) => status?.decision !== undefined),
  );
  const people = peopleOf(policies);
  await applyRights(cluster, people);
  const kubeconfig = resolve(folder, 'kubeconfig');
  const namespaces = namespacesOf(manifests);
  writeKubeconfig(kubeconfig, cluster, people, namespaces[0] ?? 'default');
  for (const line of await findings(folder, kubeconfig)) say(`doctor: ${line}`);
  say(`${podCount} pods of ${example} are Ready in the namespace ${namespaces.join(', ')}`);
  if (isBroken) say(`pods with the image ${brokenImages.join(' or ')} never become Ready (--break)`);
  say(`ready in ${((Date.now() - startedAt) / 1000).toFixed(1)} s at ${cluster.url}`);
  say(introduction(folder, kubeconfig, people));
  return agents;
}

/** Returns the failures and warnings of doctor. The agent needs a moment to name the members of a new group in its webhooks. */
async function findings(folder: string, kubeconfig: string): Promise<readonly string[]> {
  const command = [join(folder, 'dist', 'kubectl-rollout_group'), 'doctor', '--quiet', '--kubeconfig', kubeconfig];
  for (const endsAt = Date.now() + 20_000; ; await delay(1000)) {
    const { stdout } = await promisify(execFile)(process.execPath, command).catch((error: { readonly stdout?: string }) => error);
    const found = (stdout ?? '').split('\n').filter((line) => /^(?:FAIL|warn)/.test(line));
    if (found.length === 0 || Date.now() >= endsAt) return found;
  }
}

interface Group extends KubernetesObject {
  readonly status?: { readonly decision?: unknown };
}

interface Installing {
  readonly folder: string;
  readonly example: string;
  readonly stops: Stops;
}

/** Installs the agent with the command of docs/install.md, and starts its process. Returns when the API server trusts the webhooks. */
async function install(cluster: ControlPlane, { folder, example, stops }: Installing): Promise<Agents> {
  // A later build replaces dist/, and a running agent still loads parts of its executable.
  const dist = join(folder, 'dist');
  cpSync('dist', dist, { recursive: true });
  const flags = ['--create-namespace', '--policies', join(example, 'policies'), '--replicas', '1', '--enforce', '--apply', '--quiet'];
  const connection = ['--kubeconfig', cluster.identities.admin.kubeconfig];
  await promisify(execFile)(process.execPath, [join(dist, 'kubectl-rollout_group'), 'install', ...flags, ...connection]);
  const pods = await startPodServer();
  stops.push(() => pods.close());
  const agents = new Agents(cluster, {
    executable: join(dist, 'rollout-group-agent'),
    log: join(folder, 'agent.log'),
    namespace: agentNamespace,
    // No container listens at the addresses of the pods. This server answers for all of them.
    env: { HTTP_PROXY: pods.url, NO_PROXY: '127.0.0.1,localhost' },
    say,
  });
  stops.push(() => agents.stop());
  const services = await startServices(cluster.servicesSocket, () => agents.ports()[0]?.webhookPort);
  stops.push(() => services.close());
  await untilTrusted(cluster.client);
  return agents;
}

function introduction(folder: string, kubeconfig: string, people: readonly Person[]): string {
  const width = Math.max(...people.map(({ name }) => name.length));
  return `
In another terminal, in this directory:

  export PATH="$PWD/dist:$PATH" KUBECONFIG="${kubeconfig}"
  kubectl rollout-group doctor

Commands run as the administrator. Other people:

${people.map(({ name, group, isApprover }) => `  --context ${name.padEnd(width)}  member of the group ${group}${isApprover ? ', which approves' : ''}`).join('\n')}

r starts an agent that ended, and without a terminal: kill -USR2 $(cat ${folder}/pid)
Ctrl-C stops the cluster and removes everything.`;
}

try {
  await main();
} catch (error) {
  process.stderr.write(`error: ${messageOf(error)}\n`);
  process.exitCode = 1;
}
// Signal handlers and timers of a failed start would keep the process alive.
process.exit();
