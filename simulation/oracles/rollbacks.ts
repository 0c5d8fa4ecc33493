// Judges rollbacks and undos (S39): a revision that a rollback or a person returned from does not come back, and the status says so. The
// ledger is the memory of the agent, so the judge remembers the failed revisions itself.
import type { TurnReport } from '../../agent/report.ts';
import { getOrCreate } from '../../policies/values/map.ts';
import type { PodAdmitted } from '../cluster/pin-webhook.ts';
import {
  configMapResource,
  controllerOf,
  field,
  groupResource,
  instantAt,
  intentResource,
  isAgent,
  isTerminating,
  listAt,
  podResource,
  revisionLabelOf,
  statefulSetResource,
  textAt,
} from '../objects.ts';
import type { Commit, ModelObject } from '../server/request.ts';
import { disruptedByUs, named } from './availability.ts';
import { isLedger, pinKey, type RunText, readLedger } from './documents.ts';
import { knownSinceMs, type Oracle, WallErrors } from './oracle.ts';
import { exposedByUs } from './partitions.ts';
import { type Book, isInRange, type Place, type Zone } from './places.ts';

/** Creates the judge. It sees each commit before the book records it. Drop-in groups have no rollbacks and no undo. */
export function judgeRollbacks(book: Book): Oracle {
  return book.scene.group.kind === 'adopted' ? {} : new RollbackJudge(book);
}

/** An undo in force: when it was stored, and the undone revisions by the name of the zone. */
interface Undo {
  readonly atMs: number;
  readonly revisions: ReadonlyMap<string, string>;
}

/** A revision from which a rollback returned a zone. It stays blocked until a retry, or until the zone gets another template. */
interface Block {
  readonly failed: string;
  readonly restored: string;
  readonly sinceMs: number;
}

class RollbackJudge implements Oracle {
  readonly #book: Book;
  readonly #clocks: WallErrors;
  /** The blocks by the name of the StatefulSet, also while the StatefulSet does not exist. */
  readonly #blocks = new Map<string, Block>();
  #latest: RunText | undefined;
  readonly #undos = new Map<string, Undo>();
  /** The pods whose creation the webhook answered, by name: the revision of the StatefulSet controller. */
  readonly #admitted = new Map<string, string>();
  /** The pins in the ledger. */
  #pinned: ReadonlySet<string> = new Set();
  /** The revisions that a zone had before its runs, or after a completed run, by the name of its StatefulSet. */
  readonly #proven = new Map<string, Set<string>>();
  #run: string | undefined;
  #completed: { readonly id: string; readonly atMs: number } | undefined;

  constructor(book: Book) {
    this.#book = book;
    this.#clocks = new WallErrors(book.scene);
  }

  podAdmitted({ pod, createdRevision, isUnavailable }: PodAdmitted): void {
    if (isUnavailable) this.#admitted.delete(pod);
    else this.#admitted.set(pod, createdRevision);
  }

  committed(commit: Commit): void {
    const { resource, type, after, actor } = commit;
    const { scene } = this.#book;
    this.#clocks.note(actor.process);
    if (after.metadata.namespace !== scene.namespace) return;
    if (resource === configMapResource && isLedger(after)) this.#noteLedger(commit);
    if (resource === intentResource) this.#noteUndo(commit);
    if (resource === intentResource && textAt(after, 'spec', 'action') === 'retry') this.#blocks.clear();
    if (resource === statefulSetResource) this.#noteTemplate(after);
    if (resource === podResource && type === 'ADDED') this.#checkCreated(after);
    if (resource === groupResource && isAgent(actor, scene.agentUser)) this.#checkPublished(after);
    const exposed = exposedByUs(this.#book, commit);
    const disrupted = disruptedByUs(this.#book, commit) ?? exposed[0];
    if (disrupted !== undefined) this.#checkUndone(disrupted.zone, commit);
    if (disrupted !== undefined) this.#checkBlocked(disrupted, commit);
  }

  /** Checks that a failed run of a group with `onFailure: rollback` is rolled back, if the decision has seen every zone and every request. */
  turnEnded(process: string, { group, snapshot, decision }: TurnReport): void {
    const { scene, runs } = this.#book;
    this.#clocks.note(process);
    // Another agent may have recorded the failure, by its own clock.
    const seen = runs.since(scene.nowMs() - rollbackWithinMs - this.#clocks.spreadMs);
    const [run] = seen;
    if (scene.group.rollsBack !== true || run === undefined || decision?.run?.outcome !== 'failed' || decision.run.id !== run.id) return;
    const isKept = run.stays || Object.entries(run.target).every(([zone, revision]) => (run.previous[zone] ?? revision) === revision);
    if (isKept || seen.some((one) => one?.id !== run.id || one.outcome !== 'failed')) return;
    const isRead = group.zones.every(
      ({ statefulSet }) =>
        snapshot.statefulSets.some(({ name }) => name === statefulSet) &&
        snapshot.pods.some((view) => view.statefulSet === statefulSet && !('unknown' in view.pods)),
    );
    if (isRead && !('unknown' in snapshot.intents)) scene.violated('S39', `${process} does not roll back the failed run ${run.id}`);
  }

  #noteLedger(commit: Commit): void {
    const { after, atMs } = commit;
    const ledger = readLedger(after);
    this.#pinned = new Set(ledger?.pins.keys());
    const { run } = ledger ?? {};
    this.#noteRollback(run, atMs);
    if (run !== undefined) this.#checkRestored(run);
    if (run === undefined || run.outcome !== 'completed' || run.id === this.#completed?.id) return;
    this.#completed = { id: run.id, atMs };
    const fromMs = knownSinceMs(this.#book.scene, commit);
    for (const zone of this.#rolledBack(run, fromMs)) {
      const left = [...zone.places.values()].filter(({ pod, ...place }) => {
        if (pod === undefined || isTerminating(pod) || !isInRange({ ...place })) return false;
        const isOld = (instantAt(pod, 'metadata', 'creationTimestamp') ?? 0) <= fromMs;
        return isOld && this.#book.restored(zone, revisionLabelOf(pod), run) !== undefined;
      });
      if (left.length > 0)
        this.#book.scene.violated('S39', `the rollback ${run.id} completes, and ${named(left)} still runs the failed revision`);
    }
  }

  /** Remembers the blocks that begin: the rollback of a failed run has another target than the update revision of a zone. */
  #noteRollback(run: RunText | undefined, atMs: number): void {
    const before = this.#latest;
    this.#latest = run;
    if (run === undefined || run.id === before?.id) return;
    for (const zone of this.#book.zones) {
      const { statefulSet } = zone;
      const name = this.#book.terms.zoneName(statefulSet);
      const [failed, restored] = [textAt(before?.target, name), textAt(run.target, name)];
      const isReturned = before?.outcome === 'failed' && run.isRollback && zone.facts.latest()?.updateRevision === failed;
      if (isReturned && failed !== undefined && restored !== undefined && restored !== failed)
        this.#blocks.set(statefulSet, { failed, restored, sinceMs: atMs });
      // Another run ends the block of a zone that is no member.
      else if (this.#book.terms.of(statefulSet).latest()?.isMember !== true) this.#blocks.delete(statefulSet);
    }
  }

  /** Ends the block of a zone whose controller has observed another template. A recreated StatefulSet has no update revision at first. */
  #noteTemplate(set: ModelObject): void {
    const { name } = set.metadata;
    const revision = textAt(set, 'status', 'updateRevision') ?? '';
    if (revision !== '' && revision !== this.#blocks.get(name)?.failed) this.#blocks.delete(name);
  }

  /** Checks that a rollback restores a revision that the zone had before its runs, or to which a run was completed. */
  #checkRestored(run: RunText): void {
    const isNew = run.id !== this.#run;
    this.#run = run.id;
    for (const zone of this.#book.zones) {
      const name = this.#book.terms.zoneName(zone.statefulSet);
      const proven = this.#provenIn(zone);
      const [target, failed] = [textAt(run.target, name), run.rolledBack[name]];
      if (target === undefined) continue;
      if (run.outcome === 'completed') proven.add(target);
      else if (isNew && failed !== undefined && target !== failed && !proven.has(target))
        this.#book.scene.violated('S39', `the rollback ${run.id} restores ${target} in ${zone.statefulSet}, to which no run was completed`);
    }
  }

  #provenIn({ statefulSet, places, set }: Zone): Set<string> {
    const { terms, scene, runs } = this.#book;
    const proven = getOrCreate(this.#proven, statefulSet, () => new Set<string>());
    // The pods of a zone before its first run, and those of a zone that joined the group, may run any revision.
    const isNew = set === undefined || runs.latest() === undefined || !terms.wasMember(statefulSet, scene.nowMs() - decisionAgeMs);
    if (proven.size === 0 || isNew) for (const { pod } of places.values()) if (pod !== undefined) proven.add(revisionLabelOf(pod));
    return proven;
  }

  /** Returns the zones whose update revision was rolled back in every state that a decision may have seen since this time. */
  #rolledBack(run: RunText, fromMs: number): readonly Zone[] {
    const { zones, terms } = this.#book;
    return zones.filter(
      (zone) =>
        terms.wasMember(zone.statefulSet, fromMs) &&
        zone.facts.since(fromMs).every((facts) => this.#book.restored(zone, facts?.updateRevision, run) !== undefined),
    );
  }

  #noteUndo({ type, after, atMs }: Commit): void {
    const { name } = after.metadata;
    if (textAt(after, 'spec', 'action') !== 'undo') return;
    const revisions = new Map(listAt(after, 'spec', 'undone').map((one) => [textAt(one, 'zone') ?? '', textAt(one, 'revision') ?? '']));
    if (type === 'DELETED') this.#undos.delete(name);
    else this.#undos.set(name, { atMs: this.#undos.get(name)?.atMs ?? atMs, revisions });
  }

  /** Returns the block of the zone if the controller creates a pod at the failed revision, or the update revision is the failed one. */
  #blockedBy({ statefulSet, facts }: Zone, revision: string): Block | undefined {
    const block = this.#blocks.get(statefulSet);
    return [revision, facts.latest()?.updateRevision].includes(block?.failed) ? block : undefined;
  }

  /** Checks that each pod of a rolled-back zone is created at the earlier revision, unless the webhook did not answer, or the ledger pins the pod. */
  #checkCreated(pod: ModelObject): void {
    const { name, namespace = '' } = pod.metadata;
    const created = this.#admitted.get(name);
    this.#admitted.delete(name);
    const place = this.#book.placeOfPod(pod);
    const zone = place?.zone ?? this.#book.zones.find(({ statefulSet }) => name.startsWith(`${statefulSet}-`));
    if (created === undefined || zone === undefined || controllerOf(pod) !== zone.facts.latest()?.uid) return;
    const { terms, scene } = this.#book;
    const target = this.#book.startRevision(zone, revisionLabelOf(pod)) ?? this.#blockedBy(zone, revisionLabelOf(pod))?.restored;
    const isPinned = this.#pinned.has(pinKey(terms.zoneName(zone.statefulSet), Number(name.slice(zone.statefulSet.length + 1))));
    const isMember = terms.of(zone.statefulSet).latest()?.isMember === true;
    // Without the revision of the rollback, the webhook cannot build the pod.
    const revision = target === undefined ? undefined : scene.get('controllerrevisions.apps', namespace, target);
    const isKnown = revision !== undefined && controllerOf(revision) === controllerOf(pod);
    if (isMember && isKnown && !isPinned && target !== revisionLabelOf(pod))
      scene.violated('S39', `${name} is created at ${revisionLabelOf(pod)}, and its zone was rolled back to ${target}`);
  }

  /** Checks the status that an agent publishes after the rollback: the group is degraded, and not ready, unless the zone could not be read. */
  #checkPublished(group: ModelObject): void {
    const { runs, scene } = this.#book;
    const run = runs.latest();
    const published = field(group, 'status', 'decision', 'run');
    const { id, atMs = 0 } = this.#completed ?? {};
    if (run === undefined || run.id !== id || textAt(published, 'id') !== id || textAt(published, 'outcome') !== 'completed') return;
    // A retry ends the state at once, before the agent writes the new run.
    const isRetried = scene
      .list(intentResource, scene.namespace)
      .some(({ spec }) => textAt(spec, 'action') === 'retry' && textAt(spec, 'runId') === id);
    if (isRetried) return;
    const isUnread = ({ statefulSet }: Zone): boolean =>
      listAt(group, 'status', 'decision', 'zones').some(
        (one) => textAt(one, 'statefulSet') === statefulSet && field(one, 'unread') !== undefined,
      );
    const zone = this.#rolledBack(run, atMs - decisionAgeMs).find((one) => !isUnread(one));
    if (zone === undefined) return;
    const stateOf = (type: string): string | undefined =>
      textAt(
        listAt(group, 'status', 'conditions').find((one) => field(one, 'type') === type),
        'status',
      );
    if (stateOf('Ready') === 'True' || stateOf('Degraded') !== 'True') {
      const what = `Ready is ${stateOf('Ready')}, and Degraded is ${stateOf('Degraded')}`;
      scene.violated('S39', `after the rollback ${run.id} of ${zone.statefulSet}, the published condition ${what}`);
    }
  }

  /** Checks that agents replace no pod that runs the restored revision, while the StatefulSet still has the failed template. */
  #checkBlocked({ zone, pod }: Place, { actor, after, atMs }: Commit): void {
    const block = this.#blocks.get(zone.statefulSet);
    const { fromMs } = this.#book.momentOf({ actor, atMs });
    if (block === undefined || pod === undefined || block.sinceMs > fromMs || revisionLabelOf(pod) !== block.restored) return;
    const { failed, restored } = block;
    if (zone.facts.since(fromMs).every((facts) => (facts?.updateRevision || failed) === failed))
      this.#book.scene.violated(
        'S39',
        `${actor.process ?? ''} disrupts ${after.metadata.name}, which a rollback returned from ${failed} to ${restored}`,
      );
  }

  /** Checks that agents replace no pod of a zone while its update revision is undone. */
  #checkUndone(zone: Zone, { actor, after, atMs }: Commit): void {
    const { scene, terms } = this.#book;
    const { fromMs } = this.#book.momentOf({ actor, atMs });
    const name = terms.zoneName(zone.statefulSet);
    const isUndone = (revision: string | undefined): boolean =>
      [...this.#undos.values()].some((undo) => undo.atMs <= fromMs && undo.revisions.get(name) === revision);
    if (zone.facts.since(fromMs).every((facts) => isUndone(facts?.updateRevision ?? '')))
      scene.violated('S39', `${actor.process ?? ''} disrupts ${after.metadata.name}, although a person undid the update revision`);
  }
}

/** The time after which the ledger must show the rollback of a failed run. */
const rollbackWithinMs = 60_000;

/** The age of the oldest state that a decision may use, for a clock that runs at 0.4 times the speed. */
const decisionAgeMs = 25_000;
