// Counts the pods of one StatefulSet for a disruption budget: unready pods, and missing pods.
import type { GroupDefinition } from '../../policies/definition.ts';
import { isAvailable } from '../observe/view.ts';
import { profileOf } from '../profiles.ts';
import { earliest } from '../rule.ts';
import { isServing } from '../rules/prepared-rows.ts';
import { isUnknown, type PodView, type Snapshot, type StatefulSetView } from '../snapshot.ts';

export interface Counted {
  /** Number of pods that were counted. */
  readonly tested: number;
  readonly notReady: number;
  /** Number of missing pods. */
  readonly unknown: number;
  /** The earliest time at which time alone makes a pod ready. */
  readonly earliestMs?: number | undefined;
}

/** The definition of a ready pod, and the pods to count. */
export interface ReadyTest {
  /** Decides when a pod is ready; absent: running containers are enough. */
  readonly group: GroupDefinition | undefined;
  /** Time at which the claim on a pod stops counting, by pod UID. */
  readonly claimed: ReadonlyMap<string, number>;
  /** UID of the pod in question, which does not count. */
  readonly exceptUid: string;
  /** Minimum time that a pod is ready, in milliseconds; 0 for none. */
  readonly crossZoneDelayMs: number;
  /** Selects the pods to count; absent: all pods. */
  readonly isMember?: (pod: PodView) => boolean;
}

/** Returns the count of one StatefulSet; undefined if its pods could not be read. */
export function countPods(snapshot: Pick<Snapshot, 'nowMs' | 'pods'>, set: StatefulSetView, test: ReadyTest): Counted | undefined {
  const pods = snapshot.pods.find((view) => view.namespace === set.namespace && view.statefulSet === set.name)?.pods;
  if (pods === undefined || isUnknown(pods)) return undefined;
  let tested = 0;
  let notReady = 0;
  const waking: number[] = [];
  for (const pod of pods) {
    if (test.isMember !== undefined && !test.isMember(pod)) continue;
    tested += 1;
    if (pod.uid === test.exceptUid) continue;
    const sinceMs = readyFromMs(pod, set, test, snapshot.nowMs);
    if (sinceMs !== undefined && sinceMs <= snapshot.nowMs) continue;
    notReady += 1;
    if (sinceMs !== undefined) waking.push(sinceMs);
  }
  // Missing pods may belong to any partition, so they always count.
  const unknown = Math.max(0, Math.max(set.replicas, set.status.replicas) - pods.length);
  return { tested, notReady, unknown, earliestMs: earliest(waking) };
}

/**
 * Returns the time from which the pod counts as ready if nothing else changes; a past time means ready now. Undefined if time alone does
 * not help.
 */
function readyFromMs(pod: PodView, set: StatefulSetView, test: ReadyTest, nowMs: number): number | undefined {
  const claimEndMs = test.claimed.get(pod.uid) ?? 0;
  const { group } = test;
  const readsCondition = group !== undefined && profileOf(group).podReadiness === 'condition';
  const isUp = group === undefined ? isServing(pod) : isAvailable(pod, group, 0, nowMs);
  if (!isUp) return undefined;
  const availableMs = readsCondition ? pod.readyChangedMs + set.minReadySeconds * 1000 : 0;
  if (test.crossZoneDelayMs === 0) return Math.max(claimEndMs, availableMs);
  // If only the annotation counts, a pod without it becomes ready now, and its delay never ends.
  const readyTimeMs = pod.readyTimeMs ?? (readsCondition ? pod.readyChangedMs : undefined);
  if (readyTimeMs === undefined) return undefined;
  return Math.max(claimEndMs, availableMs, readyTimeMs + test.crossZoneDelayMs + 1);
}
