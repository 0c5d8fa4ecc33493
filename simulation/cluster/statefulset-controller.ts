// Models the StatefulSet controller: it reads from a lagging cache, creates and deletes pods, and writes the status.

import { unavailableLimit } from '../../engine/amount.ts';
import {
  type ControlledSet,
  type ControllerInput,
  controllerTurn,
  isUpdateComplete,
  replicaCounts,
} from '../../engine/world/controller.ts';
import { between, type Random, streamOf } from '../random.ts';
import type { Scheduler } from '../scheduler.ts';
import type { Commit, Json, ModelObject } from '../server/request.ts';
import { keyOf } from '../server/store.ts';
import {
  controllerActor as actor,
  isNamedAfter,
  type PodFacts,
  type PodTemplate,
  podFacts,
  replicasOf,
  revisionLabel,
  revisionName,
  revisionResource,
  type StatefulSetStatus,
  specOf,
  statefulSetResource,
  statusOf,
} from './workload.ts';
import type { World } from './world.ts';

interface ControllerOptions extends World {
  readonly admit?: (pod: Json) => Json;
  /** True with the feature gate MaxUnavailableStatefulSet. */
  readonly hasMaxUnavailable?: boolean;
}

/** The back-off after a failed turn, doubled each time, as in a rate limited queue. */
const retry = { firstMs: 100, maxMs: 20_000 };

/** The controller. It reconciles each StatefulSet that is due. */
export class StatefulSetController {
  readonly #options: ControllerOptions;
  readonly #random: Random;
  readonly #due = new Set<string>();
  readonly #failures = new Map<string, number>();
  /** The timers of StatefulSets that must be reconciled later even without a change. */
  readonly #timers = new Map<string, { readonly atMs: number; readonly cancel: () => void }>();
  /** The StatefulSets with their previous template, if it is known. */
  readonly #past = new Map<string, ModelObject>();
  #lagMs = 0;
  readonly #sets: Informer;
  readonly #pods: Informer;

  constructor(options: ControllerOptions) {
    this.#options = options;
    this.#random = streamOf(options.seed, 'statefulset controller');
    const { server, scheduler } = options;
    const shared = { scheduler, delayMs: () => this.#delayMs(), settled: () => this.#settled() };
    this.#sets = createInformer({
      ...shared,
      arrived: (after, before) => {
        if (before !== undefined && isOtherTemplate(before, after)) this.#past.set(keyOf(after), before);
        this.#due.add(keyOf(after));
      },
    });
    this.#pods = createInformer({
      ...shared,
      arrived: (after, before) => {
        for (const pod of [after, before]) {
          const key = pod && setKeyOf(podFacts(pod));
          if (key !== undefined) this.#due.add(key);
        }
      },
    });
    this.#learnSets();
    for (const pod of server.list('pods')) this.#pods.learn(pod);
    scheduler.after(this.#delayMs(), () => this.#settled());
  }

  hear(commit: Commit): void {
    if (commit.resource === statefulSetResource) this.#sets.hear(commit);
    else if (commit.resource === 'pods') this.#pods.hear(commit);
  }

  /** Sets a delay that is added to the delay of the caches; 0 is normal. */
  lag(ms: number): void {
    this.#lagMs = ms;
    if (ms > 0) return;
    // All delayed changes arrive at once, as after a list.
    if (!this.#sets.isFrozen()) this.#sets.thaw();
    this.#pods.thaw();
  }

  /** Gives the cached StatefulSets their previous templates, and freezes the cache until `goFresh`. */
  goStale(): void {
    const older = [...this.#past.entries()].flatMap(([key, before]) => withTemplateOf(before, this.#sets.get(key)));
    this.#sets.freeze(older);
    for (const set of older) this.#due.add(keyOf(set));
    this.#options.scheduler.after(this.#delayMs(), () => this.#settled());
  }

  goFresh(): void {
    if (!this.#sets.isFrozen()) return;
    this.#sets.thaw();
    this.#learnSets();
    this.#settled();
  }

  #learnSets(): void {
    for (const set of this.#options.server.list(statefulSetResource)) {
      this.#sets.learn(set);
      this.#due.add(keyOf(set));
    }
  }

  #delayMs(): number {
    return between(this.#random, 10, 300) + this.#lagMs;
  }

  #settled(): void {
    for (const key of [...this.#due]) this.#sync(key);
  }

  #sync(key: string): void {
    this.#due.delete(key);
    const set = this.#sets.get(key);
    if (set === undefined) return;
    const hasSucceeded = this.#reconcile(set);
    if (hasSucceeded) this.#failures.delete(key);
    else this.#tryAgain(key);
  }

  #tryAgain(key: string): void {
    const count = this.#failures.get(key) ?? 0;
    this.#failures.set(key, count + 1);
    this.#syncAt(key, this.#options.scheduler.nowMs() + Math.min(retry.firstMs * 2 ** count, retry.maxMs));
  }

  #syncAt(key: string, atMs: number): void {
    const known = this.#timers.get(key);
    if (known !== undefined && known.atMs <= atMs) return;
    known?.cancel();
    const cancel = this.#options.scheduler.after(atMs - this.#options.scheduler.nowMs(), () => {
      this.#timers.delete(key);
      this.#sync(key);
    });
    this.#timers.set(key, { atMs, cancel });
  }

  #reconcile(set: ModelObject): boolean {
    // The API server would refuse its pods.
    if (this.#options.server.isTerminating(set.metadata.namespace ?? '')) return true;
    this.#adoptRevisions(set);
    const updateRevision = this.#ensureRevision(set);
    const adopted = this.#adopt(set);
    const input = (): ControllerInput<PodFacts> => ({
      set: controlledSet(set, { currentRevision: this.#currentRevisionOf(set) ?? updateRevision, updateRevision }),
      pods: this.#podsOf(set),
      nowMs: this.#options.wallMs(),
      ...(this.#options.hasMaxUnavailable === true ? { maxUnavailable: maxUnavailableOf(set) } : {}),
    });
    const before = input();
    const turn = controllerTurn(before);
    const hasCreated = this.#createInBatches(set, before.set.firstOrdinal, turn.creates);
    // Without a pod that could not be created, Kubernetes deletes no pod in the same turn.
    for (const { name } of hasCreated ? turn.deletes : []) {
      // Deletes by name only, as Kubernetes does.
      this.#options.server.terminate(actor, set.metadata.namespace ?? '', name);
      const pod = this.#options.server.get('pods', set.metadata.namespace ?? '', name);
      if (pod !== undefined) this.#pods.learn(pod);
    }
    const isStatusCurrent = this.#writeStatus(set, input());
    const againMs = nextAvailableMs(before);
    if (againMs !== undefined) this.#syncAt(keyOf(set), this.#options.scheduler.nowMs() + againMs - before.nowMs);
    return adopted && isStatusCurrent && hasCreated;
  }

  #podsOf(set: ModelObject): readonly PodFacts[] {
    const found: PodFacts[] = [];
    for (const pod of this.#pods.all()) {
      const one = podFacts(pod);
      if (one.owner?.uid === set.metadata.uid && one.namespace === set.metadata.namespace) found.push(one);
    }
    return found.sort((a, b) => a.ordinal - b.ordinal);
  }

  /** Returns whether the StatefulSet may adopt objects: the API server has it and it is not being deleted. The cache may lag. */
  #mayAdopt({ metadata: { namespace = '', name, uid } }: ModelObject): boolean {
    const live = this.#options.server.get(statefulSetResource, namespace, name);
    return live?.metadata.uid === uid && live.metadata.deletionTimestamp === undefined;
  }

  /** Adopts matching orphans. Reads the StatefulSet first, as Kubernetes does. */
  #adopt(set: ModelObject): boolean {
    const { namespace = '', name } = set.metadata;
    for (const pod of [...this.#pods.all()]) {
      const one = podFacts(pod);
      if (!one.isOrphan || one.isTerminating || one.namespace !== namespace || !isNamedAfter(one.name, name) || !selects(set, one))
        continue;
      if (!this.#mayAdopt(set)) return false;
      const now = this.#options.server.get('pods', namespace, one.name);
      if (now === undefined || now.metadata.uid !== one.uid || !podFacts(now).isOrphan) return false;
      const changed = this.#own(set, 'pods', one.name);
      if (changed !== undefined) this.#pods.learn(changed);
    }
    return true;
  }

  /** Adopts the ControllerRevisions of a deleted StatefulSet with the same name. Reads the StatefulSet first, as Kubernetes does. */
  #adoptRevisions(set: ModelObject): void {
    const { namespace = '', name } = set.metadata;
    for (const { metadata } of this.#options.server.list(revisionResource, namespace)) {
      const isOrphan = (metadata.ownerReferences ?? []).length === 0 && metadata.deletionTimestamp === undefined;
      if (!isOrphan || !metadata.name.startsWith(`${name}-`)) continue;
      if (!this.#mayAdopt(set)) return;
      this.#own(set, revisionResource, metadata.name);
    }
  }

  #own(set: ModelObject, resource: string, name: string): ModelObject | undefined {
    const reference = { resource, namespace: set.metadata.namespace ?? '', name };
    return this.#options.server.change(actor, reference, { metadata: { ownerReferences: [ownerReference(set)] } });
  }

  /** Creates pods as Kubernetes does: in batches of 1, 2, 4 and more ordinals, up to the first batch with a failure (slowStartBatch). */
  #createInBatches(set: ModelObject, first: number, places: readonly { readonly ordinal: number; readonly revision: string }[]): boolean {
    let failed = Number.POSITIVE_INFINITY;
    for (const place of [...places].sort((a, b) => a.ordinal - b.ordinal)) {
      const batch = Math.floor(Math.log2(place.ordinal - first + 1));
      if (batch > failed) break;
      if (!this.#create(set, place)) failed = batch;
    }
    return failed === Number.POSITIVE_INFINITY;
  }

  #create(set: ModelObject, { ordinal, revision }: { readonly ordinal: number; readonly revision: string }): boolean {
    const { namespace = '', name } = set.metadata;
    const template = this.#templateOf(set, revision);
    // The predecessor may still exist: the cache may lack it, or another StatefulSet of the same name may own it.
    if (template === undefined || this.#options.server.get('pods', namespace, `${name}-${ordinal}`) !== undefined) return false;
    const pod = podOf(set, { ordinal, revision, template });
    this.#pods.learn(this.#options.server.create(actor, 'pods', this.#options.admit === undefined ? pod : this.#options.admit(pod)));
    return true;
  }

  #templateOf(set: ModelObject, revision: string): PodTemplate | undefined {
    if (revision === revisionName(set)) return specOf(set).template;
    const kept = this.#options.server.get(revisionResource, set.metadata.namespace ?? '', revision);
    return (kept?.['data'] as { readonly spec?: { readonly template?: PodTemplate } } | undefined)?.spec?.template;
  }

  #currentRevisionOf(set: ModelObject): string | undefined {
    const { currentRevision = '' } = statusOf(set);
    const isKept = this.#options.server.get(revisionResource, set.metadata.namespace ?? '', currentRevision) !== undefined;
    return isKept ? currentRevision : undefined;
  }

  /**
   * Creates the ControllerRevision of the template, or gives the existing ControllerRevision the highest number. Returns its name.
   * The same template always has a ControllerRevision with the same name.
   */
  #ensureRevision(set: ModelObject): string {
    const { namespace = '', uid } = set.metadata;
    const name = revisionName(set);
    if (statusOf(set).updateRevision === name && this.#options.server.get(revisionResource, namespace, name) !== undefined) return name;
    const known = this.#options.server.list(revisionResource, namespace).filter((one) => one.metadata.ownerReferences?.[0]?.uid === uid);
    const newest = known.reduce((most, one) => Math.max(most, Number(one['revision'])), 0);
    const found = this.#options.server.get(revisionResource, namespace, name);
    const patch = { revision: newest + 1, metadata: { ownerReferences: [ownerReference(set)] } };
    if (found === undefined) this.#options.server.create(actor, revisionResource, revisionOf(set, name, newest + 1));
    else if (!known.includes(found) || Number(found['revision']) < newest)
      this.#options.server.change(actor, { resource: revisionResource, namespace, name }, patch);
    return name;
  }

  /** Writes the status. Returns false if the StatefulSet has changed, because the API server rejects an update of an older version. */
  #writeStatus(set: ModelObject, input: ControllerInput<PodFacts>): boolean {
    const { namespace = '', name, generation = 1 } = set.metadata;
    const counts = replicaCounts(input);
    const { currentRevision, updateRevision } = input.set.status;
    const hasMoved = isUpdateComplete(input.set, counts);
    const status: StatefulSetStatus = {
      observedGeneration: generation,
      ...counts,
      ...(hasMoved ? { currentReplicas: counts.updatedReplicas } : {}),
      currentRevision: hasMoved ? updateRevision : currentRevision,
      updateRevision,
      collisionCount: statusOf(set).collisionCount ?? 0,
    };
    if (isSameStatus(statusOf(set), status)) return true;
    const live = this.#options.server.get(statefulSetResource, namespace, name);
    if (live?.metadata.resourceVersion !== set.metadata.resourceVersion) return live === undefined;
    const changed = this.#options.server.change(actor, { resource: statefulSetResource, namespace, name }, { status }, 'status');
    if (changed !== undefined) this.#sets.learn(changed);
    return true;
  }
}

/** Returns the fields that the controller reads, with the defaults of the API server. */
function controlledSet(set: ModelObject, revisions: Pick<ControlledSet['status'], 'currentRevision' | 'updateRevision'>): ControlledSet {
  const { podManagementPolicy, updateStrategy, minReadySeconds = 0, ordinals } = specOf(set);
  const { currentReplicas = 0 } = statusOf(set);
  return {
    replicas: replicasOf(set),
    firstOrdinal: ordinals?.start ?? 0,
    podManagementPolicy: podManagementPolicy === 'Parallel' ? 'Parallel' : 'OrderedReady',
    updateStrategy: updateStrategy?.type === 'OnDelete' ? 'OnDelete' : 'RollingUpdate',
    partition: updateStrategy?.rollingUpdate?.partition,
    minReadySeconds,
    isTerminating: set.metadata.deletionTimestamp !== undefined,
    status: { ...revisions, currentReplicas },
  };
}

/** Returns the number of pods that an update makes unavailable. Percentages are rounded down, to at least 1. */
function maxUnavailableOf(set: ModelObject): number {
  const { maxUnavailable = 1 } = specOf(set).updateStrategy?.rollingUpdate ?? {};
  return unavailableLimit(maxUnavailable, replicasOf(set));
}

/** Returns the next time at which a ready pod becomes available without an event. */
function nextAvailableMs({ set, pods, nowMs }: ControllerInput<PodFacts>): number | undefined {
  const instants = pods.filter((pod) => pod.isReady).map((pod) => pod.readyChangedMs + set.minReadySeconds * 1000);
  const future = instants.filter((instantMs) => instantMs > nowMs);
  return future.length === 0 ? undefined : Math.min(...future);
}

/**
 * Returns the StatefulSet with its previous template. Its replicas and update strategy stay current, because previous values would make
 * the controller delete pods.
 */
function withTemplateOf(before: ModelObject, now: ModelObject | undefined): readonly ModelObject[] {
  if (now?.metadata.uid !== before.metadata.uid) return [];
  return [{ ...before, spec: { ...specOf(now), template: specOf(before).template } }];
}

/** Returns a new ControllerRevision of the template. */
export function revisionOf(set: ModelObject, name: string, revision: number): Json {
  const { template } = specOf(set);
  return {
    apiVersion: 'apps/v1',
    kind: 'ControllerRevision',
    metadata: {
      name,
      namespace: set.metadata.namespace,
      labels: template?.metadata?.labels ?? {},
      ownerReferences: [ownerReference(set)],
    },
    data: { spec: { template: { ...template, $patch: 'replace' } } },
    revision,
  };
}

/** Returns the pod of an ordinal as the controller creates it. */
export function podOf(
  set: ModelObject,
  { ordinal, revision, template }: { readonly ordinal: number; readonly revision: string; readonly template: PodTemplate },
): Json {
  const name = `${set.metadata.name}-${ordinal}`;
  const { $patch: _patch, ...rest } = template as PodTemplate & { readonly $patch?: string };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: set.metadata.namespace,
      labels: {
        ...rest.metadata?.labels,
        'apps.kubernetes.io/pod-index': `${ordinal}`,
        [revisionLabel]: revision,
        'statefulset.kubernetes.io/pod-name': name,
      },
      ...(rest.metadata?.annotations === undefined ? {} : { annotations: rest.metadata.annotations }),
      ownerReferences: [ownerReference(set)],
    },
    spec: { ...rest.spec, hostname: name, subdomain: specOf(set).serviceName ?? '' },
  };
}

function ownerReference({ metadata }: ModelObject) {
  const { name, uid } = metadata;
  return { apiVersion: 'apps/v1', kind: 'StatefulSet', name, uid, controller: true, blockOwnerDeletion: true };
}

/** Returns the key of the StatefulSet that owns the pod or may adopt it. */
function setKeyOf({ namespace, name, owner, isOrphan }: PodFacts): string | undefined {
  if (owner !== undefined) return `${namespace}/${owner.name}`;
  return isOrphan ? `${namespace}/${name.replace(/-\d+$/, '')}` : undefined;
}

function selects(set: ModelObject, { labels }: PodFacts): boolean {
  const wanted = Object.entries(specOf(set).selector?.matchLabels ?? {});
  return wanted.length > 0 && wanted.every(([key, value]) => labels[key] === value);
}

function isOtherTemplate(before: ModelObject, after: ModelObject): boolean {
  if (before.metadata.uid !== after.metadata.uid || specOf(before).template === specOf(after).template) return false;
  return revisionName(before) !== revisionName(after);
}

/** Compares two statuses. A missing counter counts as 0. */
function isSameStatus(before: StatefulSetStatus, after: StatefulSetStatus): boolean {
  return Object.entries(after).every(([key, value]) => (before[key] ?? 0) === value);
}

type Informer = ReturnType<typeof createInformer>;

interface InformerOptions {
  readonly scheduler: Pick<Scheduler, 'nowMs' | 'after'>;
  /** Returns the delay until a commit arrives in the cache, in milliseconds. */
  readonly delayMs: () => number;
  /** Called after each arrival; `before` is the previous state. */
  readonly arrived: (after: ModelObject, before: ModelObject | undefined) => void;
  /** Called after a batch of arrivals. */
  readonly settled: () => void;
}

function createInformer({ scheduler, delayMs, arrived, settled }: InformerOptions) {
  const objects = new Map<string, ModelObject>();
  const pending: { readonly dueMs: number; readonly commit: Commit }[] = [];
  let lastDueMs = 0;
  let isFrozen = false;
  let cancel: (() => void) | undefined;

  const arrive = ({ type, after }: Commit): void => {
    const key = keyOf(after);
    const before = objects.get(key);
    // The answer to a write may already have delivered a newer state. The same state arrives too: each write causes another turn.
    if (before !== undefined && versionOf(before) > versionOf(after)) return;
    if (type === 'DELETED') objects.delete(key);
    else objects.set(key, after);
    arrived(after, before);
  };
  const deliver = (isAll: boolean): void => {
    cancel?.();
    cancel = undefined;
    let count = 0;
    for (const { dueMs, commit } of pending) {
      if (!isAll && dueMs > scheduler.nowMs()) break;
      arrive(commit);
      count += 1;
    }
    pending.splice(0, count);
    if (count > 0) settled();
    wait();
  };
  const wait = (): void => {
    const [head] = pending;
    if (head === undefined || isFrozen || cancel !== undefined) return;
    cancel = scheduler.after(head.dueMs - scheduler.nowMs(), () => {
      cancel = undefined;
      deliver(false);
    });
  };
  return {
    get: (key: string) => objects.get(key),
    all: (): Iterable<ModelObject> => objects.values(),
    /** Receives a commit of the resource, which arrives in the cache after the delay, in order. */
    hear: (commit: Commit): void => {
      lastDueMs = Math.max(lastDueMs, scheduler.nowMs() + delayMs());
      pending.push({ dueMs: lastDueMs, commit });
      wait();
    },
    /** Adds an object that was written or listed, unless the cached object is newer. */
    learn: (object: ModelObject): void => {
      const before = objects.get(keyOf(object));
      if (isFrozen || (before !== undefined && versionOf(before) >= versionOf(object))) return;
      objects.set(keyOf(object), object);
    },
    /** Puts the given objects into the cache, and freezes the cache until `thaw`. */
    freeze: (past: readonly ModelObject[]): void => {
      isFrozen = true;
      cancel?.();
      cancel = undefined;
      for (const object of past) objects.set(keyOf(object), object);
    },
    /** Ends the freeze and delivers all delayed commits at once. */
    thaw: (): void => {
      isFrozen = false;
      lastDueMs = 0;
      deliver(true);
    },
    isFrozen: () => isFrozen,
  };
}

function versionOf({ metadata }: ModelObject): number {
  return Number(metadata.resourceVersion);
}
