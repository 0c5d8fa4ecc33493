// Tests the fixture on which the suites depend.
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { build } from 'esbuild';
import { describe, expect, inject, it, vi } from 'vitest';
import type { KubernetesObject } from './client.ts';
import { type ControlPlane, startControlPlane } from './control-plane.ts';
import { findZone, loseZone } from './nodes.ts';
import { describeOnControlPlane } from './suite.ts';
import { isReady, type Pod, revisionOf, type StatefulSet, type StatefulSetOptions, statefulSet } from './workloads.ts';

const annotation = (name: 'ready-after' | 'gone-after' | 'unready') => `test.rollout-group.dev/${name}`;

interface Place {
  readonly pods: string;
  readonly sets: string;
  readonly budgets: string;
}

/** Creates a namespace for one test. */
async function namespace({ client }: ControlPlane, name: string): Promise<Place> {
  await client.create('/api/v1/namespaces', { metadata: { name } });
  return {
    pods: `/api/v1/namespaces/${name}/pods`,
    sets: `/apis/apps/v1/namespaces/${name}/statefulsets`,
    budgets: `/apis/policy/v1/namespaces/${name}/poddisruptionbudgets`,
  };
}

async function createReady({ client }: ControlPlane, { sets, pods }: Place, options: StatefulSetOptions): Promise<readonly Pod[]> {
  await client.create(sets, statefulSet(options));
  return untilReady({ client }, pods, options.replicas);
}

function untilReady({ client }: Pick<ControlPlane, 'client'>, pods: string, count: number): Promise<readonly Pod[]> {
  return client.until<Pod>(pods, `${count} pods Ready`, (items) => items.length === count && items.every(isReady));
}

describeOnControlPlane('a control plane', (controlPlane) => {
  it('has one Ready node in each of three zones', async () => {
    const nodes = await controlPlane().client.list<KubernetesObject>('/api/v1/nodes');
    expect(nodes.map(({ metadata }) => [metadata.name, metadata.labels?.['topology.kubernetes.io/zone']])).toEqual([
      ['node-zone-a-0', 'zone-a'],
      ['node-zone-b-0', 'zone-b'],
      ['node-zone-c-0', 'zone-c'],
    ]);
  });

  it('reports the version of Kubernetes that it was built from', async () => {
    const { gitVersion } = await controlPlane().client.get<{ readonly gitVersion: string }>('/version');
    expect(gitVersion).toMatch(/^v1\.[1-9]\d*\.\d+$/);
  });

  it('makes the pods of a StatefulSet Ready', async () => {
    const place = await namespace(controlPlane(), 'ready');
    const pods = await createReady(controlPlane(), place, { name: 'server', replicas: 3 });
    expect(pods.map(({ metadata }) => metadata.name)).toEqual(['server-0', 'server-1', 'server-2']);
    expect(new Set(pods.map(({ status }) => status.podIP)).size).toBe(3);
    expect(new Set(pods.map(({ spec }) => spec.nodeName)).size).toBe(3);
  });

  it('builds a deleted pod of an OnDelete set again, at the update revision', async () => {
    const { client } = controlPlane();
    const { sets, pods, ...place } = await namespace(controlPlane(), 'on-delete');
    const before = await createReady(controlPlane(), { sets, pods, ...place }, { name: 'server', replicas: 3 });
    await client.patch(`${sets}/server`, 'strategic', {
      spec: { template: { spec: { containers: [{ name: 'server', image: 'example.com/server:2' }] } } },
    });
    const [set] = await client.until<StatefulSet>(sets, 'a new update revision', ([only]) => {
      return only?.status.updateRevision !== undefined && only.status.updateRevision !== only.status.currentRevision;
    });
    await client.delete(`${pods}/server-1`);
    const after = await client.until<Pod>(pods, 'another server-1, Ready', (items) => {
      return items.length === 3 && items.every(isReady) && items[1]?.metadata.uid !== before[1]?.metadata.uid;
    });
    expect(after.map(revisionOf)).toEqual([set?.status.currentRevision, set?.status.updateRevision, set?.status.currentRevision]);
  });

  it('scales a StatefulSet by its scale subresource', async () => {
    const { client } = controlPlane();
    const place = await namespace(controlPlane(), 'scale');
    await createReady(controlPlane(), place, { name: 'server', replicas: 2 });
    await client.patch(`${place.sets}/server/scale`, 'merge', { spec: { replicas: 4 } });
    await untilReady(controlPlane(), place.pods, 4);
    await client.patch(`${place.sets}/server/scale`, 'merge', { spec: { replicas: 1 } });
    const left = await untilReady(controlPlane(), place.pods, 1);
    expect(left.map(({ metadata }) => metadata.name)).toEqual(['server-0']);
  });

  it('evicts as many pods as a PodDisruptionBudget allows, and no more', async () => {
    const { client } = controlPlane();
    const place = await namespace(controlPlane(), 'evict');
    // A slowly terminating pod keeps the budget used while the second eviction is requested.
    await createReady(controlPlane(), place, { name: 'server', replicas: 3, annotations: { [annotation('gone-after')]: '3s' } });
    await client.create(place.budgets, {
      metadata: { name: 'server' },
      spec: { maxUnavailable: 1, selector: { matchLabels: { name: 'server' } } },
    });
    await client.until<KubernetesObject & { readonly status: { readonly disruptionsAllowed?: number } }>(
      place.budgets,
      'one disruption allowed',
      ([budget]) => budget?.status.disruptionsAllowed === 1,
    );
    const evict = (name: string) =>
      client.ask('POST', `${place.pods}/${name}/eviction`, { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name } });
    expect([(await evict('server-0')).status, (await evict('server-1')).status]).toEqual([201, 429]);
  });

  it('lets a test slow a pod down, make it unready for a reason, and heal it', async () => {
    const { client } = controlPlane();
    const { pods, sets, ...place } = await namespace(controlPlane(), 'steer');
    const startedAt = Date.now();
    await createReady(
      controlPlane(),
      { pods, sets, ...place },
      { name: 'slow', replicas: 1, annotations: { [annotation('ready-after')]: '3s' } },
    );
    expect(Date.now() - startedAt).toBeGreaterThanOrEqual(3000);

    const annotate = (value: string | null) =>
      client.patch(`${pods}/slow-0`, 'merge', { metadata: { annotations: { [annotation('unready')]: value } } });
    const waitsFor = ([pod]: readonly Pod[]) => pod?.status.containerStatuses?.map(({ state }) => state?.waiting?.reason);
    await annotate('CrashLoopBackOff');
    const crashing = await client.until<Pod>(pods, 'an unready pod', (items) => !items.some(isReady));
    expect(waitsFor(crashing)).toEqual(['CrashLoopBackOff']);
    await annotate(null);
    const healed = await untilReady(controlPlane(), pods, 1);
    expect(waitsFor(healed)).toEqual([undefined]);
    expect(healed[0]?.metadata.uid).toBe(crashing[0]?.metadata.uid);
  });

  it.each([
    { reason: 'Probe', phase: 'Running', waiting: undefined },
    { reason: 'CrashLoopBackOff', phase: 'Running', waiting: 'CrashLoopBackOff' },
    { reason: 'ImagePullBackOff', phase: 'Pending', waiting: 'ImagePullBackOff' },
  ])('keeps a new pod unready for the reason $reason', async ({ reason, phase, waiting }) => {
    const { client } = controlPlane();
    const { pods, sets } = await namespace(controlPlane(), `unready-${reason.toLowerCase()}`);
    await client.create(sets, statefulSet({ name: 'server', replicas: 1, annotations: { [annotation('unready')]: reason } }));
    const [pod] = await client.until<Pod>(pods, 'a started pod', ([only]) => only?.status.containerStatuses !== undefined);
    const seen = {
      phase: pod?.status.phase,
      waiting: pod?.status.containerStatuses?.[0]?.state?.waiting?.reason,
      isReady: pod && isReady(pod),
    };
    expect(seen).toEqual({ phase, waiting, isReady: false });
  });

  it('keeps a pod with a broken image unready, and makes its successor with a sound one Ready', async () => {
    const { client } = controlPlane();
    const { pods, sets } = await namespace(controlPlane(), 'broken');
    await client.create(sets, statefulSet({ name: 'server', replicas: 1, image: 'example.com/server:broken' }));
    const [pod] = await client.until<Pod>(pods, 'a started pod', ([only]) => only?.status.containerStatuses !== undefined);
    expect([pod?.status.containerStatuses?.[0]?.state?.waiting?.reason, pod && isReady(pod)]).toEqual(['CrashLoopBackOff', false]);
    await client.patch(`${sets}/server`, 'strategic', {
      spec: { template: { spec: { containers: [{ name: 'server', image: 'example.com/server:2' }] } } },
    });
    await client.delete(`${pods}/server-0`);
    await untilReady(controlPlane(), pods, 1);
  });

  it('loses the nodes of a zone and finds them again', async () => {
    const { client } = controlPlane();
    const { pods, sets } = await namespace(controlPlane(), 'lost');
    await client.create(sets, statefulSet({ name: 'server', replicas: 3 }));
    const before = await untilReady(controlPlane(), pods, 3);
    const zone = before[0]?.spec.nodeName?.replace(/^node-|-0$/g, '') ?? '';
    await loseZone(client, zone);
    const [lost] = await client.until<Pod>(pods, 'an unready pod', (items) => !items.every(isReady));
    expect(lost?.status.containerStatuses?.map(({ ready }) => ready)).toEqual([true]);
    const nodes = await client.list<KubernetesObject & Pick<Pod, 'status'>>('/api/v1/nodes');
    expect(nodes.filter((node) => isReady(node as unknown as Pod)).map(({ metadata }) => metadata.name)).not.toContain(`node-${zone}-0`);
    await client.delete(`${pods}/server-0`);
    await findZone(client, zone);
    const after = await client.until<Pod>(pods, 'another server-0, Ready', (items) => {
      return items.length === 3 && items.every(isReady) && items[0]?.metadata.uid !== lost?.metadata.uid;
    });
    expect(after.slice(1).map(({ metadata }) => metadata.uid)).toEqual(before.slice(1).map(({ metadata }) => metadata.uid));
  });

  it('writes down who did what: controllers, scheduler and kubelet under their own names', async () => {
    const { client } = controlPlane();
    const place = await namespace(controlPlane(), 'audit');
    await createReady(controlPlane(), place, { name: 'server', replicas: 1 });
    await client.patch(`${place.sets}/server/scale`, 'merge', { spec: { replicas: 0 } });
    await untilReady(controlPlane(), place.pods, 0);
    const events = (await controlPlane().auditLog()).filter(
      ({ objectRef, verb }) => objectRef?.namespace === 'audit' && !/get|list|watch/.test(verb),
    );
    const who = events
      .filter(({ objectRef, responseStatus }) => objectRef?.resource === 'pods' && (responseStatus?.code ?? 500) < 300)
      .map(
        ({ verb, objectRef, user }) =>
          `${user.username} ${verb} ${[objectRef?.resource, objectRef?.subresource].filter(Boolean).join('/')}`,
      );
    expect([...new Set(who)].sort()).toEqual([
      'system:kube-scheduler create pods/binding',
      'system:node:kwok delete pods',
      'system:node:kwok patch pods/status',
      'system:serviceaccount:kube-system:statefulset-controller create pods',
      'system:serviceaccount:kube-system:statefulset-controller delete pods',
    ]);
    const scaled = events.find(({ objectRef, user }) => objectRef?.subresource === 'scale' && user.username === 'admin');
    expect(scaled).toMatchObject({ verb: 'patch', requestObject: { spec: { replicas: 0 } }, responseStatus: { code: 200 } });
  });

  it('gives the agent no right that a test did not give it', async () => {
    const { client, clientOf, identities } = controlPlane();
    const agent = clientOf(identities.agent);
    expect((await agent.ask('GET', '/api/v1/namespaces/default/pods')).status).toBe(403);
    const rbac = '/apis/rbac.authorization.k8s.io/v1/namespaces/default';
    await client.create(`${rbac}/roles`, {
      metadata: { name: 'pods' },
      rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['list'] }],
    });
    await client.create(`${rbac}/rolebindings`, {
      metadata: { name: 'pods' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'pods' },
      subjects: [{ kind: 'ServiceAccount', name: 'rollout-group-agent', namespace: 'rollout-group' }],
    });
    await vi.waitFor(async () => expect((await agent.ask('GET', '/api/v1/namespaces/default/pods')).status).toBe(200), 10_000);
  });
});

const binaries = inject('controlPlaneBinaries');

describe.skipIf(binaries.kind === 'missing')('control planes', () => {
  const folder = binaries.kind === 'found' ? binaries.folder : '';

  it('run side by side, know nothing of one another, and leave neither process nor file', async () => {
    const startedAt = Date.now();
    const pair = await Promise.all([
      startControlPlane({ binaries: folder }),
      startControlPlane({ binaries: folder, zones: ['only'], nodesPerZone: 2 }),
    ]);
    const [one, other] = pair;
    const startMs = Date.now() - startedAt;
    await one.client.create('/api/v1/namespaces', { metadata: { name: 'mine' } });
    expect((await other.client.ask('GET', '/api/v1/namespaces/mine')).status).toBe(404);
    expect((await other.client.list('/api/v1/nodes')).map(({ metadata }) => metadata.name)).toEqual(['node-only-0', 'node-only-1']);
    const memory = Object.entries(one.memoryMiB());
    const total = memory.reduce((sum, [, mib]) => sum + mib, 0);
    const ids = pair.flatMap((each) => each.processIds());
    const stoppedAt = Date.now();
    await Promise.all(pair.map((each) => each.stop()));
    const figures = [`two started in ${startMs} ms`, `stopped in ${Date.now() - stoppedAt} ms`, `one holds ${total} MiB`];
    process.stderr.write(`control plane: ${figures.join(', ')} (${memory.map(([name, mib]) => `${name} ${mib}`).join(', ')})\n`);
    expect(ids.length).toBe(10);
    expect(ids.filter(isAlive)).toEqual([]);
    expect(pair.map((each) => existsSync(each.folder))).toEqual([false, false]);
  });

  it('keep their logs when asked', async () => {
    const one = await startControlPlane({ binaries: folder });
    const logs = (await one.stop({ keepLogs: true })) ?? 'nowhere';
    expect(existsSync(one.folder)).toBe(false);
    const kept = readdirSync(logs).sort();
    rmSync(logs, { recursive: true });
    expect(kept).toEqual([
      'audit.jsonl',
      'etcd.log',
      'kube-apiserver.log',
      'kube-controller-manager.log',
      'kube-scheduler.log',
      'kwok.log',
    ]);
  });

  it('tell the end of the log when a process does not start, and leave nothing', async () => {
    await expect(startControlPlane({ binaries: '/nonexistent' })).rejects.toThrow('etcd could not start: spawn /nonexistent/etcd ENOENT');
  });

  it('tell at the end that a process died on the way', async () => {
    const one = await startControlPlane({ binaries: folder });
    process.kill(one.processIds()[3] ?? 0, 'SIGKILL');
    await vi.waitFor(() => expect(one.processIds().filter(isAlive)).toHaveLength(4));
    await expect(one.stop()).rejects.toThrow('kube-scheduler ended by itself with SIGKILL');
    expect(existsSync(one.folder)).toBe(false);
  });

  it('die with the process that started them, and their files with them', async () => {
    const { child, told } = await startInProcess(folder);
    expect(told.ids.filter(isAlive)).toHaveLength(5);
    child.kill('SIGKILL');
    await vi.waitFor(() => expect([told.ids.filter(isAlive), existsSync(told.folder)]).toEqual([[], false]), {
      timeout: 10_000,
      interval: 50,
    });
  });
});

function isAlive(id: number): boolean {
  try {
    return process.kill(id, 0);
  } catch {
    return false;
  }
}

/** Starts another Node.js process that starts a control plane and then does nothing. */
async function startInProcess(binaries: string) {
  const source = `
    import { startControlPlane } from './test/control-plane/control-plane.ts';
    const { folder, processIds } = await startControlPlane({ binaries: process.argv[1] });
    process.stdout.write(JSON.stringify({ folder, ids: processIds() }) + '\\n');
  `;
  const bundle = await build({
    stdin: { contents: source, resolveDir: '.' },
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    write: false,
  });
  const code = bundle.outputFiles[0]?.text ?? '';
  const child = spawn(process.execPath, ['--input-type=module', '-e', code, binaries], { stdio: ['ignore', 'pipe', 'inherit'] });
  for await (const line of createInterface({ input: child.stdout })) {
    return { child, told: JSON.parse(line) as { readonly folder: string; readonly ids: readonly number[] } };
  }
  throw new Error(`the process ended with code ${child.exitCode} before it had started a control plane`);
}
