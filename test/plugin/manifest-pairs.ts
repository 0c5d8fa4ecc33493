// Draws two versions of the manifests of a group, between which fields come, go and change, and makes other managers own parts of them.
import type { ApiClient, KubernetesObject } from '../control-plane/client.ts';
import { seededRandom } from '../kit/virtual-env.ts';

interface Drawn {
  readonly namespace: string;
  readonly name: string;
}

type Version = readonly Readonly<Record<string, unknown>>[];

/** Returns both versions: a StatefulSet, its group and a policy. The same seed gives the same pair. */
export function drawManifestPair(seed: number, drawn: Drawn): { readonly first: Version; readonly second: Version } {
  const random = seededRandom(seed);
  return { first: version(random, drawn), second: version(random, drawn) };
}

function version(random: () => number, { namespace, name }: Drawn): Version {
  const oneOf = <Value>(...values: readonly Value[]): Value => values[Math.floor(random() * values.length)] as Value;
  const maybe = <Value>(field: string, ...values: readonly Value[]): object => (random() < 0.5 ? {} : { [field]: oneOf(...values) });
  const some = <Value>(...values: readonly Value[]): readonly Value[] => values.filter(() => random() < 0.5);
  const metadata = {
    namespace,
    ...maybe('labels', { tier: 'x' }, { tier: 'y', team: 'z' }),
    ...maybe('annotations', { note: '1' }, { note: '2' }),
  };
  const server = {
    name: 'server',
    image: oneOf('example.com/server:1', 'example.com/server:2'),
    // The platform owns SHARED too, so its value never changes.
    ...maybe('env', [...some({ name: 'A', value: '1' }, { name: 'C', value: oneOf('1', '2') }), { name: 'SHARED', value: '1' }]),
    ...maybe('args', ['-a'], ['-a', '-b']),
    ...maybe('resources', { requests: { cpu: '1m' } }, { requests: { cpu: '2m', memory: '1Mi' } }),
    ...maybe('ports', [{ name: 'http', containerPort: 80 }], [{ name: 'grpc', containerPort: 81 }]),
    ...maybe('readinessProbe', { tcpSocket: { port: 80 } }, { tcpSocket: { port: 80 }, periodSeconds: 5 }),
    ...maybe('volumeMounts', [{ name: 'tmp', mountPath: '/tmp' }], [{ name: 'tmp', mountPath: '/var/tmp' }]),
  };
  const sidecars = some({ name: 'sidecar', image: 'example.com/sidecar:1' });
  const pod = {
    containers: [...sidecars, server],
    volumes: [{ name: 'tmp', emptyDir: oneOf({}, { medium: 'Memory' }) }],
    ...maybe('terminationGracePeriodSeconds', 5, 60),
    ...maybe('nodeSelector', { 'kubernetes.io/os': 'linux' }, {}),
  };
  const after = { ...maybe('soak', '10m', '1h'), ...maybe('approval', { count: 1, from: ['oncall'] }) };
  const before = maybe('approval', { count: 1, from: ['oncall'] }, { count: 2, from: ['oncall', 'owners'] });
  const waves = [
    { name: 'canary', zones: ['a'], pods: 1, ...(Object.keys(after).length === 0 ? {} : { after }) },
    { name: 'rest', zones: ['a'], percent: 100, ...(Object.keys(before).length === 0 ? {} : { before }) },
  ];
  return [
    {
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { name, ...metadata },
      spec: {
        ...maybe('replicas', 1, 2),
        serviceName: name,
        podManagementPolicy: 'Parallel',
        updateStrategy: { type: 'OnDelete' },
        ...maybe('minReadySeconds', 1, 2),
        selector: { matchLabels: { name } },
        template: { metadata: { labels: { name }, ...maybe('annotations', { config: '1' }, { config: '2' }) }, spec: pod },
      },
    },
    {
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'RolloutGroup',
      metadata: { name, ...metadata },
      spec: {
        members: { zones: [{ name: 'a', statefulSet: name }] },
        rollout: { strategy: 'onDelete', ...maybe('maxUnavailable', 1, 2), ...maybe('waves', waves) },
      },
    },
    {
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'RolloutPolicy',
      metadata: { name, ...metadata },
      spec: { targets: { groups: [name] }, limits: { maxUnavailable: oneOf(1, 2), ...maybe('minInterval', '1m', '2m') } },
    },
  ];
}

export const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration';

export interface Stored extends KubernetesObject {
  readonly spec: object;
}

/** The fields that manifests can name, without empty ones: a diff leaves them out. */
export function contentOf({ metadata: { labels = {}, annotations = {} }, spec }: Stored): object {
  const { [lastApplied]: _last, 'rollout-group.dev/plan': _plan, ...own } = annotations;
  return withoutEmpty({ labels, annotations: own, spec }) as object;
}

function withoutEmpty(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutEmpty);
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).map(([key, field]) => [key, withoutEmpty(field)] as const);
  const isEmpty = (field: unknown): boolean =>
    field === 0 || (typeof field === 'object' && field !== null && Object.keys(field).length === 0);
  return Object.fromEntries(fields.filter(([, field]) => !isEmpty(field)));
}

export function pathOf(object: Readonly<Record<string, unknown>>): string {
  const { kind, metadata } = object as unknown as KubernetesObject;
  const namespace = metadata.namespace ?? '';
  if (kind === 'StatefulSet') return `/apis/apps/v1/namespaces/${namespace}/statefulsets`;
  return kindPath(namespace, kind === 'RolloutGroup' ? 'rolloutgroups' : 'rolloutpolicies');
}

export function kindPath(namespace: string, plural: string): string {
  return `/apis/rollout-group.dev/v1alpha1/namespaces/${namespace}/${plural}`;
}

/** Creates the object as `kubectl apply` does without --server-side. */
export async function createClientSide(client: ApiClient, path: string, object: object): Promise<void> {
  const { metadata, ...rest } = object as KubernetesObject;
  const annotations = { ...metadata.annotations, [lastApplied]: JSON.stringify(object) };
  await client.create(`${path}?fieldManager=kubectl-client-side-apply`, { ...rest, metadata: { ...metadata, annotations } });
}

/** Creates the object as `kubectl apply --server-side` does. An empty map would conflict with another manager's entries of it. */
export async function createServerSide(client: ApiClient, path: string, object: object): Promise<void> {
  const { metadata } = object as KubernetesObject;
  await client.patch(`${path}/${metadata.name}?fieldManager=kubectl`, 'apply', withoutEmpty(object));
}

/** Another manager owns an annotation and a variable alone, and shares a variable that the manifests name sometimes. */
export async function shareWithPlatform(client: ApiClient, object: Readonly<Record<string, unknown>>): Promise<void> {
  const { metadata } = object as unknown as KubernetesObject;
  const env = ['OWN', 'SHARED'].map((name) => ({ name, value: '1' }));
  await client.patch(`${pathOf(object)}/${metadata.name}?fieldManager=platform`, 'apply', {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name: metadata.name, annotations: { platform: 'x' } },
    spec: { template: { spec: { containers: [{ name: 'server', env }] } } },
  });
}

/** The changed fields of `diff -o json`, sorted. */
export function changedPaths(ended: { readonly stdout: string } | undefined): readonly string[] {
  const found: string[] = [];
  JSON.parse(ended?.stdout ?? '', (key, value: unknown) => {
    if (key === 'path') found.push(String(value));
    return value;
  });
  return found.sort();
}
