// Pinned pods on a real API server: its own admission plugins and the StatefulSet controller accept what the merge makes, and keep it.
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { pinnedPod } from '../../../../engine/strategies/pinned/placement.ts';
import type { KubernetesObject } from '../../../control-plane/client.ts';
import type { ControlPlane } from '../../../control-plane/control-plane.ts';
import { describeOnControlPlane } from '../../../control-plane/suite.ts';
import { isReady, type Pod, revisionOf, type StatefulSet, statefulSet } from '../../../control-plane/workloads.ts';

const namespace = 'pinned';
const name = 'server';
const hooks = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';
const pods = `/api/v1/namespaces/${namespace}/pods`;
const sets = `/apis/apps/v1/namespaces/${namespace}/statefulsets`;
type Content = Readonly<Record<string, unknown>>;
type Revision = KubernetesObject & { readonly revision: number; readonly data: { readonly spec: { readonly template: Content } } };
type WholePod = Pod & {
  readonly spec: {
    readonly serviceAccountName?: string;
    readonly serviceAccount?: string;
    readonly containers: readonly {
      readonly image: string;
      readonly volumeMounts?: readonly { readonly mountPath: string; readonly name: string }[];
    }[];
    readonly volumes?: readonly { readonly name: string }[];
  };
};

/** Pins the pods of the ordinals to the newest revision when they are created, and answers how it ends. */
async function startHook({ client, authority }: ControlPlane, ordinals: ReadonlySet<string>): Promise<() => Promise<void>> {
  const { certificate, privateKey } = authority.issueForServer();
  const answer = async (review: { readonly request: { readonly uid: string; readonly object: Content } }): Promise<object> => {
    const { uid, object: pod } = review.request;
    const { labels = {} } = pod['metadata'] as { readonly labels?: Readonly<Record<string, string>> };
    const revisions = await client.list<Revision>(`/apis/apps/v1/namespaces/${namespace}/controllerrevisions`);
    const made = revisions.find(({ metadata }) => metadata.name === labels['controller-revision-hash']);
    const target = [...revisions].sort((a, b) => b.revision - a.revision)[0];
    const isChosen = ordinals.has(labels['apps.kubernetes.io/pod-index'] ?? '');
    if (made === undefined || target === undefined || made === target || !isChosen) {
      return { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: { uid, allowed: true } };
    }
    const merged = pinnedPod({ pod, made: templateOf(made), target: templateOf(target), revision: target.metadata.name });
    const patch = [
      { op: 'replace', path: '/spec', value: merged['spec'] },
      { op: 'replace', path: '/metadata', value: merged['metadata'] },
    ];
    const change = { patchType: 'JSONPatch', patch: Buffer.from(JSON.stringify(patch)).toString('base64') };
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
    metadata: { name: 'a-pinned' },
    webhooks: [
      {
        name: 'pinned.test.rollout-group.dev',
        admissionReviewVersions: ['v1'],
        sideEffects: 'None',
        failurePolicy: 'Ignore',
        reinvocationPolicy: 'IfNeeded',
        clientConfig: { url: `https://127.0.0.1:${port}/`, caBundle: Buffer.from(authority.certificate).toString('base64') },
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

function templateOf({ data }: Revision): Content {
  const { $patch: _, ...template } = data.spec.template;
  return template;
}

describeOnControlPlane('a pinned pod', (controlPlane) => {
  const pinned = new Set<string>();
  let stop: () => Promise<void>;

  beforeAll(async () => {
    const { client } = controlPlane();
    await client.create('/api/v1/namespaces', { metadata: { name: namespace } });
    await client.create(`/api/v1/namespaces/${namespace}/serviceaccounts`, { metadata: { name: 'other' } });
    stop = await startHook(controlPlane(), pinned);
    const object = statefulSet({ name, replicas: 3, strategy: 'RollingUpdate' }) as { readonly spec: Content };
    const updateStrategy = { type: 'RollingUpdate', rollingUpdate: { partition: 1_000_000 } };
    await client.create(sets, { ...object, spec: { ...object.spec, updateStrategy } });
    await untilReady();
    await client.patch(`${sets}/${name}`, 'strategic', {
      spec: {
        template: {
          metadata: { annotations: { checksum: '2' } },
          spec: {
            serviceAccountName: 'other',
            containers: [{ name: 'server', image: 'example.com/server:2', env: [{ name: 'A', value: '2' }] }],
          },
        },
      },
    });
    await client.until<StatefulSet>(sets, 'two revisions', (items) =>
      items.every(({ status }) => status.currentRevision !== status.updateRevision),
    );
  });
  afterAll(() => stop());

  async function untilReady(except: ReadonlySet<string> = new Set()): Promise<readonly WholePod[]> {
    const found = await controlPlane().client.until<WholePod>(
      pods,
      'three pods Ready',
      (items) => items.length === 3 && items.every((pod) => isReady(pod) && !except.has(pod.metadata.uid)),
    );
    return found.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  }

  async function killAll(): Promise<readonly WholePod[]> {
    const { client } = controlPlane();
    const before = await client.list<Pod>(pods);
    await Promise.all(before.map(({ metadata }) => client.ask('DELETE', `${pods}/${metadata.name}`)));
    return untilReady(new Set(before.map(({ metadata }) => metadata.uid)));
  }

  async function versions(found: readonly WholePod[]): Promise<readonly string[]> {
    const revisions = await controlPlane().client.list<Revision>(`/apis/apps/v1/namespaces/${namespace}/controllerrevisions`);
    return found.map((pod) => {
      const image = pod.spec.containers[0]?.image.split(':')[1] ?? '';
      const revision = revisions.find(({ metadata }) => metadata.name === revisionOf(pod))?.revision;
      return `${pod.metadata.name} image ${image} revision ${revision} ${pod.spec.serviceAccountName}`;
    });
  }

  const old = (ordinal: number): string => `${name}-${ordinal} image 1 revision 1 default`;
  const fresh = (ordinal: number): string => `${name}-${ordinal} image 2 revision 2 other`;

  it('is the only one at the new version after restarts of all pods, and has one token, that of its service account', async () => {
    pinned.add('1');
    for (const _ of [1, 2]) {
      const found = await killAll();
      expect(await versions(found)).toEqual([old(0), fresh(1), old(2)]);
      const [plain, chosen] = found;
      const shape = ({ spec }: WholePod): readonly unknown[] => [
        spec.volumes?.map(({ name: volume }) => volume.replace(/-[a-z0-9]{5}$/, '')),
        spec.containers.map(({ volumeMounts }) => volumeMounts?.map(({ mountPath }) => mountPath)),
      ];
      if (plain === undefined || chosen === undefined) throw new Error('the test expected two pods');
      expect(shape(chosen)).toEqual(shape(plain));
      expect([chosen.spec.serviceAccount, chosen.metadata.annotations?.['checksum']]).toEqual(['other', '2']);
      const used = new Set(chosen.spec.containers.flatMap(({ volumeMounts = [] }) => volumeMounts.map((mount) => mount.name)));
      expect(used.size).toBe(1);
      expect([...used]).toEqual(chosen.spec.volumes?.map((volume) => volume.name) ?? []);
    }
  });

  it('lets the StatefulSet complete when all are pinned, with the partition as it is', async () => {
    for (const ordinal of ['0', '2']) pinned.add(ordinal);
    expect(await versions(await killAll())).toEqual([fresh(0), fresh(1), fresh(2)]);
    await controlPlane().client.until<StatefulSet>(sets, 'the current revision', (items) =>
      items.every(({ status }) => status.currentRevision === status.updateRevision),
    );
  });

  it('needs no webhook any more then, and comes back at its version', async () => {
    await stop();
    expect(await versions(await killAll())).toEqual([fresh(0), fresh(1), fresh(2)]);
  });
});
