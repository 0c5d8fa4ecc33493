// Plays steps on the StatefulSet of one namespace, and reads what the controllers have made of them.
import type { Json } from '../../../../simulation/server/request.ts';
import type { FilledRequest, Reply } from '../operation.ts';
import type { Created, NodeState, PodState, SingleStep, StrategyKind } from './step.ts';

/** An API server with controllers: the real one, or the model. */
export interface Side {
  readonly ask: (request: FilledRequest) => Promise<Reply>;
  /** The wall clock of the side. */
  readonly nowMs: () => number;
  /** Changes the node of the pods of a namespace (`nodeOf`). */
  readonly changeNode: (namespace: string, state: NodeState) => Promise<void>;
}

interface Stored {
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly generation?: number;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly deletionTimestamp?: string;
    readonly ownerReferences?: readonly { readonly uid: string; readonly controller?: boolean }[];
  };
  readonly spec?: Json;
  readonly status?: Json;
  readonly data?: { readonly spec?: { readonly template?: Stored } };
}

const name = 's';
const dayMs = 86_400_000;
const policyVersion = 'version';

/** What is compared of the workload. Names of revisions and UIDs are replaced by the version of their template and by a count. */
export interface WorkloadState {
  readonly set: Json | undefined;
  readonly pods: readonly ComparedPod[];
  readonly budget: Json | undefined;
  readonly isNodeLost: boolean;
}

/** Returns the name of the node of all pods of the namespace. Only a lost node is an object. */
export function nodeOf(namespace: string): string {
  return `node-${namespace}-1`;
}

/** `young`: ready for less than any `minReadySeconds`. */
type Readiness = 'ready' | 'young' | 'unready';

export interface ComparedPod extends Json {
  readonly ordinal: number;
  readonly phase: unknown;
  readonly readiness: Readiness;
  readonly isTerminating: boolean;
}

/** One namespace on one side. Remembers pods, so that it knows which ones were replaced. */
export class Workload {
  readonly #side: Side;
  readonly #namespace: string;
  readonly #seen = new Map<string, { readonly uid: string; readonly count: number }>();
  readonly #versions = new Map<string, string>();
  #touches = 0;

  constructor(side: Side, namespace: string) {
    this.#side = side;
    this.#namespace = namespace;
  }

  /** Plays a step. Returns the status code of its answer; 200 if the step is no request. */
  async play(step: SingleStep): Promise<number> {
    if (step.kind === 'node') {
      await this.#side.changeNode(this.#namespace, step.state);
      return 200;
    }
    return (await this.#side.ask(this.#requestOf(step))).status;
  }

  /** Returns the current state. With `isSettled`, pods that differ from those of the last settled state count as replaced. */
  async read(isSettled: boolean): Promise<WorkloadState> {
    const [set, pods, budget, node] = await Promise.all([
      this.#get(this.#setPath),
      this.#list('pods'),
      this.#get(this.#budgetPath),
      this.#get(`/api/v1/nodes/${nodeOf(this.#namespace)}`),
    ]);
    const revisions = [
      ...pods.map(revisionOf),
      ...[set].flatMap((one) => [one?.status?.['currentRevision'], one?.status?.['updateRevision']]),
    ];
    if (revisions.some((revision) => typeof revision === 'string' && !this.#versions.has(revision))) await this.#learnVersions();
    const state = {
      set: this.#setState(set),
      pods: pods.map((pod) => this.#podState(pod, set)),
      budget: budgetState(budget),
      isNodeLost: readyOf(node?.status)?.['status'] === 'Unknown',
    };
    if (isSettled) for (const { metadata } of pods) this.#seen.set(metadata.name, this.#identityOf(metadata));
    return state;
  }

  #requestOf(step: Exclude<SingleStep, { kind: 'node' }>): FilledRequest {
    switch (step.kind) {
      case 'create':
        return { method: 'POST', path: this.#path('statefulsets'), body: JSON.stringify(manifestOf(step, nodeOf(this.#namespace))) };
      case 'replicas':
        return this.#patchSet({ replicas: step.replicas });
      case 'template':
        return this.#patchSet({ template: { metadata: { annotations: { version: `${step.version}` } } } });
      case 'strategy':
        return this.#patchSet({ updateStrategy: strategyOf(step) });
      case 'minReady':
        return this.#patchSet({ minReadySeconds: step.seconds });
      case 'start':
        return this.#patchSet({ ordinals: { start: step.ordinal } });
      case 'orphan':
        return { method: 'DELETE', path: this.#setPath, body: JSON.stringify({ propagationPolicy: 'Orphan' }) };
      case 'delete':
        return this.#removal(`${name}-${step.ordinal}`);
      case 'gone':
        return this.#removal(`${name}-${step.ordinal}`, 0);
      case 'finalizer':
        return this.#patchPod(`${name}-${step.ordinal}`, { metadata: { finalizers: step.isSet ? ['example.com/keep'] : null } });
      case 'evict': {
        const pod = `${name}-${step.ordinal}`;
        const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: pod, namespace: this.#namespace } };
        return { method: 'POST', path: `${this.#path('pods')}/${pod}/eviction`, body: JSON.stringify(eviction) };
      }
      case 'pod':
        return this.#podRequest(`${name}-${step.ordinal}`, step.state);
      case 'budget':
        return this.#budgetRequest(step.spec);
    }
  }

  #budgetRequest(spec: Readonly<Record<string, number | string>> | undefined): FilledRequest {
    if (spec === undefined) return { method: 'DELETE', path: this.#budgetPath };
    const absent = { maxUnavailable: null, minAvailable: null, unhealthyPodEvictionPolicy: null };
    const whole = { ...absent, ...spec, selector: { matchLabels: { app: name } } };
    return { method: 'PATCH', path: this.#budgetPath, contentType: 'application/merge-patch+json', body: JSON.stringify({ spec: whole }) };
  }

  /** Creates the budget that steps change; it selects no pod. */
  async prepare(): Promise<void> {
    const spec = { maxUnavailable: 1, selector: { matchLabels: { app: 'none' } } };
    const body = JSON.stringify({ apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata: { name }, spec });
    await this.#side.ask({ method: 'POST', path: this.#path('poddisruptionbudgets'), body });
  }

  /**
   * Changes an annotation of the budget. The disruption controller does not watch StatefulSets, so a change of replicas counts only with the
   * next change of a pod or of the budget.
   */
  async touchBudget(): Promise<void> {
    this.#touches += 1;
    const body = JSON.stringify({ metadata: { annotations: { touched: `${this.#touches}` } } });
    await this.#side.ask({ method: 'PATCH', path: this.#budgetPath, contentType: 'application/merge-patch+json', body });
  }

  #removal(pod: string, gracePeriodSeconds?: number): FilledRequest {
    return { method: 'DELETE', path: `${this.#path('pods')}/${pod}`, body: JSON.stringify({ gracePeriodSeconds }) };
  }

  #patchSet(spec: Json): FilledRequest {
    return { method: 'PATCH', path: this.#setPath, contentType: 'application/merge-patch+json', body: JSON.stringify({ spec }) };
  }

  #podRequest(pod: string, state: PodState): FilledRequest {
    return this.#patchPod(`${pod}/status`, { status: statusOf(state, this.#side.nowMs()) });
  }

  #patchPod(path: string, patch: Json): FilledRequest {
    return {
      method: 'PATCH',
      path: `${this.#path('pods')}/${path}`,
      contentType: 'application/merge-patch+json',
      body: JSON.stringify(patch),
    };
  }

  #path(plural: string): string {
    const roots: Readonly<Record<string, string>> = {
      pods: '/api/v1',
      statefulsets: '/apis/apps/v1',
      controllerrevisions: '/apis/apps/v1',
      poddisruptionbudgets: '/apis/policy/v1',
    };
    return `${roots[plural]}/namespaces/${this.#namespace}/${plural}`;
  }

  get #setPath(): string {
    return `${this.#path('statefulsets')}/${name}`;
  }

  get #budgetPath(): string {
    return `${this.#path('poddisruptionbudgets')}/${name}`;
  }

  async #get(path: string): Promise<Stored | undefined> {
    const { status, body } = await this.#side.ask({ method: 'GET', path });
    return status === 200 ? (JSON.parse(body) as Stored) : undefined;
  }

  async #list(plural: string): Promise<readonly Stored[]> {
    const { body } = await this.#side.ask({ method: 'GET', path: this.#path(plural) });
    const { items } = JSON.parse(body) as { readonly items: readonly Stored[] };
    return [...items].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  }

  async #learnVersions(): Promise<void> {
    for (const { metadata, data } of await this.#list('controllerrevisions'))
      this.#versions.set(metadata.name, data?.spec?.template?.metadata.annotations?.[policyVersion] ?? 'none');
  }

  #versionOf(revision: unknown): string {
    return this.#versions.get(`${revision}`) ?? 'unknown';
  }

  #identityOf({ name: pod, uid }: Stored['metadata']): { readonly uid: string; readonly count: number } {
    const known = this.#seen.get(pod);
    if (known?.uid === uid) return known;
    return { uid, count: (known?.count ?? 0) + 1 };
  }

  #setState(set: Stored | undefined): Json | undefined {
    if (set === undefined) return undefined;
    const { status = {}, metadata } = set;
    const counters = ['replicas', 'readyReplicas', 'availableReplicas', 'currentReplicas', 'updatedReplicas'];
    return {
      ...Object.fromEntries(counters.map((counter) => [counter, status[counter] ?? 0])),
      currentRevision: this.#versionOf(status['currentRevision']),
      updateRevision: this.#versionOf(status['updateRevision']),
      isObserved: status['observedGeneration'] === metadata.generation,
      isTerminating: metadata.deletionTimestamp !== undefined,
    };
  }

  #podState(pod: Stored, set: Stored | undefined): ComparedPod {
    const { metadata, status = {} } = pod;
    const owner = metadata.ownerReferences?.find(({ controller }) => controller === true)?.uid;
    return {
      ordinal: Number(metadata.name.slice(name.length + 1)),
      number: this.#identityOf(metadata).count,
      revision: this.#versionOf(revisionOf(pod)),
      version: metadata.annotations?.[policyVersion],
      isTerminating: metadata.deletionTimestamp !== undefined,
      phase: status['phase'],
      readiness: readinessOf(status, this.#side.nowMs()),
      conditions: conditionsOf(status),
      owner: owner === undefined ? 'none' : owner === set?.metadata.uid ? 'set' : 'other',
    };
  }
}

function revisionOf({ metadata }: Stored): string | undefined {
  return metadata.labels?.['controller-revision-hash'];
}

function conditionsOf(status: Json): readonly string[] {
  const { conditions = [] } = status as { readonly conditions?: readonly Json[] };
  return conditions.map(({ type, status: value, reason = '' }) => `${type}=${value} ${reason}`).sort();
}

function readyOf(status: Json | undefined): Json | undefined {
  return (status?.['conditions'] as readonly Json[] | undefined)?.find(({ type }) => type === 'Ready');
}

function readinessOf(podStatus: Json, nowMs: number): Readiness {
  const { status, lastTransitionTime } = readyOf(podStatus) ?? {};
  if (status !== 'True') return 'unready';
  return nowMs - Date.parse(`${lastTransitionTime}`) > dayMs ? 'ready' : 'young';
}

function budgetState(budget: Stored | undefined): Json | undefined {
  if (budget === undefined) return undefined;
  const { status = {}, metadata } = budget;
  const counters = ['currentHealthy', 'desiredHealthy', 'expectedPods', 'disruptionsAllowed'];
  return {
    ...Object.fromEntries(counters.map((counter) => [counter, status[counter] ?? 0])),
    disruptedPods: Object.keys((status['disruptedPods'] as Json | undefined) ?? {}).sort(),
    isObserved: status['observedGeneration'] === metadata.generation,
  };
}

function statusOf(state: PodState, nowMs: number): Json {
  const ended: Readonly<Record<string, string>> = { failed: 'Failed', succeeded: 'Succeeded' };
  const isReady = state === 'ready' || state === 'young';
  const since = new Date(state === 'ready' ? nowMs - 2 * dayMs : nowMs).toISOString().replace(/\.\d+Z$/, 'Z');
  return {
    phase: ended[state] ?? 'Running',
    conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False', lastTransitionTime: since }],
  };
}

function strategyOf({
  strategy,
  partition,
  maxUnavailable,
}: {
  strategy: StrategyKind;
  partition: number;
  maxUnavailable?: number | string;
}): Json {
  if (strategy === 'OnDelete') return { type: 'OnDelete', rollingUpdate: null };
  if (strategy === 'withoutBlock') return { type: 'RollingUpdate', rollingUpdate: null };
  return { type: 'RollingUpdate', rollingUpdate: { partition, ...(maxUnavailable === undefined ? {} : { maxUnavailable }) } };
}

function manifestOf(created: Created, nodeName: string): Json {
  const { podManagementPolicy, replicas, start, minReadySeconds, version } = created;
  const { rollingUpdate, ...strategy } = strategyOf(created);
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name },
    spec: {
      replicas,
      serviceName: name,
      podManagementPolicy,
      minReadySeconds,
      ordinals: { start },
      updateStrategy: rollingUpdate === null ? strategy : { ...strategy, rollingUpdate },
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels: { app: name }, annotations: { version: `${version}` } },
        // Without a node the API server would remove a pod at once.
        spec: { nodeName, terminationGracePeriodSeconds: 600, containers: [{ name: 'c', image: 'example.com/server:1' }] },
      },
    },
  };
}
