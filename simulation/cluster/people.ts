// Models people: images, replicas, pods deleted by hand, recreated StatefulSets.
import { between, type Random, streamOf } from '../random.ts';
import type { PeopleEvent } from '../scenario.ts';
import type { Scheduler } from '../scheduler.ts';
import type { Actor, Json, ModelObject } from '../server/request.ts';
import type { ClusterApi } from './api.ts';
import { createAutoscaler } from './autoscaler.ts';
import type { WantedStatefulSet } from './cluster.ts';
import { createMembership } from './membership.ts';
import { numberAt, type ReplicaOrigin, type ReplicaSource, resourceOfKind } from './replica-origins.ts';
import { type Container, replicasOf, specOf, statefulSetResource } from './workload.ts';

interface PeopleOptions {
  readonly server: ClusterApi;
  readonly scheduler: Scheduler;
  readonly seed: number;
  readonly namespace: string;
  readonly group: string;
  /** One for each StatefulSet, in the order of the zones. */
  readonly sources: readonly ReplicaSource[];
  /** True if people delete broken pods that the operator of the group leaves alone. */
  readonly clearsBrokenPods: boolean;
  readonly told: (what: string) => void;
}

interface People {
  /** Returns whether it changes anything. */
  readonly happen: (event: PeopleEvent) => boolean;
  /** Manifests applied one after the other, as by `kubectl apply`. */
  readonly apply: (changes: readonly Json[]) => void;
  readonly heal: () => void;
  readonly wanted: () => readonly WantedStatefulSet[];
}

interface Desired {
  /** Images of the containers, in order. */
  images: readonly string[];
  lastGood: readonly string[];
  /** `spec.updateStrategy`. */
  readonly strategy: Json;
  strategyNow: Json;
  /** Cancels pending changes of the update strategy or membership. */
  strategyTurn: number;
  memberTurn: number;
  /** The manifest while the StatefulSet is deleted and not recreated yet. */
  absent: { readonly manifest: Json; readonly uid: string } | undefined;
}

const actor: Actor = { user: 'alice@example.com' };
const brokenImage = /^broken\//;
/** Time that people wait after the template is repaired before they delete broken pods. */
const clearAfterMs = 30_000;
/** Waits for a StatefulSet that is still terminating. */
const stillGoingMs = 500;

/** Begins with the group as stored. */
export function createPeople(options: PeopleOptions): People {
  const { server, scheduler, seed, namespace, group, sources, clearsBrokenPods, told } = options;
  const statefulSets = sources.map((source) => source.statefulSet);
  const random: Random = streamOf(seed, 'people');
  const autoscaler = createAutoscaler({ server, scheduler, namespace });
  const membership = createMembership({ server, actor, namespace, group, statefulSets });
  const desired = new Map(statefulSets.map((name) => [name, desiredOf(server.get(statefulSetResource, namespace, name))]));
  /** The number that people want at its source. */
  const numbers = new Map<string, number>();
  for (const { origin } of sources) if (origin !== undefined) learnNumber(origin);

  function learnNumber(origin: ReplicaOrigin): void {
    const number = numberAt(server.get(origin.resource, namespace, origin.name), origin.path);
    if (number !== undefined) numbers.set(keyOf(origin), number);
  }
  const setOf = (zone: string): string => statefulSets[zone.charCodeAt(0) - 97] ?? '';
  const live = (name: string): ModelObject | undefined => server.get(statefulSetResource, namespace, name);

  /** Sets template and update strategy of the StatefulSet. */
  const applyTo = (name: string): void => {
    const want = desired.get(name);
    const set = live(name);
    if (want === undefined || set === undefined) return;
    const containers = containersOf(set);
    const imageOf = (index: number): string | undefined => want.images[index] ?? want.images[0];
    const template = containers.every(({ image }, index) => image === imageOf(index))
      ? {}
      : { template: { spec: { containers: containers.map((container, index) => ({ ...container, image: imageOf(index) })) } } };
    server.change(actor, statefulSetResource, namespace, name, { spec: { ...template, updateStrategy: want.strategyNow } });
  };
  const setImage = (image: string, names: readonly string[]): boolean => {
    let delayMs = 0;
    let isNew = false;
    for (const name of names) {
      const want = desired.get(name);
      if (want === undefined) continue;
      isNew ||= want.images.some((one) => one !== image);
      want.images = want.images.map(() => image);
      if (!brokenImage.test(image)) want.lastGood = want.images;
      // Manifests are applied one after the other.
      if (delayMs === 0) applyTo(name);
      else scheduler.after(delayMs, () => applyTo(name));
      delayMs += between(random, 20, 800);
    }
    return isNew;
  };

  const setReplicas = (replicas: number, zone: string | undefined): boolean => {
    const chosen = new Map<string, ReplicaOrigin>();
    for (const { statefulSet, origin } of sources) {
      const isOwn = origin?.resource === statefulSetResource && origin.name === statefulSet;
      const isMeant = zone === undefined || !isOwn || statefulSet === setOf(zone);
      if (origin !== undefined && isMeant) chosen.set(keyOf(origin), origin);
    }
    const who = random() < 0.5 ? 'machine' : 'person';
    let isNew = false;
    for (const [key, origin] of chosen) {
      isNew ||= numbers.get(key) !== replicas || numberAt(server.get(origin.resource, namespace, origin.name), origin.path) !== replicas;
      numbers.set(key, replicas);
      autoscaler.scale(origin, replicas, who);
    }
    return isNew;
  };
  const scaleByHand = (name: string, replicas: number): boolean => {
    const set = live(name);
    const isNew = set !== undefined && replicasAt(set) !== replicas;
    const own: ReplicaOrigin = { resource: statefulSetResource, name, path: ['spec', 'replicas'] };
    if (numbers.has(keyOf(own))) numbers.set(keyOf(own), replicas);
    autoscaler.scale(own, replicas, 'person');
    return isNew;
  };

  /** `kubectl delete pod`, as runbooks say if the operator waits while two zones lack pods. */
  const clearBrokenPods = (): void => {
    for (const pod of server.list('pods', namespace)) {
      const isOurs = pod.metadata.ownerReferences?.some((owner) => statefulSets.includes(owner.name)) === true;
      if (!isOurs || !imagesOf(pod).some((image) => brokenImage.test(image))) continue;
      told(`delete pod ${pod.metadata.name}, whose image is broken`);
      server.terminate(actor, namespace, pod.metadata.name);
    }
  };

  const recreate = (name: string, isOrphaning: boolean, afterMs: number): boolean => {
    const set = live(name);
    const want = desired.get(name);
    if (set === undefined || want === undefined || want.absent !== undefined) return false;
    const { apiVersion, kind, metadata } = set;
    const { labels = {}, annotations = {} } = metadata;
    const manifest = { apiVersion, kind, metadata: { name, namespace, labels, annotations }, spec: specOf(set) };
    want.absent = { manifest, uid: metadata.uid };
    server.remove(actor, statefulSetResource, namespace, name, { propagationPolicy: isOrphaning ? 'Orphan' : 'Background' });
    scheduler.after(afterMs, () => makeAnew(name));
    return true;
  };
  const makeAnew = (name: string): void => {
    const want = desired.get(name);
    if (want?.absent === undefined) return;
    const { manifest, uid } = want.absent;
    if (live(name)?.metadata.uid === uid) {
      scheduler.after(stillGoingMs, () => makeAnew(name));
      return;
    }
    want.absent = undefined;
    const spec = manifest['spec'] as Json;
    const number = numbers.get(keyOf({ resource: statefulSetResource, name, path: ['spec', 'replicas'] }));
    server.create(actor, statefulSetResource, { ...manifest, spec: { ...spec, ...(number === undefined ? {} : { replicas: number }) } });
    applyTo(name);
    membership.apply(name);
  };

  const setStrategy = (name: string, type: string, forMs: number): boolean => {
    const want = desired.get(name);
    if (want === undefined) return false;
    const isNew = live(name) !== undefined && want.strategyNow['type'] !== type;
    want.strategyTurn += 1;
    const turn = want.strategyTurn;
    // The API server adds the partition of a rolling update, and refuses one for another update strategy.
    want.strategyNow = type === 'OnDelete' ? { type, rollingUpdate: null } : { type, rollingUpdate: { partition: 0 } };
    applyTo(name);
    scheduler.after(forMs, () => {
      if (want.strategyTurn === turn) restoreStrategy(name);
    });
    return isNew;
  };
  const restoreStrategy = (name: string): void => {
    const want = desired.get(name);
    if (want === undefined) return;
    want.strategyNow = want.strategy;
    applyTo(name);
  };
  const leave = (name: string, forMs: number): boolean => {
    const want = desired.get(name);
    if (want === undefined) return false;
    want.memberTurn += 1;
    const turn = want.memberTurn;
    membership.leave(name);
    scheduler.after(forMs, () => {
      if (want.memberTurn === turn) membership.comeBack(name);
    });
    return true;
  };

  const happen = (event: PeopleEvent): boolean => {
    switch (event.kind) {
      case 'setImage':
        told(`roll ${event.zones === undefined ? '' : `${event.zones.map(setOf).join(', ')} `}to ${event.image}`);
        return setImage(event.image, event.zones === undefined ? statefulSets : event.zones.map(setOf));
      case 'setReplicas':
        told(`ask for ${event.replicas} replicas${event.zone === undefined ? '' : ` of ${setOf(event.zone)}`}`);
        return setReplicas(event.replicas, event.zone);
      case 'pause':
        told('pause the group');
        membership.pause();
        return true;
      case 'resume':
        told('resume the group');
        membership.resume();
        return true;
      case 'deletePod': {
        const pod = `${setOf(event.zone)}-${event.ordinal}`;
        told(`delete ${pod}`);
        const isGoing = server.get('pods', namespace, pod)?.metadata.deletionTimestamp !== undefined;
        return server.terminate(actor, namespace, pod) && !isGoing;
      }
      case 'scaleByHand':
        told(`scale ${setOf(event.zone)} to ${event.replicas}`);
        return scaleByHand(setOf(event.zone), event.replicas);
      case 'recreateStatefulSet': {
        const { zone, isOrphaning, afterMs } = event;
        told(`delete ${setOf(zone)}${isOrphaning ? ' and keep its pods' : ''}, and recreate it after ${seconds(afterMs)}`);
        return recreate(setOf(zone), isOrphaning, afterMs);
      }
      case 'leaveGroup':
        told(`take ${setOf(event.zone)} out of the group for ${seconds(event.forMs)}`);
        return leave(setOf(event.zone), event.forMs);
      case 'setStrategy':
        told(`set ${setOf(event.zone)} to ${event.type} for ${seconds(event.forMs)}`);
        return setStrategy(setOf(event.zone), event.type, event.forMs);
    }
  };

  const applyChange = (change: Json): void => {
    const { apiVersion, kind, metadata, status: _status, ...rest } = change as Json & { readonly metadata: ModelObject['metadata'] };
    const { name, labels, annotations } = metadata;
    const resource = resourceOfKind(`${apiVersion}`, `${kind}`);
    told(`apply ${kind} ${name}`);
    const place = metadata.namespace ?? namespace;
    const marks = { ...(labels === undefined ? {} : { labels }), ...(annotations === undefined ? {} : { annotations }) };
    if (server.get(resource, place, name) === undefined)
      server.create(actor, resource, { ...change, metadata: { ...metadata, namespace: place } });
    else server.change(actor, resource, place, name, { ...rest, metadata: marks });
    const want = resource === statefulSetResource && place === namespace ? desired.get(name) : undefined;
    if (want !== undefined) Object.assign(want, desiredOf(live(name)));
    for (const { origin } of sources) if (origin?.resource === resource && origin.name === name) learnNumber(origin);
  };

  const atFirst = new Map(statefulSets.map((name) => [name, replicasAt(live(name))]));
  /** Without its source object the number stays. */
  const wantedReplicas = (name: string, origin: ReplicaOrigin | undefined, bounded: (asked: number) => number): number => {
    if (origin === undefined) return bounded(0);
    const number = numbers.get(keyOf(origin));
    return number === undefined ? (atFirst.get(name) ?? 1) : bounded(number);
  };
  return {
    happen,
    apply: (changes) => {
      let delayMs = 0;
      for (const change of changes) {
        scheduler.after(delayMs, () => applyChange(change));
        delayMs += between(random, 50, 500);
      }
    },
    heal: () => {
      membership.resume();
      autoscaler.finish();
      for (const [name, want] of desired) {
        if (want.absent !== undefined) makeAnew(name);
        want.strategyTurn += 1;
        want.memberTurn += 1;
        membership.comeBack(name);
        if (want.images.some((image) => brokenImage.test(image))) want.images = want.lastGood;
        restoreStrategy(name);
      }
      if (clearsBrokenPods) scheduler.after(clearAfterMs, clearBrokenPods);
    },
    wanted: () =>
      sources.map(({ statefulSet, origin, bounded }) => ({
        statefulSet,
        image: desired.get(statefulSet)?.images[0] ?? '',
        images: desired.get(statefulSet)?.images ?? [],
        replicas: wantedReplicas(statefulSet, origin, bounded),
      })),
  };
}

function desiredOf(set: ModelObject | undefined): Desired {
  const images = containersOf(set).map(({ image }) => image ?? '');
  const strategy = { rollingUpdate: null, ...(set === undefined ? {} : specOf(set).updateStrategy) };
  return { images, lastGood: images, strategy, strategyNow: strategy, strategyTurn: 0, memberTurn: 0, absent: undefined };
}

function replicasAt(set: ModelObject | undefined): number {
  return set === undefined ? 1 : replicasOf(set);
}

function imagesOf({ spec }: ModelObject): readonly string[] {
  const { containers = [] } = (spec ?? {}) as { readonly containers?: readonly Container[] };
  return containers.map(({ image }) => image ?? '');
}

function containersOf(set: ModelObject | undefined): readonly Container[] {
  return (set && specOf(set).template?.spec?.containers) ?? [];
}

function keyOf({ resource, name }: ReplicaOrigin): string {
  return `${resource} ${name}`;
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1000)} s`;
}
