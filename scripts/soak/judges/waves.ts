// Judges waves (S37): a pod is replaced only in a wave that includes it, after the earlier waves with their pods, soaks, gates and approvals.
import type { TurnReport } from '../../../agent/report.ts';
import { getOrCreate } from '../../../policies/values/map.ts';
import {
  configMapResource,
  instantAt,
  intentResource,
  isTerminating,
  partitionOf,
  revisionLabelOf,
  textAt,
} from '../../../simulation/objects.ts';
import { disruptedByUs, named } from '../../../simulation/oracles/availability.ts';
import { isLedger, readLedger } from '../../../simulation/oracles/documents.ts';
import { type GateAnswered, knownSinceMs, type Moment, type Oracle, WallErrors } from '../../../simulation/oracles/oracle.ts';
import { exposedByUs, outdated } from '../../../simulation/oracles/partitions.ts';
import { type Book, isInRange, type Place, unavailableIn, wasDown, type Zone } from '../../../simulation/oracles/places.ts';
import { targetOf } from '../../../simulation/oracles/stored-waves.ts';
import { letterOf, traitsOfShape, type WaveShape } from '../../../simulation/scenario.ts';
import type { Actor, Commit, ModelObject } from '../../../simulation/server/request.ts';
import { gateConsecutive } from '../groups/gate-server.ts';
import { waveName } from '../groups/group-objects.ts';

/** A sufficient row of good answers of one process: its first and its last answer. */
interface Pass {
  readonly fromMs: number;
  readonly atMs: number;
}

/** A request of a person about a wave in a run, which the webhook has verified. */
interface WaveRequest {
  readonly action: string;
  readonly wave: string;
  readonly runId: string | undefined;
  readonly user: string;
  readonly name: string;
  readonly atMs: number;
  /** The index of the wave in which the run was before the request. */
  readonly runWave: number;
  /** The time at which the request was deleted; infinite if it exists. */
  deletedMs: number;
}

/** A write of the ledger with which a run left waves: those from `first` on, before `next`. */
interface Leaving {
  readonly runId: string;
  readonly first: number;
  readonly next: number;
  /** Every decision of the writer knew the requests of this time. */
  readonly fromMs: number;
  readonly atMs: number;
}

/** A moment at which a pod of a zone is replaced. */
interface Replacement extends Moment {
  /** True if the zone returns to a revision that it had before, so that it needs no soaks, gates and approvals. */
  readonly isReturn: boolean;
}

/** The time by which the clock of an agent and the recorded whole seconds may differ without a wrong clock. */
const toleranceMs = 1_500;

/** Creates the judge. It sees each commit before the book records it. Groups without waves and the groups of users are exempt. */
export function judgeWaves(book: Book): Oracle {
  const { group, isGiven } = book.scene;
  if (isGiven === true || group.kind === 'adopted') return {};
  return new WaveJudge(book);
}

class WaveJudge implements Oracle {
  readonly #book: Book;
  #waves: readonly WaveShape[];
  /** The last change of the waves during the run, the waves that had their pods then, and the first one that did not. */
  #changed: { readonly atMs: number; readonly isKnown: boolean; readonly filled: ReadonlySet<number>; readonly next: number } | undefined;
  /** The texts of all waves that the group had. */
  readonly #known = new Set<string>();
  /** The update revision of each zone. */
  readonly #revisions = new Map<Zone, string>();
  /** The revisions that each zone had: all its pods ran the revision, or a pod ran it before the first run of the group. */
  readonly #had = new Map<Zone, Set<string>>();
  /** The zones whose last template is a return to a revision that they had. */
  readonly #returned = new Set<Zone>();
  /** The time of the last new template: the waves start again. */
  #startMs = Number.NEGATIVE_INFINITY;
  /** The time of the last commit, which the book shows. */
  #shownMs = Number.NEGATIVE_INFINITY;
  /** The time at which each wave was first filled since then. */
  #filledMs = new Map<number, number>();
  readonly #begun = new Set<number>();
  /** The last time at which a pod of the wave was replaced, at the earliest. */
  readonly #lastMs = new Map<number, number>();
  /** The places whose pods agents replaced since the last template of the zone. */
  readonly #replaced = new Set<Place>();
  readonly #streaks = new Map<string, readonly number[]>();
  readonly #passes: Pass[] = [];
  readonly #requests: WaveRequest[] = [];
  readonly #leavings: Leaving[] = [];
  readonly #clocks: WallErrors;
  /** The wall-clock time of the last decision that replaced a pod. */
  #replacedMs = Number.NEGATIVE_INFINITY;

  constructor(book: Book) {
    this.#book = book;
    this.#clocks = new WallErrors(book.scene);
    this.#waves = book.waves.latest() ?? [];
    this.#known.add(textOf(this.#waves));
  }

  gateAnswered({ process, atMs, isGood }: GateAnswered): void {
    const streak = isGood ? [...(this.#streaks.get(process) ?? []), atMs].slice(-gateConsecutive) : [];
    this.#streaks.set(process, streak);
    const [fromMs = atMs] = streak;
    if (streak.length === gateConsecutive) this.#passes.push({ fromMs, atMs });
  }

  turnEnded(process: string, { snapshot, performed }: TurnReport): void {
    this.#clocks.note(process);
    const intervalMs = (this.#book.scene.group.minIntervalSeconds ?? 0) * 1000;
    const pods = performed.flatMap(({ action, result }) => {
      if (result !== 'done') return [];
      if (action.kind === 'setPartition') return action.pods.map(({ pod }) => pod);
      return action.kind === 'deletePod' || action.kind === 'evictPod' ? [action.pod] : [];
    });
    if (intervalMs === 0 || pods.length === 0) return;
    const passedMs = snapshot.nowMs - this.#replacedMs;
    this.#replacedMs = snapshot.nowMs;
    if (pods.length === 1 && passedMs + this.#slackMs() >= intervalMs) return;
    this.#book.scene.violated('S37', `${process} replaces ${pods.join(', ')} ${passedMs} ms after the last replacement (minInterval)`);
  }

  committed(commit: Commit): void {
    const { actor, resource, atMs } = commit;
    this.#clocks.note(actor.process);
    this.#fill(atMs);
    this.#shownMs = atMs;
    if (resource === intentResource && commit.type === 'ADDED') this.#noteRequest(commit);
    if (resource === intentResource && commit.type === 'DELETED') this.#noteDeleted(commit);
    if (resource === configMapResource && isLedger(commit.after)) this.#noteLeaving(commit);
    const disrupted = disruptedByUs(this.#book, commit);
    if (disrupted !== undefined) this.#checkReplaced(disrupted.zone, [disrupted], commit);
    this.#checkExposed(commit);
  }

  #noteRequest({ after, atMs }: Commit): void {
    const [action, wave] = [textAt(after, 'spec', 'action'), textAt(after, 'spec', 'wave')];
    const user = textAt(after, 'spec', 'requestedBy', 'user');
    if (action === undefined || wave === undefined || user === undefined) return;
    const runWave = this.#book.runs.latest()?.wave ?? 0;
    const { name } = after.metadata;
    const deletedMs = Number.POSITIVE_INFINITY;
    this.#requests.push({ action, wave, runId: textAt(after, 'spec', 'runId'), user, name, atMs, runWave, deletedMs });
  }

  #noteDeleted({ after, atMs }: Commit): void {
    for (const request of this.#requests) if (request.name === after.metadata.name) request.deletedMs = Math.min(request.deletedMs, atMs);
  }

  #noteLeaving(commit: Commit): void {
    const [before, run] = [this.#book.runs.latest(), readLedger(commit.after)?.run];
    if (run === undefined || before?.id !== run.id || before.wave >= run.wave) return;
    const fromMs = knownSinceMs(this.#book.scene, commit);
    this.#leavings.push({ runId: run.id, first: before.wave, next: run.wave, fromMs, atMs: commit.atMs });
  }

  /** Returns the writes with which the run of the request left the wave. */
  #leavingsOf(index: number, { runId }: WaveRequest): readonly Leaving[] {
    return this.#leavings.filter((one) => one.runId === runId && one.first <= index && index < one.next);
  }

  /** Returns by how much a duration between two recorded times may be too short. One of them may be of another agent. */
  #slackMs(): number {
    return this.#clocks.spreadMs + toleranceMs;
  }

  /** Records new templates, and the waves that are filled now. */
  #fill(atMs: number): void {
    for (const zone of this.#book.zones) {
      this.#noteTemplate(zone, zone.facts.latest()?.updateRevision ?? '');
      this.#noteRevisions(zone);
    }
    const waves = this.#book.waves.latest() ?? [];
    const isChanged = waves !== this.#waves;
    if (isChanged) this.#startWaves(waves);
    this.#noteFilled(atMs);
    if (!isChanged) return;
    const text = textOf(waves);
    const next = waves.findIndex((_, index) => !this.#filledMs.has(index));
    this.#changed = { atMs: this.#shownMs, isKnown: this.#known.has(text), filled: new Set(this.#filledMs.keys()), next };
    this.#known.add(text);
  }

  #noteFilled(atMs: number): void {
    for (const [index, wave] of this.#waves.entries()) {
      if (this.#filledMs.has(index) || !this.#zonesOf(wave, atMs).every((zone) => this.#isFilled(zone, wave, atMs))) continue;
      this.#filledMs.set(index, this.#shownMs);
    }
  }

  /** Records the update revision of a zone. A new one starts the waves again if a wave includes the zone. */
  #noteTemplate(zone: Zone, revision: string): void {
    const known = this.#revisions.get(zone);
    if (revision === '' || revision === known) return;
    this.#revisions.set(zone, revision);
    if (known === undefined) return;
    if (this.#hadRevision(zone, revision)) this.#returned.add(zone);
    else this.#returned.delete(zone);
    for (const place of this.#replaced) if (place.zone === zone) this.#replaced.delete(place);
    const letter = letterOf(this.#book.zones.indexOf(zone));
    if (!this.#waves.some(({ zones }) => zones.includes(letter))) return;
    this.#startMs = this.#shownMs;
    this.#startWaves(this.#waves);
  }

  #startWaves(waves: readonly WaveShape[]): void {
    this.#waves = waves;
    this.#changed = undefined;
    this.#filledMs = new Map();
    this.#begun.clear();
    this.#lastMs.clear();
  }

  #noteRevisions(zone: Zone): void {
    const had = getOrCreate(this.#had, zone, () => new Set<string>());
    const running = new Set(podsIn(zone).map(revisionLabelOf));
    if (running.size === 1 || this.#book.runs.latest() === undefined) for (const revision of running) had.add(revision);
  }

  /** Returns the zones of the wave that belong to the group and have a StatefulSet, as every decision at this time knows. */
  #zonesOf({ zones }: WaveShape, atMs: number): readonly Zone[] {
    const { zones: all, terms } = this.#book;
    return all.filter(({ statefulSet, facts }, index) => {
      const seen = facts.since(atMs - snapshotAgeMs);
      return zones.includes(letterOf(index)) && terms.wasMember(statefulSet, atMs - snapshotAgeMs) && !seen.includes(undefined);
    });
  }

  /** Returns whether enough pods of the zone are available at the update revision. */
  #isFilled(zone: Zone, wave: WaveShape, atMs: number): boolean {
    const least = Math.min(...zone.facts.since(atMs - snapshotAgeMs).map((facts) => targetOf(wave, facts?.replicas ?? 0)));
    const target = zone.facts.latest()?.updateRevision;
    const up = [...zone.places.values()].filter(
      ({ pod, upAtMs }) => pod !== undefined && revisionLabelOf(pod) === target && upAtMs <= atMs + this.#clocks.aheadMs + toleranceMs,
    );
    return up.length >= least;
  }

  #checkExposed(commit: Commit): void {
    const zone = this.#book.zoneOf(commit.after.metadata.name);
    const isNew = exposedByUs(this.#book, commit).length > 0;
    if (zone === undefined || !isNew || !traitsOfShape(this.#book.scene.group).lowersPartition) return;
    const lowest = (zone.facts.latest()?.first ?? 0) + partitionOf(commit.after);
    const exposed = outdated(zone, this.#book.momentOf(commit).fromMs).filter(({ ordinal }) => ordinal >= lowest);
    this.#checkReplaced(zone, exposed, commit);
  }

  /** Checks the replacement of available pods. An unavailable pod may be replaced outside its wave. */
  #checkReplaced(zone: Zone, places: readonly Place[], { actor, atMs }: Pick<Commit, 'actor' | 'atMs'>): void {
    const moment = this.#book.momentOf({ actor, atMs });
    const isRepair = places.some((place) => wasDown(place, moment));
    if (!isRepair && this.#isOfTemplates(actor.sentAtMs ?? atMs)) this.#checkWave(zone, places, moment, actor);
    for (const place of places) this.#replaced.add(place);
  }

  /** Returns whether a request of this time belongs to a run to the current templates. */
  #isOfTemplates(sentAtMs: number): boolean {
    const { zones, terms, runs } = this.#book;
    const { target = {} } = runs.latest() ?? {};
    const isTarget = ({ statefulSet, facts }: Zone): boolean => {
      const revision = target[terms.zoneName(statefulSet)];
      return revision === undefined || revision === facts.latest()?.updateRevision;
    };
    return sentAtMs >= this.#startMs && Object.keys(target).length > 0 && zones.every(isTarget);
  }

  #checkWave(zone: Zone, places: readonly Place[], moment: Moment, actor: Actor): void {
    const { scene, terms, zones } = this.#book;
    const revision = zone.facts.latest()?.updateRevision;
    const isOutdated = places.every(({ pod }) => pod !== undefined && revisionLabelOf(pod) !== revision);
    // The decision may have seen the waves before or after a change.
    if (this.#book.waves.since(moment.fromMs).length > 1) return;
    if (this.#waves.length === 0 || !isOutdated || !terms.wasMember(zone.statefulSet, moment.fromMs)) return;
    const isReturn = this.#isReturn(zone);
    // Before other zones roll, also those that keep pods from before the change, the zones that return may do so in any order.
    if (isReturn && !zones.every((one) => one === zone || this.#returned.has(one) || isUpdated(one))) return;
    const replicas = Math.max(...zone.facts.since(moment.fromMs).map((facts) => facts?.replicas ?? 0));
    const count = this.#updated(zone, places, moment) + places.length;
    const letter = letterOf(zones.indexOf(zone));
    const index = this.#waveWith(letter, { replicas, count, isBack: this.#hadRevision(zone, revision ?? '') });
    const what = `${actor.process ?? ''} replaces ${named(places)}`;
    const why = index < 0 ? 'no wave includes it' : this.#missing(index, { ...moment, isReturn });
    if (why !== undefined) scene.violated('S37', `${what}${index < 0 ? '' : ` in ${waveName(index)}`}, and ${why}`);
    this.#begun.add(index);
    // A wave that was filled does not end again, for example after a decrease of the replicas removed its pods.
    if (!this.#filledMs.has(index)) this.#lastMs.set(index, moment.fromMs);
  }

  /** Returns the index of the wave that includes this number of pods of the zone; a negative number without such a wave. */
  #waveWith(letter: string, { replicas, count, isBack }: { replicas: number; count: number; isBack: boolean }): number {
    const including = this.#waves.findIndex((wave) => wave.zones.includes(letter) && targetOf(wave, replicas) >= count);
    if (including >= 0 || !isBack) return including;
    // A return takes every pod: the last wave of the zone has the pods that no wave updates.
    const last = this.#waves.findLastIndex((wave) => wave.zones.includes(letter));
    return last < 0 ? this.#waves.length - 1 : last;
  }

  /** Returns how many other pods of the zone every decision counts as replaced. */
  #updated(zone: Zone, places: readonly Place[], moment: Moment): number {
    const down = new Set(unavailableIn(this.#book, zone, moment));
    const revision = zone.facts.latest()?.updateRevision;
    return [...zone.places.values()].filter((place) => {
      const { pod } = place;
      if (places.includes(place) || !isInRange(place)) return false;
      if (pod === undefined || isTerminating(pod)) return this.#replaced.has(place) || down.has(place);
      const isOld = (instantAt(pod, 'metadata', 'creationTimestamp') ?? 0) <= moment.fromMs;
      return revisionLabelOf(pod) === revision && (isOld || this.#replaced.has(place));
    }).length;
  }

  /** Returns, as part of a sentence, what the wave still lacks; undefined if it may have begun. */
  #missing(index: number, moment: Replacement): string | undefined {
    let enteredMs = this.#startMs;
    for (let before = 0; before < index; before += 1) {
      const end = this.#endOf(before, enteredMs, moment);
      if (typeof end === 'string') return end;
      enteredMs = end;
    }
    const aheadMs = enteredMs - moment.atMs - this.#slackMs();
    if (aheadMs > 0) return `the soak of ${waveName(index - 1)} lasts ${aheadMs} ms longer`;
    // The wave may be over, so that this pod was updated and is outdated again.
    if (this.#begun.has(index) || this.#filledMs.has(index)) return undefined;
    const { gates = [], approvals = [] } = this.#waves[index] ?? {};
    // The wave in which the run was when the waves changed may have begun before.
    const isContinued = this.#changed?.next === index;
    const isChecked = gates.includes('before') && !isContinued && !moment.isReturn && !this.#isPromoted(index, moment);
    if (isChecked && this.#passedMs(enteredMs) === undefined) return `the gate before ${waveName(index)} has not passed`;
    const isMissing = approvals.includes('before') && this.#approvedMs(index, moment) === undefined;
    return isMissing ? `${waveName(index)} is not approved` : undefined;
  }

  /** Returns the earliest time at which the wave may have ended, or the reason why it has not. */
  #endOf(index: number, enteredMs: number, moment: Replacement): number | string {
    const wave = this.#waves[index];
    const filledMs = this.#filledMs.get(index);
    if (wave === undefined || filledMs === undefined) return `${waveName(index)} does not have its pods`;
    const doneMs = Math.max(enteredMs, filledMs);
    // A wave of these pods may have ended before the waves changed.
    if (this.#changed?.filled.has(index) === true) return enteredMs;
    const isPromoted = this.#isPromoted(index, moment);
    const soakMs = !isPromoted && !moment.isReturn && !this.#isSoaked(index) ? 1000 * (wave.soakSeconds ?? 0) : 0;
    const isChecked = !isPromoted && !moment.isReturn && wave.gates?.includes('after') === true;
    const passedMs = isChecked ? this.#passedMs(doneMs) : doneMs;
    if (passedMs === undefined) return `the gate after ${waveName(index)} has not passed`;
    const approvedMs = wave.approvals?.includes('after') === true ? this.#approvedMs(index, moment, this.#lastMs.get(index)) : doneMs;
    return approvedMs === undefined ? `the end of ${waveName(index)} is not approved` : Math.max(doneMs + soakMs, passedMs, approvedMs);
  }

  /** Returns the time since which enough people have approved the wave in this run; undefined if they have not, or if a person rejects it. */
  #approvedMs(index: number, moment: Replacement, sinceMs = Number.NEGATIVE_INFINITY): number | undefined {
    if (moment.isReturn) return Number.NEGATIVE_INFINITY;
    const requests = this.#requestsFor(index, moment);
    if (requests.some((one) => one.action === 'reject' && this.#isInForce(index, one, moment))) return undefined;
    // An approval is of the waves that its requester saw.
    const { atMs: changedMs, isKnown } = this.#changed ?? { atMs: sinceMs, isKnown: true };
    const fromMs = isKnown ? sinceMs : Math.max(sinceMs, changedMs);
    const recent = requests.filter((one) => one.action === 'approve' && one.atMs + this.#slackMs() >= fromMs && this.#isInTime(index, one));
    const approvals = [...new Map(recent.map(({ user, atMs }) => [user, atMs])).values()];
    return approvals.sort((one, other) => one - other)[(this.#waves[index]?.approvers ?? 1) - 1];
  }

  /** Returns whether a rejection blocks. A rejection of a wave that has ended stops nothing: perhaps the decision that ended it did not know it. */
  #isInForce(index: number, request: WaveRequest, moment: Moment): boolean {
    const { atMs, runWave, deletedMs } = request;
    const isMissed = this.#leavingsOf(index, request).some((leaving) => leaving.fromMs <= atMs && atMs <= leaving.atMs);
    return runWave <= index && atMs <= moment.fromMs && deletedMs > moment.atMs && !isMissed;
  }

  /** Returns whether the decision that ended the wave may have seen the approval: it still existed. */
  #isInTime(index: number, request: WaveRequest): boolean {
    const last = this.#leavingsOf(index, request).at(-1);
    return last === undefined || request.deletedMs >= last.fromMs;
  }

  /** Returns the requests about the wave that the decision may have seen, in a run that it may have read. */
  #requestsFor(index: number, moment: Moment): readonly WaveRequest[] {
    const runs = this.#book.runs.since(moment.fromMs).map((run) => run?.id);
    return this.#requests.filter(({ wave, runId, atMs }) => wave === waveName(index) && runs.includes(runId) && atMs <= moment.atMs);
  }

  #isPromoted(index: number, moment: Moment): boolean {
    return this.#requestsFor(index, moment).some(({ action }) => action === 'promote');
  }

  #passedMs(sinceMs: number): number | undefined {
    return this.#passes.find(({ fromMs }) => fromMs >= sinceMs - this.#slackMs())?.atMs;
  }

  #hadRevision(zone: Zone, revision: string): boolean {
    return this.#had.get(zone)?.has(revision) === true;
  }

  /** Returns whether the zone needs no soaks, gates and approvals: it had its update revision, and a zone of the group returned to such a revision. */
  #isReturn(zone: Zone): boolean {
    const mayReturn = this.#book.scene.group.soaksOnReturn !== true && this.#returned.size > 0;
    return mayReturn && this.#hadRevision(zone, zone.facts.latest()?.updateRevision ?? '');
  }

  /** Returns whether an earlier wave soaked the same pods, so that this wave does not soak them again. */
  #isSoaked(index: number): boolean {
    const { zones } = this.#book;
    const { zones: own = [], soakSeconds = 0, ...wave } = this.#waves[index] ?? { zones: [] };
    return own.every((letter) => {
      const replicas = zones[letter.charCodeAt(0) - 97]?.facts.latest()?.replicas ?? 0;
      return this.#waves
        .slice(0, index)
        .some(
          (one) =>
            one.zones.includes(letter) &&
            (one.soakSeconds ?? 0) >= soakSeconds &&
            targetOf(one, replicas) >= targetOf({ zones: own, ...wave }, replicas),
        );
    });
  }
}

/** Returns a text that is the same for equal waves. */
function textOf(waves: readonly WaveShape[]): string {
  return JSON.stringify(
    waves.map(({ zones, pods, percent, soakSeconds, gates = [], approvals = [], approvers = 1 }) => [
      ...[zones, pods, percent, soakSeconds, gates, approvals, approvals.length === 0 ? 0 : approvers],
    ]),
  );
}

function podsIn({ places }: Zone): readonly ModelObject[] {
  return [...places.values()].flatMap(({ pod }) => pod ?? []);
}

function isUpdated(zone: Zone): boolean {
  return podsIn(zone).every((pod) => revisionLabelOf(pod) === zone.facts.latest()?.updateRevision);
}

/** The age of the oldest state that a decision may use. */
const snapshotAgeMs = 10_000;
