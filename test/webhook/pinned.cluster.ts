// The strategy pinned behind the webhooks, with a ledger written by hand: every pod comes back at its own revision, and at the old one when no webhook answers.
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { encodeLedger, ledgerKey, ledgerLabel, ledgerName } from '../../engine/ledger/ledger-document.ts';
import { isUnknown, type Pin } from '../../engine/snapshot.ts';
import type { ApiClient, KubernetesObject } from '../control-plane/client.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { eventually } from '../control-plane/webhook.ts';
import { isReady, type Pod, revisionOf, type StatefulSet, statefulSet } from '../control-plane/workloads.ts';
import { createWorld, groupsOf, podsOf, setsOf, type World, write } from './kit.ts';

const namespace = 'native';
const name = 'server-zone-a';
const holding = 1_000_000;
const hooks = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';
const revisionsPath = `/apis/apps/v1/namespaces/${namespace}/controllerrevisions`;
const ledgerPath = `/api/v1/namespaces/${namespace}/configmaps`;

type Content = Readonly<Record<string, unknown>>;
type Revision = KubernetesObject & { readonly revision: number; readonly data: { readonly spec: { readonly template: Content } } };
interface Container {
  readonly name: string;
  readonly image: string;
}
type WholePod = Pod & { readonly spec: { readonly containers: readonly Container[]; readonly initContainers?: readonly Container[] } };

/** Adds a container before and one after those that there are, which say of which image they saw the pod; only where it has none yet. */
async function startInjector({ client, authority }: ControlPlane): Promise<() => Promise<void>> {
  const { certificate, privateKey } = authority.issueForServer();
  const answer = ({ request: { uid, object } }: { readonly request: { readonly uid: string; readonly object: WholePod } }): object => {
    const { containers } = object.spec;
    const seen = containers.find((one) => one.name === 'server')?.image.split(':')[1] ?? '';
    const proxy = { name: 'proxy', image: `example.com/proxy:${seen}`, env: [{ name: 'SEEN', value: seen }] };
    const patch = [
      { op: 'add', path: '/spec/containers/0', value: proxy },
      { op: 'add', path: '/spec/containers/-', value: { ...proxy, name: 'log' } },
      { op: 'add', path: '/metadata/labels/injected', value: seen },
    ];
    const isNew = !containers.some((one) => one.name === 'proxy');
    const change = isNew ? { patchType: 'JSONPatch', patch: Buffer.from(JSON.stringify(patch)).toString('base64') } : {};
    return { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: { uid, allowed: true, ...change } };
  };
  const server = createServer({ cert: certificate, key: privateKey }, (request, response) => {
    (json(request) as Promise<Parameters<typeof answer>[0]>).then(answer).then(
      (body) => response.setHeader('content-type', 'application/json').end(JSON.stringify(body)),
      () => response.destroy(),
    );
  });
  await new Promise<void>((settle) => server.listen(0, '127.0.0.1', settle));
  const { port } = server.address() as AddressInfo;
  await client.create(hooks, {
    metadata: { name: 'a-sidecar-injector' },
    webhooks: [
      {
        name: 'inject.example.com',
        admissionReviewVersions: ['v1'],
        sideEffects: 'None',
        failurePolicy: 'Fail',
        reinvocationPolicy: 'IfNeeded',
        clientConfig: { url: `https://127.0.0.1:${port}/`, caBundle: Buffer.from(authority.certificate).toString('base64') },
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
        rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'], scope: 'Namespaced' }],
      },
    ],
  });
  return async () => {
    const closed = new Promise((settle) => server.close(settle));
    server.closeAllConnections();
    await closed;
  };
}

describeOnControlPlane('a group of the strategy pinned behind the webhooks', (controlPlane) => {
  let admin: ApiClient;
  let world: World;
  let stopInjector: () => Promise<void>;

  beforeAll(async () => {
    admin = controlPlane().client;
    world = await createWorld(controlPlane(), { namespaces: [namespace] });
    stopInjector = await startInjector(controlPlane());
    const rollout = { strategy: 'pinned', maxUnavailable: 1 };
    await admin.create(groupsOf(namespace), {
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'RolloutGroup',
      metadata: { name: 'server', namespace },
      spec: { members: { selector: { matchLabels: { cell: 'server' } } }, replicas: { leader: true }, rollout },
    });
    const object = statefulSet({ name, replicas: 4, strategy: 'RollingUpdate', setLabels: { cell: 'server' } }) as {
      readonly spec: Content;
    };
    const updateStrategy = { type: 'RollingUpdate', rollingUpdate: { partition: holding } };
    await admin.create(setsOf(namespace), { ...object, spec: { ...object.spec, updateStrategy, ordinals: { start: 5 } } });
    await untilReady();
    await setImage(2);
    await untilHeard();
  });
  afterAll(async () => {
    await stopInjector();
    await world.close();
  });

  /** The template of a version, which the group's own enforcement is not asked about here: the agent writes it as it does everything. */
  async function setImage(version: number): Promise<void> {
    const containers = [{ name: 'server', image: `example.com/server:${version}`, env: [{ name: 'VERSION', value: String(version) }] }];
    const template = { metadata: { annotations: { checksum: String(version) } }, spec: { containers } };
    await admin.patch(`${setsOf(namespace)}/${name}`, 'strategic', { spec: { template } });
    await admin.until<StatefulSet>(setsOf(namespace), 'another revision', (items) =>
      items.every(({ status, metadata }) => status.observedGeneration === metadata.generation),
    );
  }

  /** What the agent of the webhooks has told the API server of the members has arrived there. */
  async function untilHeard(): Promise<void> {
    type Configuration = KubernetesObject & { readonly webhooks: readonly { readonly matchConditions?: readonly object[] }[] };
    await eventually(
      'members that are named',
      () => admin.get<Configuration>(`${hooks}/0-rollout-group-pinned`),
      (found) => JSON.stringify(found.webhooks).includes(`${namespace}/${name}`),
    );
    await pinned([[99, 2]]);
    const probe = await currentPod(5);
    await eventually(
      'a webhook that is asked',
      () => admin.ask<WholePod>('POST', `${podsOf(namespace)}?dryRun=All`, probe),
      ({ body }) => body.spec?.containers.some(({ image }) => image === 'example.com/server:2'),
    );
    await pinned([]);
  }

  /** A pod as the controller would make it: of the current revision, on a dry run under a name that is free. */
  async function currentPod(ordinal: number): Promise<object> {
    const { metadata, spec } = await admin.get<WholePod>(`${podsOf(namespace)}/${name}-${ordinal}`);
    const { labels = {}, ownerReferences } = metadata as Pod['metadata'] & { readonly ownerReferences: readonly Content[] };
    const free = `${name}-99`;
    return {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: free,
        namespace,
        ownerReferences,
        labels: {
          name,
          'controller-revision-hash': labels['controller-revision-hash'],
          'statefulset.kubernetes.io/pod-name': free,
          'apps.kubernetes.io/pod-index': '99',
        },
      },
      spec: { containers: spec.containers.filter((one) => one.name === 'server').map(({ name: of, image }) => ({ name: of, image })) },
    };
  }

  async function revisions(): Promise<ReadonlyMap<number, Revision>> {
    const all = await admin.list<Revision>(revisionsPath);
    return new Map(all.map((one) => [imageVersion(one), one]));
  }

  function imageVersion({ data }: Revision): number {
    const { spec } = data.spec.template as { readonly spec: { readonly containers: readonly Container[] } };
    return Number(spec.containers[0]?.image.split(':')[1]);
  }

  /** Writes the ledger: these ordinals come back at these versions. */
  async function pinned(ordinals: readonly (readonly [ordinal: number, version: number])[], isCopied = false): Promise<void> {
    const known = await revisions();
    const named = ordinals.map(([ordinal, version]): Pin => {
      const revision = known.get(version)?.metadata.name ?? `${name}-gone`;
      return { zone: name, ordinal, revision, placements: 1 };
    });
    const templates = [...new Set(named.map(({ revision }) => revision))].flatMap((revision) => {
      const found = [...known.values()].find(({ metadata }) => metadata.name === revision);
      if (found === undefined || !isCopied) return [];
      const { $patch: _, ...template } = found.data.spec.template;
      return [{ zone: name, revision, template }];
    });
    const text = encodeLedger({
      namespace,
      group: 'server',
      claims: [],
      downscales: [],
      preparations: [],
      pins: named,
      templates,
    });
    if (isUnknown(text)) throw new Error(text.unknown);
    await store(text);
  }

  async function store(text: string): Promise<void> {
    const object = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: ledgerName('server'), namespace, labels: { [ledgerLabel.key]: ledgerLabel.value } },
      data: { [ledgerKey]: text },
    };
    await admin.patch(`${ledgerPath}/${ledgerName('server')}?fieldManager=test&force=true`, 'apply', object);
  }

  async function untilReady(except: ReadonlySet<string> = new Set()): Promise<readonly WholePod[]> {
    const found = await admin.until<WholePod>(
      podsOf(namespace),
      'four pods Ready',
      (items) => items.length === 4 && items.every((pod) => isReady(pod) && !except.has(pod.metadata.uid)),
    );
    return found.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  }

  /** Every pod goes, and comes back, so often. */
  async function killAll(times: number): Promise<readonly WholePod[]> {
    let found: readonly WholePod[] = [];
    for (let round = 0; round < times; round += 1) {
      const before = await admin.list<Pod>(podsOf(namespace));
      await Promise.all(before.map(({ metadata }) => admin.ask('DELETE', `${podsOf(namespace)}/${metadata.name}`)));
      found = await untilReady(new Set(before.map(({ metadata }) => metadata.uid)));
    }
    return found;
  }

  /** The version of each pod in the order of ordinals; what of a pod does not agree is named with it. */
  async function versions(found: readonly WholePod[]): Promise<readonly unknown[]> {
    const known = await revisions();
    return found.map((pod) => {
      const server = pod.spec.containers.find((one) => one.name === 'server') as Container & { readonly env?: readonly Content[] };
      const version = Number(server.image.split(':')[1]);
      const template = known.get(version)?.data.spec.template as { readonly metadata: { readonly annotations?: Content } };
      const problems = [
        ...(known.get(version)?.metadata.name === revisionOf(pod) ? [] : [`revision ${revisionOf(pod)}`]),
        ...(pod.metadata.annotations?.['checksum'] === template.metadata.annotations?.['checksum'] ? [] : ['annotations']),
        ...((version === 1 ? undefined : String(version)) === server.env?.[0]?.['value'] ? [] : ['env']),
        // It was injected once, by somebody who saw the pod as it was to be.
        ...(pod.spec.containers.map((one) => one.name).join() === 'proxy,server,log' ? [] : [`containers ${JSON.stringify(pod.spec)}`]),
        ...(pod.metadata.labels?.['injected'] === String(version) ? [] : [`injected ${pod.metadata.labels?.['injected']}`]),
      ];
      return problems.length === 0 ? version : `${pod.metadata.name} at ${version}: ${problems.join(', ')}`;
    });
  }

  it('keeps every pod at its revision after any number of deletions', async () => {
    await pinned([
      [6, 2],
      [8, 2],
    ]);
    expect(await versions(await killAll(2))).toEqual([1, 2, 1, 2]);
  });

  it('keeps three revisions side by side', async () => {
    await setImage(3);
    await pinned([
      [6, 2],
      [8, 3],
    ]);
    expect(await versions(await killAll(2))).toEqual([1, 2, 1, 3]);
  });

  it('uses the copies in its ledger if a revision is deleted', async () => {
    await pinned([[6, 2]], true);
    const gone = (await revisions()).get(2);
    if (gone === undefined) throw new Error('the test expected a revision');
    // What was made of it goes first, or the controller would have it back.
    await admin.ask('DELETE', `${revisionsPath}/${gone.metadata.name}`);
    const found = await killAll(1);
    const [, second] = found;
    expect(second === undefined ? '' : revisionOf(second)).toBe(gone.metadata.name);
    expect(found.map((pod) => pod.spec.containers.find((one) => one.name === 'server')?.image)).toEqual(
      [1, 2, 1, 1].map((version) => `example.com/server:${version}`),
    );
  });

  it('returns pods at the earlier revision if no webhook answers, the ledger cannot be read, or names a missing revision', async () => {
    await pinned([
      [5, 3],
      [6, 3],
    ]);
    world.front.leadTo();
    world.front.cut();
    expect(await versions(await killAll(1))).toEqual([1, 1, 1, 1]);
    world.front.leadTo(world.first.port);
    expect(await versions(await killAll(1))).toEqual([3, 3, 1, 1]);
    await store('{"format":"9.0"}');
    expect(await versions(await killAll(1))).toEqual([1, 1, 1, 1]);
    await pinned([[7, 77]]);
    expect(await versions(await killAll(1))).toEqual([1, 1, 1, 1]);
  });

  it('is complete when all pods are updated, and then needs no webhook', async () => {
    await pinned([5, 6, 7, 8].map((ordinal) => [ordinal, 3] as const));
    expect(await versions(await killAll(1))).toEqual([3, 3, 3, 3]);
    await admin.until<StatefulSet>(setsOf(namespace), 'the current revision', (items) =>
      items.every(({ status }) => status.currentRevision === status.updateRevision),
    );
    world.front.leadTo();
    world.front.cut();
    expect(await versions(await killAll(1))).toEqual([3, 3, 3, 3]);
  });

  it('calls the webhook only for its pods', async () => {
    // As if it refused: what is asked about cannot be made while nobody answers.
    world.front.leadTo();
    world.front.cut();
    const failing = (failurePolicy: string): object => [{ op: 'replace', path: '/webhooks/0/failurePolicy', value: failurePolicy }];
    const path = `${hooks}/0-rollout-group-pinned`;
    await admin.ask('PATCH', path, failing('Fail'), 'application/json-patch+json');
    const { metadata } = await admin.get<StatefulSet>(`${setsOf(namespace)}/${name}`);
    const labels = { 'controller-revision-hash': 'x', 'statefulset.kubernetes.io/pod-name': 'x' };
    const owner = { apiVersion: 'apps/v1', kind: 'StatefulSet', name, uid: metadata.uid, controller: true };
    const make = async (owners: readonly object[], of: object = labels): Promise<string> => {
      const spec = { containers: [{ name: 'server', image: 'example.com/server:1' }] };
      const pod = { metadata: { name: `${name}-99`, namespace, labels: of, ownerReferences: owners }, spec };
      return (await write(admin, 'POST', `${podsOf(namespace)}?dryRun=All`, pod)).said;
    };
    try {
      await eventually(
        'a webhook that fails',
        () => make([owner]),
        (said) => said.includes('pinned.rollout-group.dev'),
      );
      const passing = [
        await make([]),
        await make([{ ...owner, apiVersion: 'batch/v1', kind: 'Job' }]),
        await make([{ ...owner, name: 'other' }]),
        await make([{ ...owner, controller: false }]),
        await make([{ ...owner, apiVersion: 'apps.kruise.io/v1beta1' }]),
        await make([owner], { name }),
      ];
      expect(passing).toEqual(passing.map(() => expect.stringMatching(/^201/)));
    } finally {
      await admin.ask('PATCH', path, failing('Ignore'), 'application/json-patch+json');
    }
  });
});
