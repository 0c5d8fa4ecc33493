// The StatefulSet controller: it works from a cache that lags, makes and deletes pods one turn at a time, and tells in the status what it counted.
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
  /** What the API server makes of a pod that it is asked to create, before it stores it; left out: nothing. */
  readonly admit?: (pod: Json) => Json;
}

export interface StatefulSetController {
  readonly hear: (commit: Commit) => void;
  /** Everything is heard of that much later, until another delay is set; 0 is the usual pace. */
  readonly lag: (delayMs: number) => void;
  /** StatefulSets have the template that they had before its last change, until it is over. */
  readonly goStale: () => void;
  readonly goFresh: () => void;
}

/** Of a turn that failed, doubled each time, as a rate limited queue does. */
const retry = { firstMs: 100, mostMs: 20_000 };

/** Starts with what there is. */
export function startStatefulSetController({ server, scheduler, wallMs, seed, admit }: ControllerOptions): StatefulSetController {
  const random: Random = streamOf(seed, 'statefulset controller');
  const due = new Set<string>();
  const failures = new Map<string, number>();
  /** Timers by key: the next instant at which time alone changes something. */
  const looks = new Map<string, { readonly atMs: number; readonly cancel: () => void }>();
  /** As they were under their last but one template, as far as it is known. */
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

  /** Whether everything could be done. */
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
      // By name alone, as Kubernetes does: whichever pod has it now.
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

  /** Takes pods that nobody controls and that look like its own. Asks first whether it still exists, as Kubernetes does. */
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

  /** As with pods: those that the StatefulSet of the name had before it was made anew. */
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
    // Its predecessor may still be there, unseen or controlled by another StatefulSet of the name.
    if (template === undefined || server.get('pods', namespace, `${name}-${ordinal}`) !== undefined) return false;
    const pod = podOf(set, { ordinal, revision, template });
    pods.learn(server.create(actor, 'pods', admit === undefined ? pod : admit(pod)));
    return true;
  };

  /** The template of the revision: of the StatefulSet itself, or as the ControllerRevision keeps it. */
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

  /** The ControllerRevision of the template, the newest of all: one that comes back gets the next number, not another name. */
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

  /** Whether the status says what was counted. One that was counted from an older version is refused, as by an update with its version. */
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
      // A list brings everything at once.
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
 * The StatefulSet as if its template alone had changed since: numbers of replicas and strategies of the past would have the controller delete
 * pods that nobody speaks of here.
 */
function withTemplateOf(before: ModelObject, now: ModelObject | undefined): readonly ModelObject[] {
  if (now?.metadata.uid !== before.metadata.uid) return [];
  return [{ ...before, spec: { ...specOf(now), template: specOf(before).template } }];
}

/** A new ControllerRevision of the StatefulSet's template. */
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

/** The pod of an ordinal, as the controller asks for it. */
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

/** Of the StatefulSet that a pod belongs to, or would belong to. */
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

/** The API server leaves out counters that are 0. */
function isSameStatus(before: StatefulSetStatus, after: StatefulSetStatus): boolean {
  return Object.entries(after).every(([key, value]) => (before[key] ?? 0) === value);
}
