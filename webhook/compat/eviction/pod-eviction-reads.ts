// Reads from the quorum what a verdict on an eviction depends on: the pod, its owner, the StatefulSets of the budget and their pods.
import type { ClusterEnv } from '../../../cluster/env.ts';
import { getObject, listObjects } from '../../../cluster/request/read.ts';
import { resources } from '../../../cluster/request/resource.ts';
import { type ObservedPod, observePod, observeStatefulSet } from '../../../engine/observe/objects.ts';
import { isUnknown, type Known, type PodsView, type StatefulSetView, type ZoneBudgetView } from '../../../engine/snapshot.ts';
import { messageOf } from '../../../policies/error-message.ts';

type Port = Pick<ClusterEnv, 'kubernetes'>;

/** Number of StatefulSets whose pods are listed in parallel. */
const listsAtOnce = 8;

/** Returns the pod; unknown with the answer of the API server if it cannot be read or does not exist. */
export async function readPod(
  env: Port,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  timeoutMs: number,
): Promise<Known<ObservedPod>> {
  return orUnknown(async () => {
    const object = await getObject(env, resources.pods, { namespace, name }, { site: 'eviction.pod', timeoutMs });
    return object === undefined ? { unknown: `pods "${name}" not found` } : observePod(object);
  });
}

/** Returns the StatefulSet that controls the pod; unknown without one, or if it cannot be read. */
export async function readOwner(env: Port, { namespace, name, owner }: ObservedPod, timeoutMs: number): Promise<Known<StatefulSetView>> {
  if (owner === undefined) return { unknown: `pod ${name} has no controller` };
  if (owner.kind !== 'StatefulSet') return { unknown: `pod ${name} is controlled by ${owner.kind} ${owner.name}, not by a StatefulSet` };
  return orUnknown(async () => {
    const object = await getObject(
      env,
      resources.statefulSets,
      { namespace, name: owner.name },
      { site: 'eviction.statefulSet', timeoutMs },
    );
    return object === undefined ? { unknown: `statefulsets.apps "${owner.name}" not found` } : observeStatefulSet(object);
  });
}

/** Returns the StatefulSets that the budget selects. Unknown if one cannot be parsed: it may be the zone that is down. */
export async function listMembers(env: Port, budget: ZoneBudgetView, timeoutMs: number): Promise<Known<readonly StatefulSetView[]>> {
  return orUnknown(async () => {
    const labelSelector = Object.entries(budget.matchLabels)
      .map(([key, value]) => `${key}=${value}`)
      .join(',');
    const { items } = await listObjects(env, resources.statefulSets, {
      namespace: budget.namespace,
      ...(labelSelector === '' ? {} : { labelSelector }),
      site: 'eviction.statefulSets',
      timeoutMs,
    });
    const views = items.map(observeStatefulSet);
    return views.find(isUnknown) ?? views.filter((view): view is StatefulSetView => !isUnknown(view));
  });
}

/** Returns the pods of each StatefulSet; each list may be unknown. */
export async function listPodsOf(env: Port, sets: readonly StatefulSetView[], leftMs: () => number): Promise<readonly PodsView[]> {
  const views: PodsView[] = [];
  for (let from = 0; from < sets.length; from += listsAtOnce) {
    const batch = sets.slice(from, from + listsAtOnce);
    views.push(...(await Promise.all(batch.map((set) => podsOf(env, set, leftMs())))));
  }
  return views;
}

/**
 * Returns the pods with the label `name` of the template, as grafana/rollout-operator finds them, if the StatefulSet controls them. A pod
 * of another owner with this label must not replace a missing one.
 */
async function podsOf(env: Port, set: StatefulSetView, timeoutMs: number): Promise<PodsView> {
  const { namespace, name: statefulSet, podLabels, uid } = set;
  const pods = await orUnknown(async () => {
    const labelSelector = `name=${podLabels['name'] ?? ''}`;
    const { items } = await listObjects(env, resources.pods, { namespace, labelSelector, site: 'eviction.pods', timeoutMs });
    const views = items.map((item) => observePod(item));
    return (
      views.find(isUnknown) ??
      views.filter((view): view is ObservedPod => !isUnknown(view) && view.owner?.kind === 'StatefulSet' && view.owner.uid === uid)
    );
  });
  return { namespace, statefulSet, pods };
}

async function orUnknown<Value>(read: () => Promise<Known<Value>>): Promise<Known<Value>> {
  try {
    return await read();
  } catch (error) {
    return { unknown: messageOf(error) };
  }
}
