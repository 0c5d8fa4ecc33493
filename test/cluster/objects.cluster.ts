// What reads, writes, reflectors, shared objects and Leases promise, on a real API server and with no more rights than they need.
import { request } from 'node:http';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { connectionProcess, processEnv } from '../../cluster/connection/process-env.ts';
import { KubernetesTransport } from '../../cluster/connection/transport.ts';
import type { ClusterEnv, KubernetesHttp, KubernetesStream } from '../../cluster/env.ts';
import { loadConnection } from '../../cluster/kubeconfig/kubeconfig.ts';
import { Lease } from '../../cluster/lease/lease.ts';
import { discover } from '../../cluster/request/discovery.ts';
import { isStatus, TransportFailure } from '../../cluster/request/failure.ts';
import { getObject, listObjects } from '../../cluster/request/read.ts';
import { collectionPath, type KubernetesObject, type Resource, resources } from '../../cluster/request/resource.ts';
import {
  applyObject,
  createObject,
  deleteObject,
  evictPod,
  microTime,
  patchObject,
  replaceObject,
  type Target,
} from '../../cluster/request/write.ts';
import { SharedObject } from '../../cluster/shared/shared-object.ts';
import { type Change, Reflector } from '../../cluster/watch/reflector.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { statefulSet } from '../control-plane/workloads.ts';

const site = 'test.objects';
const patience = { timeout: 30_000, interval: 20 };

const rules = [
  { apiGroups: [''], resources: ['configmaps', 'pods'], verbs: ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete'] },
  { apiGroups: [''], resources: ['pods/eviction'], verbs: ['create'] },
  { apiGroups: ['apps'], resources: ['statefulsets', 'statefulsets/scale'], verbs: ['get', 'list', 'watch', 'patch'] },
  { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['list', 'watch', 'create', 'delete'] },
  { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get', 'create', 'update'] },
];

async function connect(kubeconfig: string): Promise<ClusterEnv> {
  const process = { ...connectionProcess(), env: {}, homeDir: '/nonexistent' };
  const http = new KubernetesTransport(await loadConnection({ kubeconfig }, process), { userAgent: 'rollout-group-test/1' });
  onTestFinished(() => http.close());
  return processEnv(http);
}

/** A namespace, and the environment of somebody who may do in it what the rules say. */
async function place({ client, identityOf }: ControlPlane, namespace: string) {
  await client.create('/api/v1/namespaces', { metadata: { name: namespace } });
  const identity = identityOf({ user: `tester-of-${namespace}`, groups: [] });
  const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`;
  await client.create(`${rbac}/roles`, { metadata: { name: 'test' }, rules });
  await client.create(`${rbac}/rolebindings`, {
    metadata: { name: 'test' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'test' },
    subjects: [{ kind: 'User', name: identity.user }],
  });
  const env = await connect(identity.kubeconfig);
  // The API server learns of new bindings by a watch of its own.
  await vi.waitFor(() => listObjects(env, resources.configMaps, { namespace, site }), patience);
  await vi.waitFor(() => getObject(env, resources.leases, { namespace, name: 'none' }, { site }), patience);
  return { env, namespace, connectAgain: () => connect(identity.kubeconfig) };
}

function targetOf({ metadata }: KubernetesObject): Target & { readonly namespace: string } {
  const { namespace = '', name, uid = '', resourceVersion = '' } = metadata;
  return { namespace, name, uid, resourceVersion };
}

const configMap = (namespace: string, name: string, data: Readonly<Record<string, string>> = {}): KubernetesObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { namespace, name },
  data,
});

async function now(
  env: ClusterEnv,
  resource: Resource,
  { namespace, name }: Pick<Target, 'namespace' | 'name'>,
): Promise<KubernetesObject> {
  const object = await getObject(env, resource, { namespace, name }, { site });
  if (object === undefined) throw new Error(`${name} is not there`);
  return object;
}

describeOnControlPlane('objects', (controlPlane) => {
  describe('writes', () => {
    const otherUid = '00000000-0000-0000-0000-000000000000';

    it.each([
      ['another UID', { uid: otherUid }],
      ['an older version', { resourceVersion: '1' }],
      ['both', { uid: otherUid, resourceVersion: '1' }],
    ])('that name %s change nothing', async (what, wrong) => {
      const { env, namespace } = await place(controlPlane(), `wrong-${Object.keys(wrong).join('-').toLowerCase()}`);
      const created = await createObject(env, resources.configMaps, configMap(namespace, 'a', { key: 'old' }), { site });
      const target = { ...targetOf(created), ...wrong };
      const metadata = { ...created.metadata, ...wrong };
      const refused = async (write: Promise<unknown>): Promise<number> => {
        const error: unknown = await write.then(
          () => new Error('it was carried out'),
          (reason: unknown) => reason,
        );
        return isStatus(error, 409, 422) ? error.status : Promise.reject(error);
      };
      const statuses = {
        delete: await refused(deleteObject(env, resources.configMaps, target, { site })),
        patch: await refused(patchObject(env, resources.configMaps, target, { site, patch: { data: { key: 'new' } } })),
        replace: await refused(replaceObject(env, resources.configMaps, { ...created, metadata, data: { key: 'new' } }, { site })),
        apply: await refused(
          applyObject(
            env,
            resources.configMaps,
            { ...configMap(namespace, 'a'), metadata: { namespace, name: 'a', ...wrong }, data: { other: 'new' } },
            { site, fieldManager: 'test' },
          ),
        ),
      };
      expect([what, statuses]).toEqual([what, { delete: 409, patch: 409, replace: 409, apply: 409 }]);
      expect(await now(env, resources.configMaps, target)).toEqual(created);
    });

    it('that name the observed state are carried out once', async () => {
      const { env, namespace } = await place(controlPlane(), 'right');
      const created = await createObject(env, resources.configMaps, configMap(namespace, 'a', { key: '1' }), { site });
      await expect(createObject(env, resources.configMaps, configMap(namespace, 'a'), { site })).rejects.toMatchObject({
        status: 409,
        reason: 'AlreadyExists',
      });
      const patch = { data: { key: '2' } };
      const patched = await patchObject(env, resources.configMaps, targetOf(created), { site, patch });
      await expect(patchObject(env, resources.configMaps, targetOf(created), { site, patch })).rejects.toMatchObject({ status: 409 });
      const replaced = await replaceObject(env, resources.configMaps, { ...patched, data: { key: '3' } }, { site });
      expect((await now(env, resources.configMaps, targetOf(created)))['data']).toEqual({ key: '3' });
      await patchObject(env, resources.configMaps, targetOf(replaced), { site, patch: { data: { key: '4' } }, dryRun: true });
      await deleteObject(env, resources.configMaps, targetOf(replaced), { site, dryRun: true });
      expect((await now(env, resources.configMaps, targetOf(created)))['data']).toEqual({ key: '3' });
      await deleteObject(env, resources.configMaps, targetOf(replaced), { site });
      expect(await getObject(env, resources.configMaps, { namespace, name: 'a' }, { site })).toBeUndefined();
    });

    it('by server-side apply take no fields from another manager', async () => {
      const { env, namespace } = await place(controlPlane(), 'apply');
      await applyObject(env, resources.configMaps, configMap(namespace, 'a', { key: 'theirs' }), { site, fieldManager: 'theirs' });
      const apply = (data: Readonly<Record<string, string>>) =>
        applyObject(env, resources.configMaps, configMap(namespace, 'a', data), { site, fieldManager: 'ours' });
      await expect(apply({ key: 'ours' })).rejects.toMatchObject({ status: 409 });
      expect((await apply({ more: 'ours' }))['data']).toEqual({ key: 'theirs', more: 'ours' });
    });

    it('to pods and scales name their object', async () => {
      const { env, namespace } = await place(controlPlane(), 'pods');
      const { client } = controlPlane();
      await client.create(collectionPath(resources.statefulSets, namespace), statefulSet({ name: 'server', replicas: 2 }));
      const pods = await client.until<KubernetesObject & { metadata: { uid: string; resourceVersion: string } }>(
        collectionPath(resources.pods, namespace),
        'two running pods',
        (items) => items.length === 2 && items.every((pod) => (pod['status'] as { phase?: string }).phase === 'Running'),
      );
      const [first, second] = await Promise.all(pods.map(({ metadata }) => now(env, resources.pods, { namespace, name: metadata.name })));
      if (first === undefined || second === undefined) throw new Error('a pod is missing');
      const evict = (uid: string) => evictPod(env, { ...targetOf(first), uid }, { site });
      await expect(evict(otherUid)).rejects.toMatchObject({ status: 409 });
      await expect(deleteObject(env, resources.pods, { ...targetOf(second), resourceVersion: '1' }, { site })).rejects.toMatchObject({
        status: 409,
      });
      const untouched = await Promise.all([first, second].map((pod) => now(env, resources.pods, targetOf(pod))));
      expect(untouched.map(({ metadata }) => metadata.uid)).toEqual([first, second].map(({ metadata }) => metadata.uid));

      await evict(targetOf(first).uid);
      await vi.waitFor(async () => {
        const successor = await now(env, resources.pods, targetOf(first));
        expect(successor.metadata.uid).not.toBe(first.metadata.uid);
      }, patience);
      // Its own grace period, not a shorter one.
      const deleted = await deleteObject(env, resources.pods, targetOf(await now(env, resources.pods, targetOf(second))), { site });
      const spec = second['spec'] as { readonly terminationGracePeriodSeconds: number };
      expect(deleted?.metadata['deletionGracePeriodSeconds']).toBe(spec.terminationGracePeriodSeconds);

      const scale = (target: Target) =>
        patchObject(env, resources.statefulSets, target, { site, subresource: 'scale', patch: { spec: { replicas: 1 } } });
      const set = targetOf(await now(env, resources.statefulSets, { namespace, name: 'server' }));
      await expect(scale({ ...set, resourceVersion: '1' })).rejects.toMatchObject({ status: 409 });
      await expect(scale({ ...set, uid: otherUid })).rejects.toMatchObject({ status: 409 });
      await vi.waitFor(async () => scale(targetOf(await now(env, resources.statefulSets, set))), patience);
      expect((await now(env, resources.statefulSets, set))['spec']).toMatchObject({ replicas: 1 });
    });
  });

  it('are listed in pages, each once, and found by discovery', async () => {
    const { env, namespace } = await place(controlPlane(), 'pages');
    const names = Array.from({ length: 1200 }, (_, index) => `map-${String(index).padStart(4, '0')}`);
    for (let at = 0; at < names.length; at += 100) {
      await Promise.all(
        names.slice(at, at + 100).map((name) => createObject(env, resources.configMaps, configMap(namespace, name), { site })),
      );
    }
    const listed = await listObjects(env, resources.configMaps, { namespace, site });
    const found = listed.items.map(({ metadata }) => metadata.name).filter((name) => name.startsWith('map-'));
    expect(found).toEqual(names);
    expect(listed.items[0]).toMatchObject({ apiVersion: 'v1', kind: 'ConfigMap' });

    const discovery = await discover(env);
    expect(discovery.find({ group: 'apps', kind: 'StatefulSet' })).toEqual([resources.statefulSets]);
    expect(Object.values(resources).map((resource) => discovery.has(resource))).toEqual(Object.values(resources).map(() => true));
    expect(discovery.find({ group: 'autoscaling', kind: 'HorizontalPodAutoscaler' }).map(({ version }) => version)).toEqual(['v2', 'v1']);
    expect(Object.values(resources).every((resource) => discovery.knows(resource))).toBe(true);
  });

  it('are followed by a reflector', async () => {
    const { env, namespace } = await place(controlPlane(), 'follow');
    const { client } = controlPlane();
    const maps = collectionPath(resources.configMaps, namespace);
    const changes: Change<string>[] = [];
    const reflector = new Reflector<string>({
      env,
      resource: resources.configMaps,
      namespace,
      labelSelector: 'app=x',
      project: (object) => String((object['data'] as { readonly key?: string } | undefined)?.key),
      onChange: (change) => changes.push(change),
      site: 'test.follow',
    });
    onTestFinished(() => reflector.stop());
    const put = (name: string, key: string, app = 'x') =>
      client.patch<KubernetesObject>(`${maps}/${name}?fieldManager=test`, 'apply', {
        ...configMap(namespace, name, { key }),
        metadata: { namespace, name, labels: { app } },
      });
    await vi.waitFor(() => expect(reflector.state().kind).toBe('synced'), patience);
    await put('a', '1');
    await put('b', '1', 'y');
    const last = await put('a', '2');
    await vi.waitFor(() => expect(reflector.hasSeen(last.metadata.resourceVersion ?? '')).toBe(true), patience);
    expect(reflector.store.list()).toEqual(['2']);
    await client.delete(`${maps}/a`);
    await put('a', '3');
    await vi.waitFor(() => expect(reflector.store.get(namespace, 'a')).toBe('3'), patience);
    expect(changes.map(({ kind, view = '' }) => `${kind} ${view}`)).toEqual(['added 1', 'modified 2', 'deleted ', 'added 3']);
  });

  it('are followed after an expired watch: a list contains the missed changes', async () => {
    const { env, namespace } = await place(controlPlane(), 'expired');
    // Events are not in the API server's cache, so that their watches end where etcd's history does.
    const write = (name: string) =>
      createObject(
        env,
        resources.events,
        {
          apiVersion: 'events.k8s.io/v1',
          kind: 'Event',
          metadata: { namespace, name },
          eventTime: microTime(Date.now()),
          reportingController: 'rollout-group.dev/test',
          reportingInstance: 'test',
          action: 'Testing',
          reason: 'Testing',
          type: 'Normal',
          regarding: { kind: 'Namespace', name: namespace, namespace },
        } as KubernetesObject,
        { site },
      );
    const streams: KubernetesStream[] = [];
    let isAway = false;
    const kubernetes: KubernetesHttp = {
      request: env.kubernetes.request,
      stream: async (request, onLine) => {
        if (isAway) throw new TransportFailure('no network', { site: request.site, mayBeApplied: false });
        const stream = await env.kubernetes.stream(request, onLine);
        streams.push(stream);
        return stream;
      },
    };
    const reflector = new Reflector<string>({
      env: { ...env, kubernetes },
      resource: resources.events,
      namespace,
      project: ({ metadata }) => metadata.name,
      onChange: () => undefined,
      site: 'test.expired',
    });
    onTestFinished(() => reflector.stop());
    const first = await write('first');
    await vi.waitFor(() => expect(reflector.store.list()).toEqual(['first']), patience);
    isAway = true;
    for (const { close } of streams) close();
    await deleteObject(env, resources.events, targetOf(first), { site });
    const { metadata } = await write('second');
    await compact(controlPlane(), metadata.resourceVersion ?? '');
    isAway = false;
    await vi.waitFor(() => expect(reflector.store.list()).toEqual(['second']), patience);
  });

  it('that are shared get 100 changes of two processes, each once', async () => {
    const { env, namespace, connectAgain } = await place(controlPlane(), 'shared');
    const list = (ofEnv: ClusterEnv) =>
      new SharedObject<readonly string[]>({
        env: ofEnv,
        resource: resources.configMaps,
        namespace,
        name: 'shared',
        decode: (object) => JSON.parse((object?.['data'] as { readonly list: string } | undefined)?.list ?? '[]') as string[],
        encode: (value) => ({ data: { list: JSON.stringify(value) } }),
        site: 'test.shared',
      });
    const [one, two] = [list(env), list(await connectAgain())];
    const items = Array.from({ length: 100 }, (_, index) => `change-${index}`);
    const beganMs = performance.now();
    await Promise.all(items.map((item, index) => (index % 2 === 0 ? one : two).update((all) => [...all, item])));
    const { value } = await one.read();
    expect([...value].sort()).toEqual([...items].sort());
    process.stderr.write(`100 changes of two processes took ${Math.round(performance.now() - beganMs)} ms\n`);
  });

  it('that are Leases have one holder at a time', async () => {
    const { env, namespace, connectAgain } = await place(controlPlane(), 'lease');
    const told: string[] = [];
    const contend = (ofEnv: ClusterEnv, identity: string): Lease =>
      new Lease({
        env: ofEnv,
        namespace,
        name: 'agent',
        identity,
        durationMs: 3000,
        renewDeadlineMs: 2000,
        retryPeriodMs: 400,
        onAcquired: (epoch) => told.push(`${identity} acquired ${epoch}`),
        onLost: (reason) => told.push(`${identity} lost: ${reason}`),
      });
    const one = contend(env, 'one');
    onTestFinished(() => one.stop());
    await vi.waitFor(() => expect(one.mayAct(500)).toBe(true), patience);
    const two = contend(await connectAgain(), 'two');
    onTestFinished(() => two.stop());
    await vi.waitFor(() => expect(two.holder()).toBe('one'), patience);
    expect(two.mayAct(0)).toBe(false);
    await one.release();
    await vi.waitFor(() => expect([one.mayAct(0), two.mayAct(500)]).toEqual([false, true]), patience);
    const third = contend(env, 'third');
    onTestFinished(() => third.stop());
    two.stop();
    await vi.waitFor(() => expect(third.mayAct(500)).toBe(true), patience);
    expect(told).toEqual(['one acquired 1', 'one lost: released', 'two acquired 2', 'two lost: stopped', 'third acquired 3']);
    const stored = await now(env, resources.leases, { namespace, name: 'agent' });
    expect(stored['spec']).toMatchObject({ holderIdentity: 'third', leaseDurationSeconds: 3, leaseTransitions: 3 });
    expect((stored['spec'] as { readonly renewTime: string }).renewTime).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
  });
});

/** Makes etcd forget what was before that revision, as the API server does every five minutes. */
async function compact({ folder }: ControlPlane, revision: string): Promise<void> {
  const options = { socketPath: join(folder, 'etcd.sock'), path: '/v3/kv/compaction', method: 'POST', headers: { host: 'localhost' } };
  const status = await new Promise<number | undefined>((resolve, reject) => {
    const sent = request(options, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    sent.on('error', reject);
    sent.end(JSON.stringify({ revision }));
  });
  expect(status).toBe(200);
}
