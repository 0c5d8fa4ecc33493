// Judges of which pod goes: the one that was seen, behind the target, once, of the group, while nobody has paused it (S4, S6, S7, S22, S28).
import type { Answered, Commit } from '../server/request.ts';
import { disruptedByUs } from './availability.ts';
import type { Moment } from './moment.ts';
import { controllerOf, field, isAgent, parsed, podResource, revisionLabelOf, textAt } from './objects.ts';
import type { Oracle } from './oracle.ts';
import { type Book, isDisruption, type Place } from './places.ts';

/** Asked of each commit before the book knows of it. */
export function judgeTargets(book: Book): Oracle {
  /** Of each pod that was told to end: by whom, when, and at which revision. */
  const ended = new Map<string, { readonly isOurs: boolean; readonly atMs: number; readonly revision: number }>();
  return {
    committed: (commit) => {
      const { resource, after, actor, atMs, revision } = commit;
      if (resource === podResource && isDisruption(commit)) {
        ended.set(after.metadata.uid, { isOurs: isAgent(actor, book.scene.agentUser), atMs, revision });
      }
      const place = disruptedByUs(book, commit);
      if (place !== undefined) checkTarget(book, place, commit);
    },
    answered: (answered) => {
      const asked = askedPod(book, answered);
      if (asked === undefined) return;
      const before = ended.get(asked.uid);
      if (before === undefined || answered.revisions.includes(before.revision)) return;
      const { fromMs } = book.momentOf({ actor: answered.request.actor, atMs: answered.atMs });
      if (!before.isOurs && before.atMs > fromMs) return;
      const by = answered.request.actor.process ?? '';
      book.scene.violated(
        'S7',
        `${by} takes ${answered.name} (${asked.uid}) away, which ${before.isOurs ? 'an agent' : 'somebody'} told to end before`,
      );
    },
  };
}

/** The pod that an agent asked to be taken away, when the server did what was asked. */
function askedPod(
  { scene }: Book,
  { resource, subresource, verb, status, namespace, isDryRun, request }: Answered,
): { readonly uid: string } | undefined {
  if (resource !== podResource || namespace !== scene.namespace || status > 299 || isDryRun) return undefined;
  const isAsked = (verb === 'delete' && subresource === '') || (verb === 'create' && subresource === 'eviction');
  if (!isAsked || !isAgent(request.actor, scene.agentUser)) return undefined;
  const body = parsed(request.body);
  const options = subresource === 'eviction' ? field(body, 'deleteOptions') : body;
  const uid = textAt(options, 'preconditions', 'uid');
  return uid === undefined ? undefined : { uid };
}

function checkTarget(book: Book, place: Place, { after, actor, atMs }: Commit): void {
  const { scene, terms } = book;
  const { zone } = place;
  const moment = book.momentOf({ actor, atMs });
  const by = actor.process ?? '';
  const { name } = after.metadata;
  const facts = zone.facts.since(moment.fromMs);
  const revision = revisionLabelOf(after);
  if (facts.every((one) => one !== undefined && one.updateRevision === revision)) {
    scene.violated('S6', `${by} takes ${name} away, which is at the update revision ${revision}`);
  }
  const memberships = terms.of(zone.statefulSet).since(moment.fromMs);
  const owner = controllerOf(after);
  if (!facts.some((one) => one?.uid === owner)) scene.violated('S22', `${by} takes ${name} away, which ${zone.statefulSet} does not own`);
  else if (memberships.length > 0 && memberships.every(({ isMember }) => !isMember)) {
    scene.violated('S22', `${by} takes ${name} away although ${zone.statefulSet} is no member of the group`);
  }
  checkObserved(book, moment, `${by} takes ${name} away`);
  if (isPaused(book, zone.statefulSet, moment)) scene.violated('S28', `${by} takes ${name} away although it is paused`);
}

/** Nobody can tell what is outdated of a zone whose status is older than its spec. Adopted groups do not look at it. */
export function checkObserved({ scene, zones, terms }: Book, { fromMs }: Moment, what: string): void {
  if (scene.group.kind === 'adopted') return;
  for (const { statefulSet, facts } of zones) {
    const isMember = terms
      .of(statefulSet)
      .since(fromMs)
      .every((one) => one.isMember);
    const seen = facts.since(fromMs);
    if (isMember && seen.every((one) => one !== undefined && !one.isObserved)) {
      scene.violated('S4', `${what} while the status of ${statefulSet} is older than its spec`);
    }
  }
}

/** Whether none of its pods may be replaced, by its settings or because a person has paused it, and the decision must have known. */
export function isPaused(book: Book, statefulSet: string, moment: Moment): boolean {
  const settings = book.terms.of(statefulSet).since(moment.fromMs);
  return (settings.length > 0 && settings.every((one) => one.isPaused)) || isHalted(book, statefulSet, moment);
}

/** Whether a person has paused it, and the decision must have known. What the settings of a zone pause is its rollout: it shrinks all the same. */
export function isHalted({ terms }: Book, statefulSet: string, { atMs, fromMs, aheadMs }: Moment): boolean {
  return terms.isPausedSince(statefulSet, fromMs, atMs + aheadMs);
}
