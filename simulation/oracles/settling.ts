// Judges the end of a simulation by L1, L2, L6, L8, L9, L10 and L12. The group must reach and keep its requested state. Agents must react
// and retry in time, and finally write nothing.
import type { TurnReport } from '../../agent/report.ts';
import {
  areContainersReady,
  configMapResource,
  controllerOf,
  field,
  groupResource,
  intentResource,
  isAgent,
  isTerminating,
  leaseResource,
  listAt,
  numberAt,
  parsed,
  podResource,
  readyCondition,
  revisionLabelOf,
  statefulSetResource,
  textAt,
} from '../objects.ts';
import type { Answered, Commit } from '../server/request.ts';
import { openWork } from './converged.ts';
import type { Oracle, Scene } from './oracle.ts';

/** The time in which records of finished work may follow: the run record, the published decision, Events, a status. */
const afterworkMs = 60_000;
const publishedWithinMs = 60_000;
/** The longest time after the end of faults until a leader exists and knows every object. */
const steadyMs = 45_000;
/** The time after the first successful turn of the leader in which it may still read objects again. */
const firstReadsMs = 3_000;
/** The time within which a change must then cause a turn. */
const wakeMs = 15_000;
/** The longest time between two turns of an unfinished group: the longest pause (five minutes) and a turn. */
const longestPauseMs = 330_000;
/** The time within which a failed turn is repeated: a minute, a delay that a server requested during the faults, and a turn. */
const retriedMs = 120_000;
/** The time within which turns succeed again. */
const failingMs = 150_000;
/** The time after the end of faults within which a silent watch is closed: 90 s without a bookmark, and 10 s of tolerance. */
const givenUpMs = 100_000;
/** The interval of the convergence check without commits, because a pod becomes available without a commit. */
const checkEveryMs = 5_000;

/** The judge of the end. It reports violations only after the faults have ended. */
export class SettlingJudge implements Oracle {
  readonly #scene: Scene;
  #healingMs = Number.POSITIVE_INFINITY;
  /** The time from which each change must cause a turn. */
  #steadyMs = Number.POSITIVE_INFINITY;
  /** The time since which no work is left. */
  #convergedMs: number | undefined;
  /** The time of the first turn that reported that no work is left. */
  #doneMs: number | undefined;
  /** The last time at which a watch was dead. Once the agent has closed such a watch, it publishes the changes that the watch hid. */
  #deadMs = 0;
  #isDirty = true;
  #checkedMs = 0;
  #lastTurnMs = 0;
  /** Until this time the group needs no turn: the end of the wait in its last decision; for a generated group, the end of its last turn. */
  #dueMs = 0;
  /** The first and the last change after which no turn has begun. */
  #unseen: { readonly firstMs: number; readonly lastMs: number; readonly what: string } | undefined;
  #waiting: { readonly sinceMs: number; readonly report: TurnReport } | undefined;
  /** The last failed turn of the leader, and the first one since a turn succeeded. */
  #failed: { readonly process: string; readonly sinceMs: number; readonly atMs: number } | undefined;
  readonly #reported = new Set<string>();

  constructor(scene: Scene) {
    this.#scene = scene;
  }

  committed(commit: Commit): void {
    // A new leader takes its own turn, so the failed turn of the former leader no longer counts.
    if (commit.resource === leaseResource && textAt(commit.after, 'spec', 'holderIdentity') !== this.#failed?.process)
      this.#failed = undefined;
    if (!this.#isHealing()) return;
    const { resource, after, actor, atMs } = commit;
    const scene = this.#scene;
    const isOurs = isAgent(actor, scene.agentUser);
    if (isOurs) this.#checkStay(commit);
    else if (isDemand(commit)) this.#convergedMs = undefined;
    const what = isOurs || after.metadata.namespace !== scene.namespace ? undefined : wakingChange(commit, scene.group.kind === 'adopted');
    // While a watch is dead, the agent cannot know of a change. L8 checks that the agent closes the watch.
    if (what !== undefined && atMs >= this.#steadyMs && scene.isWatchDead?.() !== true) {
      this.#unseen = { firstMs: this.#unseen?.firstMs ?? atMs, lastMs: atMs, what: this.#unseen?.what ?? what };
    }
    if (resource === podResource || resource === statefulSetResource || resource === configMapResource) this.#isDirty = true;
    this.#check();
  }

  answered({ verb, resource, subresource, name, request, atMs, isDryRun }: Answered): void {
    if (!this.#isHealing()) return;
    this.#check();
    const isWrite = verb !== 'get' && verb !== 'list' && !isDryRun && resource !== leaseResource && !resource.includes('reviews');
    if (!isWrite || !isAgent(request.actor, this.#scene.agentUser) || this.#convergedMs === undefined) return;
    const quietMs = atMs - Math.max(this.#convergedMs, this.#doneMs ?? atMs, this.#deadMs);
    if (quietMs < afterworkMs) return;
    const what = `${request.actor.process ?? ''}: ${verb} ${resource}${subresource === '' ? '' : `/${subresource}`} ${name}`;
    this.#report('L2', `${what}, ${Math.round(quietMs)} ms after nothing was left to do`);
  }

  turnEnded(process: string, report: TurnReport): void {
    const nowMs = this.#scene.nowMs();
    this.#lastTurnMs = nowMs;
    this.#dueMs = this.#scene.isGiven === true ? nowMs + waitOf(report) : nowMs;
    this.#noteWait(report, nowMs);
    this.#noteFailure(process, report, nowMs);
    if (!this.#isHealing()) return;
    // The leader may have read a claim that it did not know yet.
    this.#isDirty = true;
    if (report.decision !== undefined && report.error === undefined && this.#isLeading(process))
      this.#steadyMs = Math.min(this.#steadyMs, nowMs + firstReadsMs);
    if (report.decision?.outcome === 'done' && this.#convergedMs !== undefined) this.#doneMs ??= nowMs;
    // All clocks are correct since the end of the faults.
    const begunMs = nowMs - report.durationMs;
    const unseen = this.#unseen;
    if (unseen !== undefined && begunMs >= unseen.lastMs) this.#unseen = undefined;
    else if (unseen !== undefined && begunMs >= unseen.firstMs) this.#unseen = { ...unseen, firstMs: unseen.lastMs };
    this.#check();
  }

  healingBegan(): void {
    this.#healingMs = this.#scene.nowMs();
    this.#steadyMs = this.#healingMs + steadyMs;
    this.#lastTurnMs = this.#healingMs;
    if (this.#failed !== undefined) this.#failed = { ...this.#failed, sinceMs: this.#healingMs, atMs: this.#healingMs };
    this.#waiting = undefined;
  }

  ended(): void {
    if (!this.#isHealing()) return;
    this.#isDirty = true;
    this.#check();
    const left = openWork(this.#scene, this.#scene.statefulSets);
    if (left !== undefined && !this.#isPaused()) {
      const stuck = this.#stuckPod();
      if (stuck === undefined) this.#report('L1', `at the end ${left}`);
      else this.#report('L6', `at the end ${stuck} is still unavailable at a revision that is no longer requested`);
    }
    const published = left === undefined ? this.#published() : undefined;
    const outcome = field(published, 'outcome');
    if (published !== undefined && outcome !== 'done')
      this.#report('L9', `at the end nothing is left to do, and the published outcome is ${String(outcome)}`);
    if (left === undefined && published === undefined && this.#waiting !== undefined) this.#report('L9', 'at the end nothing is published');
  }

  #isHealing(): boolean {
    return this.#healingMs < Number.POSITIVE_INFINITY;
  }

  #report(invariant: string, message: string): void {
    if (this.#reported.has(invariant)) return;
    this.#reported.add(invariant);
    this.#scene.violated(invariant, message);
  }

  /** Checks every deadline. */
  #check(): void {
    const nowMs = this.#scene.nowMs();
    const isWatchDead = this.#scene.isWatchDead?.() === true;
    if (isWatchDead) this.#deadMs = nowMs;
    if (this.#isDirty || (this.#convergedMs === undefined && nowMs - this.#checkedMs >= checkEveryMs)) {
      this.#isDirty = false;
      this.#checkedMs = nowMs;
      const isDone = openWork(this.#scene, this.#scene.statefulSets) === undefined;
      this.#convergedMs = isDone ? (this.#convergedMs ?? nowMs) : undefined;
      if (!isDone) this.#doneMs = undefined;
    }
    const { firstMs, what } = this.#unseen ?? { firstMs: nowMs, what: '' };
    if (nowMs - firstMs > wakeMs) {
      this.#unseen = undefined;
      this.#report('L10', `no turn has begun for ${Math.round(nowMs - firstMs)} ms since ${what}`);
    }
    if (this.#convergedMs === undefined && nowMs - Math.max(this.#lastTurnMs, this.#dueMs) > longestPauseMs) {
      this.#report('L12', `the group has had no turn for ${Math.round(nowMs - this.#lastTurnMs)} ms, and is not done`);
    }
    this.#checkRetried(nowMs);
    if (nowMs > this.#healingMs + givenUpMs && isWatchDead)
      this.#report('L8', `a watch that died during the faults is still open ${Math.round(nowMs - this.#healingMs)} ms after their end`);
    this.#checkPublished(nowMs);
  }

  #noteFailure(process: string, { error }: TurnReport, atMs: number): void {
    const before = this.#failed?.process === process ? this.#failed : undefined;
    if (error !== undefined && this.#isLeading(process)) this.#failed = { process, sinceMs: before?.sinceMs ?? atMs, atMs };
    else if (this.#failed?.process === process) this.#failed = undefined;
  }

  #isLeading(process: string): boolean {
    return this.#scene.list(leaseResource).some((lease) => textAt(lease, 'spec', 'holderIdentity') === process);
  }

  /** Checks L8: the leader retries a failed turn soon after the faults, and then succeeds. */
  #checkRetried(nowMs: number): void {
    if (this.#failed === undefined) return;
    const { process, atMs, sinceMs } = this.#failed;
    if (nowMs - sinceMs > failingMs) this.#report('L8', `every turn of ${process} has failed for ${Math.round(nowMs - sinceMs)} ms`);
    if (nowMs - atMs <= retriedMs) return;
    this.#failed = undefined;
    this.#report('L8', `${process} has not retried its failed turn within ${Math.round(nowMs - atMs)} ms`);
  }

  #checkStay(commit: Commit): void {
    const { resource, before, after, type, actor } = commit;
    if (this.#convergedMs === undefined || this.#isPaused()) return;
    const isGone =
      resource === podResource && (type === 'DELETED' || (isTerminating(after) && before !== undefined && !isTerminating(before)));
    const isScaled = resource === statefulSetResource && numberAt(before, 'spec', 'replicas') !== numberAt(after, 'spec', 'replicas');
    if (isGone || isScaled) this.#report('L1', `${actor.process ?? ''} changes ${after.metadata.name} although nothing was left to do`);
  }

  #noteWait(report: TurnReport, nowMs: number): void {
    const { decision } = report;
    if (decision === undefined) return;
    const isWaiting = decision.outcome === 'wait' || decision.outcome === 'blocked';
    if (!isWaiting) this.#waiting = undefined;
    else {
      const isSame = this.#waiting?.report.decision?.outcome === decision.outcome;
      this.#waiting = { sinceMs: isSame ? (this.#waiting?.sinceMs ?? nowMs) : nowMs, report };
    }
  }

  #checkPublished(nowMs: number): void {
    const { sinceMs, report } = this.#waiting ?? {};
    if (sinceMs === undefined || report === undefined || nowMs - sinceMs < publishedWithinMs) return;
    const published = this.#published();
    const outcome = field(published, 'outcome');
    const isPublished = outcome === report.decision?.outcome && listAt(published, 'waits').length > 0;
    const name = `${report.group.namespace}/${report.group.name}`;
    if (!isPublished)
      this.#report(
        'L9',
        `${name} has not progressed for ${Math.round(nowMs - sinceMs)} ms (${report.decision?.outcome}), and the published outcome is ${String(outcome)}`,
      );
    this.#waiting = { sinceMs: nowMs, report };
  }

  /** Returns the published decision of the group; undefined if none is published. */
  #published(): unknown {
    const scene = this.#scene;
    for (const object of scene.list(groupResource, scene.namespace)) {
      const decision = field(object, 'status', 'decision');
      if (decision !== undefined) return decision;
    }
    const map = scene.list(configMapResource, scene.namespace).find(({ metadata }) => metadata.name.startsWith('rollout-status-'));
    return parsed(textAt(map, 'data', 'decision'));
  }

  #isPaused(): boolean {
    return this.#scene
      .list(intentResource, this.#scene.namespace)
      .some((intent) => ['pause', 'hold'].includes(textAt(intent, 'spec', 'action') ?? ''));
  }

  /** Returns the name of an unready pod at a revision that is no longer requested. */
  #stuckPod(): string | undefined {
    for (const name of this.#scene.statefulSets) {
      const set = this.#scene.get(statefulSetResource, this.#scene.namespace, name);
      const target = textAt(set, 'status', 'updateRevision');
      const stuck = this.#scene
        .list(podResource, this.#scene.namespace)
        .find(
          (pod) =>
            controllerOf(pod) === set?.metadata.uid &&
            revisionLabelOf(pod) !== target &&
            !readyCondition(pod).isTrue &&
            !isTerminating(pod),
        );
      if (stuck !== undefined) return stuck.metadata.name;
    }
    return undefined;
  }
}

/** Returns how long the group may have no turn, because its decision waits for a window, a soak or a person. */
function waitOf({ decision, snapshot }: TurnReport): number {
  if (decision === undefined || decision.outcome === 'act') return 0;
  return decision.wakeAtMs === undefined ? Number.POSITIVE_INFINITY : Math.max(0, decision.wakeAtMs - snapshot.nowMs);
}

function isDemand({ resource, before, after }: Commit): boolean {
  if (resource === podResource || resource === configMapResource || resource === leaseResource) return false;
  return before === undefined || JSON.stringify(before['spec']) !== JSON.stringify(after['spec']);
}

/** Returns a description of the change if a group must react to it; else undefined. */
function wakingChange({ resource, before, after, type }: Commit, isAdopted: boolean): string | undefined {
  const { name } = after.metadata;
  if (resource === intentResource) return `the change of RolloutIntent ${name}`;
  if (resource === statefulSetResource) {
    const essence = (set: unknown): string =>
      JSON.stringify([
        numberAt(set, 'spec', 'replicas'),
        textAt(set, 'status', 'updateRevision'),
        numberAt(set, 'status', 'observedGeneration'),
      ]);
    return before === undefined || essence(before) !== essence(after) ? `the change of StatefulSet ${name}` : undefined;
  }
  if (resource !== podResource) return undefined;
  const isUp = (pod: typeof after): boolean => (isAdopted ? areContainersReady(pod) : readyCondition(pod).isTrue);
  if (type === 'DELETED') return `the deletion of ${name}`;
  return before === undefined || isUp(before) !== isUp(after) || isTerminating(before) !== isTerminating(after)
    ? `the change of ${name}`
    : undefined;
}
