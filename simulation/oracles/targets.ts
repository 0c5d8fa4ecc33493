// Checks that agents disrupt only outdated pods of the group, each pod once, and only while every StatefulSet status is current and no
// pause exists (S4, S6, S7, S22, S28).

import { controllerOf, field, isAgent, parsed, podResource, revisionLabelOf, textAt } from '../objects.ts';
import type { Answered, Commit } from '../server/request.ts';
import { disruptedByUs } from './availability.ts';
import type { Moment, Oracle } from './oracle.ts';
import { type Book, isDisruption, type Place } from './places.ts';

/** Creates the judge of targets. It sees each commit before the book records it. */
export function judgeTargets(book: Book): Oracle {
  /** The deletions by UID of the pod. `revision` is `Commit.revision` of the deletion. */
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
      const target = targetPod(book, answered);
      if (target === undefined) return;
      const before = ended.get(target.uid);
      if (before === undefined || answered.revisions.includes(before.revision)) return;
      const { fromMs } = book.momentOf({ actor: answered.request.actor, atMs: answered.atMs });
      if (!before.isOurs && before.atMs > fromMs) return;
      const by = answered.request.actor.process ?? '';
      book.scene.violated(
        'S7',
        `${by} deletes ${answered.name} (${target.uid}), which ${before.isOurs ? 'an agent' : 'another client'} deleted before`,
      );
    },
  };
}

function targetPod(
  { scene }: Book,
  { resource, subresource, verb, status, namespace, isDryRun, request }: Answered,
): { readonly uid: string } | undefined {
  if (resource !== podResource || namespace !== scene.namespace || status > 299 || isDryRun) return undefined;
  const isDeletion = (verb === 'delete' && subresource === '') || (verb === 'create' && subresource === 'eviction');
  if (!isDeletion || !isAgent(request.actor, scene.agentUser)) return undefined;
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
  if (book.targetsSince(zone, moment.fromMs).every((target) => target === revision)) {
    scene.violated('S6', `${by} disrupts ${name}, which is at the update revision ${revision}`);
  }
  const memberships = terms.of(zone.statefulSet).since(moment.fromMs);
  const owner = controllerOf(after);
  if (!facts.some((one) => one?.uid === owner)) scene.violated('S22', `${by} disrupts ${name}, which ${zone.statefulSet} does not own`);
  else if (memberships.length > 0 && memberships.every(({ isMember }) => !isMember)) {
    scene.violated('S22', `${by} disrupts ${name} although ${zone.statefulSet} is no member of the group`);
  }
  checkObserved(book, moment, `${by} disrupts ${name}`);
  if (isPaused(book, zone.statefulSet, moment)) scene.violated('S28', `${by} disrupts ${name} during a pause`);
}

/** Checks that the status of each zone is as new as its spec: an older status does not show which pods are outdated. Drop-in groups are exempt. */
export function checkObserved({ scene, zones, terms }: Book, { fromMs }: Moment, what: string): void {
  if (scene.group.kind === 'adopted') return;
  for (const { statefulSet, facts } of zones) {
    const seen = facts.since(fromMs);
    if (terms.wasMember(statefulSet, fromMs) && seen.every((one) => one !== undefined && !one.isObserved)) {
      scene.violated('S4', `${what} while the status of ${statefulSet} is older than its spec`);
    }
  }
}

/** Returns whether a setting or a pause forbade disruptions in the StatefulSet at a time that the agent's decision had to observe. */
export function isPaused(book: Book, statefulSet: string, moment: Moment): boolean {
  const settings = book.terms.of(statefulSet).since(moment.fromMs);
  return (settings.length > 0 && settings.every((one) => one.isPaused)) || isHalted(book, statefulSet, moment);
}

/** As `isPaused`, but only for RolloutIntents: the setting `paused` of a zone does not stop its downscales. */
export function isHalted({ terms }: Book, statefulSet: string, { atMs, fromMs, aheadMs }: Moment): boolean {
  return terms.isPausedSince(statefulSet, fromMs, atMs + aheadMs);
}
