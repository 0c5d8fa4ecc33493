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
import { type Moment, type Oracle, WallErrors } from './oracle.ts';
import { type Book, unavailableIn, type Zone } from './places.ts';
import { checkObserved, isHalted } from './targets.ts';
import { Timeline } from './terms.ts';

interface Write {
  readonly zone: Zone;
  readonly from: number;
  readonly to: number;
  readonly by: string;
  readonly moment: Moment;
}

interface Direction {
  readonly sign: number;
  /** The number of input changes of the zone (`isInput`) that were visible to the decision of this write. */
  readonly inputCount: number;
}

/** The judge of replicas. It sees each commit before the book records it. */
export class ReplicaJudge implements Oracle {
  readonly #book: Book;
  readonly #decreases = new Map<Zone, number>();
  readonly #clocks: WallErrors;
  readonly #directions = new Map<Zone, Direction>();
  readonly #inputs: ReadonlyMap<Zone, Timeline<number>>;

  constructor(book: Book) {
    this.#book = book;
    this.#clocks = new WallErrors(book.scene);
    this.#inputs = new Map(book.zones.map((zone) => [zone, new Timeline<number>()]));
    for (const changes of this.#inputs.values()) changes.set(Number.NEGATIVE_INFINITY, 0);
  }

  committed(commit: Commit): void {
    this.#clocks.note(commit.actor.process);
    const write = writeOf(this.#book, commit);
    if (write !== undefined && write.from !== write.to) this.#checkWrite(write);
    if (!isInput(this.#book, commit, write)) return;
    for (const [zone, changes] of this.#inputs) if (zone !== write?.zone) changes.set(commit.atMs, (changes.latest() ?? 0) + 1);
  }

  #checkWrite(write: Write): void {
    const isBound = !this.#book.terms.isExcepted() && !isForced(this.#book, write);
    if (isBound && write.to < write.from) {
      checkDecrease(this.#book, write);
      checkRollout(this.#book, write);
      if (this.#book.scene.group.kind === 'native') this.#checkGap(write);
    }
    if (isBound && write.to > write.from) checkGrowth(this.#book, write);
    this.#checkOscillation(write);
  }

  /** The agent counts from the time at which it sees the decrease, by the clock of the machine that sees it. */
  #checkGap(write: Write): void {
    const { scene, terms } = this.#book;
    const { zone: own, moment } = write;
    const settings = terms.of(own.statefulSet).since(moment.fromMs);
    const gapMs = Math.min(...settings.map(({ betweenZonesMs }) => betweenZonesMs), Number.POSITIVE_INFINITY);
    for (const [zone, atMs] of this.#decreases) {
      const passedMs = moment.atMs - atMs;
      const isLong = passedMs + this.#clocks.spreadMs + toleranceMs >= gapMs;
      if (zone === own || gapMs === Number.POSITIVE_INFINITY || isLong) continue;
      const ago = `only ${Math.round(passedMs)} ms after ${zone.statefulSet} shrank`;
      scene.violated('S12', `${describe(write)}, ${ago}; the minimum is ${gapMs} ms`);
    }
    this.#decreases.set(own, moment.atMs);
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

/** The tolerance of comparisons of clocks. */
const toleranceMs = 1_000;

function writeOf(book: Book, { resource, type, before, after, actor, atMs }: Commit): Write | undefined {
  if (resource !== statefulSetResource || type !== 'MODIFIED' || before === undefined) return undefined;
  if (!isAgent(actor, book.scene.agentUser) || after.metadata.namespace !== book.scene.namespace) return undefined;
  const zone = book.zoneOf(after.metadata.name);
  if (zone === undefined) return undefined;
  const from = numberAt(before, 'spec', 'replicas') ?? 1;
  const to = numberAt(after, 'spec', 'replicas') ?? 1;
  return { zone, from, to, by: actor.process ?? '', moment: book.momentOf({ actor, atMs }) };
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
    const { surplus } = other;
    const isShrinking = surplus !== undefined && (surplus.isOurs || surplus.sinceMs <= moment.fromMs);
    if (isShrinking && book.terms.wasMember(other.statefulSet, moment.fromMs))
      scene.violated('S1', `${describe(write)} while pods of ${other.statefulSet} are being removed`);
    const rolling = (unavailableIn(book, other, moment) ?? []).filter((place) => place.open !== undefined);
    if (rolling.length > 0) scene.violated('S15', `${describe(write)} while ${named(rolling)} are being replaced`);
  }
  const settings = book.terms.of(zone.statefulSet).since(moment.fromMs);
  const floor = Math.max(1, Math.min(...settings.map(({ minReplicas }) => minReplicas)));
  if (Number.isFinite(floor) && to < floor) scene.violated('S14', `${describe(write)}, below its floor of ${floor}`);
  checkLeader(book, write);
}

/** Checks `duringRollout` of a decrease: no zone shrinks during a run (`wait`), or while another zone is open (`allow`). */
function checkRollout({ scene, runs, terms }: Book, write: Write): void {
  if (scene.group.kind === 'adopted' || scene.isGiven === true) return;
  const seen = runs.since(write.moment.fromMs);
  const [run] = seen;
  if (run === undefined || seen.some((one) => one?.id !== run.id || one.outcome !== 'running')) return;
  if (scene.group.scalesDuringRollout !== true) scene.violated('S15', `${describe(write)} during the run ${run.id}`);
  const name = terms.zoneName(write.zone.statefulSet);
  const isElsewhere = seen.every((one) => one?.openZone !== undefined && one.openZone !== name);
  if (isElsewhere) scene.violated('S15', `${describe(write)} while zone ${run.openZone} rolls`);
}

/** Checks `duringRollout: wait` of an increase: no zone grows while a pod of the open zone is being replaced. */
function checkGrowth(book: Book, write: Write): void {
  const { scene, runs, terms, zones } = book;
  if (scene.group.kind === 'adopted' || scene.isGiven === true || scene.group.scalesDuringRollout === true) return;
  const seen = runs.since(write.moment.fromMs);
  const open = seen[0]?.openZone;
  const zone = zones.find(({ statefulSet }) => terms.zoneName(statefulSet) === open);
  if (zone === undefined || seen.some((run) => run?.openZone !== open || run?.outcome !== 'running')) return;
  const down = unavailableIn(book, zone, write.moment) ?? [];
  const replaced = down.filter((place) => place.open !== undefined && place.open.atMs <= write.moment.fromMs);
  if (replaced.length > 0) scene.violated('S15', `${describe(write)} while ${named(replaced)} are being replaced`);
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
