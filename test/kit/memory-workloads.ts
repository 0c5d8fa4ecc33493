// The StatefulSet controller and the kubelet of the API server in memory, in virtual time: pods are made, become ready, drain and go.
import type { Timers } from '../../cluster/env.ts';
import { isReadyPod, type Json, type MemoryApi, type StoredObject } from './memory-api.ts';

export interface WorkloadTimes {
  readonly startMs?: number;
  readonly drainMs?: number;
  /** Until the controller reacts. */
  readonly controllerMs?: number;
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

const setKey = 'apps/v1/statefulsets';
const podKey = '/v1/pods';

interface SetSpec {
  readonly replicas: number;
  readonly template: Template;
  readonly updateStrategy: { readonly type: string; readonly rollingUpdate?: { readonly partition?: number } };
}

interface Template {
  readonly metadata: { readonly labels: Readonly<Record<string, string>> };
  readonly spec: Json;
}

/** Runs the controllers on the server; everything they do takes virtual time. */
export class MemoryWorkloads {
  readonly #api: MemoryApi;
  readonly #timers: Timers;
  readonly #nowMs: () => number;
  readonly #times: Required<WorkloadTimes>;
  readonly #due = new Set<string>();
  readonly #going = new Set<string>();
  /** Pods of these names never become ready. */
  readonly broken = new Set<string>();
  /** Images whose pods never become ready. */
  readonly brokenImages = new Set<string>();
  /** By revision: what pods are made from that stand below a partition. */
  readonly #templates = new Map<string, Template>();

  constructor(
    api: MemoryApi,
    timers: Timers,
    nowMs: () => number,
    { startMs = 4000, drainMs = 3000, controllerMs = 50 }: WorkloadTimes = {},
  ) {
    this.#api = api;
    this.#timers = timers;
    this.#nowMs = nowMs;
    this.#times = { startMs, drainMs, controllerMs };
    api.onChange = (plural, object) => this.#react(plural, object);
  }

  /** A StatefulSet with all its pods running and ready, as if it had stood for an hour. */
  create({ name, namespace = 'mimir', replicas = 3, image = 'app:1', labels = {}, annotations = {}, partition }: StatefulSetInput): void {
    const spec = {
      replicas,
      serviceName: name,
      podManagementPolicy: 'Parallel',
      updateStrategy: partition === undefined ? { type: 'OnDelete' } : { type: 'RollingUpdate', rollingUpdate: { partition } },
      selector: { matchLabels: { name } },
      template: { metadata: { labels: { name } }, spec: { containers: [{ name: 'app', image }] } },
    };
    this.#api.put(setKey, { metadata: { name, namespace, labels, annotations }, spec });
    const set = this.#set(namespace, name);
    for (let ordinal = 0; ordinal < replicas; ordinal += 1) this.#makePod(set, ordinal, this.#nowMs() - 3_600_000);
    this.#updateStatus(namespace, name);
  }

  setImage(name: string, image: string, namespace = 'mimir'): void {
    this.#api.change(setKey, namespace, name, { spec: { template: { spec: { containers: [{ name: 'app', image }] } } } });
  }

  images(namespace = 'mimir'): readonly string[] {
    return this.#api.list('pods', namespace).map((pod) => `${pod.metadata.name} ${imageOf(pod)}`);
  }

  #react(plural: string, object: StoredObject): void {
    const namespace = object.metadata.namespace ?? '';
    if (plural === 'statefulsets') this.#soon(namespace, object.metadata.name);
    if (plural !== 'pods') return;
    const owner = ownerOf(object);
    if (owner !== undefined) this.#soon(namespace, owner);
    const { uid, deletionTimestamp } = object.metadata;
    if (deletionTimestamp === undefined || this.#going.has(uid)) return;
    this.#going.add(uid);
    this.#timers.after(this.#times.drainMs, () => {
      if (this.#api.get('pods', namespace, object.metadata.name)?.metadata.uid === uid)
        this.#api.remove(podKey, namespace, object.metadata.name);
    });
  }

  #soon(namespace: string, name: string): void {
    const key = `${namespace}/${name}`;
    if (this.#due.has(key)) return;
    this.#due.add(key);
    this.#timers.after(this.#times.controllerMs, () => {
      this.#due.delete(key);
      this.#reconcile(namespace, name);
    });
  }

  #reconcile(namespace: string, name: string): void {
    const set = this.#api.get('statefulsets', namespace, name);
    if (set === undefined) return;
    const { replicas } = specOf(set);
    const pods = this.#podsOf(set);
    const ordinals = new Set(pods.map(ordinalOf));
    for (let ordinal = 0; ordinal < replicas; ordinal += 1) {
      if (ordinals.has(ordinal)) continue;
      const pod = this.#makePod(set, ordinal, undefined);
      if (this.broken.has(pod.metadata.name) || this.brokenImages.has(imageOf(pod))) continue;
      this.#timers.after(this.#times.startMs, () => this.#makeReady(pod));
    }
    for (const pod of pods) {
      if (ordinalOf(pod) < replicas || pod.metadata.deletionTimestamp !== undefined) continue;
      this.#remove(pod);
    }
    this.#roll(set);
    this.#updateStatus(namespace, name);
  }

  /** From the highest ordinal down to the partition, one pod at a time, and none while another one is down. */
  #roll(set: StoredObject): void {
    const { updateStrategy, replicas } = specOf(set);
    if (updateStrategy.type !== 'RollingUpdate') return;
    const pods = this.#podsOf(set);
    const isDown = pods.length < replicas || pods.some((pod) => pod.metadata.deletionTimestamp !== undefined || !isReadyPod(pod));
    const outdated = pods.filter((pod) => ordinalOf(pod) >= partitionOf(set) && hashOf(pod) !== revisionOf(set));
    const next = outdated.sort((a, b) => ordinalOf(b) - ordinalOf(a))[0];
    if (next !== undefined && !isDown) this.#remove(next);
  }

  #remove({ metadata: { name, namespace = '' } }: StoredObject): void {
    this.#api.change(podKey, namespace, name, { metadata: { deletionTimestamp: new Date(this.#nowMs()).toISOString() } });
  }

  #makePod(set: StoredObject, ordinal: number, readySinceMs: number | undefined): StoredObject {
    const { template: newest } = specOf(set);
    const update = revisionOf(set);
    this.#templates.set(update, newest);
    const current = currentOf(set) ?? update;
    const revision = ordinal < partitionOf(set) ? current : update;
    const template = this.#templates.get(revision) ?? newest;
    const { name: owner, namespace = '', uid } = set.metadata;
    const labels = { ...template.metadata.labels, 'controller-revision-hash': revision };
    const ownerReferences = [{ apiVersion: 'apps/v1', kind: 'StatefulSet', name: owner, uid, controller: true }];
    return this.#api.put(podKey, {
      metadata: { name: `${owner}-${ordinal}`, namespace, labels, ownerReferences },
      spec: { ...template.spec, nodeName: 'node-1' },
      status: podStatus(readySinceMs !== undefined, readySinceMs ?? this.#nowMs()),
    });
  }

  #makeReady({ metadata }: StoredObject): void {
    const current = this.#api.get('pods', metadata.namespace ?? '', metadata.name);
    if (current?.metadata.uid !== metadata.uid || current.metadata.deletionTimestamp !== undefined) return;
    this.#api.change(podKey, metadata.namespace ?? '', metadata.name, { status: podStatus(true, this.#nowMs()) });
  }

  #updateStatus(namespace: string, name: string): void {
    const set = this.#set(namespace, name);
    const pods = this.#podsOf(set);
    const update = revisionOf(set);
    const updated = pods.filter((pod) => hashOf(pod) === update);
    const { type } = specOf(set).updateStrategy;
    // Under OnDelete the current revision does not advance by itself.
    const isComplete = type === 'RollingUpdate' && updated.length === pods.length;
    this.#api.change(setKey, namespace, name, {
      status: {
        observedGeneration: set.metadata['generation'],
        replicas: pods.length,
        readyReplicas: pods.filter(isReadyPod).length,
        updatedReplicas: updated.length,
        currentRevision: isComplete ? update : (currentOf(set) ?? update),
        updateRevision: update,
      },
    });
  }

  #set(namespace: string, name: string): StoredObject {
    const set = this.#api.get('statefulsets', namespace, name);
    if (set === undefined) throw new Error(`StatefulSet ${namespace}/${name} does not exist`);
    return set;
  }

  #podsOf({ metadata }: StoredObject): readonly StoredObject[] {
    return this.#api.list('pods', metadata.namespace ?? '').filter((pod) => ownerOf(pod) === metadata.name);
  }
}

export function imageOf(pod: StoredObject): string {
  const { containers = [] } = (pod['spec'] ?? {}) as { readonly containers?: readonly { readonly image: string }[] };
  return containers[0]?.image ?? '';
}

function specOf(set: StoredObject): SetSpec {
  return set['spec'] as SetSpec;
}

function revisionOf(set: StoredObject): string {
  return `${set.metadata.name}-${JSON.stringify(specOf(set).template)
    .replace(/[^a-z0-9]/gi, '')
    .slice(-12)}`;
}

/** 0 under OnDelete, where every pod is made at the update revision. */
function partitionOf(set: StoredObject): number {
  return specOf(set).updateStrategy.rollingUpdate?.partition ?? 0;
}

function currentOf(set: StoredObject): string | undefined {
  return ((set['status'] ?? {}) as { readonly currentRevision?: string }).currentRevision;
}

function hashOf(pod: StoredObject): string | undefined {
  return pod.metadata.labels?.['controller-revision-hash'];
}

function ownerOf(pod: StoredObject): string | undefined {
  return (pod.metadata['ownerReferences'] as readonly { readonly name: string }[] | undefined)?.[0]?.name;
}

function ordinalOf(pod: StoredObject): number {
  return Number(/-(\d+)$/.exec(pod.metadata.name)?.[1] ?? -1);
}

function podStatus(isReady: boolean, sinceMs: number): Json {
  const since = new Date(sinceMs).toISOString();
  return {
    phase: 'Running',
    startTime: since,
    conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False', lastTransitionTime: since }],
    containerStatuses: [{ name: 'app', ready: isReady, state: { running: { startedAt: since } } }],
  };
}
