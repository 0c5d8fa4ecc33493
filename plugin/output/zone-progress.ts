// Counts the done, in-flight, failing and outdated pods of one zone, each pod once.
import { ordinalsIn } from '../../engine/amount.ts';
import type { ZoneDecision } from '../../engine/decision.ts';
import type { PublishedPod, PublishedZone } from '../../engine/publish/published.ts';
import { isTroubled } from '../../engine/publish/status.ts';
import { updatedRevision } from '../../engine/publish/template-change.ts';

export interface ZoneProgress {
  readonly zone: string;
  /** The pods at the update revision, as in every count of updated pods: also those that are not available. */
  readonly updated: number;
  /** True if these pods are at the revision before a rollback. */
  readonly isReturned?: true;
  /** The updated and available pods. */
  readonly done: number;
  /** The terminating, starting or unavailable pods, without the failing pods. */
  readonly inFlight: number;
  /** The pods that do not become available by themselves. */
  readonly failing: number;
  /** The available outdated pods. */
  readonly toDo: number;
  /** The pods of `toDo` that stay outdated, because no wave includes them. Absent without such pods. */
  readonly inNoWave?: number;
  /** Why the counts are meaningless; absent for a zone that was read. */
  readonly unread?: string;
}

/** Counts the done, in-flight, failing and outdated pods of one zone, each pod once. An unavailable pod of any revision is in flight or failing. */
export function zoneProgress(view: PublishedZone, pods: readonly PublishedPod[]): ZoneProgress {
  const { zone, replicas, updated, available, isReturned } = view;
  const down = Math.max(0, replicas - available);
  const failing = Math.min(down, pods.filter((pod) => isTroubled(pod) && pod.zone === zone).length);
  const isUpdated = updatedPods(view);
  const unavailableCount = pods.filter((pod) => pod.zone === zone && isUpdated(pod)).length;
  const done = Math.min(Math.max(0, updated - unavailableCount), replicas - down);
  const toDo = Math.max(0, replicas - down - done);
  const inNoWave = Math.min(toDo, view.podsInNoWave ?? 0);
  return {
    zone,
    updated,
    done,
    inFlight: down - failing,
    failing,
    toDo,
    ...(isReturned && { isReturned }),
    ...(inNoWave > 0 && { inNoWave }),
    ...(view.unread && { unread: unreadText(view) }),
  };
}

/** Returns `1 failing` and `2 in flight`, each only if there is such a pod. */
export function downText({ failing, inFlight }: Pick<ZoneProgress, 'failing' | 'inFlight'>): readonly string[] {
  return [...(failing > 0 ? [`${failing} failing`] : []), ...(inFlight > 0 ? [`${inFlight} in flight`] : [])];
}

/** Returns `3 in no wave`, if there is such a pod. */
export function noWaveParts({ inNoWave = 0 }: Pick<ZoneProgress, 'inNoWave'>): readonly string[] {
  return inNoWave === 0 ? [] : [`${inNoWave} in no wave`];
}

/** The maximum number of pods of a zone that are counted one by one. */
export const countedLimit = 10_000;

/** Returns a predicate that is true if a pod is starting, or if it runs the update revision and is not leaving. */
function updatedPods(zone: PublishedZone): (pod: PublishedPod) => boolean {
  const { statefulSet, revisions } = zone;
  const target = revisions.find(({ revision }) => revision === updatedRevision(zone));
  const ordinals = new Set(target === undefined ? [] : ordinalsIn(target.ordinals, countedLimit));
  return ({ pod, state }) => state === 'starting' || (state !== 'leaving' && ordinals.has(Number(pod.slice(statefulSet.length + 1))));
}

/** Returns why the counts of a zone are meaningless. */
export function unreadText({ unread, statefulSet }: Pick<ZoneDecision, 'unread' | 'statefulSet'>): string {
  return unread === 'missing' ? `StatefulSet ${statefulSet} does not exist` : 'could not be read';
}
