// Judges single turns: decided from a complete and recent view, by one policy, reproducible, and with a reason (S4, S5, S21, S25, S27, L8,
// L9).
import type { PerformedAction, TurnReport } from '../../agent/report.ts';
import { decideGroup } from '../../engine/decide/decide.ts';
import { runStartMs } from '../process/clock.ts';
import { processLetter } from '../scenario.ts';
import type { Commit } from '../server/request.ts';
import { isAgent, isTerminating, numberAt, podResource, statefulSetResource } from './objects.ts';
import { type MachineState, machineOf, type Oracle } from './oracle.ts';
import type { Book } from './places.ts';

const snapshotAgeMs = 10_000;
/** One of this many decisions is computed again. */
const sampleEvery = 8;
const watchesBackMs = 60_000;

/** Judges turns. The commits show the age of their view. */
export function judgeDecisions(book: Book): Oracle {
  return new DecisionJudge(book);
}

/** The versions of an object. */
type Versions = { readonly revision: number; readonly atMs: number }[];

class DecisionJudge implements Oracle {
  readonly #book: Book;
  readonly #versions = new Map<string, Versions>();
  /** By process and UID: the version of its last request. */
  readonly #made = new Map<string, number>();
  /** By machine and UID: the last version that it acted on. */
  readonly #actedOn = new Map<string, number>();
  /** By process: disruptions that arrived since its last turn was sent. */
  readonly #sent = new Map<string, { readonly atMs: number; readonly wallMs: number }[]>();
  /** By process: its clock at the end of its last turn. */
  readonly #clocks = new Map<string, MachineState & { readonly atMs: number }>();
  /** By digest and group: the definition. */
  readonly #definitions = new Map<string, { readonly group: TurnReport['group']; readonly text: string }>();
  #healingMs = Number.POSITIVE_INFINITY;
  #decisions = 0;
  #isOldSeen = false;

  constructor(book: Book) {
    this.#book = book;
  }

  committed(commit: Commit): void {
    const { resource, after, revision, atMs, actor } = commit;
    const { scene } = this.#book;
    if (resource !== podResource && resource !== statefulSetResource) return;
    const { uid } = after.metadata;
    const known = this.#versions.get(uid);
    if (known === undefined) this.#versions.set(uid, [{ revision, atMs }]);
    else known.push({ revision, atMs });
    if (!isAgent(actor, scene.agentUser) || actor.process === undefined) return;
    this.#made.set(`${actor.process} ${uid}`, revision);
    if (!isDisturbing(commit)) return;
    const sentMs = actor.sentAtMs ?? atMs;
    const sent = this.#sent.get(actor.process) ?? [];
    this.#sent.set(actor.process, sent);
    // The process may be suspended after that, and find its clock corrected.
    const wallMs = actor.sentWallMs ?? runStartMs + sentMs + machineOf(scene, actor.process).wallErrorMs;
    sent.push({ atMs: sentMs, wallMs });
  }

  healingBegan(): void {
    this.#healingMs = this.#book.scene.nowMs();
  }

  turnEnded(process: string, report: TurnReport): void {
    const { decision, performed } = report;
    const disruptions = performed.filter(isDisruption);
    const begun = disruptions.filter(({ result }) => result === 'done' || result === 'unknown');
    if (begun.length > 0) {
      this.#checkView(process, report);
      this.#checkAge(process, report);
      this.#checkTravel(process, report);
    }
    this.#remember(process, performed);
    if (decision === undefined) return;
    this.#checkDefinition(process, report);
    const isWaiting = decision.outcome === 'wait' || decision.outcome === 'blocked';
    if (isWaiting && decision.waits.length === 0) this.#say('L9', process, 'neither acts nor says why');
    this.#decisions += 1;
    if (disruptions.length > 0 || this.#decisions % sampleEvery === 1) this.#decideAgain(process, report);
    if (this.#book.scene.nowMs() >= this.#healingMs + 2 * watchesBackMs) this.#checkWatches(process, report);
  }

  #say(invariant: string, process: string, what: string): void {
    this.#book.scene.violated(invariant, `${process}: a decision ${what}`);
  }

  /** S4: a disruption requires a view of every zone. */
  #checkView(process: string, { group, snapshot }: TurnReport): void {
    for (const { statefulSet } of group.zones) {
      const set = snapshot.statefulSets.find(({ namespace, name }) => namespace === group.namespace && name === statefulSet);
      const pods = snapshot.pods.find((view) => view.namespace === group.namespace && view.statefulSet === statefulSet)?.pods;
      if (set === undefined || pods === undefined || 'unknown' in pods)
        this.#say('S4', process, `disturbs although ${statefulSet} was not read`);
    }
  }

  /** S5: an action was decided at most 10 s before, by the process's own clock; the last of several disruptions as well as the first. */
  #checkAge(process: string, { snapshot, durationMs }: TurnReport): void {
    const before = this.#clocks.get(process);
    const ages = (this.#sent.get(process) ?? []).flatMap(({ atMs, wallMs }) => {
      const ageMs = wallMs - snapshot.nowMs;
      // Only the length of its first turn is known, by a clock that is never set.
      if (before === undefined) return ageMs > durationMs + 1_000 ? [] : [ageMs];
      // The previous turn sent it, and it arrives only now.
      if (atMs < before.atMs) return [];
      const errorMs = before.wallErrorMs + (before.rate - 1) * (atMs - before.atMs);
      // A clock that was set meanwhile proves nothing.
      return Math.abs(wallMs - runStartMs - atMs - errorMs) > 1_000 ? [] : [ageMs];
    });
    const ageMs = Math.max(0, ...ages);
    if (ageMs > snapshotAgeMs + 1_000) this.#say('S5', process, `was ${Math.round(ageMs)} ms old when it was carried out`);
  }

  /** S21: a process never acts on a state older than one it acted on, or than the effects of the requests it sent, also across restarts. */
  #checkTravel(process: string, { snapshot, group }: TurnReport): void {
    const machine = processLetter(process);
    const sets = snapshot.statefulSets.filter(({ namespace }) => namespace === group.namespace);
    const pods = snapshot.pods
      .flatMap((view) => ('unknown' in view.pods ? [] : view.pods))
      .filter(({ isTerminating: isGoing }) => !isGoing);
    for (const { uid, name, resourceVersion } of [...sets, ...pods]) {
      const acted = this.#actedOn.get(`${machine} ${uid}`);
      if (acted !== undefined && Number(resourceVersion) < acted)
        this.#say('S21', process, `sees ${name} at ${resourceVersion}, before the ${acted} that it has acted on`);
    }
  }

  #remember(process: string, performed: readonly PerformedAction[]): void {
    for (const { action, result } of performed) {
      if (!('uid' in action) || result !== 'done') continue;
      const made = this.#made.get(`${process} ${action.uid}`);
      if (made !== undefined) this.#actedOn.set(`${processLetter(process)} ${action.uid}`, made);
    }
    this.#sent.delete(process);
    this.#clocks.set(process, { ...machineOf(this.#book.scene, process), atMs: this.#book.scene.nowMs() });
  }

  /** S25: the group of a decision equals that of its snapshot, and one digest never stands for two definitions. */
  #checkDefinition(process: string, { snapshot, group }: TurnReport): void {
    const key = `${snapshot.policyDigest} ${group.namespace}/${group.name}`;
    const known = this.#definitions.get(key);
    if (known?.group === group) return;
    const text = JSON.stringify(group);
    const seen = snapshot.groups.find(({ namespace, name }) => namespace === group.namespace && name === group.name);
    if (seen !== undefined && seen !== group && JSON.stringify(seen) !== text) {
      this.#say('S25', process, `is made by a definition of ${group.name} that is not the one of its snapshot`);
    }
    if (known !== undefined && known.text !== text) {
      this.#say('S25', process, `has another definition of ${group.name} under the digest ${snapshot.policyDigest}`);
    }
    this.#definitions.set(key, { group, text });
  }

  /** S27: a decision depends only on its recorded input. */
  #decideAgain(process: string, { snapshot, group, decision }: TurnReport): void {
    const read = JSON.parse(JSON.stringify({ snapshot, group })) as Pick<TurnReport, 'snapshot' | 'group'>;
    const again = JSON.stringify(decideGroup(read.snapshot, read.group));
    const first = JSON.stringify(decision);
    if (again === first) return;
    let at = 0;
    while (again[at] === first[at]) at += 1;
    const excerpt = (text: string): string => text.slice(Math.max(0, at - 40), at + 60);
    this.#say('S27', process, `is another one when it is made again: "${excerpt(first)}" and "${excerpt(again)}"`);
  }

  /** L8: after all repairs no process sees an outdated state. */
  #checkWatches(process: string, { snapshot, group }: TurnReport): void {
    if (this.#isOldSeen) return;
    const nowMs = this.#book.scene.nowMs();
    const sets = snapshot.statefulSets.filter(({ namespace }) => namespace === group.namespace);
    const pods = snapshot.pods.flatMap((view) => ('unknown' in view.pods ? [] : view.pods));
    for (const { uid, name, resourceVersion } of [...sets, ...pods]) {
      const next = this.#versions.get(uid)?.find(({ revision }) => revision > Number(resourceVersion));
      if (next === undefined || nowMs - Math.max(next.atMs, this.#healingMs) < watchesBackMs) continue;
      this.#isOldSeen = true;
      this.#say('L8', process, `still sees ${name} at ${resourceVersion}, which was over ${Math.round(nowMs - next.atMs)} ms ago`);
      return;
    }
  }
}

/** Returns whether the change deletes a pod now or later. */
function isDisturbing({ type, resource, before, after }: Commit): boolean {
  if (resource === podResource) return type === 'DELETED' || (isTerminating(after) && (before === undefined || !isTerminating(before)));
  return (numberAt(after, 'spec', 'replicas') ?? 0) < (numberAt(before, 'spec', 'replicas') ?? 0);
}

function isDisruption({ action }: PerformedAction): boolean {
  return (
    action.kind === 'deletePod' ||
    action.kind === 'evictPod' ||
    (action.kind === 'setPartition' && action.pods.length > 0) ||
    (action.kind === 'scaleStatefulSet' && action.to < action.from)
  );
}
