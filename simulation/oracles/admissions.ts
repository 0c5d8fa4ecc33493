// Judges the requests of others that a webhook let pass: they count like the disruptions of agents, and none passes unjudged (S30, S31).
import { controllerOf, podResource } from '../objects.ts';
import { named, unavailabilityOf } from './availability.ts';
import { type Moment, momentOf, type Oracle } from './oracle.ts';
import { type Book, isAdmitted, isDisruption, type Place, unavailableIn, wasDown } from './places.ts';

/** Creates the judge of admitted requests. It sees each commit before the book records it. */
export function judgeAdmissions(book: Book): Oracle {
  return {
    committed: (commit) => {
      const { resource, actor, after, atMs } = commit;
      const { admission } = actor;
      if (resource !== podResource || admission === undefined || !isDisruption(commit)) return;
      const place = book.placeOfPod(after);
      if (place === undefined || admission.uid !== after.metadata.uid || book.terms.isExcepted()) return;
      const moment = momentOf(book.scene, { actor: { user: actor.user, process: admission.by, sentAtMs: admission.sentAtMs }, atMs });
      if (!book.terms.wasMember(place.zone.statefulSet, moment.fromMs)) return;
      const what = `${admission.by} lets ${actor.user} disrupt ${after.metadata.name}`;
      if (isAdmitted(commit)) checkBudget(book, place, moment, what);
      // An orphaned pod has no group. A deletion may pass unjudged, because the kubelet removes pods with the same request.
      const owner = controllerOf(after);
      const isOwned = owner !== undefined && owner === place.zone.facts.latest()?.uid;
      if (!admission.isJudged && admission.failurePolicy === 'Fail' && isOwned) book.scene.violated('S31', `${what} without a judgement`);
    },
  };
}

function checkBudget(book: Book, place: Place, moment: Moment, what: string): void {
  const { disruption, zoneBudget } = book.scene.group;
  const limit = disruption ?? zoneBudget;
  // A pod that is down already uses no budget.
  if (limit === undefined || wasDown(place, moment)) return;
  for (const zone of book.zones) {
    const why = zone === place.zone ? undefined : unavailabilityOf(book, zone, moment);
    if (why !== undefined) book.scene.violated('S30', `${what} while ${why}`);
  }
  const others = (unavailableIn(book, place.zone, moment) ?? []).filter((other) => other !== place);
  if (others.length + 1 > limit)
    book.scene.violated('S30', `${what} while ${named(others)} are unavailable, and no more than ${limit} may be`);
}
