// The other StatefulSets of a group: when each of them last shrank, and whether all of its pods are updated and ready.
import type { ClusterEnv } from '../../../cluster/env.ts';
import { listObjects } from '../../../cluster/request/read.ts';
import { resources } from '../../../cluster/request/resource.ts';
import { type ObservedPod, observePod, observeStatefulSet } from '../../../engine/observe/objects.ts';
import { shortfall } from '../../../engine/rules/prepared-rows.ts';
import { isUnknown, type StatefulSetView } from '../../../engine/snapshot.ts';
import { labelKeys, podNameLabel } from '../../../policies/adopt/keys.ts';
import { withinGoDuration } from '../../../policies/adopt/values.ts';
import { goDurationMs } from '../../../policies/duration.ts';
import { instantMs } from '../../../policies/instant.ts';
import { goDurationText, goTimeText } from '../go-text.ts';

interface ReadOptions {
  readonly namespace: string;
  /** Of the next request, in milliseconds; rejects when there is no time for one. */
  readonly timeoutMs: () => number;
}

/** The StatefulSets with that value of the label, in the order of the server's list. Rejects when one of them cannot be read. */
export async function groupMembers(
  env: Pick<ClusterEnv, 'kubernetes'>,
  group: string,
  { namespace, timeoutMs }: ReadOptions,
): Promise<readonly StatefulSetView[]> {
  const labelSelector = `${labelKeys.group}=${group}`;
  const site = 'prepareDownscale.listMembers';
  const { items } = await listObjects(env, resources.statefulSets, { namespace, labelSelector, site, timeoutMs: timeoutMs() });
  return items.map((item) => {
    const set = observeStatefulSet(item);
    if (isUnknown(set)) throw new Error(set.unknown);
    return set;
  });
}

/** The pods that the original takes for those of a StatefulSet: by the label of its template, whoever owns them. Rejects as a list does. */
export async function podsOf(
  env: Pick<ClusterEnv, 'kubernetes'>,
  set: Pick<StatefulSetView, 'podLabels'>,
  { namespace, timeoutMs }: ReadOptions,
): Promise<readonly ObservedPod[]> {
  const labelSelector = `${podNameLabel}=${set.podLabels[podNameLabel] ?? ''}`;
  const site = 'prepareDownscale.listPods';
  const { items } = await listObjects(env, resources.pods, { namespace, labelSelector, site, timeoutMs: timeoutMs() });
  return items.map((item) => {
    const pod = observePod(item);
    if (isUnknown(pod)) throw new Error(pod.unknown);
    return pod;
  });
}

/** When a StatefulSet last shrank, as it is written; undefined when that is not on record. */
export type LastOf = (set: StatefulSetView) => string | undefined;

/**
 * Why the time since another zone shrank is too short, or cannot be told. Each zone's own label says how long the others wait after it; one
 * without the label makes nobody wait. Exactly that long is long enough.
 */
export function gapProblem(others: readonly StatefulSetView[], lastOf: LastOf, nowMs: number): string | undefined {
  for (const other of others) {
    const last = lastOf(other);
    if (last === undefined) continue;
    const lastMs = instantMs(last);
    if (lastMs === undefined) return unparsed(`the time at which ${other.name} was last scaled down`, last, 'RFC 3339 instant');
    const label = other.labels[labelKeys.minTimeBetweenZones];
    if (label === undefined) continue;
    const gapMs = withinGoDuration(label, goDurationMs);
    if (gapMs === undefined) return unparsed(`label ${labelKeys.minTimeBetweenZones} of ${other.name}`, label, 'Go duration such as 12h');
    if (nowMs - lastMs < gapMs) {
      return `${other.name} was scaled down at ${goTimeText(last)}, and ${goDurationText(gapMs)} must have passed before another zone is`;
    }
  }
  return undefined;
}

function unparsed(what: string, text: string, wanted: string): string {
  return `parsing downscale annotations failed: ${what} is ${JSON.stringify(text.slice(0, 64))}, which is no ${wanted}`;
}

/** Why a zone is not ready: as many pods as its status counts must run, be ready, and be counted as updated. */
export function unreadiness(set: StatefulSetView, pods: readonly ObservedPod[]): string | undefined {
  const short = shortfall(set.status, pods);
  return short === undefined ? undefined : `${set.name} has ${short.notUpdated} non-updated pods and ${short.notReady} non-ready pods`;
}

/** Whether the time of a downscale in one of these zones can make another one wait. */
export function hasMinTime(sets: readonly StatefulSetView[]): boolean {
  return sets.some((set) => set.labels[labelKeys.minTimeBetweenZones] !== undefined);
}
