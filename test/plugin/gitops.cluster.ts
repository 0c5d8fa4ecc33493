// Objects that Flux and Argo CD apply from Git, on a real API server: what each tool reverts, ignores and waits for.
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { customResourceDefinition } from '../../policies/schema/json-schema.ts';
import { isRecord } from '../../policies/values/is-record.ts';
import { startInProcess } from '../control-plane/agent-in-process.ts';
import type { ApiClient, KubernetesObject } from '../control-plane/client.ts';
import { recordHistory } from '../control-plane/history.ts';
import { agentRules, grant, grantNodes } from '../control-plane/roles.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { isReady, type Pod, type StatefulSet, statefulSet } from '../control-plane/workloads.ts';
import { askHealth, healthProgram, luaOf } from '../deploy/health-program.ts';
import { serveKinds, untilServed } from './apply-kit.ts';
import { person, requesterRules, writerRules } from './live-people.ts';
import { pathOf } from './manifest-pairs.ts';

const namespace = 'flux';
const path = `/apis/apps/v1/namespaces/${namespace}/statefulsets`;
const names = ['ingester-zone-a', 'ingester-zone-b'];
const restartedAt = 'kubectl.kubernetes.io/restartedAt';

interface Entry {
  readonly manager: string;
  readonly operation: string;
  readonly subresource?: string;
}

type Managed = StatefulSet & {
  readonly metadata: { readonly resourceVersion: string; readonly managedFields: readonly Entry[] };
  readonly spec: { readonly template: { readonly metadata?: { readonly annotations?: Readonly<Record<string, string>> } } };
};

function manifest(name: string): object {
  const object = statefulSet({ name, replicas: 1, setLabels: { 'rollout-group': 'ingester' } });
  return { apiVersion: 'apps/v1', kind: 'StatefulSet', ...object };
}

describeOnControlPlane('a restart of members that Flux applies', (controlPlane) => {
  it('stays, unlike a restart by a manager whose name starts with kubectl', async () => {
    const { client } = controlPlane();
    await client.create('/api/v1/namespaces', { metadata: { name: namespace } });
    await serveKinds(controlPlane(), namespace);
    const writer = await person(controlPlane(), namespace, 'writer', writerRules);
    const managed = (name: string) => client.get<Managed>(`${path}/${name}`);
    // As kustomize-controller does with github.com/fluxcd/pkg/ssa: renames these managers to itself, then applies with force.
    const reconcile = async (name: string): Promise<void> => {
      const { metadata } = await managed(name);
      const isTaken = ({ manager, operation, subresource = '' }: Entry) =>
        subresource === '' &&
        (manager.startsWith('kubectl') || (/^(?:before-first-apply|kustomize-controller)/.test(manager) && operation === 'Update'));
      const entries = metadata.managedFields.map((one) =>
        isTaken(one) ? { ...one, manager: 'kustomize-controller', operation: 'Apply' } : one,
      );
      if (metadata.managedFields.some(isTaken)) {
        const operations = [
          { op: 'replace', path: '/metadata/managedFields', value: entries },
          { op: 'replace', path: '/metadata/resourceVersion', value: metadata.resourceVersion },
        ];
        const { status } = await client.ask('PATCH', `${path}/${name}`, operations, 'application/json-patch+json');
        // The StatefulSet controller wrote the status meanwhile.
        if (status === 409) return reconcile(name);
        expect(status).toBe(200);
      }
      await client.patch(`${path}/${name}?fieldManager=kustomize-controller&force=true`, 'apply', manifest(name));
    };
    const restarts = () => Promise.all(names.map(async (name) => (await managed(name)).spec.template.metadata?.annotations?.[restartedAt]));

    for (const name of names) await client.patch(`${path}/${name}?fieldManager=kustomize-controller`, 'apply', manifest(name));
    const done = await writer.run(['restart', 'ingester', '--yes']);
    expect(done.status, done.stderr).toBe(0);
    const [first] = await restarts();
    expect(first).toEqual(expect.any(String));
    for (const name of names) await reconcile(name);
    expect(await restarts()).toEqual([first, first]);
    for (const { metadata } of await Promise.all(names.map(managed)))
      expect(metadata.managedFields.filter(({ manager }) => manager.startsWith('kubectl'))).toEqual([]);

    const patch = { spec: { template: { metadata: { annotations: { [restartedAt]: 'by kubectl' } } } } };
    await client.patch(`${path}/${names[0]}?fieldManager=kubectl-rollout`, 'strategic', patch);
    await reconcile(names[0] ?? '');
    expect(await restarts()).toEqual([undefined, first]);
  });
});

type Json = Readonly<Record<string, unknown>>;

/** An object of a tool, in the cluster or in Git. */
interface Applied extends KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: KubernetesObject['metadata'] & { readonly managedFields?: readonly (Entry & { readonly fieldsV1: Json })[] };
  readonly spec?: Json;
}

interface Ignored {
  readonly kind: string;
  readonly jsonPointers?: readonly string[];
  readonly managedFieldsManagers?: readonly string[];
}

const ours = 'rollout-group.dev/v1alpha1';
const controller = 'argocd-controller';
const agentManager = 'rollout-group-agent';
const shipped = parse(readFileSync('deploy/argo-cd/application.yaml', 'utf8')) as {
  readonly spec: { readonly ignoreDifferences: readonly Ignored[] };
};

/** Returns the paths of all values of an object, or of the fields in an entry of managed fields. A list is one value. */
function leaves(value: unknown, path = ''): readonly string[] {
  const inner = isRecord(value) ? Object.entries(value).filter(([key]) => key !== '.') : [];
  return inner.length === 0 ? [path] : inner.flatMap(([key, part]) => leaves(part, `${path}/${key.replace(/^f:/, '')}`));
}

const valueAt = (object: unknown, pointer: string): unknown =>
  pointer
    .slice(1)
    .split('/')
    .reduce((value: unknown, key) => (isRecord(value) ? value[key] : undefined), object);

function withValue(object: Json, [key = '', ...rest]: readonly string[], value: unknown): Json {
  if (rest.length > 0) return { ...object, [key]: withValue(isRecord(object[key]) ? object[key] : {}, rest, value) };
  const { [key]: _old, ...others } = object;
  return value === undefined ? others : { ...others, [key]: value };
}

/** Argo CD with the Application of deploy/argo-cd, as far as it compares and applies objects. */
class ArgoCd {
  readonly #client: ApiClient;
  readonly #program = healthProgram();

  constructor(client: ApiClient) {
    this.#client = client;
  }

  pathOf({ apiVersion, kind, metadata }: Pick<Applied, 'apiVersion' | 'kind' | 'metadata'>): string {
    return `/apis/${apiVersion}/namespaces/${metadata.namespace}/${kind.toLowerCase().replace(/y$/, 'ie')}s/${metadata.name}`;
  }

  /** Applies the object. With RespectIgnoreDifferences, ignored fields keep their value of the cluster. */
  async sync(target: Applied): Promise<Applied> {
    return this.#apply(target, (await this.#wanted(target)).object, '');
  }

  /** Returns the paths at which an apply would change the object; undefined if the object changed meanwhile. */
  async differences(target: Applied): Promise<readonly string[] | undefined> {
    const { object, live } = await this.#wanted(target);
    const predicted = await this.#apply(target, object, '&dryRun=All');
    if (live === undefined || predicted.metadata.resourceVersion !== live.metadata.resourceVersion) {
      const now = await this.#client.get<Applied>(this.pathOf(target));
      if (live === undefined || now.metadata.resourceVersion !== live.metadata.resourceVersion) return undefined;
    }
    const shown = ({ metadata: { labels, annotations }, spec }: Applied): Json => ({ labels, annotations, spec });
    const [before, after] = [shown(live), shown(predicted)];
    return [...new Set([...leaves(before), ...leaves(after)])].filter(
      (path) => JSON.stringify(valueAt(before, path)) !== JSON.stringify(valueAt(after, path)),
    );
  }

  health(object: Applied): { readonly status: string; readonly message: string } | undefined {
    return askHealth(this.#program, [{ object, lua: luaOf(object.kind) }])[0]?.argoCd;
  }

  #apply(target: Applied, object: Json, query: string): Promise<Applied> {
    return this.#client.patch<Applied>(`${this.pathOf(target)}?fieldManager=${controller}&force=true${query}`, 'apply', object);
  }

  async #wanted(target: Applied): Promise<{ readonly object: Json; readonly live: Applied | undefined }> {
    const { status, body: live } = await this.#client.ask<Applied>('GET', this.pathOf(target));
    if (status !== 200) return { object: { ...target }, live: undefined };
    const own = shipped.spec.ignoreDifferences.filter(({ kind }) => kind === target.kind);
    const managers = own.flatMap(({ managedFieldsManagers = [] }) => managedFieldsManagers);
    const [answer] = managers.length === 0 ? [] : askHealth(this.#program, [{ object: live, target, managers }]);
    const kept = answer?.compared?.target ?? target;
    const byManager = leaves(target).filter((path) => valueAt(kept, path) === undefined);
    const pointers = own.flatMap(({ jsonPointers = [] }) => jsonPointers).filter((path) => valueAt(target, path) !== undefined);
    const ignored = [...byManager, ...pointers];
    const object = ignored.reduce((all: Json, path) => withValue(all, path.slice(1).split('/'), valueAt(live, path)), { ...target });
    return { object, live };
  }
}

/** Manifests in Git: a group whose members leave out what the agent writes, and one whose members have it against the advice. */
function manifestsOf(namespace: string, image: string): readonly Applied[] {
  const set = (name: string, more: object = {}) => {
    const { metadata, spec } = statefulSet({
      name,
      replicas: 3,
      image,
      strategy: 'RollingUpdate',
      setLabels: { team: 'mimir' },
    }) as Applied;
    const { replicas: _replicas, ...rest } = spec ?? {};
    return { apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { ...metadata, namespace }, spec: { ...rest, ...more } };
  };
  const group = (name: string, zones: readonly string[]) => ({
    apiVersion: ours,
    kind: 'RolloutGroup',
    metadata: { name, namespace },
    spec: {
      members: { zones: zones.map((zone) => ({ name: zone, statefulSet: `${name}-${zone}` })) },
      replicas: { count: 3 },
      rollout: { strategy: 'partition', maxUnavailable: 1 },
    },
  });
  const named = { replicas: 1, updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 0 } } };
  return [
    group('plain', ['a', 'b']),
    group('named', ['a']),
    set('plain-a'),
    set('plain-b'),
    set('named-a', named),
  ] as unknown as readonly Applied[];
}

describeOnControlPlane('objects that Argo CD applies', (controlPlane) => {
  const kinds = [
    'RolloutGroup',
    'RolloutPolicy',
    'RolloutException',
    'RolloutIntent',
    'RolloutRun',
    'MetricSource',
    'NotificationChannel',
  ] as const;

  async function open(namespace: string) {
    const { client, identities, url } = controlPlane();
    await client.create('/api/v1/namespaces', { metadata: { name: namespace } });
    for (const kind of kinds) {
      await client.ask('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', customResourceDefinition(kind));
      await untilServed(controlPlane(), pathOf({ kind, metadata: { namespace } }));
    }
    await grant(client, identities.agent, namespace, agentRules());
    await grantNodes(client, identities.agent);
    const agent = await startInProcess({ url, identity: identities.agent, namespace, name: namespace, isTelling: true });
    onTestFinished(() => agent.stop());
    return { client, argo: new ArgoCd(client) };
  }

  it('stay synced while the agent rolls, scales and restarts them, and only a change of another writer is a difference', {
    timeout: 300_000,
  }, async () => {
    const namespace = 'argo';
    const recorder = await recordHistory(controlPlane());
    onTestFinished(() => recorder.stop());
    const { client, argo } = await open(namespace);
    const anna = await person(controlPlane(), namespace, 'anna', requesterRules);
    const setsPath = `/apis/apps/v1/namespaces/${namespace}/statefulsets`;
    const podsPath = `/api/v1/namespaces/${namespace}/pods`;
    let git = manifestsOf(namespace, 'example.com/server:1');
    let checked = 0;
    /** Compares and heals until the pods are as wanted. A sync that heals changes no spec. */
    const untilSynced = async (what: string, isSo: (pods: readonly Pod[]) => boolean): Promise<void> => {
      for (const endsAt = Date.now() + 90_000; ; await delay(50)) {
        for (const target of git) {
          const differences = await argo.differences(target);
          if (differences === undefined) continue;
          checked += 1;
          expect([what, target.kind, target.metadata.name, differences]).toEqual([what, target.kind, target.metadata.name, []]);
          await argo.sync(target);
        }
        const [pods, sets] = [await client.list<Pod>(podsPath), await client.list<StatefulSet>(setsPath)];
        const isRead = sets.every(({ metadata, status }) => status.observedGeneration === metadata.generation);
        if (isRead && pods.every(isReady) && isSo(pods)) return;
        if (Date.now() > endsAt) throw new Error(`${what}: ${JSON.stringify(pods.map(({ metadata, spec }) => [metadata.name, spec]))}`);
      }
    };
    const isNew = (tag: number) => (pods: readonly Pod[]) => pods.every((pod) => JSON.stringify(pod.spec).includes(`server:${tag}`));

    for (const target of git) await argo.sync(target);
    await untilSynced('the start', (pods) => pods.length === 9);
    git = manifestsOf(namespace, 'example.com/server:2');
    for (const target of git) await argo.sync(target);
    await untilSynced('the rollout', (pods) => pods.length === 9 && isNew(2)(pods));
    await client.patch(`/apis/${ours}/namespaces/${namespace}/rolloutgroups/plain/scale`, 'merge', { spec: { replicas: 2 } });
    await untilSynced('the scale-down by an autoscaler', (pods) => pods.length === 7);
    const before = new Set((await client.list<Pod>(podsPath)).map(({ metadata }) => metadata.uid));
    const restarted = await anna.run(['restart', 'plain', '--yes']);
    expect(restarted.status, restarted.stderr).toBe(0);
    await untilSynced('the restart', (pods) => pods.filter(({ metadata }) => before.has(metadata.uid)).length === 3);
    expect(checked).toBeGreaterThan(20);

    const { events } = await recorder.read();
    const states = events.map(({ object }) => object as unknown as Applied).filter(({ metadata }) => metadata.namespace === namespace);
    const owned = states.flatMap(({ metadata }) =>
      (metadata.managedFields ?? []).filter(({ manager }) => manager === agentManager).flatMap(({ fieldsV1 }) => leaves(fieldsV1)),
    );
    const written = ['/spec/replicas', '/spec/updateStrategy/rollingUpdate/partition'];
    expect([...new Set(owned)].sort()).toEqual(written);
    const [plain] = git.filter(({ metadata }) => metadata.name === 'plain-a');
    expect(leaves(plain).filter((path) => written.includes(path))).toEqual([]);
    for (const group of await client.list<Applied>(`/apis/${ours}/namespaces/${namespace}/rolloutgroups`)) {
      const entries = group.metadata.managedFields?.filter(({ manager }) => manager === agentManager) ?? [];
      expect(entries.map(({ subresource }) => subresource)).toEqual(['status']);
    }

    const edit = { spec: { template: { spec: { containers: [{ name: 'server', image: 'example.com/server:9' }] } } } };
    await client.patch(`${setsPath}/named-a?fieldManager=kubectl-set`, 'strategic', edit);
    const named = git.find(({ metadata }) => metadata.name === 'named-a');
    await expect.poll(() => named && argo.differences(named), { timeout: 30_000 }).toEqual(['/spec/template/spec/containers']);
  });

  it('are accepted and healthy in the order of the sync waves, and the other order only waits', { timeout: 180_000 }, async () => {
    const page = readFileSync('docs/argo-cd.md', 'utf8');
    const early = /sync-wave: "-1" # (.*)/.exec(page)?.[1]?.split(', ') ?? [];
    const object = (namespace: string, kind: string, spec: object) =>
      ({ apiVersion: ours, kind, metadata: { name: 'one', namespace }, spec }) as unknown as Applied;
    const earlyObjects = (namespace: string): readonly Applied[] => [
      object(namespace, 'RolloutPolicy', { targets: { all: true }, limits: { maxUnavailable: 1 } }),
      object(namespace, 'RolloutException', {
        rule: 'no-downscale',
        target: { group: 'plain', zone: 'a' },
        allow: { replicasAtLeast: 2 },
        reason: 'INC-441',
        expires: new Date(Date.now() + 3_600_000).toISOString(),
      }),
      object(namespace, 'MetricSource', { prometheus: { url: 'https://prometheus' }, usableFrom: { namespaces: [namespace] } }),
      object(namespace, 'NotificationChannel', { callback: { url: 'https://hooks.example.com' }, usableFrom: { namespaces: [namespace] } }),
    ];
    expect(earlyObjects('x').map(({ kind }) => kind)).toEqual(early);
    const plainOf = (namespace: string) =>
      manifestsOf(namespace, 'example.com/server:1').filter(({ metadata }) => metadata.name.startsWith('plain'));
    const healthOf = async ({ client, argo }: Awaited<ReturnType<typeof open>>, namespace: string) => {
      const { body } = await client.ask<Applied>('GET', `/apis/${ours}/namespaces/${namespace}/rolloutgroups/plain`);
      return argo.health(body)?.status;
    };

    const right = await open('in-order');
    for (const target of [...earlyObjects('in-order'), ...plainOf('in-order')])
      expect((await right.argo.sync(target)).metadata.uid).toBeDefined();
    await expect.poll(() => healthOf(right, 'in-order'), { timeout: 60_000 }).toBe('Healthy');
    const sets = await right.client.list<Applied>('/apis/apps/v1/namespaces/in-order/statefulsets');
    expect(sets.map((set) => right.argo.health({ ...set, apiVersion: 'apps/v1', kind: 'StatefulSet' })?.status)).toEqual([
      'Healthy',
      'Healthy',
    ]);

    const other = await open('reversed');
    const [group, ...members] = plainOf('reversed');
    if (group !== undefined) await other.argo.sync(group);
    await expect.poll(() => healthOf(other, 'reversed'), { timeout: 60_000 }).toBe('Degraded');
    for (const target of [...members, ...earlyObjects('reversed')]) await other.argo.sync(target);
    await expect.poll(() => healthOf(other, 'reversed'), { timeout: 60_000 }).toBe('Healthy');
  });
});
