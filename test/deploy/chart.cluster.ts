// The Helm chart on a real API server, as a user meets it: install with defaults, roll a group, upgrade in the middle, roll back, be paged
// for a stuck group, upgrade again, uninstall. The tests are the parts of this story, in its order.
import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parseAllDocuments, stringify } from 'yaml';
import { messageOf } from '../../policies/error-message.ts';
import { Agents } from '../../scripts/cluster/agents.ts';
import { applyExample, untilReady } from '../../scripts/cluster/example.ts';
import { applyObjects, type Manifest, readManifests } from '../../scripts/cluster/objects.ts';
import { startServices } from '../../scripts/cluster/services.ts';
import { findTool } from '../control-plane/binaries.ts';
import type { ApiClient, KubernetesObject } from '../control-plane/client.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import type { Identity } from '../control-plane/identities.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { eventually, untilTrusted } from '../control-plane/webhook.ts';
import { chartCluster, withoutTimes } from '../documents/page.ts';
import { checkPage } from '../documents/scratch.ts';
import { runInProcess } from '../plugin/in-process.ts';
import { prometheus, startAlerting } from './alerting.ts';

const chart = 'deploy/helm/rollout-group';
const namespace = 'rollout-group';
const example = 'examples/quick-start';
const folder = mkdtempSync(join(tmpdir(), 'rollout-group-chart-'));

interface Ran {
  readonly code: number;
  readonly said: string;
}

interface Group extends KubernetesObject {
  readonly status?: { readonly phase?: string; readonly run?: { readonly waiting?: unknown } };
}

interface Stamped {
  readonly spec?: { readonly requestedBy?: { readonly user: string } };
}

interface Workload extends KubernetesObject {
  readonly data?: Readonly<Record<string, string>>;
  readonly spec: { readonly template?: { readonly spec: { readonly containers: readonly { readonly image: string }[] } } };
}

const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const groups = '/apis/rollout-group.dev/v1alpha1/namespaces/shop/rolloutgroups';
const pods = '/api/v1/namespaces/shop/pods';

/** The text in a CRD of the earlier chart. */
const earlier = 'An earlier description.';

/** Writes a chart of an earlier version: with another version and another CRD. */
function earlierChart(): string {
  const path = join(folder, 'earlier');
  cpSync(chart, path, { recursive: true });
  const change = (file: string, edit: (text: string) => string): void =>
    writeFileSync(join(path, file), edit(readFileSync(join(path, file), 'utf8')));
  change('Chart.yaml', (text) => text.replace(/ersion: \d\S*/g, 'ersion: 0.0.1'));
  change('templates/definitions.yaml', (text) => text.replace(/description: [A-Z].*/, `description: ${earlier}`));
  return path;
}

const notPaged = ' (SKIPPED, for there is no executable prometheus)';

/** Returns the StatefulSet with an image whose pods never become Ready. */
function withBrokenImage(manifest: Manifest): Manifest {
  const text = JSON.stringify(manifest);
  return JSON.parse(text.replace(/registry\.example\.com\/cache:[\d.]+/g, 'registry.example.com/cache:broken'));
}

/** Kinds that the cluster itself writes, or that record what happened. */
const recorded = /^(?:events|leases\.coordination\.k8s\.io kube-|endpoints|nodes|componentstatuses|priorityclasses|flowschemas)/;

/** Returns `resource namespace/name` of each object in the cluster. */
async function everyObject(client: ApiClient): Promise<readonly string[]> {
  interface Resources {
    readonly resources: readonly { readonly name: string; readonly verbs: readonly string[] }[];
  }
  const { groups: served } = await client.get<{
    readonly groups: readonly { readonly preferredVersion: { readonly groupVersion: string } }[];
  }>('/apis');
  const roots = ['/api/v1', ...served.map(({ preferredVersion }) => `/apis/${preferredVersion.groupVersion}`)];
  const found: string[] = [];
  for (const root of roots) {
    for (const { name, verbs } of (await client.get<Resources>(root)).resources) {
      if (!verbs.includes('list') || name.includes('/')) continue;
      for (const { metadata } of await client.list(`${root}/${name}`)) found.push(`${name} ${metadata.namespace ?? ''}/${metadata.name}`);
    }
  }
  return [...new Set(found)].filter((one) => !recorded.test(one) && !/^(?:controllerrevisions|replicasets|endpointslices) /.test(one));
}

describeOnControlPlane(
  'the Helm chart',
  (controlPlane) => {
    let helmPath: string;
    let agents: Agents;
    let services: { readonly close: () => Promise<void> };
    let admin: ApiClient;

    beforeAll(async () => {
      helmPath = await findTool('helm', (line) => process.stderr.write(`${line}\n`));
      admin = controlPlane().client;
      cpSync('dist', join(folder, 'dist'), { recursive: true });
      agents = new Agents(controlPlane(), {
        executable: join(folder, 'dist', 'rollout-group-agent'),
        log: join(controlPlane().folder, 'logs', 'agent.log'),
        namespace,
        env: {},
        say: () => undefined,
      });
      services = await startServices(controlPlane().servicesSocket, () => agents.ports()[0]?.webhookPort);
    }, 600_000);
    afterAll(async () => {
      await services.close();
      await agents.stop();
      rmSync(folder, { recursive: true, force: true });
    });

    function helm(...words: readonly string[]): Promise<Ran> {
      const env = { HOME: folder, KUBECONFIG: controlPlane().identities.admin.kubeconfig, PATH: process.env['PATH'] ?? '' };
      return new Promise((settle) => {
        execFile(helmPath, [...words, '--namespace', namespace], { env, timeout: 100_000 }, (error, stdout, stderr) => {
          settle({ code: error === null ? 0 : 1, said: `${stdout}${stderr}` });
        });
      });
    }

    async function done(ran: Promise<Ran>): Promise<string> {
      const { code, said } = await ran;
      expect([code, code === 0 ? '' : said]).toEqual([0, '']);
      return said;
    }

    async function plugin(words: readonly string[], identity: Identity = controlPlane().identities.admin) {
      return runInProcess(words, { env: { KUBECONFIG: identity.kubeconfig, HOME: folder } });
    }

    async function untilWaits(): Promise<void> {
      await eventually(
        'the wave waits for an approval',
        async () => (await plugin(['get', 'cache', '-n', 'shop'])).stdout,
        (text) => /approv/i.test(text),
        60_000,
      );
    }

    const certificate = async (): Promise<unknown> =>
      (await admin.get<Workload>(`/api/v1/namespaces/${namespace}/secrets/rollout-group-agent-tls`)).data;
    const descriptionOf = async (): Promise<string> => JSON.stringify(await admin.list(definitions));

    /** The objects before the installation. */
    let before: readonly string[];

    it('protects and rolls a group, and survives upgrade and rollback in the middle of a run', async () => {
      await applyExample(controlPlane(), readManifests(join(example, 'manifests')));
      await admin.patch('/api/v1/namespaces/shop', 'merge', { metadata: { labels: { 'rollout-group.dev/enforce': 'true' } } });
      await untilReady(controlPlane(), readManifests(join(example, 'manifests')), 60_000);
      before = await everyObject(admin);

      await done(helm('install', 'rollout-group', earlierChart(), '--create-namespace', '--wait', '--timeout', '90s'));
      await untilTrusted(admin);
      expect(await descriptionOf()).toContain(earlier);
      await applyObjects(admin, readManifests(join(example, 'policies')));
      await admin.until<Group>(groups, 'a decision', (items) => items.some(({ status }) => status?.phase === 'Done'));

      const set = '/apis/apps/v1/namespaces/shop/statefulsets/cache-a';
      const deleted = await eventually(
        'the webhook denies the deletion',
        () => admin.ask<{ readonly message: string }>('DELETE', `${set}?dryRun=All`),
        ({ status }) => status === 403,
      );
      expect(deleted.body.message).toContain('rollout-group.dev');

      await applyObjects(admin, readManifests(join(example, 'manifests-next')));
      await untilWaits();
      const kept = await certificate();
      await done(helm('upgrade', 'rollout-group', chart, '--wait', '--timeout', '90s'));
      expect(await descriptionOf()).not.toContain(earlier);
      expect(await certificate()).toEqual(kept);
      await untilTrusted(admin);
      await untilWaits();
      const { stdout } = await plugin(['doctor', '-A', '-o', 'json']);
      const { checks }: { readonly checks: readonly { readonly verdict: string; readonly message: string }[] } = JSON.parse(stdout);
      expect(checks.filter(({ verdict }) => verdict === 'FAIL')).toEqual([]);

      await done(helm('rollback', 'rollout-group', '1', '--wait', '--timeout', '90s'));
      expect(await certificate()).toEqual(kept);
      const alice = controlPlane().identityOf({ user: 'alice', groups: ['oncall', 'system:masters'] });
      await eventually(
        'the approval',
        () => plugin(['approve', 'cache', '-n', 'shop'], alice),
        ({ status }) => status === 0,
      );
      await admin.until<Group>(groups, 'the end of the run', (items) => items.some(({ status }) => status?.phase === 'Done'), 90_000);
    }, 360_000);

    const isPaged = prometheus !== undefined || process.env['CI'] !== undefined;
    it.runIf(isPaged)(
      `pages for a stuck group by the alerts of the chart, until it has its earlier version${isPaged ? '' : notPaged}`,
      async () => {
        const rendered = await done(helm('template', 'rollout-group', chart, '--set', 'prometheusRule.enabled=true'));
        const rule = parseAllDocuments(rendered)
          .map((document) => document.toJS())
          .find(({ kind }) => kind === 'PrometheusRule');
        const targets = agents.ports().map(({ pod, serverPort: port }) => ({ pod, port }));
        const alerting = await startAlerting(controlPlane(), stringify(rule.spec), targets);
        const summaries = async () => (await alerting.firing()).map(({ annotations }) => annotations['summary']);
        try {
          await applyObjects(admin, readManifests(join(example, 'manifests-next')).map(withBrokenImage));
          const paged = await eventually('an alert', summaries, (texts) => texts.length > 0, 90_000);
          expect(paged).toEqual(['Group shop/cache is stuck.']);
          expect(await plugin(['undo', 'cache', '-n', 'shop', '--yes'])).toMatchObject({ status: 0 });
          await admin.until<Group>(
            groups,
            'the end of the return',
            (items) => items.some(({ status }) => status?.phase === 'Done'),
            90_000,
          );
          await eventually('the end of the alert', summaries, (texts) => texts.length === 0, 90_000);
        } finally {
          await alerting.close();
        }
      },
      360_000,
    );

    it('leaves nothing behind after a further upgrade, and deletes no pod', async () => {
      await done(helm('upgrade', 'rollout-group', chart, '--wait', '--timeout', '90s'));
      const uids = (await admin.list(pods)).map(({ metadata }) => metadata.uid);
      await done(helm('uninstall', 'rollout-group', '--wait', '--timeout', '60s'));
      await admin.until(`/api/v1/namespaces/${namespace}/pods`, 'no pod of the agent', (items) => items.length === 0, 90_000);
      expect((await admin.list(pods)).map(({ metadata }) => metadata.uid)).toEqual(uids);
      const left = (await everyObject(admin)).filter((one) => !before.includes(one));
      const explained = [
        // Kept by `crds.keep`, with their objects, and served.
        /^customresourcedefinitions \/\w+\.rollout-group\.dev$|^apiservices \/\w+\.rollout-group\.dev$/,
        /^rollout\w+ shop\//,
        // The ledger, and the namespace with what the cluster puts into it.
        /^configmaps shop\/rollout-/,
        /^(?:namespaces \/rollout-group|serviceaccounts rollout-group\/default|configmaps rollout-group\/kube-root-ca.crt)$/,
      ];
      expect(left.filter((one) => !explained.some((pattern) => pattern.test(one)))).toEqual([]);
    }, 360_000);

    it('serves the certificate of a Secret, which the API server trusts by the CA in the values', async () => {
      const { authority } = controlPlane();
      const { certificate: issued, privateKey } = authority.issueForServer([`rollout-group-agent.${namespace}.svc`]);
      const files = { 'tls.crt': issued, 'tls.key': privateKey };
      for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
      const secrets = `/api/v1/namespaces/${namespace}/secrets`;
      await admin.create(secrets, { metadata: { name: 'given' }, type: 'kubernetes.io/tls', stringData: files });
      const values = {
        replicas: 1,
        certificate: { secret: { name: 'given', ca: authority.certificate } },
        // No kubelet mounts the Secret, so the process reads the files of the test.
        extraArgs: [`-server-tls.cert-file=${join(folder, 'tls.crt')}`, `-server-tls.key-file=${join(folder, 'tls.key')}`],
      };
      writeFileSync(join(folder, 'values.json'), JSON.stringify(values));
      await done(helm('install', 'rollout-group', chart, '--values', join(folder, 'values.json'), '--wait', '--timeout', '90s'));
      const kind = { apiVersion: 'rollout-group.dev/v1alpha1', kind: 'RolloutIntent' };
      const intent = { ...kind, metadata: { generateName: 'pause-' }, spec: { group: 'cache', action: 'pause', reason: 'test' } };
      const stamped = await eventually(
        'a request that the webhook stamps',
        () => admin.ask<Stamped>('POST', '/apis/rollout-group.dev/v1alpha1/namespaces/shop/rolloutintents?dryRun=All', intent),
        ({ body }) => body.spec?.requestedBy !== undefined,
      );
      expect(stamped.body.spec?.requestedBy?.user).toBe('admin');
      const found = (await admin.list(secrets)).map(({ metadata }) => metadata.name);
      expect(found.filter((name) => !name.startsWith('sh.helm.'))).toEqual(['given']);
      await done(helm('uninstall', 'rollout-group', '--wait', '--timeout', '60s'));
      await admin.delete(`${secrets}/given`);
    }, 240_000);

    it('does what docs/helm.md shows: takes the kept CRDs over, tests the connection, upgrades, and uninstalls', async () => {
      await admin.create('/api/v1/namespaces', { metadata: { name: 'mimir' } });
      const played = playTest(controlPlane(), agents).catch(messageOf);
      const env = {
        KUBECONFIG: controlPlane().identities.admin.kubeconfig,
        PATH: [dirname(helmPath), process.env['PATH']].join(delimiter),
      };
      const page = await checkPage('docs/helm.md', ({ cluster }) => cluster === chartCluster, { mask: withoutTimes, env });
      // Both in one assertion: a page that differs may be due to what the test of the chart says.
      expect([page, await played]).toEqual([
        '',
        expect.stringContaining('the agent is ready, and its certificate is for rollout-group-agent.rollout-group.svc'),
      ]);
      const kept = (await admin.list(definitions)).filter(({ metadata }) => metadata.name.endsWith('.rollout-group.dev'));
      expect(kept.length).toBeGreaterThan(0);
    }, 360_000);

    it('deletes the CRDs only if the values say so', async () => {
      await done(helm('install', 'rollout-group', chart, '--set', 'replicas=1', '--wait', '--timeout', '90s'));
      await done(helm('upgrade', 'rollout-group', chart, '--reuse-values', '--set', 'crds.keep=false', '--wait', '--timeout', '90s'));
      const uids = (await admin.list(pods)).map(({ metadata }) => metadata.uid);
      await done(helm('uninstall', 'rollout-group', '--wait', '--timeout', '60s'));
      const all = await admin.list(definitions);
      expect(all.filter(({ metadata }) => metadata.name.endsWith('.rollout-group.dev'))).toEqual([]);
      expect((await admin.list(pods)).map(({ metadata }) => metadata.uid)).toEqual(uids);
    }, 240_000);
  },
  { zones: ['eu-west-1a', 'eu-west-1b', 'eu-west-1c'], nodesPerZone: 3, hasServices: true, controllers: ['endpointslice-controller'] },
);

interface TestPod extends KubernetesObject {
  readonly status?: { readonly phase?: string };
  readonly spec: {
    readonly containers: readonly {
      readonly command: readonly string[];
      readonly env: readonly { readonly name: string; readonly value: string }[];
    }[];
  };
}

/** Plays the kubelet for the pod of `helm test`: runs its command, with addresses of this machine instead of those of the Service. */
async function playTest({ client }: ControlPlane, agents: Agents): Promise<string> {
  const path = `/api/v1/namespaces/${namespace}/pods`;
  const name = 'rollout-group-agent-test';
  const isTest = ({ metadata, status }: TestPod): boolean => metadata.name === name && status?.phase === 'Running';
  const [pod] = (await client.until<TestPod>(path, 'the pod of the test', (items) => items.some(isTest), 240_000)).filter(isTest);
  const container = pod?.spec.containers[0];
  if (container === undefined) throw new Error('the pod of the test has no container');
  // The model kubelet makes the pods of the agent Ready, whether or not their processes have started.
  const [ports] = await eventually(
    'a process of the agent',
    async () => agents.ports(),
    (all) => all.length > 0,
  );
  if (ports === undefined) throw new Error('there is no agent');
  const env: Record<string, string> = Object.fromEntries(container.env.map(({ name: variable, value }) => [variable, value]));
  const [, ...args] = container.command.map((word) => word.replace(/\$\((\w+)\)/g, (_, variable: string) => env[variable] ?? ''));
  const local = { ...env, READY_URL: `http://127.0.0.1:${ports.serverPort}/ready`, WEBHOOK_ADDRESS: `127.0.0.1:${ports.webhookPort}` };
  const { code, said } = await new Promise<Ran>((settle) => {
    execFile(process.execPath, args, { env: local }, (error, stdout, stderr) =>
      settle({ code: error === null ? 0 : 1, said: `${stdout}${stderr}` }),
    );
  });
  await client.patch(`${path}/${name}/status`, 'merge', { status: { phase: code === 0 ? 'Succeeded' : 'Failed' } });
  return said;
}
