// What has happened to a group since its decision was published: right after an apply the last one still says that all is done, right after a
// pause that nobody paused. Decisions are published every few seconds at most.

import { observeIntent, observeStatefulSet } from '../../engine/observe/objects.ts';
import type { PublishedDecision } from '../../engine/publish/published.ts';
import { type IntentView, isUnknown } from '../../engine/snapshot.ts';
import { itemsOf, type Listing } from '../cluster-snapshot/listing.ts';
import type { LiveGroup } from './groups.ts';
import { isPause } from './intents.ts';
import { releaseLines } from './removed-group.ts';
import { nameOf } from './target.ts';

/** One sentence for each thing that the decision does not know of; none when it was made here, of what is there now. */
export function outdatedLines({ decision, from }: LiveGroup, listing: Listing, nowMs: number): readonly string[] {
  if (from === 'here') return [];
  const name = nameOf(decision);
  const changes = [
    ...(haveMembersChanged(decision, listing) ? [`the members of ${name} have changed`] : []),
    ...(havePausesChanged(decision, listing, nowMs) ? [`a pause of ${name} was made or taken back`] : []),
  ].map((what) => `${what} since what is shown; the agent has not published a decision about it yet`);
  return [...releaseLines(listing, decision), ...changes];
}

/** False also when StatefulSets may not be read: then the decision is all there is. */
export function haveMembersChanged(decision: PublishedDecision, { statefulSets }: Listing): boolean {
  const objects = itemsOf(statefulSets).filter(({ metadata }) => metadata.namespace === decision.namespace);
  return decision.zones.some((zone) => {
    const object = objects.find(({ metadata }) => metadata.name === zone.statefulSet);
    const set = object === undefined ? undefined : observeStatefulSet(object);
    if (set === undefined || isUnknown(set)) return false;
    const { observedGeneration, updateRevision } = set.status;
    if (observedGeneration < set.generation || set.replicas !== zone.replicas) return true;
    // Only a zone that is said to be whole can be taken for finished by mistake.
    const isSaidWhole = zone.updated === zone.replicas && zone.replicas > 0;
    return isSaidWhole && !zone.revisions.some(({ revision }) => revision === updateRevision);
  });
}

/** Whether the decision is held by a pause that does not stand any more, or goes on in spite of one. False also when intents may not be read. */
export function havePausesChanged(decision: PublishedDecision, { intents }: Listing, nowMs: number): boolean {
  if (intents === undefined || isUnknown(intents)) return false;
  const standing = intents
    .map(observeIntent)
    .flatMap((view) => (!isUnknown(view) && isOf(decision, view) && isPause(view, nowMs) ? [view] : []));
  const answers = [...decision.waits, ...decision.steps.flatMap(({ results = [] }) => results)].filter(({ rule }) => rule === 'paused');
  const names = new Set(standing.map((intent) => objectOf(intent)));
  if (answers.some(({ source }) => source?.object?.startsWith('RolloutIntent ') === true && !names.has(source.object))) return true;
  // Of a zone where nothing is to be done, and of a rule that was not asked, nothing can be said.
  return decision.steps.some(({ zone, results = [] }) => {
    const answer = results.find(({ rule }) => rule === 'paused');
    return answer?.outcome === 'ok' && standing.some((intent) => intent.zone === undefined || intent.zone === zone);
  });
}

function isOf(decision: PublishedDecision, intent: IntentView): boolean {
  return intent.namespace === decision.namespace && intent.group === decision.group;
}

/** As the rule names it. */
function objectOf({ namespace, name }: IntentView): string {
  return `RolloutIntent ${namespace}/${name}`;
}
