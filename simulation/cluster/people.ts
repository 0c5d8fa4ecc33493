// Models people and their autoscalers, who change images and replicas, delete pods and recreate StatefulSets.

import { secondText } from '../../policies/instant.ts';
import { groupResource, imagesOf, numberAt } from '../objects.ts';
import { between, type Random, streamOf } from '../random.ts';
import type { PeopleEvent, WaveShape } from '../scenario.ts';
import type { Actor, Json, ModelObject } from '../server/request.ts';
import type { Admit } from './admitted.ts';
import { type PlannedGroup, withPlan } from './approved-plan.ts';
import { type Autoscaler, createAutoscaler } from './autoscaler.ts';
import { type Client, repeatMs } from './client.ts';
import type { WantedStatefulSet } from './cluster.ts';
import { type AppliedChange, Manifests } from './manifests.ts';
import { Membership } from './membership.ts';
import { keyOf, type ReplicaOrigin, type ReplicaSource, resourceOfKind } from './replica-origins.ts';
import type { Requests } from './requests.ts';
import { appliedStrategy, type Container, replicasOf, specOf, statefulSetResource } from './workload.ts';
import type { PoliciesInGit, World } from './world.ts';

interface PeopleOptions extends World, PlannedGroup {
  /** The source of the replicas of each StatefulSet, in the order of the zones. */
  readonly sources: readonly ReplicaSource[];
  /** The RolloutGroup that people create later. */
  readonly definition: readonly Json[];
  /** True if people delete pods with a broken image, because the operator of the group does not replace them. */
  readonly clearsBrokenPods: boolean;
  /**
   * True if people recreate no StatefulSet with a broken image. With the strategy `partition`, its current revision would be broken, so
   * that every pod below the partition stays broken (docs/strategies.md, Limits of partition).
   */
  readonly keepsBrokenSets: boolean;
  /** Reviews deletions of pods. */
  readonly admit: Admit;
  /** Sends all other writes. */
  readonly client: Client;
  readonly requests: Requests;
  readonly policies: PoliciesInGit | undefined;
  /** Returns `spec.rollout.waves` with these waves. */
  readonly wavesOf: (waves: readonly WaveShape[]) => readonly Json[];
  readonly report: (what: string) => void;
}

interface Desired {
  images: readonly string[];
  lastGood: readonly string[];
  /** `spec.updateStrategy`. */
  readonly strategy: Json;
  strategyNow: Json;
  /** Counters of changes of the update strategy and of membership. A timer has no effect after a further change. */
  strategyTurn: number;
  memberTurn: number;
  /** The manifest while the StatefulSet is deleted and not recreated yet. */
  absent: { readonly manifest: Json; readonly uid: string } | undefined;
}

const actor: Actor = { user: 'alice@example.com' };
export const gitOpsTool: Actor = { user: 'system:serviceaccount:argocd:argocd-application-controller' };
const brokenImage = /^broken\//;
type StoredWaves = { readonly rollout?: { readonly waves?: readonly { zones: readonly string[]; percent?: number; pods?: number }[] } };

/** The time that people wait after the template is repaired before they delete broken pods. */
const clearAfterMs = 30_000;
/** The interval at which people look whether a group is rolled back. */
const watchEveryMs = 2000;
/** The pause before another attempt to recreate a StatefulSet that is still terminating. */
const stillGoingMs = 500;

/** The people of a simulation. They remember the requested state of each StatefulSet and apply it. */
export class People {
  readonly #options: PeopleOptions;
  readonly #statefulSets: readonly string[];
  readonly #random: Random;
  readonly #autoscaler: Autoscaler;
  readonly #membership: Membership;
  readonly #manifests: Manifests;
  readonly #desired: Map<string, Desired>;
  readonly #numbers = new Map<string, number>();
  readonly #initialReplicas: Map<string, number>;
  #isHealed = false;

  constructor(options: PeopleOptions) {
    const { client, scheduler, server, namespace, group, sources } = options;
    this.#options = options;
    this.#statefulSets = sources.map((source) => source.statefulSet);
    this.#random = streamOf(options.seed, 'people');
    this.#autoscaler = createAutoscaler({ server, client, scheduler, namespace });
    this.#membership = new Membership({ server, client, scheduler, actor, namespace, group, statefulSets: this.#statefulSets });
    this.#desired = new Map(this.#statefulSets.map((name) => [name, desiredOf(this.#live(name))]));
    this.#manifests = new Manifests({
      ...options,
      actor: gitOpsTool,
      initial: new Map(this.#statefulSets.map((name) => [name, this.#live(name)])),
      requested: (name) => this.#desired.get(name),
      applied: (name, change) => this.#noteApplied(name, change),
    });
    for (const { origin } of sources) if (origin !== undefined) this.#learnNumber(origin);
    this.#initialReplicas = new Map(this.#statefulSets.map((name) => [name, replicasAt(this.#live(name))]));
  }

  /** Performs the event. Returns whether it changes anything. */
  happen(event: PeopleEvent): boolean {
    switch (event.kind) {
      case 'setImage':
        this.#options.report(
          `roll ${event.zones === undefined ? '' : `${event.zones.map((zone) => this.#setOf(zone)).join(', ')} `}to ${event.image}`,
        );
        return this.#setImages(this.#withImage(event.image, event.zones?.map((zone) => this.#setOf(zone)) ?? this.#statefulSets));
      case 'setReplicas':
        this.#options.report(`ask for ${event.replicas} replicas${event.zone === undefined ? '' : ` of ${this.#setOf(event.zone)}`}`);
        return this.#setReplicas(event.replicas, event.zone);
      case 'restart':
        this.#options.report(`restart ${this.#setsOf(event.zone).join(', ')}`);
        return this.#restart(this.#setsOf(event.zone));
      case 'setWaves':
        return this.#setWaves(event.waves);
      case 'setPolicies':
        return this.#options.policies?.change(event) ?? false;
      case 'reapply':
        this.#options.report(`apply ${this.#setsOf(event.zone).join(', ')} from Git`);
        return this.#manifests.apply(this.#setsOf(event.zone), event);
      case 'pause':
        this.#options.report('pause the group');
        this.#membership.pause();
        return true;
      case 'resume':
        this.#options.report('resume the group');
        this.#membership.resume();
        return true;
      case 'request':
        return event.action === 'undo'
          ? this.#options.requests.undo(event, (images) => this.#setImages(images))
          : this.#options.requests.submit(event.action, event.by, event.isUnverified);
      case 'override':
        return this.#options.requests.override(event);
      case 'defineGroup':
        this.#options.report('define the group');
        return this.#defineGroup();
      case 'deletePod': {
        const pod = `${this.#setOf(event.zone)}-${event.ordinal}`;
        this.#options.report(`delete ${pod}`);
        return this.#deletePod(pod);
      }
      case 'scaleByHand':
        this.#options.report(`scale ${this.#setOf(event.zone)} to ${event.replicas}`);
        return this.#scaleByHand(this.#setOf(event.zone), event.replicas);
      case 'recreateStatefulSet': {
        const { zone, isOrphaning, afterMs, isAfterRollback } = event;
        if (isAfterRollback && !this.#options.requests.isRolledBack()) return this.#waitFor(() => this.happen(event));
        this.#options.report(
          `delete ${this.#setOf(zone)}${isOrphaning ? ' and keep its pods' : ''}, and recreate it after ${seconds(afterMs)}`,
        );
        return this.#recreate(this.#setOf(zone), isOrphaning, afterMs);
      }
      case 'leaveGroup':
        this.#options.report(`take ${this.#setOf(event.zone)} out of the group for ${seconds(event.forMs)}`);
        return this.#leave(this.#setOf(event.zone), event.forMs);
      case 'setStrategy':
        this.#options.report(`set ${this.#setOf(event.zone)} to ${event.type} for ${seconds(event.forMs)}`);
        return this.#setStrategy(this.#setOf(event.zone), event.type, event.forMs);
    }
  }

  apply(changes: readonly Readonly<Record<string, unknown>>[]): void {
    let delayMs = 0;
    for (const change of changes) {
      this.#options.scheduler.after(delayMs, () => this.#applyChange(change));
      delayMs += between(this.#random, 50, 500);
    }
  }

  heal(): void {
    this.#isHealed = true;
    this.#defineGroup();
    this.#options.policies?.restore();
    this.#membership.resume();
    this.#autoscaler.finish();
    for (const [name, want] of this.#desired) {
      if (want.absent !== undefined) this.#createAgain(name);
      want.strategyTurn += 1;
      want.memberTurn += 1;
      this.#membership.comeBack(name);
      if (want.images.some((image) => brokenImage.test(image))) want.images = want.lastGood;
      this.#restoreStrategy(name);
    }
    this.#options.scheduler.after(clearAfterMs, () => this.#clearBrokenPods());
  }

  wanted(): readonly WantedStatefulSet[] {
    return this.#options.sources.map(({ statefulSet, origin, bounded }) => ({
      statefulSet,
      image: this.#desired.get(statefulSet)?.images[0] ?? '',
      images: this.#desired.get(statefulSet)?.images ?? [],
      replicas: this.#wantedReplicas(statefulSet, origin, bounded),
    }));
  }

  /** Remembers what a GitOps tool wrote: it is requested from then on. */
  #noteApplied(name: string, { images, replicas }: AppliedChange): void {
    const want = this.#desired.get(name);
    if (want !== undefined && images !== undefined) {
      want.images = images;
      want.lastGood = images;
    }
    const own = keyOf({ resource: statefulSetResource, name, path: ['spec', 'replicas'] });
    if (replicas !== undefined && this.#numbers.has(own)) this.#numbers.set(own, replicas);
  }

  /** Creates the RolloutGroup. Returns false if it exists. */
  #defineGroup(): boolean {
    const { server, client, namespace, group, definition } = this.#options;
    if (server.get(groupResource, namespace, group) !== undefined) return false;
    for (const object of definition) client.create(actor, groupResource, object, { denied: () => this.#later(() => this.#defineGroup()) });
    return definition.length > 0;
  }

  /** Writes the waves into the RolloutGroup. Returns false if it does not exist. */
  #setWaves(waves: readonly WaveShape[]): boolean {
    const { server, client, namespace, group, wavesOf, report } = this.#options;
    if (server.get(groupResource, namespace, group) === undefined) return false;
    report('apply other waves');
    const spec = { rollout: { waves: wavesOf(waves) } };
    client.change(gitOpsTool, { resource: groupResource, namespace, name: group }, () => ({ spec }), {
      denied: () => this.#later(() => this.#setWaves(waves)),
    });
    return true;
  }

  #learnNumber(origin: ReplicaOrigin): void {
    const number = numberAt(this.#options.server.get(origin.resource, this.#options.namespace, origin.name), ...origin.path);
    if (number !== undefined) this.#numbers.set(keyOf(origin), number);
  }

  #setOf(zone: string): string {
    return this.#statefulSets[zone.charCodeAt(0) - 97] ?? '';
  }

  /** Returns the StatefulSet of the zone; all without a zone. */
  #setsOf(zone: string | undefined): readonly string[] {
    return zone === undefined ? this.#statefulSets : [this.#setOf(zone)];
  }

  #live(name: string): ModelObject | undefined {
    return this.#options.server.get(statefulSetResource, this.#options.namespace, name);
  }

  #reference(name: string) {
    return { resource: statefulSetResource, namespace: this.#options.namespace, name };
  }

  #applyTo(name: string): void {
    const want = this.#desired.get(name);
    if (want === undefined) return;
    const imageOf = (index: number): string | undefined => want.images[index] ?? want.images[0];
    const changeOf = (set: ModelObject): Json => {
      const containers = containersOf(set);
      const template = containers.every(({ image }, index) => image === imageOf(index))
        ? {}
        : { template: { spec: { containers: containers.map((container, index) => ({ ...container, image: imageOf(index) })) } } };
      return withPlan(this.#options, set, { spec: { ...template, ...appliedStrategy(set, want) } });
    };
    this.#options.client.change(actor, this.#reference(name), changeOf, { denied: () => this.#later(() => this.#applyTo(name)) });
  }

  #withImage(image: string, names: readonly string[]): ReadonlyMap<string, readonly string[]> {
    return new Map(names.map((name) => [name, (this.#desired.get(name)?.images ?? []).map(() => image)]));
  }

  /** Writes the images of each StatefulSet. Returns whether an image is new. */
  #setImages(images: ReadonlyMap<string, readonly string[]>): boolean {
    let delayMs = 0;
    let isNew = false;
    for (const [name, next] of images) {
      const want = this.#desired.get(name);
      if (want === undefined) continue;
      isNew ||= want.images.some((one, index) => one !== next[index]);
      want.images = next;
      if (!next.some((image) => brokenImage.test(image))) want.lastGood = want.images;
      // Manifests are applied one after the other.
      if (delayMs === 0) this.#applyTo(name);
      else this.#options.scheduler.after(delayMs, () => this.#applyTo(name));
      delayMs += between(this.#random, 20, 800);
    }
    return isNew;
  }

  /** Restarts the StatefulSets. A person whose request is denied gives up. */
  #restart(names: readonly string[]): boolean {
    const annotations = { 'kubectl.kubernetes.io/restartedAt': secondText(this.#options.wallMs()) };
    for (const name of names) {
      this.#options.client.change(actor, this.#reference(name), () => ({ spec: { template: { metadata: { annotations } } } }));
    }
    return true;
  }

  #setReplicas(replicas: number, zone: string | undefined): boolean {
    const chosen = new Map<string, ReplicaOrigin>();
    for (const { statefulSet, origin } of this.#options.sources) {
      const isOwn = origin?.resource === statefulSetResource && origin.name === statefulSet;
      const isMeant = zone === undefined || !isOwn || statefulSet === this.#setOf(zone);
      if (origin !== undefined && isMeant) chosen.set(keyOf(origin), origin);
    }
    const who = this.#random() < 0.5 ? 'machine' : 'person';
    let isNew = false;
    for (const [key, origin] of chosen) {
      isNew ||=
        this.#numbers.get(key) !== replicas ||
        numberAt(this.#options.server.get(origin.resource, this.#options.namespace, origin.name), ...origin.path) !== replicas;
      this.#numbers.set(key, replicas);
      this.#keepAsking(origin, who);
    }
    return isNew;
  }

  /** Writes the requested replicas, if any, and repeats a denied write until another number is requested. */
  #keepAsking(origin: ReplicaOrigin, who: 'person' | 'machine'): void {
    const replicas = this.#numbers.get(keyOf(origin));
    if (replicas === undefined) return;
    const isRepeated = (): boolean => this.#numbers.get(keyOf(origin)) === replicas;
    this.#autoscaler.scale(origin, replicas, { who, denied: () => this.#giveUpShrinking(origin), isRepeated });
  }

  /** Requests the deletion. Returns whether the pod exists and is not terminating. */
  #deletePod(name: string): boolean {
    const { server, namespace, admit } = this.#options;
    const pod = server.get('pods', namespace, name);
    if (pod === undefined || pod.metadata.deletionTimestamp !== undefined) return false;
    const { uid } = pod.metadata;
    admit({ operation: 'DELETE', resource: 'pods', subresource: '', namespace, name, actor, uid, oldObject: pod }, (verdict) => {
      if (verdict.isAllowed) server.terminate(verdict.actor, namespace, name);
    });
    return true;
  }

  /** Keeps the stored number if a label forbids that the StatefulSet shrinks. */
  #giveUpShrinking(origin: ReplicaOrigin): void {
    const set = origin.resource === statefulSetResource ? this.#live(origin.name) : undefined;
    const stored = replicasAt(set);
    const isForbidden = set?.metadata.labels?.['grafana.com/no-downscale'] === 'true';
    if (isForbidden && (this.#numbers.get(keyOf(origin)) ?? 0) < stored) this.#numbers.set(keyOf(origin), stored);
  }

  #scaleByHand(name: string, replicas: number): boolean {
    const set = this.#live(name);
    const isNew = set !== undefined && replicasAt(set) !== replicas;
    const own: ReplicaOrigin = { resource: statefulSetResource, name, path: ['spec', 'replicas'] };
    const key = keyOf(own);
    const before = this.#numbers.get(key);
    // While the webhooks review this request, another number may be requested.
    const done = (): void => void (before !== undefined && this.#numbers.get(key) === before && this.#numbers.set(key, replicas));
    const denied = (): void => this.#keepAsking(own, 'machine');
    this.#autoscaler.scale(own, replicas, { who: 'person', done, denied });
    return isNew;
  }

  /** Returns the StatefulSets whose broken pods the operator leaves: all of an adopted group, and those with pods that no wave includes. */
  #leftSets(): readonly string[] {
    const { clearsBrokenPods, server, namespace, group } = this.#options;
    const { rollout: { waves } = {} } = (server.get(groupResource, namespace, group)?.['spec'] ?? {}) as StoredWaves;
    const whole = waves?.filter(({ percent = 100, pods }) => pods === undefined && percent === 100);
    const included = whole?.flatMap(({ zones }) => zones.map((zone) => this.#setOf(zone))) ?? this.#statefulSets;
    return this.#statefulSets.filter((name) => clearsBrokenPods || !included.includes(name));
  }

  /** Deletes pods with a broken image. Runbooks advise this if the operator waits because pods of two zones are unavailable. */
  #clearBrokenPods(): void {
    const left = this.#leftSets();
    for (const pod of this.#options.server.list('pods', this.#options.namespace)) {
      const isOurs = pod.metadata.ownerReferences?.some((owner) => left.includes(owner.name)) === true;
      if (!isOurs || !imagesOf(pod).some((image) => brokenImage.test(image))) continue;
      this.#options.report(`delete pod ${pod.metadata.name}, whose image is broken`);
      this.#deletePod(pod.metadata.name);
    }
  }

  #recreate(name: string, isOrphaning: boolean, afterMs: number): boolean {
    const set = this.#live(name);
    const want = this.#desired.get(name);
    if (set === undefined || want === undefined || want.absent !== undefined) return false;
    if (this.#options.keepsBrokenSets && want.images.some((image) => brokenImage.test(image))) return false;
    const { apiVersion, kind, metadata } = set;
    const { labels = {}, annotations = {} } = metadata;
    const manifest = { apiVersion, kind, metadata: { name, namespace: this.#options.namespace, labels, annotations }, spec: specOf(set) };
    want.absent = { manifest, uid: metadata.uid };
    this.#options.client.remove(actor, this.#reference(name), isOrphaning ? 'Orphan' : 'Background', {
      done: () => this.#options.scheduler.after(afterMs, () => this.#createAgain(name)),
      denied: () => {
        want.absent = undefined;
      },
    });
    return true;
  }

  #createAgain(name: string): void {
    const want = this.#desired.get(name);
    if (want?.absent === undefined || this.#options.server.isTerminating(this.#options.namespace)) return;
    const { manifest, uid } = want.absent;
    if (this.#live(name)?.metadata.uid === uid) {
      this.#options.scheduler.after(stillGoingMs, () => this.#createAgain(name));
      return;
    }
    want.absent = undefined;
    const spec = manifest['spec'] as Json;
    const number = this.#numbers.get(keyOf({ resource: statefulSetResource, name, path: ['spec', 'replicas'] }));
    this.#options.server.create(actor, statefulSetResource, {
      ...manifest,
      spec: { ...spec, ...(number === undefined ? {} : { replicas: number }) },
    });
    this.#applyTo(name);
    this.#membership.apply(name);
  }

  /** Tries again soon, until the faults end. */
  #waitFor(attempt: () => void): true {
    this.#options.scheduler.after(watchEveryMs, () => {
      if (!this.#isHealed) attempt();
    });
    return true;
  }

  #later(repeat: () => void): void {
    this.#options.scheduler.after(repeatMs, repeat);
  }

  #setStrategy(name: string, type: string, forMs: number): boolean {
    const want = this.#desired.get(name);
    if (want === undefined) return false;
    const isNew = this.#live(name) !== undefined && want.strategyNow['type'] !== type;
    want.strategyTurn += 1;
    const turn = want.strategyTurn;
    // The API server adds a partition to a rolling update, and rejects a partition with another update strategy.
    want.strategyNow = type === 'OnDelete' ? { type, rollingUpdate: null } : { type, rollingUpdate: { partition: 0 } };
    this.#applyTo(name);
    this.#options.scheduler.after(forMs, () => {
      if (want.strategyTurn === turn) this.#restoreStrategy(name);
    });
    return isNew;
  }

  #restoreStrategy(name: string): void {
    const want = this.#desired.get(name);
    if (want === undefined) return;
    want.strategyNow = want.strategy;
    this.#applyTo(name);
  }

  #leave(name: string, forMs: number): boolean {
    const want = this.#desired.get(name);
    if (want === undefined) return false;
    want.memberTurn += 1;
    const turn = want.memberTurn;
    this.#membership.leave(name);
    this.#options.scheduler.after(forMs, () => {
      if (want.memberTurn === turn) this.#membership.comeBack(name);
    });
    return true;
  }

  #applyChange(change: Json): void {
    const { apiVersion, kind, metadata, status: _status, ...rest } = change as Json & { readonly metadata: ModelObject['metadata'] };
    const { name, labels, annotations } = metadata;
    const resource = resourceOfKind(`${apiVersion}`, `${kind}`);
    this.#options.report(`apply ${kind} ${name}`);
    const place = metadata.namespace ?? this.#options.namespace;
    const marks = { ...(labels === undefined ? {} : { labels }), ...(annotations === undefined ? {} : { annotations }) };
    if (this.#options.server.get(resource, place, name) === undefined)
      this.#options.server.create(actor, resource, { ...change, metadata: { ...metadata, namespace: place } });
    else this.#options.server.change(actor, { resource, namespace: place, name }, { ...rest, metadata: marks });
    const want = resource === statefulSetResource && place === this.#options.namespace ? this.#desired.get(name) : undefined;
    if (want !== undefined) Object.assign(want, desiredOf(this.#live(name)));
    for (const { origin } of this.#options.sources) if (origin?.resource === resource && origin.name === name) this.#learnNumber(origin);
  }

  /** Returns the requested replicas. Without a request, these are the initial replicas; without a source, the minimum. */
  #wantedReplicas(name: string, origin: ReplicaOrigin | undefined, bounded: (replicas: number) => number): number {
    if (origin === undefined) return bounded(0);
    const number = this.#numbers.get(keyOf(origin));
    return number === undefined ? (this.#initialReplicas.get(name) ?? 1) : bounded(number);
  }
}

function desiredOf(set: ModelObject | undefined): Desired {
  const images = containersOf(set).map(({ image }) => image ?? '');
  const { type, rollingUpdate = null }: Json = (set && specOf(set).updateStrategy) ?? {};
  // The API server adds the partition 0 to a manifest without a partition. Such a manifest does not overwrite another partition.
  const strategy: Json = numberAt(rollingUpdate, 'partition') === 0 ? { type } : { type, rollingUpdate };
  return { images, lastGood: images, strategy, strategyNow: strategy, strategyTurn: 0, memberTurn: 0, absent: undefined };
}

function replicasAt(set: ModelObject | undefined): number {
  return set === undefined ? 1 : replicasOf(set);
}

function containersOf(set: ModelObject | undefined): readonly Container[] {
  return (set && specOf(set).template?.spec?.containers) ?? [];
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1000)} s`;
}
