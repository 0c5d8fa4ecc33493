import { describe, expect, it } from 'vitest';
import { pinnedPod } from '../../../../engine/strategies/pinned/placement.ts';

type Content = Readonly<Record<string, unknown>>;

const container = (image: string, more: Content = {}): Content => ({ name: 'server', image, ...more });
const template = (spec: Content, metadata: Content = { labels: { name: 'server' } }): Content => ({ metadata, spec });
const made = template({ containers: [container('server:1', { env: [{ name: 'A', value: '1' }] })], serviceAccountName: 'server' });
const target = template({ containers: [container('server:2', { env: [{ name: 'A', value: '2' }] })], serviceAccountName: 'server' });
const token = { name: 'kube-api-access-abcde', projected: {} };
const tokenMount = { name: token.name, mountPath: '/var/run/secrets/kubernetes.io/serviceaccount', readOnly: true };

/** The pod as the controller and the API server make it of a template. */
function podOf({ metadata, spec }: Content, more: Content = {}): Content {
  const { containers, volumes = [], ...rest } = spec as { readonly containers: readonly Content[]; readonly volumes?: readonly unknown[] };
  const { labels, ...meta } = metadata as { readonly labels: Content };
  return {
    metadata: {
      ...meta,
      name: 'server-3',
      namespace: 'mimir',
      ownerReferences: [{ kind: 'StatefulSet', name: 'server', uid: 'u' }],
      labels: { ...labels, 'controller-revision-hash': 'server-1', 'statefulset.kubernetes.io/pod-name': 'server-3' },
    },
    spec: {
      ...rest,
      containers: containers.map((one) => ({ ...one, volumeMounts: [...((one['volumeMounts'] as readonly unknown[]) ?? []), tokenMount] })),
      volumes: [...volumes, { name: 'data', persistentVolumeClaim: { claimName: 'data-server-3' } }, token],
      hostname: 'server-3',
      subdomain: 'server',
      serviceAccount: 'server',
      priority: 0,
      enableServiceLinks: true,
      tolerations: [{ key: 'node.kubernetes.io/not-ready', operator: 'Exists' }],
      ...more,
    },
  };
}

function pinned(pod: Content, to: Content = target, from: Content = made): Content {
  return pinnedPod({ pod, made: from, target: to, revision: 'server-2' });
}

describe('a pinned pod', () => {
  it('is what the controller and the API server would have made of the target, but for the label of its revision', () => {
    const wanted = podOf(target) as { readonly metadata: { readonly labels: Content } };
    const labels = { ...wanted.metadata.labels, 'controller-revision-hash': 'server-2' };
    expect(pinned(podOf(made))).toEqual({ ...wanted, metadata: { ...wanted.metadata, labels } });
  });

  it('of the same template only changes its label', () => {
    const pod = podOf(made) as { readonly spec: Content };
    expect(pinned(pod, made)['spec']).toEqual(pod.spec);
  });

  it('has the labels and annotations of the target, and those that others have added', () => {
    const to = template({ containers: [] }, { labels: { name: 'server', tier: 'new' }, annotations: { checksum: '2' } });
    const from = template({ containers: [] }, { labels: { name: 'server', old: 'yes' }, annotations: { checksum: '1' } });
    const pod = podOf(from) as { readonly metadata: Content };
    const injected = { ...pod, metadata: { ...pod.metadata, annotations: { checksum: '1', 'sidecar/status': 'injected' } } };
    expect(pinned(injected, to, from)['metadata']).toMatchObject({
      labels: { name: 'server', tier: 'new', 'controller-revision-hash': 'server-2', 'statefulset.kubernetes.io/pod-name': 'server-3' },
      annotations: { checksum: '2', 'sidecar/status': 'injected' },
    });
    expect((pinned(injected, to, from)['metadata'] as { readonly labels: Content }).labels).not.toHaveProperty('old');
  });

  it('keeps a sidecar where it stands, with its volume, and the mounts that it put into other containers', () => {
    const pod = podOf(made) as { readonly spec: { readonly containers: readonly Content[]; readonly volumes: readonly Content[] } };
    const [server] = pod.spec.containers;
    const mount = { name: 'certificates', mountPath: '/certificates' };
    const injected = {
      ...pod,
      spec: {
        ...pod.spec,
        containers: [
          { name: 'proxy', image: 'proxy:9' },
          { ...server, volumeMounts: [tokenMount, mount] },
        ],
        volumes: [...pod.spec.volumes, { name: 'certificates', emptyDir: {} }],
      },
    };
    expect(pinned(injected)['spec']).toMatchObject({
      containers: [
        { name: 'proxy', image: 'proxy:9' },
        { name: 'server', image: 'server:2', env: [{ name: 'A', value: '2' }], volumeMounts: [tokenMount, mount] },
      ],
      volumes: [{ name: 'data' }, { name: token.name }, { name: 'certificates' }],
    });
  });

  it('has the containers, volumes and arguments of the target, and none that it has not', () => {
    const from = template({
      containers: [container('server:1', { args: ['-a'] }), { name: 'gone', image: 'gone:1' }],
      volumes: [{ name: 'old', emptyDir: {} }],
    });
    const to = template({
      containers: [{ name: 'new', image: 'new:1' }, container('server:1', { args: ['-b', '-c'] })],
      volumes: [{ name: 'fresh', emptyDir: {} }],
    });
    const { containers, volumes } = pinned(podOf(from), to, from)['spec'] as {
      readonly containers: readonly Content[];
      readonly volumes: readonly Content[];
    };
    expect(containers.map(({ name, args }) => [name, args])).toEqual([
      ['new', undefined],
      ['server', ['-b', '-c']],
    ]);
    expect(volumes.map(({ name }) => name)).toEqual(['fresh', 'data', token.name]);
  });

  it('keeps tolerations that others have added', () => {
    const own = { key: 'dedicated', operator: 'Exists' };
    const to = template({ containers: [], tolerations: [own] });
    const from = template({ containers: [] });
    expect(pinned(podOf(from), to, from)['spec']).toMatchObject({
      tolerations: [own, { key: 'node.kubernetes.io/not-ready', operator: 'Exists' }],
    });
  });

  it('drops what follows from a service account or a priority class that it no longer has', () => {
    const to = template({ containers: [container('server:2')], serviceAccountName: 'other', priorityClassName: 'high' });
    const spec = pinned(podOf(made), to)['spec'] as Content;
    expect(spec).toMatchObject({ serviceAccountName: 'other', priorityClassName: 'high', volumes: [{ name: 'data' }] });
    expect(spec['containers']).toEqual([{ name: 'server', image: 'server:2', volumeMounts: [] }]);
    for (const field of ['serviceAccount', 'priority']) expect(spec).not.toHaveProperty(field);
  });

  it('has the name in the network that the controller gave it', () => {
    const to = template({ containers: [], hostname: 'another', subdomain: 'other' });
    expect(pinned(podOf(made), to)['spec']).toMatchObject({ hostname: 'server-3', subdomain: 'server' });
  });

  it('has the value of the target where both have changed the same one', () => {
    const pod = podOf(made) as { readonly spec: { readonly containers: readonly Content[] } };
    const touched = { ...pod, spec: { ...pod.spec, containers: [{ ...pod.spec.containers[0], image: 'mirror/server:1' }] } };
    expect(pinned(touched)['spec']).toMatchObject({ containers: [{ image: 'server:2' }] });
    expect(pinned(touched, made)['spec']).toMatchObject({ containers: [{ image: 'mirror/server:1' }] });
  });
});
