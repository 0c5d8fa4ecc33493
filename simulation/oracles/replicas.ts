// Judges the replica writes of agents: one zone at a time, the time between zones, bounds, the replicas of the leader, pauses, and
// oscillation (S1, S4, S12 to S16, S28).

import {
  configMapResource,
  groupResource,
  isAgent,
  leaseResource,
  nodeResource,
  numberAt,
  podResource,
  statefulSetResource,
} from '../objects.ts';
import type { Commit } from '../server/request.ts';
import { named, unavailabilityOf } from './availability.ts';
import { type Moment, machineOf, type Oracle } from './oracle.ts';
import { type Book, unavailableIn, type Zone } from './places.ts';
import { checkObserved, isHalted } from './targets.ts';
import { Timeline } from './terms.ts';

interface Write {
  readonly zone: Zone;
  readonly from: number;
  readonly to: number;
  readonly by: string;
  readonly moment: Moment;
  readonly sentMs: number;
}

interface Direction {
  readonly sign: number;
  /** The number of input changes of the zone (`isInput`) that were visible to the decision of this write. */
  readonly inputCount: number;
}

/** The judge of replicas. It sees each commit before the book records it. */
export class ReplicaJudge implements Oracle {
  readonly #book: Book;
  readonly #decreases = new Map<Zone, { readonly sentMs: number; readonly wallErrorMs: number }>();
  readonly #directions = new Map<Zone, Direction>();
  readonly #inputs: ReadonlyMap<Zone, Timeline<number>>;

  constructor(book: Book) {
    this.#book = book;
    this.#inputs = new Map(book.zones.map((zone) => [zone, new Timeline<number>()]));
    for (const changes of this.#inputs.values()) changes.set(Number.NEGATIVE_INFINITY, 0);
  }

  committed(commit: Commit): void {
    const write = writeOf(this.#book, commit);
    if (write !== undefined && write.from !== write.to) this.#checkWrite(write, commit);
    if (!isInput(this.#book, commit, write)) return;
    for (const [zone, changes] of this.#inputs) if (zone !== write?.zone) changes.set(commit.atMs, (changes.latest() ?? 0) + 1);
  }

  #checkWrite(write: Write, { actor }: Commit): void {
    const isBound = !this.#book.terms.isExcepted() && !isForced(this.#book, write);
    if (isBound && write.to < write.from) {
      checkDecrease(this.#book, write);
      if (this.#book.scene.group.kind === 'native') this.#checkGap(write, actor);
    }
    this.#checkOscillation(write);
  }

  #checkGap(write: Write, actor: Commit['actor']): void {
    const { scene, terms } = this.#book;
    const { wallErrorMs } = machineOf(scene, actor.process);
    const settings = terms.of(write.zone.statefulSet).since(write.moment.fromMs);
    const gapMs = Math.min(...settings.map(({ betweenZonesMs }) => betweenZonesMs), Number.POSITIVE_INFINITY);
    for (const [zone, last] of this.#decreases) {
      // The agent counts from the time in its claim, which is earlier than the request and comes from the clock of its machine.
      const passedMs = write.moment.atMs - last.sentMs + Math.max(0, wallErrorMs - last.wallErrorMs) + longestClaimAgeMs;
      if (zone === write.zone || gapMs === Number.POSITIVE_INFINITY || passedMs >= gapMs) continue;
      const sinceMs = Math.round(write.moment.atMs - last.sentMs);
      scene.violated('S12', `${describe(write)}, only ${sinceMs} ms after ${zone.statefulSet} shrank; the minimum is ${gapMs} ms`);
    }
    this.#decreases.set(write.zone, { sentMs: write.sentMs, wallErrorMs });
  }

  #checkOscillation(write: Write): void {
    const sign = Math.sign(write.to - write.from);
    const before = this.#directions.get(write.zone);
    const changes = this.#inputs.get(write.zone);
    const inputCount = changes?.since(write.moment.fromMs)[0] ?? 0;
    if (before !== undefined && before.sign === -sign && before.inputCount === (changes?.latest() ?? 0)) {
      this.#book.scene.violated('S16', `${describe(write)} after the opposite change, although no input has changed since`);
    }
    this.#directions.set(write.zone, { sign, inputCount });
  }
}

/** The longest time between the decision and the request of a decrease. */
const longestClaimAgeMs = 10_000;

function writeOf(book: Book, { resource, type, before, after, actor, atMs }: Commit): Write | undefined {
  if (resource !== statefulSetResource || type !== 'MODIFIED' || before === undefined) return undefined;
  if (!isAgent(actor, book.scene.agentUser) || after.metadata.namespace !== book.scene.namespace) return undefined;
  const zone = book.zoneOf(after.metadata.name);
  if (zone === undefined) return undefined;
  const from = numberAt(before, 'spec', 'replicas') ?? 1;
  const to = numberAt(after, 'spec', 'replicas') ?? 1;
  return { zone, from, to, by: actor.process ?? '', moment: book.momentOf({ actor, atMs }), sentMs: actor.sentAtMs ?? atMs };
}

function describe({ zone, from, to, by }: Write): string {
  return `${by} scales ${zone.statefulSet} from ${from} to ${to}`;
}

function isForced({ terms }: Book, { zone, moment }: Write): boolean {
  const settings = terms.of(zone.statefulSet).since(moment.fromMs);
  return settings.some((one) => one.isForced);
}

function checkDecrease(book: Book, write: Write): void {
  const { scene } = book;
  const { zone, moment, to } = write;
  if (isHalted(book, zone.statefulSet, moment)) scene.violated('S28', `${describe(write)} during a pause`);
  // As in grafana/rollout-operator, a decrease without preparation in a drop-in group ignores other zones.
  if (scene.group.kind === 'adopted') return;
  checkObserved(book, moment, describe(write));
  const others = book.zones.filter((other) => other !== zone);
  for (const other of others) {
    const why = unavailabilityOf(book, other, moment);
    if (why !== undefined) scene.violated('S1', `${describe(write)} while ${why}`);
    const rolling = (unavailableIn(book, other, moment) ?? []).filter((place) => place.open !== undefined);
    if (rolling.length > 0) scene.violated('S15', `${describe(write)} while ${named(rolling)} are being replaced`);
  }
  const settings = book.terms.of(zone.statefulSet).since(moment.fromMs);
  const floor = Math.max(1, Math.min(...settings.map(({ minReplicas }) => minReplicas)));
  if (Number.isFinite(floor) && to < floor) scene.violated('S14', `${describe(write)}, below its floor of ${floor}`);
  checkLeader(book, write);
}

/** Checks that no follower shrinks below the replicas of its leader, or below the number of the leader's pods. */
function checkLeader({ scene, zones }: Book, write: Write): void {
  const leader = zones[0];
  if (scene.group.replicas !== 'leader' || leader === undefined || leader === write.zone) return;
  const requested = Math.min(...leader.facts.since(write.moment.fromMs).map((facts) => facts?.replicas ?? 0));
  const existing = Math.min(...leader.podCounts.since(write.moment.fromMs));
  const least = Math.max(requested, existing);
  if (Number.isFinite(least) && write.to < least) {
    scene.violated('S13', `${describe(write)}, and its leader ${leader.statefulSet} has ${requested} replicas and ${existing} pods`);
  }
}

/** Returns whether the change may affect the replicas of a zone. Changes of pods, nodes, statuses and agents' records do not count. */
function isInput({ scene }: Book, { resource, before, after, actor, type }: Commit, write: Write | undefined): boolean {
  if (write !== undefined) return write.from !== write.to;
  if ([podResource, nodeResource, leaseResource, configMapResource, 'events', 'events.events.k8s.io'].includes(resource)) return false;
  if (isAgent(actor, scene.agentUser)) return false;
  if (type !== 'MODIFIED' || before === undefined || resource === groupResource) return true;
  // A change of the status alone does not change the replicas.
  if (before['spec'] === after['spec'] && before.metadata.annotations === after.metadata.annotations) return false;
  return (
    JSON.stringify([before['spec'], before.metadata.labels, before.metadata.annotations]) !==
    JSON.stringify([after['spec'], after.metadata.labels, after.metadata.annotations])
  );
}
