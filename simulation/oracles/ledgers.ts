// Judges the ledger: disruptions have claims, open claims are not dropped, and epochs never decrease (S1, S18, S19, S28, L4, L5).

import type { TurnReport } from '../../agent/report.ts';
import { isOfNextVersion, otherAgent } from '../cluster/other-version.ts';
import {
  configMapResource,
  controllerOf,
  isAgent,
  isTerminating,
  numberAt,
  partitionOf,
  podResource,
  statefulSetResource,
} from '../objects.ts';
import type { Commit, ModelObject } from '../server/request.ts';
import { disruptedByUs } from './availability.ts';
import { type Claimed, isLedger, isOpenClaim, keyOf, type LedgerText, readLedger, stayingPods, unappliedMs } from './documents.ts';
import { machineOf, type Oracle } from './oracle.ts';
import { outdated } from './partitions.ts';
import type { Book, Zone } from './places.ts';
import { isHalted, isPaused } from './targets.ts';
import { Timeline } from './terms.ts';

interface Open {
  readonly claim: Claimed;
  readonly by: string;
  readonly sinceMs: number;
}

/** The judge of ledgers. It sees each commit before the book records it. */
export class LedgerJudge implements Oracle {
  readonly #book: Book;
  readonly #ledgers = new Map<string, LedgerText>();
  readonly #open = new Map<string, Open>();
  readonly #epochs = new Map<string, number>();
  #epoch = 0;
  #healingMs: number | undefined;
  readonly #overdue = new Set<string>();
  /** The disruptions of pods whose outcome their sender does not know, by process and UID. */
  readonly #unanswered = new Set<string>();
  /** True while only an agent of a later version reads the ledger. */
  readonly #isUnreadable = new Timeline<boolean>();

  constructor(book: Book) {
    this.#book = book;
    this.#isUnreadable.set(Number.NEGATIVE_INFINITY, false);
    for (const map of book.scene.list(configMapResource, book.scene.namespace)) this.#record(map, '', 0);
  }

  committed(commit: Commit): void {
    const { resource, after, actor, type, atMs } = commit;
    const { scene } = this.#book;
    if (after.metadata.namespace !== scene.namespace) return;
    if (resource === configMapResource && isLedger(after)) {
      this.#checkVersion(commit);
      if (type !== 'DELETED' && isAgent(actor, scene.agentUser)) this.#written(commit);
      else this.#record(type === 'DELETED' ? { ...after, data: {} } : after, '', atMs);
    }
    if (disruptedByUs(this.#book, commit) !== undefined) this.#checkDisruption(commit);
    if (resource === statefulSetResource && type === 'MODIFIED') {
      this.#checkScale(commit);
      this.#checkPartition(commit);
    }
  }

  turnEnded(process: string, { performed }: TurnReport): void {
    for (const { action, result } of performed) {
      if (action.kind === 'deletePod' && result === 'unknown') this.#unanswered.add(`${process} ${action.uid}`);
    }
  }

  healingBegan(): void {
    this.#healingMs = this.#book.scene.nowMs();
  }

  ended(): void {
    const { scene } = this.#book;
    for (const { claim } of this.#open.values()) {
      if (isOpenClaim(claim, scene)) scene.violated('L4', `at the end the ledger still announces ${describe(claim)}`);
    }
    for (const ledger of this.#ledgers.values()) {
      const staying = stayingPods(ledger, scene);
      if (staying.length > 0)
        scene.violated('L5', `at the end the ledger of ${ledger.group} still names ${staying.join(', ')} as prepared to leave`);
    }
  }

  /** Checks S4: no program of this version replaces a ledger that only a later version reads. */
  #checkVersion({ before, after, actor, type, atMs }: Commit): void {
    const [was, is] = [before, after].map((map) => map !== undefined && isOfNextVersion(readLedger(map)));
    this.#isUnreadable.set(atMs, type !== 'DELETED' && is === true);
    if (was === true && is !== true && actor.user !== otherAgent.user)
      this.#book.scene.violated('S4', `${actor.process ?? actor.user} replaces the ledger of a later version`);
  }

  /** Checks S4: no action is decided while only a later version reads the ledger. */
  #checkReadable({ actor, atMs }: Commit, what: string): void {
    const seen = this.#isUnreadable.since(this.#book.momentOf({ actor, atMs }).fromMs);
    if (seen.every((isUnreadable) => isUnreadable))
      this.#book.scene.violated('S4', `${actor.process ?? ''} ${what} although its version cannot read the ledger`);
  }

  #isOpen(test: (open: Open) => boolean): boolean {
    for (const open of this.#open.values()) if (test(open)) return true;
    return false;
  }

  #checkDisruption(commit: Commit): void {
    const { after, actor } = commit;
    const { uid, name } = after.metadata;
    this.#checkReadable(commit, `disrupts ${name}`);
    const by = actor.process ?? '';
    const isClaimed = this.#isOpen(({ claim }) => claim.uid === uid && (claim.verb === 'deletePod' || claim.verb === 'evictPod'));
    if (!isClaimed) this.#book.scene.violated('S19', `${by} disrupts ${name}, and the ledger does not announce it`);
    // An eviction in flight cannot be revoked, so its claim stays valid under later leaders.
    const isDeleted = this.#isOpen(({ claim }) => claim.uid === uid && claim.verb === 'deletePod');
    if (isDeleted || !isClaimed) this.#checkEpoch(by, `disrupts ${name}`);
  }

  #checkScale(commit: Commit): void {
    const { before, after, actor } = commit;
    const { scene } = this.#book;
    if (!isAgent(actor, scene.agentUser) || this.#book.zoneOf(after.metadata.name) === undefined) return;
    const to = numberAt(after, 'spec', 'replicas') ?? 1;
    if (to >= (numberAt(before, 'spec', 'replicas') ?? 1)) return;
    const { uid, name } = after.metadata;
    this.#checkReadable(commit, `scales ${name} to ${to}`);
    // A decrease in flight cannot be revoked either, so its claim stays valid under later leaders.
    const isAnnounced = this.#isOpen(({ claim }) => claim.verb === 'scaleDown' && claim.uid === uid && (claim.to ?? 0) <= to);
    if (!isAnnounced) scene.violated('S19', `${actor.process ?? ''} scales ${name} to ${to}, and the ledger does not announce it`);
  }

  /** Checks that a lower partition has a claim if it exposes pods. Other partitions need no claim. */
  #checkPartition({ before, after, actor, atMs }: Commit): void {
    const { scene } = this.#book;
    const zone = this.#book.zoneOf(after.metadata.name);
    const to = partitionOf(after);
    if (!isAgent(actor, scene.agentUser) || zone === undefined || to >= partitionOf(before)) return;
    const first = zone.facts.latest()?.first ?? 0;
    const exposesPods = outdated(zone, this.#book.momentOf({ actor, atMs }).fromMs).some(
      ({ ordinal }) => ordinal >= first + to && ordinal < first + partitionOf(before),
    );
    const { uid, name } = after.metadata;
    const isAnnounced = this.#isOpen(({ claim }) => claim.verb === 'setPartition' && claim.uid === uid && (claim.to ?? 0) <= to);
    if (exposesPods && !isAnnounced)
      scene.violated('S19', `${actor.process ?? ''} lowers the partition of ${name} to ${to}, and the ledger does not announce it`);
  }

  #checkEpoch(by: string, what: string): void {
    const epoch = this.#epochs.get(by);
    if (epoch === undefined || epoch >= this.#epoch) return;
    this.#book.scene.violated('S18', `${by} ${what} in epoch ${epoch}, after epoch ${this.#epoch} wrote the ledger`);
  }

  #written(commit: Commit): void {
    const { after, actor, atMs } = commit;
    const { scene } = this.#book;
    const by = actor.process ?? '';
    const ledger = readLedger(after);
    if (ledger === undefined) {
      scene.violated('S19', `${by} wrote a ledger that cannot be read`);
      return;
    }
    const { epoch } = ledger;
    if (epoch !== undefined && epoch < this.#epoch) scene.violated('S18', `${by} wrote epoch ${epoch} after epoch ${this.#epoch}`);
    if (epoch !== undefined) this.#epochs.set(by, epoch);
    const before = this.#ledgers.get(after.metadata.name);
    for (const [key, claim] of before?.claims ?? []) if (!ledger.claims.has(key)) this.#checkDropped(claim, ledger, by, atMs);
    const added = [...ledger.claims].filter(([key]) => before?.claims.has(key) !== true).map(([, claim]) => claim);
    const isNew = added.filter(
      (claim) => ![...(before?.claims.values() ?? [])].some(({ uid, verb }) => uid === claim.uid && verb === claim.verb),
    );
    this.#checkAdded(isNew, ledger, commit);
    if (isNew.some((claim) => this.#isPausedFor(claim, actor, atMs))) {
      scene.violated('S28', `${by} announces ${isNew.map(describe).join(', ')} during a pause`);
    }
    this.#record(after, by, atMs);
    this.#checkAge(atMs);
  }

  #isPausedFor(claim: Claimed, actor: Commit['actor'], atMs: number): boolean {
    const zone = this.#zoneOf(claim);
    if (zone === undefined) return false;
    const binds = claim.verb === 'scaleDown' ? isHalted : isPaused;
    return binds(this.#book, zone.statefulSet, this.#book.momentOf({ actor, atMs }));
  }

  #checkAdded(added: readonly Claimed[], ledger: LedgerText, { actor, atMs }: Commit): void {
    const { scene, terms } = this.#book;
    const { fromMs } = this.#book.momentOf({ actor, atMs });
    // In drop-in groups a zone is scaled down without a check of the other zones.
    const counts = ({ verb }: Claimed): boolean => verb !== 'scaleDown' || scene.group.kind === 'native';
    const [first] = added.filter(counts);
    if (first === undefined || terms.isExcepted()) return;
    const elsewhere = [...ledger.claims.values()].filter(
      (claim) => counts(claim) && claim.zone !== first.zone && this.#hasBeenMember(claim, fromMs) && !this.#hasSuccessor(claim),
    );
    if (elsewhere.length > 0)
      scene.violated('S1', `${actor.process ?? ''} announces ${describe(first)} next to ${elsewhere.map(describe).join(', ')}`);
  }

  /** Returns whether the pod of the claim is gone and the zone has all its pods. The claim then stays only because a successor is unavailable. */
  #hasSuccessor({ verb, zone, uid }: Claimed): boolean {
    const { scene, zones, terms } = this.#book;
    if (verb === 'scaleDown' || verb === 'setPartition') return false;
    const set = zones.find(({ statefulSet }) => terms.zoneName(statefulSet) === zone);
    const owner = set?.facts.latest();
    const pods = scene.list(podResource, scene.namespace).filter((pod) => controllerOf(pod) === owner?.uid);
    return owner !== undefined && pods.length >= owner.replicas && !pods.some(({ metadata }) => metadata.uid === uid);
  }

  /** Returns whether the zone has belonged to the group since `fromMs`. Claims of removed or recreated StatefulSets do not count. */
  #hasBeenMember(claim: Claimed, fromMs: number): boolean {
    const zone = this.#book.zones.find(({ statefulSet }) => this.#book.terms.zoneName(statefulSet) === claim.zone);
    if (zone === undefined) return false;
    const uids = new Set(zone.facts.since(fromMs).map((facts) => facts?.uid));
    return uids.size === 1 && !uids.has(undefined) && this.#book.terms.wasMember(zone.statefulSet, fromMs);
  }

  /**
   * Checks that a claim may be dropped: its pod is gone or has changed, its writer drops it and knows that its request had no effect, or no
   * request can be in flight.
   */
  #checkDropped(claim: Claimed, ledger: LedgerText, by: string, atMs: number): void {
    const { scene } = this.#book;
    if (claim.verb === 'scaleDown') {
      this.#checkDroppedScale(claim, ledger, by);
      return;
    }
    // After the write, the partition in the StatefulSet itself shows which pods are exposed.
    if (claim.verb === 'setPartition') return;
    const pod = this.#book.podByUid(claim.uid);
    // A claim with a newer state of the same pod replaces the older one.
    if (pod === undefined || [...ledger.claims.values()].some(({ uid }) => uid === claim.uid)) return;
    if (isTerminating(pod)) {
      // A deletion by another client is not the claimed deletion.
      if (this.#book.placeOfPod(pod)?.open?.uid !== claim.uid) return;
      scene.violated('S19', `${by} drops the claim ${describe(claim)} while ${pod.metadata.name} is still terminating`);
      return;
    }
    const isChanged = claim.resourceVersion !== undefined && pod.metadata.resourceVersion !== claim.resourceVersion;
    const open = this.#open.get(keyOf(claim));
    const sinceMs = open?.sinceMs ?? 0;
    const { rate, elapsedSinceMs = (fromMs) => (atMs - fromMs) * rate } = machineOf(scene, by);
    // The rate of the clock may have changed since the claim was stored.
    const ageMs = Math.max(atMs - sinceMs, elapsedSinceMs(sinceMs));
    const isItsOwn = open?.by === by && !this.#unanswered.has(`${by} ${claim.uid}`);
    if (isChanged || isItsOwn || ageMs >= unappliedMs) return;
    scene.violated(
      'S19',
      `${by} drops the claim ${describe(claim)} of ${open?.by ?? 'another process'} although ${pod.metadata.name} is unchanged`,
    );
  }

  #checkDroppedScale(claim: Claimed, ledger: LedgerText, by: string): void {
    const zone = this.#zoneOf(claim);
    const facts = zone?.facts.latest();
    const isSame = [...ledger.claims.values()].some(({ uid, verb }) => uid === claim.uid && verb === claim.verb);
    if (zone === undefined || facts === undefined || facts.uid !== claim.uid || isSame) return;
    // The scale-down had no effect or was reverted, so no pod is removed.
    if (facts.replicas > (claim.to ?? 0) || zone.surplus === undefined || !zone.surplus.isOurs) return;
    this.#book.scene.violated('S19', `${by} drops the claim ${describe(claim)} while pods of ${zone.statefulSet} are being removed`);
  }

  #zoneOf({ verb, uid, zone: name }: Claimed): Zone | undefined {
    const { zones, terms } = this.#book;
    if (verb === 'scaleDown' || verb === 'setPartition') return zones.find(({ set }) => set?.metadata.uid === uid);
    const pod = this.#book.podByUid(uid);
    return (pod && this.#book.placeOfPod(pod)?.zone) ?? zones.find(({ statefulSet }) => terms.zoneName(statefulSet) === name);
  }

  #record(map: ModelObject, by: string, atMs: number): void {
    if (!isLedger(map)) return;
    const before = this.#ledgers.get(map.metadata.name);
    const ledger = readLedger(map) ?? {
      format: '',
      group: '',
      epoch: undefined,
      claims: new Map(),
      prepared: [],
      pins: new Map(),
      rolling: [],
    };
    for (const key of before?.claims.keys() ?? []) if (!ledger.claims.has(key)) this.#open.delete(key);
    for (const [key, claim] of ledger.claims) if (!this.#open.has(key)) this.#open.set(key, { claim, by, sinceMs: atMs });
    this.#ledgers.set(map.metadata.name, ledger);
    this.#epoch = Math.max(this.#epoch, ledger.epoch ?? 0);
  }

  /** Checks L4: after all faults have ended, every claim ends. */
  #checkAge(atMs: number): void {
    if (this.#healingMs === undefined) return;
    const { drainMs, startMs, minReadySeconds, delaySeconds } = this.#book.scene.group;
    const longestMs = unappliedMs + 60_000 + 3 * (drainMs + startMs + minReadySeconds * 1000) + delaySeconds * 1000;
    for (const [key, { claim, sinceMs }] of this.#open) {
      if (atMs - Math.max(sinceMs, this.#healingMs) < longestMs || this.#overdue.has(key)) continue;
      this.#overdue.add(key);
      this.#book.scene.violated('L4', `${describe(claim)} has been announced for ${atMs - sinceMs} ms and has not ended`);
    }
  }
}

function describe({ verb, zone, uid, to }: Claimed): string {
  return verb === 'scaleDown' || verb === 'setPartition' ? `${verb} of zone ${zone} to ${to}` : `${verb} of ${uid} in zone ${zone}`;
}
