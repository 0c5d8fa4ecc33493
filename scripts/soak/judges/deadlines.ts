// Judges the deadline for progress (S38): a run fails when a replaced pod has stayed unavailable for so long, and no pod made progress.
import type { TurnReport } from '../../../agent/report.ts';
import { intentResource, isTerminating, podResource, readyCondition, revisionLabelOf, textAt } from '../../../simulation/objects.ts';
import { disruptedByUs } from '../../../simulation/oracles/availability.ts';
import { longestMs, type Oracle, WallErrors } from '../../../simulation/oracles/oracle.ts';
import { exposedByUs } from '../../../simulation/oracles/partitions.ts';
import { type Book, isInRange, isOpen, type Place } from '../../../simulation/oracles/places.ts';
import type { Commit } from '../../../simulation/server/request.ts';

/** The age of the oldest state of a decision, and the precision of recorded times. */
const toleranceMs = 12_000;

/** Creates the judge. It sees each commit before the book records it. */
export function judgeDeadlines(book: Book): Oracle {
  const { deadlineSeconds } = book.scene.group;
  return deadlineSeconds === undefined || book.scene.isGiven === true ? {} : new DeadlineJudge(book, deadlineSeconds * 1000);
}

class DeadlineJudge implements Oracle {
  readonly #book: Book;
  readonly #deadlineMs: number;
  /** The last progress: a new run, a retry, a replacement, or an updated pod that becomes ready. */
  #progressMs = 0;
  #runId: string | undefined;
  readonly #clocks: WallErrors;
  #reported = '';
  /** The last time at which the pod of each name was at another revision than the target, so that it waited for its replacement. */
  readonly #outdatedMs = new Map<string, number>();

  constructor(book: Book, deadlineMs: number) {
    this.#book = book;
    this.#clocks = new WallErrors(book.scene);
    this.#deadlineMs = deadlineMs;
  }

  committed(commit: Commit): void {
    this.#clocks.note(commit.actor.process);
    this.#noteRun(commit.atMs);
    this.#noteOutdated(commit);
    if (this.#isProgress(commit)) this.#progressMs = commit.atMs;
  }

  turnEnded(process: string, { decision, error }: TurnReport): void {
    this.#clocks.note(process);
    const { runs, scene } = this.#book;
    this.#noteRun(scene.nowMs());
    const run = decision?.run;
    const stored = runs.latest();
    if (run?.outcome !== 'running' || error !== undefined || stored?.id !== run.id || stored.outcome !== 'running') return;
    // The wall clocks of agents may have run apart since the last progress, and a turn may decide by an older snapshot.
    const tolerance = { process, countedMs: toleranceMs, untilMs: scene.nowMs() };
    const slackMs = this.#clocks.spreadMs + longestMs(scene, tolerance);
    const ageMs = scene.nowMs() - this.#progressMs;
    // A decision that cannot read a zone does not know whether its pods have come back.
    const unread = new Set(decision?.zones.flatMap((zone) => (zone.unread === undefined ? [] : [zone.statefulSet])));
    const stuck = ageMs - slackMs < this.#deadlineMs ? undefined : this.#stuckPlace(scene.nowMs() - this.#deadlineMs, unread);
    if (stuck === undefined || this.#reported === run.id) return;
    this.#reported = run.id;
    const what = `${stuck.zone.statefulSet}-${stuck.ordinal} has not come back for ${Math.round(ageMs)} ms`;
    scene.violated('S38', `${process} goes on with run ${run.id}, and ${what}, with a deadline of ${this.#deadlineMs / 1000} s`);
  }

  /** Records the start of another run. */
  #noteRun(atMs: number): void {
    const runId = this.#book.runs.latest()?.id;
    if (runId !== this.#runId) this.#progressMs = atMs;
    this.#runId = runId;
  }

  #noteOutdated({ resource, before, after, atMs }: Commit): void {
    const { scene } = this.#book;
    const place = resource === podResource && after.metadata.namespace === scene.namespace ? this.#book.placeOfPod(after) : undefined;
    if (place === undefined) return;
    const targets = this.#book.targetsSince(place.zone, atMs);
    const isOutdated = [before, after].some((pod) => pod !== undefined && !isTerminating(pod) && !targets.includes(revisionLabelOf(pod)));
    if (isOutdated) this.#outdatedMs.set(after.metadata.name, atMs);
  }

  #isProgress(commit: Commit): boolean {
    const { resource, before, after } = commit;
    if (resource === intentResource) return textAt(after, 'spec', 'action') === 'retry';
    if (resource === podResource && before !== undefined && readyCondition(after).isTrue && !readyCondition(before).isTrue) return true;
    return disruptedByUs(this.#book, commit) !== undefined || exposedByUs(this.#book, commit).length > 0;
  }

  /** Returns a place whose pod an agent replaced, and that has had no available pod since the time. Leaves out the unread StatefulSets. */
  #stuckPlace(sinceMs: number, unread: ReadonlySet<string>): Place | undefined {
    const { zones, terms, scene } = this.#book;
    const nowMs = scene.nowMs();
    return zones
      .filter(({ statefulSet }) => !unread.has(statefulSet) && terms.wasMember(statefulSet, sinceMs))
      .filter(({ facts }) => !facts.since(sinceMs).includes(undefined))
      .flatMap(({ places }) => [...places.values()])
      .find((place) => {
        const { pod, downSinceMs, upAtMs, zone } = place;
        if (!isOpen(place, nowMs) || !isInRange(place)) return false;
        const targets = this.#book.targetsSince(zone, nowMs);
        // A pod that is outdated again, or that a stale controller created, waits for its replacement. Such a controller may do so repeatedly.
        const isTarget = pod === undefined || isTerminating(pod) || targets.includes(revisionLabelOf(pod));
        const outdatedMs = this.#outdatedMs.get(`${zone.statefulSet}-${place.ordinal}`) ?? Number.NEGATIVE_INFINITY;
        return (
          isTarget &&
          outdatedMs <= sinceMs &&
          downSinceMs !== undefined &&
          downSinceMs <= sinceMs &&
          nowMs < upAtMs &&
          place.requiredSinceMs <= sinceMs
        );
      });
  }
}
