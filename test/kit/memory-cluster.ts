// A cluster in memory with a group of three zones, and what a test asks of it afterwards.
import { isReadyPod, MemoryApi } from './memory-api.ts';
import { imageOf, MemoryWorkloads, type StatefulSetInput, type WorkloadTimes } from './memory-workloads.ts';
import { type ServedRequest, type VirtualEnv, virtualEnv } from './virtual-env.ts';

export interface MemoryCluster {
  readonly env: VirtualEnv;
  readonly api: MemoryApi;
  readonly workloads: MemoryWorkloads;
  /** Every request that would change something, but for Leases: `METHOD path`. */
  readonly writes: () => readonly string[];
  /** UIDs of pods that somebody asked to delete or evict, and the server did. */
  readonly deletedPods: () => readonly string[];
  /** The most zones, and the most pods, that were not ready at one moment since the beginning. */
  readonly maxDown: () => { readonly zones: number; readonly pods: number };
  /** Gives every StatefulSet of the group the image. */
  readonly rollTo: (image: string) => void;
}

interface ClusterOptions {
  readonly times?: WorkloadTimes;
  readonly customKinds?: Readonly<Record<string, string>>;
  readonly seed?: number;
}

const memberNames = ['ingester-zone-a', 'ingester-zone-b', 'ingester-zone-c'];

/** An API server with its controllers, in virtual time. */
export function newCluster({ times, customKinds, seed = 1 }: ClusterOptions = {}): MemoryCluster {
  const env = virtualEnv({ seed });
  const nowMs = env.clock.nowMs;
  const api = new MemoryApi({ nowMs, ...(customKinds === undefined ? {} : { customKinds }) });
  const workloads = new MemoryWorkloads(api, env.timers, nowMs, times);
  api.put('/v1/nodes', { metadata: { name: 'node-1' }, status: { conditions: [{ type: 'Ready', status: 'True' }] } });
  const deleted: string[] = [];
  let most = { zones: 0, pods: 0 };
  const react = api.onChange;
  api.onChange = (plural, object) => {
    react(plural, object);
    if (plural === 'pods') most = worse(most, downIn(api));
  };
  env.replaceServer((request) => {
    const uid = podUidOf(api, request);
    const isNew = uid !== undefined && !isTerminating(api, request);
    const answer = api.serve(request);
    if (uid !== undefined && isNew && isTerminating(api, request)) deleted.push(uid);
    return answer;
  });
  return {
    env,
    api,
    workloads,
    writes: () =>
      env.requests
        .filter(({ method, path }) => method !== 'GET' && !path.includes('/leases'))
        .map(({ method, path }) => `${method} ${path}`),
    deletedPods: () => deleted,
    maxDown: () => most,
    rollTo: (image) => {
      for (const name of memberNames) if (api.get('statefulsets', 'mimir', name) !== undefined) workloads.setImage(name, image);
    },
  };
}

/** Three zones of three pods with the labels of grafana/rollout-operator. */
export function adoptedGroup({ workloads }: MemoryCluster, overrides: Partial<StatefulSetInput> = {}): void {
  for (const name of memberNames) {
    workloads.create({ name, ...overrides, labels: { 'rollout-group': 'ingester', ...overrides.labels } });
  }
}

/** A RolloutGroup object over the three zones; what `spec` says comes on top. */
export function nativeGroup(
  cluster: MemoryCluster,
  spec: Readonly<Record<string, unknown>> = {},
  overrides: Partial<StatefulSetInput> = {},
): void {
  for (const name of memberNames) cluster.workloads.create({ name, ...overrides });
  cluster.api.put('rollout-group.dev/v1alpha1/rolloutgroups', {
    metadata: { name: 'ingester', namespace: 'mimir' },
    spec: {
      members: { zones: ['a', 'b', 'c'].map((name) => ({ name, statefulSet: `ingester-zone-${name}` })) },
      replicas: { leader: true },
      rollout: { strategy: 'onDelete', rotateBy: 'delete' },
      ...spec,
    },
  });
}

/** Whether every pod runs the image and is ready. */
export function rolled({ api }: MemoryCluster, image: string): boolean {
  const pods = api.list('pods', 'mimir');
  return pods.length > 0 && pods.every((pod) => imageOf(pod) === image && isReadyPod(pod));
}

function downIn(api: MemoryApi): { readonly zones: number; readonly pods: number } {
  const down = memberNames.map((name) => {
    const set = api.get('statefulsets', 'mimir', name);
    const { replicas = 0 } = (set?.['spec'] ?? {}) as { readonly replicas?: number };
    const ready = api.list('pods', 'mimir').filter((pod) => pod.metadata.name.startsWith(`${name}-`) && isReadyPod(pod));
    return Math.max(0, replicas - ready.length);
  });
  // While the cluster is being made its pods come one by one.
  const isWhole = memberNames.every((name) => api.get('statefulsets', 'mimir', name)?.['status'] !== undefined);
  return isWhole
    ? { zones: down.filter((count) => count > 0).length, pods: down.reduce((sum, count) => sum + count, 0) }
    : { zones: 0, pods: 0 };
}

function worse<Count extends { readonly zones: number; readonly pods: number }>(a: Count, b: Count) {
  return { zones: Math.max(a.zones, b.zones), pods: Math.max(a.pods, b.pods) };
}

function podNameOf({ method, pathname }: ServedRequest): string | undefined {
  const isDisruption = method === 'DELETE' || pathname.endsWith('/eviction');
  return isDisruption ? /\/namespaces\/mimir\/pods\/([^/]+)/.exec(pathname)?.[1] : undefined;
}

function podUidOf(api: MemoryApi, request: ServedRequest): string | undefined {
  const name = podNameOf(request);
  return name === undefined ? undefined : api.get('pods', 'mimir', name)?.metadata.uid;
}

function isTerminating(api: MemoryApi, request: ServedRequest): boolean {
  return api.get('pods', 'mimir', podNameOf(request) ?? '')?.metadata.deletionTimestamp !== undefined;
}
