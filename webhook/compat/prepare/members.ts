// Reads the other StatefulSets of a group for prepare-downscale, and checks their last downscale and their pods.
import type { ClusterEnv } from '../../../cluster/env.ts';
import { listObjects } from '../../../cluster/request/read.ts';
import { resources } from '../../../cluster/request/resource.ts';
import { type ObservedPod, observePod, observeStatefulSet } from '../../../engine/observe/objects.ts';
import { shortfall } from '../../../engine/rules/scale.ts';
import { orThrow, type StatefulSetView } from '../../../engine/snapshot.ts';
import { labelKeys, podNameLabel } from '../../../policies/adopt/keys.ts';
import { withinGoDuration } from '../../../policies/adopt/settings.ts';
import { goDurationMs } from '../../../policies/duration.ts';
import { instantMs } from '../../../policies/instant.ts';
import { goDurationText, goTimeText } from '../go-text.ts';

interface ReadOptions {
  readonly namespace: string;
  /** Returns the timeout of the next request in milliseconds; throws if no time is left. */
  readonly timeoutMs: () => number;
}

/** Returns the StatefulSets whose group label is `group`, in the order of the API server. Rejects if a StatefulSet cannot be parsed. */
export async function groupMembers(
  env: Pick<ClusterEnv, 'kubernetes'>,
  group: string,
  { namespace, timeoutMs }: ReadOptions,
): Promise<readonly StatefulSetView[]> {
  const labelSelector = `${labelKeys.group}=${group}`;
  const site = 'prepareDownscale.listMembers';
  const { items } = await listObjects(env, resources.statefulSets, { namespace, labelSelector, site, timeoutMs: timeoutMs() });
  return items.map((item) => orThrow(observeStatefulSet(item)));
}

/** Returns the pods with the same label `name` as the pod template, even if they have another owner, as grafana/rollout-operator does. */
export async function podsOf(
  env: Pick<ClusterEnv, 'kubernetes'>,
  set: Pick<StatefulSetView, 'podLabels'>,
  { namespace, timeoutMs }: ReadOptions,
): Promise<readonly ObservedPod[]> {
  const labelSelector = `${podNameLabel}=${set.podLabels[podNameLabel] ?? ''}`;
  const site = 'prepareDownscale.listPods';
  const { items } = await listObjects(env, resources.pods, { namespace, labelSelector, site, timeoutMs: timeoutMs() });
  return items.map((item) => orThrow(observePod(item)));
}

/** A function that returns the stored time of the last downscale of a StatefulSet; undefined without a record. */
export type LastOf = (set: StatefulSetView) => string | undefined;

/** Returns a problem if another zone shrank less than its minimum time ago, or if its stored time or its label cannot be parsed. */
export function gapProblem(others: readonly StatefulSetView[], lastOf: LastOf, nowMs: number): string | undefined {
  for (const other of others) {
    const last = lastOf(other);
    if (last === undefined) continue;
    const lastMs = instantMs(last);
    if (lastMs === undefined) return unparsed(`the time at which ${other.name} was last scaled down`, last, 'an RFC 3339 time');
    const label = other.labels[labelKeys.minTimeBetweenZones];
    if (label === undefined) continue;
    const gapMs = withinGoDuration(label, goDurationMs);
    if (gapMs === undefined) return unparsed(`label ${labelKeys.minTimeBetweenZones} of ${other.name}`, label, 'a Go duration such as 12h');
    if (nowMs - lastMs < gapMs) {
      return `${other.name} was scaled down at ${goTimeText(last)}; other zones wait ${goDurationText(gapMs)}`;
    }
  }
  return undefined;
}

function unparsed(what: string, text: string, wanted: string): string {
  return `parsing downscale annotations failed: ${what} is ${JSON.stringify(text.slice(0, 64))}, which is not ${wanted}`;
}

/** Returns why a zone is not ready; undefined if it is ready. In a ready zone, `status.replicas` pods run, are ready and are updated. */
export function unreadiness(set: StatefulSetView, pods: readonly ObservedPod[]): string | undefined {
  const short = shortfall(set.status, pods);
  return short === undefined ? undefined : `${set.name} has ${short.notUpdated} non-updated pods and ${short.notReady} non-ready pods`;
}

/** Returns whether a downscale in one of these zones can delay another downscale. */
export function hasMinTime(sets: readonly StatefulSetView[]): boolean {
  return sets.some((set) => set.labels[labelKeys.minTimeBetweenZones] !== undefined);
}
