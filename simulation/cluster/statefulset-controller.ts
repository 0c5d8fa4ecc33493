// Models the StatefulSet controller: it works from a lagging cache, creates and deletes pods one turn at a time, and writes what it counted
// to the status.
import { between, type Random, streamOf } from '../random.ts';
import type { Scheduler } from '../scheduler.ts';
import type { Commit, Json, ModelObject } from '../server/request.ts';
import type { ClusterApi } from './api.ts';
import { createInformer, keyOf } from './informer.ts';
import { revisionName } from './revision.ts';
import { countsOf, isComplete, type TurnInput, turnOf } from './statefulset-turn.ts';
import {
  controllerActor as actor,
  type PodFacts,
  type PodTemplate,
  podFacts,
  replicasOf,
  revisionLabel,
  revisionResource,
  type StatefulSetStatus,
  specOf,
  statefulSetResource,
  statusOf,
} from './workload.ts';

interface ControllerOptions {
  readonly server: ClusterApi;
  readonly scheduler: Scheduler;
  readonly wallMs: () => number;
  readonly seed: number;
  /** Mutates a pod on creation, as admission does; optional. */
  readonly admit?: (pod: Json) => Json;
}

export interface StatefulSetController {
  readonly hear: (commit: Commit) => void;
  /** Adds this delay to its cache until another delay is set; 0 is normal. */
  readonly lag: (delayMs: number) => void;
  /** Shows StatefulSets with their previous template until it ends. */
  readonly goStale: () => void;
  readonly goFresh: () => void;
}

/** Back-off after a failed turn, doubled each time, as in a rate limited queue. */
const retry = { firstMs: 100, mostMs: 20_000 };

/** Starts with the existing objects. */
export function startStatefulSetController({ server, scheduler, wallMs, seed, admit }: ControllerOptions): StatefulSetController {
  const random: Random = streamOf(seed, 'statefulset controller');
  const due = new Set<string>();
  const failures = new Map<string, number>();
  /** Timers by key: the next time at which time alone changes something. */
  const looks = new Map<string, { readonly atMs: number; readonly cancel: () => void }>();
  /** StatefulSets with their previous template, as far as known. */
  const past = new Map<string, ModelObject>();
  let lagMs = 0;

  const delayMs = (): number => between(random, 10, 300) + lagMs;
  const settled = (): void => {
    for (const key of [...due]) sync(key);
  };
  const sets = createInformer({
    scheduler,
    delayMs,
    arrived: (after, before) => {
      if (before !== undefined && isOtherTemplate(before, after)) past.set(keyOf(after), before);
      due.add(keyOf(after));
    },
    settled,
  });
  const pods = createInformer({
    scheduler,
    delayMs,
    arrived: (after, before) => {
      for (const pod of [after, before]) {
        const key = pod && setKeyOf(podFacts(pod));
        if (key !== undefined) due.add(key);
      }
    },
    settled,
  });

  const sync = (key: string): void => {
    due.delete(key);
    const set = sets.get(key);
    if (set === undefined) return;
    const hasSucceeded = reconcile(set);
    if (hasSucceeded) failures.delete(key);
    else tryAgain(key);
  };
  const tryAgain = (key: string): void => {
    const count = failures.get(key) ?? 0;
    failures.set(key, count + 1);
    lookAt(key, scheduler.nowMs() + Math.min(retry.firstMs * 2 ** count, retry.mostMs));
  };
  const lookAt = (key: string, atMs: number): void => {
    const known = looks.get(key);
    if (known !== undefined && known.atMs <= atMs) return;
    known?.cancel();
    const cancel = scheduler.after(atMs - scheduler.nowMs(), () => {
      looks.delete(key);
      sync(key);
    });
    looks.set(key, { atMs, cancel });
  };

  /** Returns whether everything succeeded. */
  const reconcile = (set: ModelObject): boolean => {
    adoptRevisions(set);
    const updateRevision = ensureRevision(set);
    const adopted = adopt(set);
    const input = (): TurnInput => ({
      spec: { ...specOf(set), replicas: replicasOf(set) },
      pods: podsOf(set),
      currentRevision: currentRevisionOf(set) ?? updateRevision,
      updateRevision,
      isTerminating: set.metadata.deletionTimestamp !== undefined,
      wallMs: wallMs(),
    });
    const before = input();
    const turn = turnOf(before);
    const created = turn.creates.map((place) => create(set, place));
    for (const name of turn.deletes) {
      // Deletes by name only, as Kubernetes does.
      server.terminate(actor, set.metadata.namespace ?? '', name);
      learnPod(set, name);
    }
    const isTold = writeStatus(set, input());
    if (turn.lookAgainMs !== undefined) lookAt(keyOf(set), scheduler.nowMs() + turn.lookAgainMs - wallMs());
    return adopted && isTold && created.every(Boolean);
  };

  const podsOf = (set: ModelObject): readonly PodFacts[] => {
    const found: PodFacts[] = [];
    for (const pod of pods.all()) {
      const one = podFacts(pod);
      if (one.owner?.uid === set.metadata.uid && one.namespace === set.metadata.namespace) found.push(one);
    }
    return found;
  };
  const learnPod = (set: ModelObject, name: string): void => {
    const pod = server.get('pods', set.metadata.namespace ?? '', name);
    if (pod !== undefined) pods.learn(pod);
  };

  /** Adopts matching orphans. Reads the StatefulSet first, as Kubernetes does. */
  const adopt = (set: ModelObject): boolean => {
    const { namespace = '', name, uid } = set.metadata;
    for (const pod of [...pods.all()]) {
      const one = podFacts(pod);
      if (!one.isOrphan || one.isTerminating || one.namespace !== namespace || !isNamedAfter(one.name, name) || !selects(set, one))
        continue;
      const live = server.get(statefulSetResource, namespace, name);
      if (live?.metadata.uid !== uid || live.metadata.deletionTimestamp !== undefined) return false;
      const now = server.get('pods', namespace, one.name);
      if (now === undefined || now.metadata.uid !== one.uid || !podFacts(now).isOrphan) return false;
      const changed = server.change(actor, 'pods', namespace, one.name, { metadata: { ownerReferences: [ownerReference(set)] } });
      if (changed !== undefined) pods.learn(changed);
    }
    return true;
  };

  /** Likewise for ControllerRevisions of a deleted StatefulSet of the same name. */
  const adoptRevisions = (set: ModelObject): void => {
    const { namespace = '', name } = set.metadata;
    if (set.metadata.deletionTimestamp !== undefined) return;
    for (const { metadata } of server.list(revisionResource, namespace)) {
      const isOrphan = (metadata.ownerReferences ?? []).length === 0 && metadata.deletionTimestamp === undefined;
      if (!isOrphan || !metadata.name.startsWith(`${name}-`)) continue;
      server.change(actor, revisionResource, namespace, metadata.name, { metadata: { ownerReferences: [ownerReference(set)] } });
    }
  };

  const create = (set: ModelObject, { ordinal, revision }: { readonly ordinal: number; readonly revision: string }): boolean => {
    const { namespace = '', name } = set.metadata;
    const template = templateOf(set, revision);
    // The predecessor may still exist, unseen or owned by another StatefulSet of the name.
    if (template === undefined || server.get('pods', namespace, `${name}-${ordinal}`) !== undefined) return false;
    const pod = podOf(set, { ordinal, revision, template });
    pods.learn(server.create(actor, 'pods', admit === undefined ? pod : admit(pod)));
    return true;
  };

  /** Returns the template of the revision: from the StatefulSet, or from the ControllerRevision. */
  const templateOf = (set: ModelObject, revision: string): PodTemplate | undefined => {
    if (revision === revisionName(set)) return specOf(set).template;
    const kept = server.get(revisionResource, set.metadata.namespace ?? '', revision);
    return (kept?.['data'] as { readonly spec?: { readonly template?: PodTemplate } } | undefined)?.spec?.template;
  };
  const currentRevisionOf = (set: ModelObject): string | undefined => {
    const { currentRevision = '' } = statusOf(set);
    const isKept = server.get(revisionResource, set.metadata.namespace ?? '', currentRevision) !== undefined;
    return isKept ? currentRevision : undefined;
  };

  /**
   * Returns the ControllerRevision of the template with the highest number: a template that returns gets the next number, not another name.
   */
  const ensureRevision = (set: ModelObject): string => {
    const { namespace = '', uid } = set.metadata;
    const name = revisionName(set);
    if (statusOf(set).updateRevision === name && server.get(revisionResource, namespace, name) !== undefined) return name;
    const known = server.list(revisionResource, namespace).filter((one) => one.metadata.ownerReferences?.[0]?.uid === uid);
    const newest = known.reduce((most, one) => Math.max(most, Number(one['revision'])), 0);
    const found = server.get(revisionResource, namespace, name);
    const patch = { revision: newest + 1, metadata: { ownerReferences: [ownerReference(set)] } };
    if (found === undefined) server.create(actor, revisionResource, revisionOf(set, name, newest + 1));
    else if (!known.includes(found) || Number(found['revision']) < newest) server.change(actor, revisionResource, namespace, name, patch);
    return name;
  };

  /** Returns whether the status is up to date. A status of an older version is refused, as by an update with its version. */
  const writeStatus = (set: ModelObject, input: TurnInput): boolean => {
    const { namespace = '', name, generation = 1 } = set.metadata;
    const counts = countsOf(input);
    const hasMoved = isComplete(input, counts);
    const status: StatefulSetStatus = {
      observedGeneration: generation,
      ...counts,
      ...(hasMoved ? { currentReplicas: counts.updatedReplicas } : {}),
      currentRevision: hasMoved ? input.updateRevision : input.currentRevision,
      updateRevision: input.updateRevision,
      collisionCount: statusOf(set).collisionCount ?? 0,
    };
    if (isSameStatus(statusOf(set), status)) return true;
    const live = server.get(statefulSetResource, namespace, name);
    if (live?.metadata.resourceVersion !== set.metadata.resourceVersion) return live === undefined;
    const changed = server.change(actor, statefulSetResource, namespace, name, { status }, 'status');
    if (changed !== undefined) sets.learn(changed);
    return true;
  };

  for (const set of server.list(statefulSetResource)) {
    sets.learn(set);
    due.add(keyOf(set));
  }
  for (const pod of server.list('pods')) pods.learn(pod);
  scheduler.after(delayMs(), settled);

  return {
    hear: (commit) => {
      if (commit.resource === statefulSetResource) sets.hear(commit);
      else if (commit.resource === 'pods') pods.hear(commit);
    },
    lag: (ms) => {
      lagMs = ms;
      if (ms > 0) return;
      // A list delivers everything at once.
      if (!sets.isFrozen()) sets.thaw();
      pods.thaw();
    },
    goStale: () => {
      const older = [...past.entries()].flatMap(([key, before]) => withTemplateOf(before, sets.get(key)));
      sets.freeze(older);
      for (const set of older) due.add(keyOf(set));
      scheduler.after(delayMs(), settled);
    },
    goFresh: () => {
      if (!sets.isFrozen()) return;
      sets.thaw();
      for (const set of server.list(statefulSetResource)) {
        sets.learn(set);
        due.add(keyOf(set));
      }
      settled();
    },
  };
}

/**
 * Returns the StatefulSet with only its template changed: old replica counts and update strategies would make the controller delete pods.
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

/** Owner of the pod. */
function setKeyOf({ namespace, name, owner, isOrphan }: PodFacts): string | undefined {
  if (owner !== undefined) return `${namespace}/${owner.name}`;
  return isOrphan ? `${namespace}/${name.replace(/-\d+$/, '')}` : undefined;
}

function isNamedAfter(pod: string, set: string): boolean {
  return pod.startsWith(`${set}-`) && /^\d+$/.test(pod.slice(set.length + 1));
}

function selects(set: ModelObject, { labels }: PodFacts): boolean {
  const wanted = Object.entries(specOf(set).selector?.matchLabels ?? {});
  return wanted.length > 0 && wanted.every(([key, value]) => labels[key] === value);
}

function isOtherTemplate(before: ModelObject, after: ModelObject): boolean {
  if (before.metadata.uid !== after.metadata.uid || specOf(before).template === specOf(after).template) return false;
  return revisionName(before) !== revisionName(after);
}

/** The API server omits counters that are 0. */
function isSameStatus(before: StatefulSetStatus, after: StatefulSetStatus): boolean {
  return Object.entries(after).every(([key, value]) => (before[key] ?? 0) === value);
}
