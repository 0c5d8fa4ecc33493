// Replaces the cached object of a request by the object that was read for it.

import { isSameJson } from '../../cluster/request/json.ts';
import type { KubernetesObject } from '../../cluster/request/resource.ts';
import { compareResourceVersions } from '../../cluster/request/resource-version.ts';
import { observePod, observeStatefulSet } from '../../engine/observe/objects.ts';
import { isUnknown, type PodView, type Snapshot } from '../../engine/snapshot.ts';
import { Undecidable } from './denial.ts';

/** Returns whether the cached labels of the object are stale: labels decide which policies apply. */
export function isBehind({ statefulSets }: Pick<Snapshot, 'statefulSets'>, live: KubernetesObject): boolean {
  const { namespace, name, uid, labels = {} } = live.metadata;
  const known = statefulSets.find((set) => set.namespace === namespace && set.name === name);
  if (known === undefined || known.uid !== uid) return true;
  return !isSameJson(known.labels, labels) && isOlder(known.resourceVersion, live.metadata.resourceVersion);
}

/** Returns the snapshot with the StatefulSet that was read, unless the cache is newer. Throws if it cannot be parsed. */
export function withStatefulSet(snapshot: Snapshot, live: KubernetesObject): Snapshot {
  const view = observeStatefulSet(live);
  if (isUnknown(view)) throw new Undecidable(view.unknown);
  const known = snapshot.statefulSets.find((set) => set.namespace === view.namespace && set.name === view.name);
  if (known !== undefined && known.uid !== view.uid) throw new Undecidable(`StatefulSet ${view.name} was recreated`);
  if (known !== undefined && !isOlder(known.resourceVersion, view.resourceVersion)) return snapshot;
  return { ...snapshot, statefulSets: [...snapshot.statefulSets.filter((set) => set !== known), view] };
}

/** Returns the snapshot with the pod that was read, unless the cache is newer. Throws if it cannot be parsed. */
export function withPod(snapshot: Snapshot, statefulSet: string, live: KubernetesObject): Snapshot {
  const view = observePod(live);
  if (isUnknown(view)) throw new Undecidable(view.unknown);
  const { namespace, owner: _owner, ...pod } = view;
  const pods = snapshot.pods.map((known) => {
    if (known.namespace !== namespace || known.statefulSet !== statefulSet || isUnknown(known.pods)) return known;
    const before = known.pods.find(({ name }) => name === pod.name);
    if (before !== undefined && before.uid === pod.uid && !isOlder(before.resourceVersion, pod.resourceVersion)) return known;
    const now: PodView = { ...pod, nodeReady: before?.uid === pod.uid ? before.nodeReady : true };
    return { ...known, pods: [...known.pods.filter((other) => other !== before), now].sort((a, b) => a.ordinal - b.ordinal) };
  });
  return { ...snapshot, pods };
}

function isOlder(known: string, read: string | undefined): boolean {
  return read !== undefined && known !== read && (compareResourceVersions(known, read) ?? -1) < 0;
}
