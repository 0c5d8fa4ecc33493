// Whether the members of a group have changed since its decision was made: right after an apply the last decision still says that all is done.

import { observeStatefulSet } from '../../engine/observe/objects.ts';
import type { PublishedDecision } from '../../engine/publish/published.ts';
import { isUnknown } from '../../engine/snapshot.ts';
import type { Listing } from './listing.ts';
import { itemsOf } from './snapshot.ts';

/** False also when StatefulSets may not be read: then the decision is all there is. */
export function isOutdated(decision: PublishedDecision, { statefulSets }: Listing): boolean {
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
