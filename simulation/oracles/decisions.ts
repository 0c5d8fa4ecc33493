// Judges single turns by the invariants S4, S5, S21, S25, S27, L8 and L9. Each decision must use a complete and recent snapshot and one
// definition. It must be reproducible, and have a reason if it does not act.
import type { TurnReport } from '../../agent/report.ts';
import { decideGroup } from '../../engine/decide/decide.ts';
import type { TakenAction } from '../../engine/publish/published.ts';
import { getOrCreate } from '../../policies/values/map.ts';
import { isAgent, isTerminating, numberAt, podResource, statefulSetResource } from '../objects.ts';
import { runStartMs } from '../process/clock.ts';
import { processLetter } from '../scenario.ts';
import type { Commit } from '../server/request.ts';
import { type MachineState, machineOf, type Oracle } from './oracle.ts';
import type { Book } from './places.ts';

/** The most time between a snapshot and a disruption that was decided from it. */
const maxSnapshotAgeMs = 10_000;
/** The tolerance of every comparison of clocks. */
const toleranceMs = 1_000;
/** The judge computes every decision with a disruption again, and every eighth decision. */
const sampleEvery = 8;
/** The time after which a watch must have delivered a change. */
const watchDelayMs = 60_000;

/** The resource versions of an object, oldest first. */
type Versions = { readonly revision: number; readonly atMs: number }[];

/** The judge of turns. It learns from the commits how old each snapshot was. */
export class DecisionJudge implements Oracle {
  readonly #book: Book;
  readonly #versions = new Map<string, Versions>();
  /** The resource versions of the deletions, by UID. */
  readonly #deletions = new Map<string, { readonly resource: string; readonly revision: number }>();
  /** The resource version after the last change by each process, by process and UID. */
  readonly #lastChanges = new Map<string, number>();
  /** The resource version after the last change that the processes of a machine know to have succeeded, by machine and UID. */
  readonly #knownChanges = new Map<string, number>();
  /** The newest resource version of the objects of a zone that a process has read, by UID, by process and StatefulSet. */
  readonly #read = new Map<string, Map<string, number>>();
  /** The send times of the disruptions that were stored since the end of a process's last turn, by process. */
  readonly #sentDisruptions = new Map<string, { readonly atMs: number; readonly wallMs: number }[]>();
  /** The clock of the machine at the end of the last turn of each process. */
  readonly #clocks = new Map<string, MachineState & { readonly atMs: number }>();
  /** The definitions, also as text, by policy digest and group. */
  readonly #definitions = new Map<string, { readonly group: TurnReport['group']; readonly text: string }>();
  /** The time at which all faults ended. */
  #healingBeganMs = Number.POSITIVE_INFINITY;
  #decisions = 0;
  #isStaleReported = false;

  constructor(book: Book) {
    this.#book = book;
  }

  committed(commit: Commit): void {
    const { type, resource, after, revision, atMs, actor } = commit;
    const { scene } = this.#book;
    if (resource !== podResource && resource !== statefulSetResource) return;
    const { uid } = after.metadata;
    if (type === 'DELETED') this.#deletions.set(uid, { resource, revision });
    const known = this.#versions.get(uid);
    if (known === undefined) this.#versions.set(uid, [{ revision, atMs }]);
    else known.push({ revision, atMs });
    if (!isAgent(actor, scene.agentUser) || actor.process === undefined) return;
    this.#lastChanges.set(`${actor.process} ${uid}`, revision);
    if (!isDisruptiveCommit(commit)) return;
    const sentMs = actor.sentAtMs ?? atMs;
    const sent = this.#sentDisruptions.get(actor.process) ?? [];
    this.#sentDisruptions.set(actor.process, sent);
    // The wall clock at the time of sending counts, because the clock may be corrected later, while the process is suspended.
    const wallMs = actor.sentWallMs ?? runStartMs + sentMs + machineOf(scene, actor.process).wallErrorMs;
    sent.push({ atMs: sentMs, wallMs });
  }

  healingBegan(): void {
    this.#healingBeganMs = this.#book.scene.nowMs();
  }

  turnEnded(process: string, report: TurnReport): void {
    const { decision, performed } = report;
    const disruptions = performed.filter(isDisruption);
    const isDisruptive = disruptions.some(({ result }) => result === 'done' || result === 'unknown');
    if (isDisruptive) {
      this.#checkCompleteness(process, report);
      this.#checkAge(process, report);
      this.#checkNoStepBack(process, report);
    }
    this.#remember(process, performed);
    if (decision === undefined) return;
    this.#checkOrder(process, report);
    this.#checkDefinition(process, report);
    const isWaiting = decision.outcome === 'wait' || decision.outcome === 'blocked';
    if (isWaiting && decision.waits.length === 0) this.#report('L9', process, 'neither acts nor gives a reason');
    this.#decisions += 1;
    if (disruptions.length > 0 || this.#decisions % sampleEvery === 1) this.#decideAgain(process, report);
    // An idle group reads nothing directly, and its pods are listed again only every 30 minutes.
    const isIdle = decision.outcome === 'done';
    if (!isIdle && this.#book.scene.nowMs() >= this.#healingBeganMs + 2 * watchDelayMs) this.#checkWatches(process, report);
  }

  #report(invariant: string, process: string, predicate: string): void {
    this.#book.scene.violated(invariant, `${process}: a decision ${predicate}`);
  }

  /** Checks S4: before a disruption, the StatefulSet and the pods of every zone were read. */
  #checkCompleteness(process: string, { group, snapshot }: TurnReport): void {
    for (const { statefulSet } of group.zones) {
      const found = snapshot.statefulSets.find(({ namespace, name }) => namespace === group.namespace && name === statefulSet);
      const pods = snapshot.pods.find((view) => view.namespace === group.namespace && view.statefulSet === statefulSet)?.pods;
      if (found === undefined || pods === undefined || 'unknown' in pods)
        this.#report('S4', process, `disrupts although ${statefulSet} was not read`);
    }
  }

  /** Checks S5: each disruption of a turn is sent at most 10 s after the time of the snapshot, by the wall clock of the process. */
  #checkAge(process: string, { snapshot, durationMs }: TurnReport): void {
    const before = this.#clocks.get(process);
    const ages = (this.#sentDisruptions.get(process) ?? []).flatMap(({ atMs, wallMs }) => {
      const ageMs = wallMs - snapshot.nowMs;
      // In the first turn of a process, an age above the monotonic duration of the turn means that the wall clock jumped.
      if (before === undefined) return ageMs > durationMs + toleranceMs ? [] : [ageMs];
      // An earlier turn sent this disruption, and the server stored it only now.
      if (atMs < before.atMs) return [];
      const expectedErrorMs = before.wallErrorMs + (before.rate - 1) * (atMs - before.atMs);
      // A wall clock that jumped since the previous turn cannot show the age.
      return Math.abs(wallMs - runStartMs - atMs - expectedErrorMs) > toleranceMs ? [] : [ageMs];
    });
    const ageMs = Math.max(0, ...ages);
    if (ageMs > maxSnapshotAgeMs + toleranceMs) this.#report('S5', process, `was carried out ${Math.round(ageMs)} ms after its snapshot`);
  }

  /** Checks S21: the snapshot contains every change that a process of the machine made and knows to have succeeded. */
  #checkNoStepBack(process: string, { snapshot, group }: TurnReport): void {
    const machine = processLetter(process);
    const statefulSets = snapshot.statefulSets.filter(({ namespace }) => namespace === group.namespace);
    const pods = snapshot.pods.flatMap((view) => ('unknown' in view.pods ? [] : view.pods)).filter((pod) => !pod.isTerminating);
    for (const { uid, name, resourceVersion } of [...statefulSets, ...pods]) {
      const known = this.#knownChanges.get(`${machine} ${uid}`);
      if (known !== undefined && Number(resourceVersion) < known)
        this.#report('S21', process, `reads ${name} at resource version ${resourceVersion}, although its machine knew ${known}`);
    }
  }

  /** Checks S21: no decision of a process uses an older state of an object in the zones of the group than an earlier decision. */
  #checkOrder(process: string, { snapshot, group }: TurnReport): void {
    for (const { statefulSet } of this.#book.zones) {
      const key = `${process} ${statefulSet}`;
      if (group.zones.some((zone) => zone.statefulSet === statefulSet)) {
        const read = getOrCreate(this.#read, key, () => new Map<string, number>());
        const statefulSets = snapshot.statefulSets.filter(({ name }) => name === statefulSet);
        const pods = snapshot.pods.filter((view) => view.statefulSet === statefulSet);
        const objects = objectsIn({ statefulSets, pods }, group);
        for (const { uid, name, resourceVersion } of objects) {
          const known = read.get(uid) ?? 0;
          if (Number(resourceVersion) < known)
            this.#report('S21', process, `reads ${name} at resource version ${resourceVersion}, although an earlier one read ${known}`);
          read.set(uid, Math.max(known, Number(resourceVersion)));
        }
        if (snapshot.unread === undefined) this.#noteDeletions(read, new Set(objects.map(({ uid }) => uid)), pods);
        // A zone outside of the group is read only from the caches, which may be older than the direct reads.
      } else this.#read.delete(key);
    }
  }

  /** Notes that a decision knows the deletion of the objects that it no longer reads. It knows none of a pod if pods were not read. */
  #noteDeletions(read: Map<string, number>, found: ReadonlySet<string>, pods: TurnReport['snapshot']['pods']): void {
    const arePodsRead = pods.length > 0 && pods.every((view) => !('unknown' in view.pods));
    for (const uid of read.keys()) {
      const deletion = this.#deletions.get(uid);
      if (deletion === undefined || found.has(uid) || (deletion.resource === podResource && !arePodsRead)) continue;
      read.set(uid, deletion.revision);
    }
  }

  #remember(process: string, performed: readonly TakenAction[]): void {
    for (const { action, result } of performed) {
      if (!('uid' in action) || result !== 'done') continue;
      const revision = this.#lastChanges.get(`${process} ${action.uid}`);
      if (revision !== undefined) this.#knownChanges.set(`${processLetter(process)} ${action.uid}`, revision);
    }
    this.#sentDisruptions.delete(process);
    this.#clocks.set(process, { ...machineOf(this.#book.scene, process), atMs: this.#book.scene.nowMs() });
  }

  /** Checks S25: the decision uses the definition in its snapshot, and two definitions never have the same policy digest. */
  #checkDefinition(process: string, { snapshot, group }: TurnReport): void {
    const key = `${snapshot.policyDigest} ${group.namespace}/${group.name}`;
    const known = this.#definitions.get(key);
    if (known?.group === group) return;
    const text = textOf(group);
    const inSnapshot = snapshot.groups.find(({ namespace, name }) => namespace === group.namespace && name === group.name);
    if (inSnapshot !== undefined && inSnapshot !== group && textOf(inSnapshot) !== text) {
      this.#report('S25', process, `uses another definition of ${group.name} than its snapshot has`);
    }
    if (known !== undefined && known.text !== text) {
      this.#report(
        'S25',
        process,
        `uses another definition of ${group.name} than an earlier decision with the policy digest ${snapshot.policyDigest}`,
      );
    }
    this.#definitions.set(key, { group, text });
  }

  /** Checks S27: the same snapshot and definition always give the same decision. */
  #decideAgain(process: string, { snapshot, group, decision }: TurnReport): void {
    const copy = JSON.parse(JSON.stringify({ snapshot, group })) as Pick<TurnReport, 'snapshot' | 'group'>;
    const again = JSON.stringify(decideGroup(copy.snapshot, copy.group));
    const first = JSON.stringify(decision);
    if (again === first) return;
    let at = 0;
    while (again[at] === first[at]) at += 1;
    const excerpt = (text: string): string => text.slice(Math.max(0, at - 40), at + 60);
    this.#report('S27', process, `differs when it is computed again: "${excerpt(first)}" and "${excerpt(again)}"`);
  }

  /** Checks L8: after all faults have ended, no process keeps a stale view. Reports only the first case. */
  #checkWatches(process: string, { snapshot, group }: TurnReport): void {
    if (this.#isStaleReported) return;
    const nowMs = this.#book.scene.nowMs();
    for (const { uid, name, resourceVersion } of objectsIn(snapshot, group)) {
      const next = this.#versions.get(uid)?.find(({ revision }) => revision > Number(resourceVersion));
      if (next === undefined || nowMs - Math.max(next.atMs, this.#healingBeganMs) < watchDelayMs) continue;
      this.#isStaleReported = true;
      this.#report(
        'L8',
        process,
        `still reads ${name} at resource version ${resourceVersion}, which was replaced ${Math.round(nowMs - next.atMs)} ms ago`,
      );
      return;
    }
  }
}

/** Returns the content of a definition. A change that is reverted leaves another generation of the object, which no rule reads. */
function textOf({ generation: _, ...definition }: TurnReport['group']): string {
  return JSON.stringify(definition);
}

/** Returns the StatefulSets and the pods in the snapshot. */
function objectsIn({ statefulSets, pods }: Pick<TurnReport['snapshot'], 'statefulSets' | 'pods'>, group: TurnReport['group']) {
  return [
    ...statefulSets.filter(({ namespace }) => namespace === group.namespace),
    ...pods.flatMap((view) => ('unknown' in view.pods ? [] : view.pods)),
  ];
}

/** Returns whether the commit deletes a pod, begins its deletion, or lowers the replicas of a StatefulSet. */
function isDisruptiveCommit({ type, resource, before, after }: Commit): boolean {
  if (resource === podResource) return type === 'DELETED' || (isTerminating(after) && (before === undefined || !isTerminating(before)));
  return (numberAt(after, 'spec', 'replicas') ?? 0) < (numberAt(before, 'spec', 'replicas') ?? 0);
}

function isDisruption({ action }: TakenAction): boolean {
  return (
    action.kind === 'deletePod' ||
    action.kind === 'evictPod' ||
    (action.kind === 'setPartition' && action.pods.length > 0) ||
    (action.kind === 'scaleStatefulSet' && action.to < action.from)
  );
}
