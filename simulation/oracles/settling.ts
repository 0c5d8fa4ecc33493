// Judges the end: the group reaches its state and keeps it, then everything is quiet, and nothing is forgotten before (L1, L2, L6, L8, L9,
// L10, L12).
import type { TurnReport } from '../../agent/report.ts';
import type { Answered, Commit } from '../server/request.ts';
import { whatIsLeft } from './converged.ts';
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
} from './objects.ts';
import { machineOf, type Oracle, type Scene } from './oracle.ts';

/** Records of finished work may follow by this time: the run record, the published decision, Events, a status. */
const afterworkMs = 60_000;
/** A wait must be visible within this time. */
const toldMs = 60_000;
/** Earliest and latest time after the end of faults at which a leader exists and has seen a change. */
const steadyMs = 45_000;
const wakeMs = 15_000;
/** The longest pause between two attempts (five minutes), and a turn. */
const longestPauseMs = 330_000;
/** A minute, a delay that a server requested before the repair, and a turn: a failed turn is repeated this soon. */
const retriedMs = 120_000;
/** Time after the end of faults in which a silent watch is detected: a minute and a half without a bookmark, with slack. */
const givenUpMs = 100_000;
/** Interval of the convergence check without events, because time makes pods available. */
const lookEveryMs = 5_000;

/** Receives everything; reports only after all repairs. */
export function judgeSettling(scene: Scene): Oracle {
  return new SettlingJudge(scene);
}

class SettlingJudge implements Oracle {
  readonly #scene: Scene;
  #healingMs = Number.POSITIVE_INFINITY;
  /** Time since which no work is left. */
  #convergedMs: number | undefined;
  /** Time of the turn that reported it. */
  #doneMs: number | undefined;
  #isDirty = true;
  #lookedMs = 0;
  #lastTurnMs = 0;
  /** Latest next turn of a user's own group without further changes. */
  #dueMs = 0;
  /** Changes without a later turn: the first and the last. */
  #unseen: { readonly firstMs: number; readonly lastMs: number; readonly what: string } | undefined;
  #waiting: { readonly sinceMs: number; readonly report: TurnReport } | undefined;
  /** The last failed turn of the leader, and its process. */
  #failed: { readonly process: string; readonly atMs: number } | undefined;
  /** Reported once. */
  readonly #said = new Set<string>();

  constructor(scene: Scene) {
    this.#scene = scene;
  }

  committed(commit: Commit): void {
    // A new leader begins with its own turn.
    if (commit.resource === leaseResource && textAt(commit.after, 'spec', 'holderIdentity') !== this.#failed?.process)
      this.#failed = undefined;
    if (!this.#isHealing()) return;
    const { resource, after, actor, atMs } = commit;
    const scene = this.#scene;
    const isOurs = isAgent(actor, scene.agentUser);
    if (isOurs) this.#checkStay(commit);
    else if (isDemand(commit)) this.#convergedMs = undefined;
    const what = isOurs || after.metadata.namespace !== scene.namespace ? undefined : wakingChange(commit, scene.group.kind === 'adopted');
    // A change on a dead watch is unknown until L8 makes the agent give it up.
    if (what !== undefined && atMs >= this.#healingMs + steadyMs && scene.isWatchDead?.() !== true) {
      this.#unseen = { firstMs: this.#unseen?.firstMs ?? atMs, lastMs: atMs, what: this.#unseen?.what ?? what };
    }
    if (resource === podResource || resource === statefulSetResource || resource === configMapResource) this.#isDirty = true;
    this.#look();
  }

  answered({ verb, resource, subresource, name, request, atMs, isDryRun }: Answered): void {
    if (!this.#isHealing()) return;
    this.#look();
    const isWrite = verb !== 'get' && verb !== 'list' && !isDryRun && resource !== leaseResource && !resource.includes('reviews');
    if (!isWrite || !isAgent(request.actor, this.#scene.agentUser) || this.#convergedMs === undefined) return;
    const quietMs = atMs - Math.max(this.#convergedMs, this.#doneMs ?? atMs);
    if (quietMs < afterworkMs) return;
    const what = `${request.actor.process ?? ''}: ${verb} ${resource}${subresource === '' ? '' : `/${subresource}`} ${name}`;
    this.#say('L2', `${what}, ${Math.round(quietMs)} ms after nothing was left to do`);
  }

  turnEnded(process: string, report: TurnReport): void {
    const nowMs = this.#scene.nowMs();
    this.#lastTurnMs = nowMs;
    this.#dueMs = this.#scene.isGiven === true ? nowMs + waitOf(report) : nowMs;
    this.#noteWait(report, nowMs);
    this.#noteFailure(process, report, nowMs);
    if (!this.#isHealing()) return;
    if (report.decision?.outcome === 'done' && this.#convergedMs !== undefined) this.#doneMs ??= nowMs;
    const begunMs = nowMs - report.durationMs / machineOf(this.#scene, process).rate;
    const unseen = this.#unseen;
    if (unseen !== undefined && begunMs >= unseen.lastMs) this.#unseen = undefined;
    else if (unseen !== undefined && begunMs >= unseen.firstMs) this.#unseen = { ...unseen, firstMs: unseen.lastMs };
    this.#look();
  }

  healingBegan(): void {
    this.#healingMs = this.#scene.nowMs();
    this.#lastTurnMs = this.#healingMs;
    if (this.#failed !== undefined) this.#failed = { ...this.#failed, atMs: this.#healingMs };
    this.#waiting = undefined;
  }

  ended(): void {
    if (!this.#isHealing()) return;
    this.#isDirty = true;
    this.#look();
    const left = whatIsLeft(this.#scene, this.#scene.statefulSets);
    if (left !== undefined && !this.#isPaused()) {
      const stuck = this.#stuckPod();
      if (stuck === undefined) this.#say('L1', `at the end ${left}`);
      else this.#say('L6', `at the end ${stuck} still runs a revision that does not become ready, although another one is asked for`);
    }
    const published = left === undefined ? this.#published() : undefined;
    const outcome = field(published, 'outcome');
    if (published !== undefined && outcome !== 'done')
      this.#say('L9', `at the end nothing is left to do, and what is published says ${String(outcome)}`);
    if (left === undefined && published === undefined && this.#waiting !== undefined) this.#say('L9', 'at the end nothing is published');
  }

  #isHealing(): boolean {
    return this.#healingMs < Number.POSITIVE_INFINITY;
  }

  #say(invariant: string, message: string): void {
    if (this.#said.has(invariant)) return;
    this.#said.add(invariant);
    this.#scene.violated(invariant, message);
  }

  /** Checks every deadline. */
  #look(): void {
    const nowMs = this.#scene.nowMs();
    if (this.#isDirty || (this.#convergedMs === undefined && nowMs - this.#lookedMs >= lookEveryMs)) {
      this.#isDirty = false;
      this.#lookedMs = nowMs;
      const isDone = whatIsLeft(this.#scene, this.#scene.statefulSets) === undefined;
      this.#convergedMs = isDone ? (this.#convergedMs ?? nowMs) : undefined;
      if (!isDone) this.#doneMs = undefined;
    }
    const { firstMs, what } = this.#unseen ?? { firstMs: nowMs, what: '' };
    if (nowMs - firstMs > wakeMs) {
      this.#unseen = undefined;
      this.#say('L10', `no turn has begun for ${Math.round(nowMs - firstMs)} ms since ${what}`);
    }
    if (this.#convergedMs === undefined && nowMs - Math.max(this.#lastTurnMs, this.#dueMs) > longestPauseMs) {
      this.#say('L12', `the group has had no turn for ${Math.round(nowMs - this.#lastTurnMs)} ms, and is not done`);
    }
    this.#checkRetried(nowMs);
    if (nowMs > this.#healingMs + givenUpMs && this.#scene.isWatchDead?.() === true)
      this.#say('L8', `a watch that died while things went wrong is still open ${Math.round(nowMs - this.#healingMs)} ms later`);
    this.#checkTold(nowMs);
  }

  #noteFailure(process: string, { error }: TurnReport, atMs: number): void {
    const isLeading = this.#scene.list(leaseResource).some((lease) => textAt(lease, 'spec', 'holderIdentity') === process);
    if (error !== undefined && isLeading) this.#failed = { process, atMs };
    else if (this.#failed?.process === process) this.#failed = undefined;
  }

  /** L8: a process that was blocked by an outage resumes soon after it. */
  #checkRetried(nowMs: number): void {
    if (this.#failed === undefined) return;
    const { process, atMs } = this.#failed;
    if (nowMs - atMs <= retriedMs / Math.min(1, machineOf(this.#scene, process).rate)) return;
    this.#failed = undefined;
    this.#say('L8', `${process} has not tried again for ${Math.round(nowMs - atMs)} ms what failed while things went wrong`);
  }

  /** L1: the reached state stays. */
  #checkStay(commit: Commit): void {
    const { resource, before, after, type, actor } = commit;
    if (this.#convergedMs === undefined || this.#isPaused()) return;
    const isGone =
      resource === podResource && (type === 'DELETED' || (isTerminating(after) && before !== undefined && !isTerminating(before)));
    const isScaled = resource === statefulSetResource && numberAt(before, 'spec', 'replicas') !== numberAt(after, 'spec', 'replicas');
    if (isGone || isScaled) this.#say('L1', `${actor.process ?? ''} changes ${after.metadata.name} although nothing was left to do`);
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

  /** L9: every wait has a visible reason. */
  #checkTold(nowMs: number): void {
    const { sinceMs, report } = this.#waiting ?? {};
    if (sinceMs === undefined || report === undefined || nowMs - sinceMs < toldMs) return;
    const published = this.#published();
    const outcome = field(published, 'outcome');
    const isTold = outcome === report.decision?.outcome && listAt(published, 'waits').length > 0;
    const name = `${report.group.namespace}/${report.group.name}`;
    if (!isTold)
      this.#say(
        'L9',
        `${name} has not moved for ${Math.round(nowMs - sinceMs)} ms (${report.decision?.outcome}), and what is published says ${String(outcome)}`,
      );
    this.#waiting = { sinceMs: nowMs, report };
  }

  /** Returns the published decisions of the group, by the name of their objects. */
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
      .some((intent) => ['pause', 'hold', 'abort'].includes(textAt(intent, 'spec', 'action') ?? ''));
  }

  /** Returns an unavailable pod at a revision that is no longer requested. */
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

/** Returns the time without checks: the decision may wait for a window, a soak or a person. */
function waitOf({ decision, snapshot }: TurnReport): number {
  if (decision === undefined || decision.outcome === 'act') return 0;
  return decision.wakeAtMs === undefined ? Number.POSITIVE_INFINITY : Math.max(0, decision.wakeAtMs - snapshot.nowMs);
}

/** Returns whether the request changes the wanted state. */
function isDemand({ resource, before, after }: Commit): boolean {
  if (resource === podResource || resource === configMapResource || resource === leaseResource) return false;
  return before === undefined || JSON.stringify(before['spec']) !== JSON.stringify(after['spec']);
}

/** Returns the part of a change to which a group must react. */
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
  if (type === 'DELETED') return `${name} is gone`;
  return before === undefined || isUp(before) !== isUp(after) || isTerminating(before) !== isTerminating(after)
    ? `the change of ${name}`
    : undefined;
}
