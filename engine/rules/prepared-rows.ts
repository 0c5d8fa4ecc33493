// Defines the checks of grafana/rollout-operator before a prepared downscale, for the engine and for the drop-in endpoint; each has its own
// messages.
import type { PodView, StatefulSetView } from '../snapshot.ts';

/** Returns whether the original counts a pod as ready: it runs, is not on its way out, and all containers are ready. */
export function isServing({
  phase,
  isTerminating,
  containersReady,
}: Pick<PodView, 'phase' | 'isTerminating' | 'containersReady'>): boolean {
  return phase === 'Running' && !isTerminating && containersReady;
}

/**
 * Counts of missing or unready pods, and of outdated pods, by the status of the zone. Negative for pods that the status does not count yet.
 */
interface Shortfall {
  readonly notReady: number;
  readonly notUpdated: number;
}

/** Undefined for a zone that is whole: as many pods as its status counts are ready, and all of them are counted as updated. */
export function shortfall(
  { replicas, updatedReplicas }: StatefulSetView['status'],
  pods: readonly Parameters<typeof isServing>[0][],
): Shortfall | undefined {
  const ready = pods.filter(isServing).length;
  if (ready === replicas && ready === updatedReplicas) return undefined;
  return { notReady: replicas - ready, notUpdated: replicas - updatedReplicas };
}

/** The ordinals that leave, from the highest down, in which order pods are asked. */
export function leavingFromTop(firstOrdinal: number, from: number, to: number): readonly number[] {
  return Array.from({ length: from - to }, (_, index) => firstOrdinal + from - 1 - index);
}
