// What a verdict on an eviction rests on, read from the quorum: the pod, its owner, the StatefulSets of the budget and their pods.
import type { ClusterEnv } from '../../../cluster/env.ts';
import { getObject, listObjects } from '../../../cluster/request/read.ts';
import { resources } from '../../../cluster/request/resource.ts';
import { type ObservedPod, observePod, observeStatefulSet } from '../../../engine/observe/objects.ts';
import { isUnknown, type Known, type PodsView, type StatefulSetView, type ZoneBudgetView } from '../../../engine/snapshot.ts';
import { messageOf } from '../../../policies/error-message.ts';

type Port = Pick<ClusterEnv, 'kubernetes'>;

/** How many StatefulSets are asked for their pods at the same time. */
const listsAtOnce = 8;

/** The pod; unknown with what the API server said when it cannot be had, not being there included. */
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

/** The StatefulSet that controls the pod; unknown when another kind does, or nobody, or when it cannot be had. */
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

/** The StatefulSets that the budget selects. Unknown when one of them is not understood: it may be the zone that is down. */
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

/** The pods of each StatefulSet; unknown one by one. */
export async function listPodsOf(env: Port, sets: readonly StatefulSetView[], leftMs: () => number): Promise<readonly PodsView[]> {
  const views: PodsView[] = [];
  for (let from = 0; from < sets.length; from += listsAtOnce) {
    const batch = sets.slice(from, from + listsAtOnce);
    views.push(...(await Promise.all(batch.map((set) => podsOf(env, set, leftMs())))));
  }
  return views;
}

/**
 * The pods with the label `name` of the template, as grafana/rollout-operator finds them, of which only those count that the StatefulSet
 * controls: a pod of something else that carries the label must not stand for one that is missing.
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
