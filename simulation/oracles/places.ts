// Keeps the book of places for the judges: for each ordinal its pod, its outages, and the disruptions by agents.

import {
  areContainersReady,
  configMapResource,
  controllerOf,
  isAgent,
  isTerminating,
  nodeResource,
  numberAt,
  partitionOf,
  placeOf,
  podResource,
  readyCondition,
  revisionLabelOf,
  statefulSetResource,
  textAt,
} from '../objects.ts';
import { type WaveShape, wavesOfShape } from '../scenario.ts';
import type { Commit, ModelObject } from '../server/request.ts';
import { isLedger, type RunText, readLedger } from './documents.ts';
import { type Moment, momentOf, type Oracle, type Scene, type Sent } from './oracle.ts';
import { changedWaves } from './stored-waves.ts';
import { limitOf, TermsBook, Timeline } from './terms.ts';

export interface SetFacts {
  readonly uid: string;
  readonly replicas: number;
  readonly first: number;
  readonly minReadyMs: number;
  readonly partition: number;
  readonly updateRevision: string;
  readonly currentRevision: string;
  /** True if the status is as new as the spec. */
  readonly isObserved: boolean;
}

export interface Place {
  readonly zone: Zone;
  readonly ordinal: number;
  /** The pod with the name of this place, even if the StatefulSet does not own it. */
  pod: ModelObject | undefined;
  /** The start of the outage that ends at `upAtMs`; undefined if the pod was available at the last change. */
  downSinceMs: number | undefined;
  /** True if an agent or an admitted request deleted the pod and no successor has been available since. */
  isOurs: boolean;
  /** The time from which the pod counts as available; infinite if the pod is not ready. */
  upAtMs: number;
  lastDownMs: number;
  /** The time since which the ordinal belongs to the StatefulSet. */
  requiredSinceMs: number;
  /** True if an agent added the ordinal by a scale-up. */
  isRequiredByUs: boolean;
  /** The disruption by an agent that has not settled: the pod, and the allowed revisions of its successor. */
  open: { readonly uid: string; readonly targets: Set<string>; readonly atMs: number } | undefined;
}

export interface Zone {
  readonly statefulSet: string;
  set: ModelObject | undefined;
  /** The states of the StatefulSet; undefined while it does not exist. */
  readonly facts: Timeline<SetFacts | undefined>;
  readonly podCounts: Timeline<number>;
  readonly places: Map<number, Place>;
  /** The time of the last disruption by an agent. */
  disruptedMs: number;
  /** The time since which surplus pods exist, and whether an agent caused them. */
  surplus: { readonly sinceMs: number; readonly isOurs: boolean } | undefined;
}

/** Applies each commit to the places of the zones. */
export class Book implements Oracle {
  readonly scene: Scene;
  readonly terms: TermsBook;
  readonly zones: readonly Zone[];
  /** The time of the last new template of a zone. The group then starts its waves again. */
  templateMs = Number.NEGATIVE_INFINITY;
  /** The run in the ledger. */
  readonly runs = new Timeline<RunText | undefined>();
  /** The waves of the group; empty without waves. */
  readonly waves = new Timeline<readonly WaveShape[]>();
  readonly #byName: Map<string, Zone>;
  readonly #pods = new Map<string, ModelObject>();
  readonly #nodes = new Map<string, boolean>();

  constructor(scene: Scene) {
    this.scene = scene;
    this.terms = new TermsBook(scene);
    this.waves.set(Number.NEGATIVE_INFINITY, wavesOfShape(scene.group) ?? []);
    this.zones = scene.statefulSets.map(
      (statefulSet): Zone => ({
        statefulSet,
        set: undefined,
        facts: new Timeline(),
        podCounts: new Timeline(),
        places: new Map(),
        disruptedMs: Number.NEGATIVE_INFINITY,
        surplus: undefined,
      }),
    );
    this.#byName = new Map(this.zones.map((zone) => [zone.statefulSet, zone]));
    for (const node of scene.list(nodeResource)) this.#nodes.set(node.metadata.name, readyCondition(node).isTrue);
    for (const zone of this.zones) this.#putSet(zone, scene.get(statefulSetResource, scene.namespace, zone.statefulSet), 0, false);
    for (const pod of scene.list(podResource, scene.namespace)) this.#putPod(pod, false, 0);
    for (const zone of this.zones) {
      for (const place of zone.places.values()) this.#refresh(place, 0);
      count(zone, 0, false);
    }
  }

  placeOfPod({ metadata }: ModelObject): Place | undefined {
    const named = placeOf(metadata.name);
    return named === undefined ? undefined : this.#byName.get(named.statefulSet)?.places.get(named.ordinal);
  }

  committed(commit: Commit): void {
    const { resource, after, type, atMs, actor } = commit;
    this.terms.apply(commit);
    for (const place of this.zones.flatMap(({ places }) => [...places.values()].filter(({ open }) => open !== undefined)))
      isOpen(place, atMs);
    const isOurs = isAgent(actor, this.scene.agentUser);
    if (resource === nodeResource) {
      this.#putNode(commit);
      return;
    }
    if (after.metadata.namespace !== this.scene.namespace) return;
    const waves = changedWaves(commit);
    if (waves !== undefined) this.waves.set(atMs, waves);
    if (resource === configMapResource) this.#putRun(after, atMs);
    else if (resource === statefulSetResource) {
      const zone = this.#byName.get(after.metadata.name);
      if (zone !== undefined) this.#putSet(zone, type === 'DELETED' ? undefined : after, atMs, isOurs);
    } else if (resource === podResource) {
      this.#podChanged(commit, isOurs);
    }
  }

  #podChanged(commit: Commit, isOurs: boolean): void {
    const { after, type, atMs } = commit;
    const place = this.#putPod(after, type === 'DELETED', atMs);
    if (place === undefined) return;
    this.#refresh(place, atMs);
    if (isDisruption(commit) && isOurs) disrupt(place, after, { targets: this.targetsSince(place.zone, atMs), atMs });
    // In a group with a budget, the ledger announces an admitted disruption to every agent and webhook, like a disruption by an agent (S30).
    const { disruption, zoneBudget } = this.scene.group;
    const isAnnounced = disruption !== undefined || zoneBudget !== undefined;
    if (isDisruption(commit) && isAdmitted(commit) && isAnnounced) place.isOurs = place.downSinceMs !== undefined;
    count(place.zone, atMs, false);
  }

  zoneOf(statefulSet: string): Zone | undefined {
    return this.#byName.get(statefulSet);
  }

  podByUid(uid: string): ModelObject | undefined {
    return this.#pods.get(uid);
  }

  momentOf(sent: Sent): Moment {
    return momentOf(this.scene, sent);
  }

  /**
   * Returns the revisions that a decision may have taken for the target of the zone since this time: the update revision, or the target of
   * the rollback of this revision. A StatefulSet that does not exist has no target.
   */
  targetsSince(zone: Zone, fromMs: number): readonly (string | undefined)[] {
    const runs = [this.runs.latest(), ...this.runs.since(fromMs)];
    return zone.facts
      .since(fromMs)
      .flatMap((facts) => runs.map((run) => this.restored(zone, facts?.updateRevision, run) ?? facts?.updateRevision));
  }

  /** Returns the revision that replaces a rolled-back revision of the zone; undefined if the run did not roll this revision back. */
  restored({ statefulSet }: Zone, revision: string | undefined, run: RunText | undefined = this.runs.latest()): string | undefined {
    const name = this.terms.zoneName(statefulSet);
    if (revision === undefined || run?.rolledBack[name] !== revision) return undefined;
    return textAt(run.target, name) ?? textAt(run.restores, name);
  }

  /** Returns the revision of a pod without a pin that the controller creates at `revision`, if its update revision or `revision` was rolled back. */
  startRevision(zone: Zone, revision: string): string | undefined {
    return this.restored(zone, zone.facts.latest()?.updateRevision) ?? this.restored(zone, revision);
  }

  #putRun(map: ModelObject, atMs: number): void {
    if (!isLedger(map)) return;
    this.runs.set(atMs, readLedger(map)?.run);
    for (const zone of this.zones) this.#addTargets(zone, atMs);
  }

  #addTargets(zone: Zone, atMs: number): void {
    const targets = this.targetsSince(zone, atMs).filter((target) => target !== undefined);
    for (const { open } of zone.places.values()) for (const target of targets) open?.targets.add(target);
  }

  #isReadyNode(name: string): boolean {
    return this.#nodes.size === 0 || name === '' || this.#nodes.get(name) === true;
  }

  #putNode({ after, type, atMs }: Commit): void {
    const { name } = after.metadata;
    if (type === 'DELETED') this.#nodes.delete(name);
    else this.#nodes.set(name, readyCondition(after).isTrue);
    for (const { places } of this.zones) {
      for (const place of places.values()) if (textAt(place.pod, 'spec', 'nodeName') === name) this.#refresh(place, atMs);
    }
  }

  #refresh(place: Place, atMs: number): void {
    const wasDown = isDown(place, atMs);
    if (place.downSinceMs !== undefined && !wasDown) settle(place, place.upAtMs);
    place.upAtMs = availability(place, this.scene.group.kind === 'adopted', (name) => this.#isReadyNode(name));
    if (place.upAtMs <= atMs) settle(place, atMs);
    else place.downSinceMs ??= atMs;
  }

  #putSet(zone: Zone, set: ModelObject | undefined, atMs: number, isOurs: boolean): void {
    const before = zone.facts.latest();
    const facts = set === undefined ? undefined : factsOf(set);
    zone.set = set;
    if (facts !== undefined && before !== undefined && facts.updateRevision !== before.updateRevision) this.templateMs = atMs;
    if (JSON.stringify(before) !== JSON.stringify(facts) || zone.facts.since(0).length === 0) zone.facts.set(atMs, facts);
    this.terms.setChanged(zone.statefulSet, set, atMs);
    if (facts === undefined || before?.uid !== facts.uid || before.first !== facts.first || before.replicas !== facts.replicas) {
      require(zone, facts, { before, atMs, isOurs });
    }
    this.#addTargets(zone, atMs);
    if (before?.uid !== facts?.uid || before?.minReadyMs !== facts?.minReadyMs) {
      for (const place of zone.places.values()) this.#refresh(place, atMs);
    }
    count(zone, atMs, isOurs);
  }

  #putPod(pod: ModelObject, isGone: boolean, atMs: number): Place | undefined {
    const named = placeOf(pod.metadata.name);
    const zone = named === undefined ? undefined : this.#byName.get(named.statefulSet);
    if (named === undefined || zone === undefined) return undefined;
    const place = placeIn(zone, named.ordinal, atMs);
    if (isGone) {
      this.#pods.delete(pod.metadata.uid);
      if (place.pod?.metadata.uid === pod.metadata.uid) place.pod = undefined;
    } else {
      this.#pods.set(pod.metadata.uid, pod);
      place.pod = pod;
    }
    return place;
  }
}

/** Returns whether a pod was deleted, gracefully or at once. */
export function isDisruption({ resource, type, before, after }: Commit): boolean {
  if (resource !== podResource || before === undefined || isTerminating(before)) return false;
  return type === 'DELETED' || isTerminating(after);
}

/** Returns whether a webhook judged and admitted the disruption of this pod. */
export function isAdmitted({ actor: { admission }, after }: Commit): boolean {
  return admission?.isJudged === true && admission.uid === after.metadata.uid;
}

/** Returns whether the place has no available pod at that time. The time must not be before the last change. */
function isDown({ downSinceMs, upAtMs }: Pick<Place, 'downSinceMs' | 'upAtMs'>, atMs: number): boolean {
  return downSinceMs !== undefined && atMs < upAtMs;
}

/** Returns whether a decision may have seen the place without an available pod: at `atMs`, or at any time since `fromMs`. */
export function wasDown(place: Place, { atMs, fromMs }: Moment): boolean {
  const upSinceMs = place.downSinceMs === undefined ? place.lastDownMs : place.upAtMs;
  return isDown(place, atMs) || upSinceMs >= fromMs;
}

/** Returns the places without an available pod at `atMs` that the decision had to count; undefined if the zone does not count. */
export function unavailableIn({ terms }: Book, zone: Zone, moment: Moment): readonly Place[] | undefined {
  const { atMs, fromMs, aheadMs } = moment;
  if (!terms.wasMember(zone.statefulSet, fromMs)) return undefined;
  const facts = zone.facts.since(fromMs);
  const now = facts.at(-1);
  if (now === undefined || facts.includes(undefined)) return undefined;
  const unavailable: Place[] = [];
  for (let ordinal = now.first; ordinal < now.first + now.replicas; ordinal += 1) {
    const place = placeIn(zone, ordinal, atMs);
    if (isDown(place, atMs + aheadMs) && isKnown(place, moment)) unavailable.push(place);
  }
  return unavailable;
}

/** Returns whether the outage was caused by an agent, or was visible at `fromMs`. */
function isKnown(place: Place, { fromMs, isOfWebhook = false }: Moment): boolean {
  if (place.isOurs) return true;
  if (!isOfWebhook && place.isRequiredByUs && place.downSinceMs === place.requiredSinceMs) return true;
  return (place.downSinceMs ?? 0) <= fromMs && place.requiredSinceMs <= fromMs;
}

/** Returns whether the StatefulSet was absent at every time that a decision may have seen. Always false in drop-in groups. */
export function isAbsent({ scene, terms }: Book, zone: Zone, { fromMs }: Moment): boolean {
  if (scene.group.kind === 'adopted') return false;
  return terms.wasMember(zone.statefulSet, fromMs) && zone.facts.since(fromMs).every((facts) => facts === undefined);
}

/** Returns the highest limit of unavailable pods since `fromMs`; undefined if only the eviction API knows the limit. */
export function limitSince({ terms }: Book, zone: Zone, { fromMs }: Moment): number | undefined {
  let most = 0;
  for (const { maxUnavailable } of terms.of(zone.statefulSet).since(fromMs)) {
    if (maxUnavailable === undefined) return undefined;
    for (const facts of zone.facts.since(fromMs)) most = Math.max(most, limitOf(maxUnavailable, facts?.replicas ?? 0));
  }
  return most;
}

/** Returns whether an agent disrupted the place and no successor has been available at an update revision since then. */
export function isOpen(place: Place, atMs: number): boolean {
  // A settled disruption stays settled.
  if (place.open !== undefined && isSettled(place, atMs)) place.open = undefined;
  return place.open !== undefined;
}

/** Returns whether the place has no open disruption at that time, or no longer belongs to the StatefulSet. */
export function isSettled(place: Place, atMs: number): boolean {
  if (place.open === undefined || !isInRange(place)) return true;
  return place.pod !== undefined && place.open.targets.has(revisionLabelOf(place.pod)) && isReplaced(place, atMs);
}

/** Returns whether the disrupted pod has an available successor, outdated or not: a lagging controller may create an outdated pod. */
export function isReplaced(place: Place, atMs: number): boolean {
  const { pod, open, downSinceMs, upAtMs } = place;
  if (open === undefined || !isInRange(place)) return true;
  return pod !== undefined && pod.metadata.uid !== open.uid && !isDown({ downSinceMs, upAtMs }, atMs);
}

/** Returns whether the ordinal belongs to the StatefulSet. */
export function isInRange({ zone, ordinal }: Pick<Place, 'zone' | 'ordinal'>, facts: SetFacts | undefined = zone.facts.latest()): boolean {
  return facts !== undefined && ordinal >= facts.first && ordinal < facts.first + facts.replicas;
}

function factsOf(set: ModelObject): SetFacts {
  return {
    uid: set.metadata.uid,
    replicas: numberAt(set, 'spec', 'replicas') ?? 1,
    first: numberAt(set, 'spec', 'ordinals', 'start') ?? 0,
    minReadyMs: (numberAt(set, 'spec', 'minReadySeconds') ?? 0) * 1000,
    partition: partitionOf(set),
    updateRevision: textAt(set, 'status', 'updateRevision') ?? '',
    currentRevision: textAt(set, 'status', 'currentRevision') ?? '',
    isObserved: (numberAt(set, 'status', 'observedGeneration') ?? 0) >= (set.metadata.generation ?? 0),
  };
}

function placeIn(zone: Zone, ordinal: number, atMs: number): Place {
  const known = zone.places.get(ordinal);
  if (known !== undefined) return known;
  const place: Place = {
    zone,
    ordinal,
    pod: undefined,
    downSinceMs: atMs,
    isOurs: false,
    upAtMs: Number.POSITIVE_INFINITY,
    lastDownMs: atMs,
    requiredSinceMs: atMs,
    isRequiredByUs: false,
    open: undefined,
  };
  zone.places.set(ordinal, place);
  return place;
}

interface Requirement {
  readonly before: SetFacts | undefined;
  readonly atMs: number;
  readonly isOurs: boolean;
}

function require(zone: Zone, facts: SetFacts | undefined, { before, atMs, isOurs }: Requirement): void {
  const end = facts === undefined ? 0 : facts.first + facts.replicas;
  const isNew = before?.uid !== facts?.uid;
  for (let ordinal = facts?.first ?? 0; ordinal < end; ordinal += 1) {
    if (!isNew && isInRange({ zone, ordinal }, before)) continue;
    const place = placeIn(zone, ordinal, atMs);
    place.requiredSinceMs = atMs;
    place.isRequiredByUs = isOurs;
    // The outage counts only from the time at which the ordinal belongs to the StatefulSet.
    if (isDown(place, atMs)) place.downSinceMs = atMs;
    place.isOurs = false;
  }
  // Disruptions of pods of a former StatefulSet do not count.
  if (isNew) for (const place of zone.places.values()) place.open = undefined;
}

function settle(place: Place, atMs: number): void {
  if (place.downSinceMs !== undefined) place.lastDownMs = atMs;
  place.downSinceMs = undefined;
  place.isOurs = false;
}

function disrupt(
  place: Place,
  pod: ModelObject,
  { targets, atMs }: { readonly targets: readonly (string | undefined)[]; readonly atMs: number },
): void {
  place.downSinceMs ??= atMs;
  place.isOurs = true;
  place.zone.disruptedMs = atMs;
  place.open = { uid: pod.metadata.uid, targets: new Set(targets.filter((target) => target !== undefined)), atMs };
}

/** Returns the time from which the pod counts as available if no event follows; infinite if it stays unavailable. */
function availability({ pod, zone }: Place, isAdopted: boolean, isReadyNode: (name: string) => boolean): number {
  const facts = zone.facts.latest();
  const never = Number.POSITIVE_INFINITY;
  if (pod === undefined || facts === undefined || controllerOf(pod) !== facts.uid) return never;
  if (isTerminating(pod) || textAt(pod, 'status', 'phase') !== 'Running') return never;
  if (isAdopted) return areContainersReady(pod) ? 0 : never;
  const { isTrue, sinceMs } = readyCondition(pod);
  if (!isTrue || !isReadyNode(textAt(pod, 'spec', 'nodeName') ?? '')) return never;
  return facts.minReadyMs === 0 ? 0 : (sinceMs ?? 0) + facts.minReadyMs;
}

function count(zone: Zone, atMs: number, isOurs: boolean): void {
  const facts = zone.facts.latest();
  let owned = 0;
  let surplus = 0;
  for (const { pod, ordinal } of zone.places.values()) {
    if (pod === undefined || facts === undefined || controllerOf(pod) !== facts.uid) continue;
    owned += 1;
    if (!isInRange({ zone, ordinal })) surplus += 1;
  }
  zone.podCounts.set(atMs, owned);
  if (surplus === 0) zone.surplus = undefined;
  else zone.surplus = { sinceMs: zone.surplus?.sinceMs ?? atMs, isOurs: isOurs || zone.surplus?.isOurs === true };
}
