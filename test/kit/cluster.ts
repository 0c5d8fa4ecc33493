// A group of three zones in the models of the API server and its controllers, in virtual time, and questions about what happened to it.
import { startDisruptionController } from '../../simulation/cluster/budgets.ts';
import { beginStatefulSet } from '../../simulation/cluster/cluster.ts';
import { Kubelets } from '../../simulation/cluster/kubelet.ts';
import { StatefulSetController } from '../../simulation/cluster/statefulset-controller.ts';
import { podFacts, replicasOf, type StatefulSetStatus, statusOf } from '../../simulation/cluster/workload.ts';
import { projectKinds, type ServedKind } from '../../simulation/server/kinds.ts';
import type { Commit, Json, ModelObject } from '../../simulation/server/request.ts';
import { ModelApi, schedulerOf } from './model-server.ts';
import { type VirtualEnv, virtualEnv } from './virtual-env.ts';

export const sets = 'statefulsets.apps';
export const groups = 'rolloutgroups.rollout-group.dev';

interface WorkloadOptions {
  readonly seed?: number;
  /** About how long a pod takes to become ready, and to leave. */
  readonly startMs?: number;
  readonly drainMs?: number;
}

export interface StatefulSetInput {
  readonly name: string;
  readonly namespace?: string;
  readonly replicas?: number;
  readonly image?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  /** RollingUpdate with this partition; OnDelete when left out. */
  readonly partition?: number;
}

export interface Workloads {
  /** Creates a StatefulSet with all its pods running and ready, as if it had stood for an hour. */
  readonly create: (input: StatefulSetInput) => void;
  /** Pods of an image `broken/...` crash. */
  readonly setImage: (name: string, image: string, namespace?: string) => void;
  /** `POD IMAGE` of every pod. */
  readonly images: (namespace?: string) => readonly string[];
  /** No further pod of the name becomes ready. */
  readonly breakNext: (pod: string, namespace?: string) => void;
}

export interface Cluster {
  readonly env: VirtualEnv;
  readonly api: ModelApi;
  readonly workloads: Workloads;
  /** Every request that would change something, except for Leases: `METHOD path`. */
  readonly writes: () => readonly string[];
  /** UIDs of pods that the server deleted or evicted by a request. */
  readonly deletedPods: () => readonly string[];
  /** The most zones, and the most pods, that were not ready at one moment since the beginning. */
  readonly maxDown: () => { readonly zones: number; readonly pods: number };
  /** Gives every StatefulSet of the group the image. */
  readonly rollTo: (image: string) => void;
}

interface ClusterOptions {
  readonly kinds?: readonly ServedKind[];
  readonly seed?: number;
}

const memberNames = ['ingester-zone-a', 'ingester-zone-b', 'ingester-zone-c'];
const user = 'system:serviceaccount:mimir:rollout-group';

/** An API server with its controllers, in virtual time. */
export function newCluster({ kinds = projectKinds, seed = 1 }: ClusterOptions = {}): Cluster {
  const env = virtualEnv({ seed });
  const api = new ModelApi({ env, seed, kinds, user });
  env.replaceServer(api.serve);
  const workloads = startWorkloads(env, api, { seed });
  const deleted: string[] = [];
  let most = { zones: 0, pods: 0 };
  api.server.observe({
    committed: ({ resource, before, after, actor }) => {
      if (resource !== 'pods') return;
      const isTerminated = before?.metadata.deletionTimestamp === undefined && after.metadata.deletionTimestamp !== undefined;
      if (isTerminated && actor.user === user) deleted.push(after.metadata.uid);
      most = worse(most, downIn(api));
    },
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
      for (const name of memberNames) if (api.get(sets, 'mimir', name) !== undefined) workloads.setImage(name, image);
    },
  };
}

/** Time within which the cache of the StatefulSet controller receives a new pod. */
const knownAfterMs = 400;

/** Starts the controllers, and one node with its kubelet. */
export function startWorkloads(
  env: Pick<VirtualEnv, 'clock' | 'timers'>,
  api: ModelApi,
  { seed = 1, startMs = 4000, drainMs = 3000 }: WorkloadOptions = {},
): Workloads {
  const { server } = api;
  api.put('nodes', { metadata: { name: 'node-1' }, status: { conditions: [{ type: 'Ready', status: 'True' }] } });
  const world = { server, scheduler: schedulerOf(env), wallMs: env.clock.nowMs, seed };
  const kubelets = new Kubelets({ ...world, startMs, drainMs, isNodeLost: () => false, restarted: () => undefined });
  const controller = new StatefulSetController({ ...world, admit: onNode });
  const disruptions = startDisruptionController(world);
  const broken = new Set<string>();
  // If its cache received a new StatefulSet before the pods, the controller would write a status without pods.
  let late: Commit[] | undefined;
  server.observe({
    committed: (commit) => {
      kubelets.hear(commit);
      disruptions.hear(commit);
      if (late !== undefined && commit.resource === sets) late.push(commit);
      else controller.hear(commit);
      const { namespace = '', name } = commit.after.metadata;
      if (commit.resource === 'pods' && commit.type === 'ADDED' && broken.has(`${namespace}/${name}`)) kubelets.fail(namespace, name);
    },
  });
  const delayNews = (): void => {
    if (late !== undefined) return;
    late = [];
    env.timers.after(knownAfterMs, () => {
      const heard = late ?? [];
      late = undefined;
      for (const commit of heard) controller.hear(commit);
    });
  };
  return {
    create: (input) => {
      delayNews();
      const set = api.put(sets, statefulSet(input));
      beginStatefulSet(set, [], { ...world, placeFor: () => 'node-1', adopt: (pod, sinceMs) => kubelets.adopt(pod, sinceMs) });
    },
    setImage: (name, image, namespace = 'mimir') => {
      api.change(sets, namespace, name, { spec: { template: { spec: { containers: [{ name: 'app', image }] } } } });
    },
    images: (namespace = 'mimir') => api.list('pods', namespace).map((pod) => `${pod.metadata.name} ${imageOf(pod)}`),
    breakNext: (pod, namespace = 'mimir') => void broken.add(`${namespace}/${pod}`),
  };
}

/** Assigns the pod to the only node. */
function onNode(pod: Json): Json {
  return { ...pod, spec: { ...(pod['spec'] as Json), nodeName: 'node-1' } };
}

function statefulSet({
  name,
  namespace = 'mimir',
  replicas = 3,
  image = 'app:1',
  labels = {},
  annotations = {},
  partition,
}: StatefulSetInput) {
  return {
    metadata: { name, namespace, labels, annotations },
    spec: {
      replicas,
      serviceName: name,
      podManagementPolicy: 'Parallel',
      updateStrategy: partition === undefined ? { type: 'OnDelete' } : { type: 'RollingUpdate', rollingUpdate: { partition } },
      selector: { matchLabels: { name } },
      template: { metadata: { labels: { name } }, spec: { containers: [{ name: 'app', image }] } },
    },
  };
}

/** Three zones of three pods with the labels of grafana/rollout-operator. */
export function adoptedGroup({ workloads }: Cluster, overrides: Partial<StatefulSetInput> = {}): void {
  for (const name of memberNames) {
    workloads.create({ name, ...overrides, labels: { 'rollout-group': 'ingester', ...overrides.labels } });
  }
}

/** A RolloutGroup object over the three zones; `spec` overrides its fields. */
export function nativeGroup(
  cluster: Cluster,
  spec: Readonly<Record<string, unknown>> = {},
  overrides: Partial<StatefulSetInput> = {},
): void {
  for (const name of memberNames) cluster.workloads.create({ name, ...overrides });
  cluster.api.put(groups, {
    metadata: { name: 'ingester', namespace: 'mimir' },
    spec: {
      members: { zones: ['a', 'b', 'c'].map((name) => ({ name, statefulSet: `ingester-zone-${name}` })) },
      replicas: { leader: true },
      rollout: { strategy: 'onDelete', rotateBy: 'delete' },
      ...spec,
    },
  });
}

/** Returns whether every pod runs the image and is ready. */
export function rolled({ api }: Cluster, image: string): boolean {
  const pods = api.list('pods', 'mimir');
  return pods.length > 0 && pods.every((pod) => imageOf(pod) === image && isReadyPod(pod));
}

export function isReadyPod(pod: ModelObject): boolean {
  const { isReady, isTerminating } = podFacts(pod);
  return isReady && !isTerminating;
}

export function imageOf(pod: ModelObject): string {
  return podFacts(pod).containers[0]?.image ?? '';
}

/** The status of a StatefulSet. */
export function statusIn({ api }: Cluster, name: string): StatefulSetStatus {
  const set = api.get(sets, 'mimir', name);
  if (set === undefined) throw new Error(`StatefulSet ${name} does not exist`);
  return statusOf(set);
}

function downIn(api: ModelApi): { readonly zones: number; readonly pods: number } {
  const members = memberNames.map((name) => api.get(sets, 'mimir', name));
  const ready = api.list('pods', 'mimir').filter(isReadyPod).map(podFacts);
  const down = members.map((set) =>
    set === undefined ? 0 : Math.max(0, replicasOf(set) - ready.filter(({ owner }) => owner?.uid === set.metadata.uid).length),
  );
  // While the cluster is being created its pods appear one by one.
  const isWhole = members.every((set) => (set?.['status'] as Json | undefined)?.['updateRevision'] !== undefined);
  return isWhole
    ? { zones: down.filter((count) => count > 0).length, pods: down.reduce((sum, count) => sum + count, 0) }
    : { zones: 0, pods: 0 };
}

function worse<Count extends { readonly zones: number; readonly pods: number }>(a: Count, b: Count) {
  return { zones: Math.max(a.zones, b.zones), pods: Math.max(a.pods, b.pods) };
}
