// A group of zones with the labels of grafana/rollout-operator, and the operations of suites on it.
import type { WatchedGroup } from '../kit/watcher.ts';
import type { ApiClient } from './client.ts';
import { isReady, type Pod, revisionOf, type StatefulSet, statefulSet } from './workloads.ts';

export interface GroupOptions {
  /** The namespace, which is created for the group. */
  readonly namespace: string;
  readonly name?: string;
  /**
   * The zones: StatefulSets are named `NAME-zone-ZONE`, and their pods run on the nodes of `zone-ZONE`. Other zones than a, b and c run on
   * any node.
   */
  readonly zones?: readonly string[];
  readonly replicas?: number;
  /** The annotation `rollout-max-unavailable`. */
  readonly maxUnavailable?: number;
  readonly image?: string;
  readonly strategy?: 'OnDelete' | 'RollingUpdate';
  readonly podManagementPolicy?: 'OrderedReady' | 'Parallel';
  /** Annotations of the pods, by which a test controls them. */
  readonly podAnnotations?: Readonly<Record<string, string>>;
  /** Further metadata of one StatefulSet. */
  readonly zoneMeta?: (zone: string) => {
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly replicas?: number;
  };
}

const podTimeoutMs = 120_000;

/** Waits for and writes one group, as the administrator. */
export class TestGroup {
  readonly namespace: string;
  readonly name: string;
  /** Names of the StatefulSets. */
  readonly sets: readonly string[];
  readonly #client: ApiClient;
  readonly #options: GroupOptions;

  constructor(client: ApiClient, options: GroupOptions) {
    this.#client = client;
    this.#options = options;
    this.namespace = options.namespace;
    this.name = options.name ?? 'ingester';
    this.sets = (options.zones ?? ['a', 'b', 'c']).map((zone) => `${this.name}-zone-${zone}`);
  }

  get podsPath(): string {
    return `/api/v1/namespaces/${this.namespace}/pods`;
  }

  get setsPath(): string {
    return `/apis/apps/v1/namespaces/${this.namespace}/statefulsets`;
  }

  /** The group as the watcher knows it. */
  get watched(): WatchedGroup {
    const maxUnavailable = this.#options.maxUnavailable ?? 1;
    return { namespace: this.namespace, zones: this.sets.map((set) => ({ statefulSet: set, maxUnavailable })) };
  }

  /** Creates the namespace and the StatefulSets, and waits until every pod is Ready. */
  async create(timeoutMs = podTimeoutMs): Promise<void> {
    await this.#client.ask('POST', '/api/v1/namespaces', { metadata: { name: this.namespace } });
    let count = 0;
    for (const set of this.sets) {
      const { replicas = 2, maxUnavailable, image, podAnnotations, zoneMeta, strategy, podManagementPolicy } = this.#options;
      const zone = set.slice(`${this.name}-zone-`.length);
      const more = zoneMeta?.(zone) ?? {};
      count += more.replicas ?? replicas;
      const object = statefulSet({
        name: set,
        replicas: more.replicas ?? replicas,
        ...(['a', 'b', 'c'].includes(zone) ? { nodeZone: `zone-${zone}` } : {}),
        ...(image === undefined ? {} : { image }),
        ...(strategy === undefined ? {} : { strategy }),
        ...(podManagementPolicy === undefined ? {} : { podManagementPolicy }),
        ...(podAnnotations === undefined ? {} : { annotations: podAnnotations }),
        setLabels: { 'rollout-group': this.name, ...more.labels },
        setAnnotations: {
          ...(maxUnavailable === undefined ? {} : { 'rollout-max-unavailable': String(maxUnavailable) }),
          ...more.annotations,
        },
      });
      await this.#client.create(this.setsPath, object);
    }
    await this.untilReady(count, timeoutMs);
  }

  /** Gives every StatefulSet the image, and waits until each has a new update revision. */
  async setImage(image: string, sets = this.sets): Promise<void> {
    for (const set of sets) {
      await this.#client.patch(`${this.setsPath}/${set}`, 'strategic', {
        spec: { template: { spec: { containers: [{ name: 'server', image }] } } },
      });
    }
    await this.#client.until<StatefulSet>(this.setsPath, 'the new revision in the status', (items) =>
      items.every(({ metadata, status }) => status.observedGeneration === metadata.generation),
    );
  }

  /** Patches the metadata of one StatefulSet. */
  annotate(set: string, annotations: Readonly<Record<string, string | null>>): Promise<unknown> {
    return this.#client.patch(`${this.setsPath}/${set}`, 'merge', { metadata: { annotations } });
  }

  scale(set: string, replicas: number): Promise<unknown> {
    return this.#client.patch(`${this.setsPath}/${set}/scale`, 'merge', { spec: { replicas } });
  }

  /** Waits until all pods of the group are Ready, and their number is this one if given. */
  untilReady(count?: number, timeoutMs = podTimeoutMs): Promise<readonly Pod[]> {
    return this.#client.until<Pod>(
      this.podsPath,
      'every pod Ready',
      (pods) => (count === undefined || pods.length === count) && pods.every(isReady),
      timeoutMs,
    );
  }

  /**
   * Waits until the rollout is complete: every pod is Ready at the update revision, and the statuses of the StatefulSets agree. For
   * adopted groups also waits for the current revision, which the agent advances only for them.
   */
  async untilRolled(timeoutMs = podTimeoutMs, { isAdopted = true } = {}): Promise<readonly Pod[]> {
    const sets = await this.#client.until<StatefulSet>(
      this.setsPath,
      'every StatefulSet at its update revision',
      (items) =>
        items
          .filter(({ metadata }) => this.sets.includes(metadata.name))
          .every(({ spec, status, metadata }) => {
            return (
              status.observedGeneration === metadata.generation &&
              status.readyReplicas === spec.replicas &&
              (status as { readonly updatedReplicas?: number }).updatedReplicas === spec.replicas &&
              (!isAdopted || status.currentRevision === status.updateRevision)
            );
          }),
      timeoutMs,
    );
    const targets = new Set(sets.map(({ status }) => status.updateRevision));
    return this.#client.until<Pod>(this.podsPath, 'every pod Ready at the update revision', (pods) =>
      pods.every((pod) => isReady(pod) && targets.has(revisionOf(pod))),
    );
  }

  pods(): Promise<readonly Pod[]> {
    return this.#client.list<Pod>(this.podsPath);
  }

  /** Returns `spec.replicas` of every StatefulSet, in their order. */
  async replicas(): Promise<readonly number[]> {
    const items = await this.#client.list<StatefulSet>(this.setsPath);
    return this.sets.map((set) => items.find(({ metadata }) => metadata.name === set)?.spec.replicas ?? -1);
  }
}
