// Properties of every write of a partition, in addition to those of every disruption.
import { traitsOf } from '../../policies/strategies.ts';
import { contextOf, zoneNamed } from '../context.ts';
import type { Invariant } from './invariants.ts';

export const rightPartition: Invariant = {
  id: 'S6p',
  title: 'a partition exposes exactly the chosen pods, and is raised only if every pod runs the update revision or is pinned',
  scope: 'native',
  violations: (decided) => {
    const context = contextOf(decided.snapshot, decided.group);
    return decided.decision.actions.flatMap((action) => {
      if (action.kind !== 'setPartition') return [];
      const view = zoneNamed(context, action.zone);
      const set = view?.set;
      if (view === undefined || set === undefined) return [`the StatefulSet of zone ${action.zone} was not seen`];
      const outdated = view.outdated.filter((pod) => pod.ordinal >= set.firstOrdinal + action.to && !view.exposedByPartition.includes(pod));
      const others = outdated
        .filter((pod) => !action.pods.some(({ uid }) => uid === pod.uid))
        .map((pod) => `${pod.name} would be replaced without being chosen`);
      const isRaised = action.to > set.partition;
      // Pinned pods come back at their own revision, wherever the partition is.
      const isHeld = view.updated === view.replicas && set.status.currentRevision === set.status.updateRevision;
      const isPartial = !traitsOf(decided.group).pinsPods && !isHeld;
      return [...others, ...(isRaised && isPartial ? [`the partition of ${action.statefulSet} is raised during a rollout`] : [])];
    });
  },
};
