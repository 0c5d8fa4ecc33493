// Detects what happened to a group after its decision was published. Agents publish at most every few seconds: right after an apply the
// decision still reports completion, and right after a pause it reports no pause.

import { observeIntent, observeStatefulSet } from '../../engine/observe/objects.ts';
import type { PublishedDecision } from '../../engine/publish/published.ts';
import { type IntentView, isUnknown } from '../../engine/snapshot.ts';
import { itemsOf, type Listing } from '../cluster-snapshot/listing.ts';
import type { LiveGroup } from './groups.ts';
import { isPause } from './intents.ts';
import { releaseLines } from './removed-group.ts';
import { nameOf } from './target.ts';

/** Returns one sentence for each change since the published decision; none for a decision that was made here. */
export function outdatedLines({ decision, from }: LiveGroup, listing: Listing, nowMs: number): readonly string[] {
  if (from === 'here') return [];
  const name = nameOf(decision);
  const changes = [
    ...(haveMembersChanged(decision, listing) ? [`the members of ${name} changed`] : []),
    ...(havePausesChanged(decision, listing, nowMs) ? [`${name} was paused or resumed`] : []),
  ].map((change) => `${change} since the shown decision; the agent has not published a newer one yet`);
  return [...releaseLines(listing, decision), ...changes];
}

/** Reports whether a member changed since the decision. False when StatefulSets may not be read. */
export function haveMembersChanged(decision: PublishedDecision, { statefulSets }: Listing): boolean {
  const objects = itemsOf(statefulSets).filter(({ metadata }) => metadata.namespace === decision.namespace);
  return decision.zones.some((zone) => {
    const object = objects.find(({ metadata }) => metadata.name === zone.statefulSet);
    const set = object === undefined ? undefined : observeStatefulSet(object);
    if (set === undefined || isUnknown(set)) return false;
    const { observedGeneration, updateRevision } = set.status;
    if (observedGeneration < set.generation || set.replicas !== zone.replicas) return true;
    // Only a zone that is reported as fully updated can be mistaken for finished.
    const isSaidWhole = zone.updated === zone.replicas && zone.replicas > 0;
    return isSaidWhole && !zone.revisions.some(({ revision }) => revision === updateRevision);
  });
}

/** Reports whether the decision is blocked by a pause that was removed, or ignores one in force. False when intents may not be read. */
export function havePausesChanged(decision: PublishedDecision, { intents }: Listing, nowMs: number): boolean {
  if (intents === undefined || isUnknown(intents)) return false;
  const standing = intents
    .map(observeIntent)
    .flatMap((view) => (!isUnknown(view) && isOf(decision, view) && isPause(view, nowMs) ? [view] : []));
  const answers = [...decision.waits, ...decision.steps.flatMap(({ results = [] }) => results)].filter(({ rule }) => rule === 'paused');
  const names = new Set(standing.map((intent) => objectOf(intent)));
  if (answers.some(({ source }) => source?.object?.startsWith('RolloutIntent ') === true && !names.has(source.object))) return true;
  // A zone without steps and a step without the rule tell nothing.
  return decision.steps.some(({ zone, results = [] }) => {
    const answer = results.find(({ rule }) => rule === 'paused');
    return answer?.outcome === 'ok' && standing.some((intent) => intent.zone === undefined || intent.zone === zone);
  });
}

function isOf(decision: PublishedDecision, intent: IntentView): boolean {
  return intent.namespace === decision.namespace && intent.group === decision.group;
}

/** Returns the intent as the rule names it. */
function objectOf({ namespace, name }: IntentView): string {
  return `RolloutIntent ${namespace}/${name}`;
}
