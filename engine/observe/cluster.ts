// Makes a snapshot from the caches of a running cluster. Joins each pod with its StatefulSet and its node.
import { extended } from '../../policies/values/defined.ts';
import { groupBy } from '../../policies/values/group-by.ts';
import { isUnknown, type Known, type PodsView, type PodView, type Snapshot, type StatefulSetView, type UnreadObject } from '../snapshot.ts';
import type { ObservedPod } from './objects.ts';

/** The cached views of a cluster. The view of an unchanged object stays the same value, so that derived values are reused. */
export type Observed = Omit<Snapshot, 'statefulSets' | 'pods' | 'unread'> & {
  readonly statefulSets: Known<readonly StatefulSetView[]>;
  /** Pods of every watched namespace, owned or not, in any order. */
  readonly pods: Known<readonly ObservedPod[]>;
  /** Readiness of nodes by name; a missing node is not ready. Unknown without permission to read nodes: then every node counts as ready. */
  readonly nodes: Known<ReadonlyMap<string, boolean>>;
  /** Objects that exist but could not be parsed, and ledgers that could not be read. */
  readonly unread?: readonly UnreadObject[];
};

/**
 * Returns the snapshot of a cluster. A pod belongs to the StatefulSet that its controller reference names by UID. A pod that only has the
 * labels does not count, unlike in grafana/rollout-operator, which ignores owners. The drop-in profile also requires the label `name`.
 */
export function snapshotOf(observed: Observed): Snapshot {
  const { statefulSets, pods, nodes, unread = [], ...rest } = observed;
  const sets = isUnknown(statefulSets) ? [] : statefulSets;
  const owned = groupBy(isUnknown(pods) ? [] : pods, ({ owner }) => (owner?.kind === 'StatefulSet' ? owner.uid : undefined));
  const unreadPods = [...(isUnknown(pods) ? [{ kind: 'Pod' as const, unknown: pods.unknown }] : []), ...unread.filter(isPod)];
  const others = unread.filter((object) => !isPod(object));
  const allUnread = isUnknown(statefulSets) ? [{ kind: 'StatefulSet' as const, unknown: statefulSets.unknown }, ...others] : others;
  return extended(rest, {
    statefulSets: sets,
    pods: sets.map((set) => podsOf(set, owned.get(set.uid) ?? [], unreadPods, nodes)),
    ...(allUnread.length === 0 ? {} : { unread: allUnread }),
  });
}

/** A pod that looks like a pod of a StatefulSet, by its label `name` or its own name, but that no observed StatefulSet owns. */
interface ForeignPod {
  readonly namespace: string;
  readonly name: string;
  /** The StatefulSet to which the pod seems to belong. */
  readonly statefulSet: string;
  /** `kind name` of its controller; absent without a controller. */
  readonly owner?: string;
}

/** Returns the pods that look like pods of a StatefulSet but that no observed StatefulSet owns. */
export function foreignPods({ statefulSets, pods }: Pick<Observed, 'statefulSets' | 'pods'>): readonly ForeignPod[] {
  if (isUnknown(statefulSets) || isUnknown(pods)) return [];
  const uids = new Set(statefulSets.map((set) => set.uid));
  return pods
    .filter(({ owner }) => owner === undefined || !uids.has(owner.uid))
    .flatMap((pod) => {
      const set = statefulSets.find((candidate) => candidate.namespace === pod.namespace && looksLikePodOf(candidate, pod));
      if (set === undefined) return [];
      const owner = pod.owner && { owner: `${pod.owner.kind} ${pod.owner.name}` };
      return [{ namespace: pod.namespace, name: pod.name, statefulSet: set.name, ...owner }];
    });
}

/** Returns the pods without a controller that missing members of groups would adopt by their names, after a deletion with `--cascade=orphan`. */
export function orphanedPods({ groups, statefulSets, pods }: Pick<Observed, 'groups' | 'statefulSets' | 'pods'>): readonly PodsView[] {
  if (isUnknown(statefulSets) || isUnknown(pods)) return [];
  return groups.flatMap(({ namespace, zones }) =>
    zones.flatMap(({ statefulSet }): readonly PodsView[] => {
      if (statefulSets.some((set) => set.namespace === namespace && set.name === statefulSet)) return [];
      const isOrphan = (pod: ObservedPod) => pod.namespace === namespace && statefulSetInName(pod.name) === statefulSet;
      const orphans = pods.filter((pod) => pod.owner === undefined && isOrphan(pod)).sort(byOrdinal);
      return orphans.length === 0 ? [] : [{ namespace, statefulSet, pods: orphans }];
    }),
  );
}

function looksLikePodOf(set: StatefulSetView, pod: ObservedPod): boolean {
  const label = set.podLabels['name'];
  return (label !== undefined && pod.labels['name'] === label) || statefulSetInName(pod.name) === set.name;
}

/** Returns the StatefulSet in the name of its pod, which is known even if the pod could not be read; undefined for other names of pods. */
export function statefulSetInName(pod: string): string | undefined {
  return /^(.+)-\d{1,10}$/.exec(pod)?.[1];
}

function isPod(object: UnreadObject): boolean {
  return object.kind === 'Pod';
}

function podsOf(set: StatefulSetView, owned: readonly ObservedPod[], unread: readonly UnreadObject[], nodes: Observed['nodes']): PodsView {
  const { namespace, name: statefulSet } = set;
  const problem = unread.find(
    (one) => (one.namespace ?? namespace) === namespace && (one.name === undefined || statefulSetInName(one.name) === set.name),
  );
  if (problem !== undefined) return { namespace, statefulSet, pods: { unknown: problem.unknown } };
  const inNamespace = owned.filter((pod) => pod.namespace === namespace);
  return sameAsBefore(set, { namespace, statefulSet, pods: inNamespace.map((pod) => onNode(pod, nodes)).sort(byOrdinal) });
}

function byOrdinal(a: PodView, b: PodView): number {
  return a.ordinal - b.ordinal || (a.uid < b.uid ? -1 : 1);
}

const joined: WeakMap<ObservedPod, PodView> = new WeakMap();

function onNode(pod: ObservedPod, nodes: Observed['nodes']): PodView {
  const nodeReady = pod.node === '' || isUnknown(nodes) || nodes.get(pod.node) === true;
  if (nodeReady === pod.nodeReady) return pod;
  const before = joined.get(pod);
  if (before?.nodeReady === nodeReady) return before;
  const view: PodView = { ...pod, nodeReady };
  joined.set(pod, view);
  return view;
}

type KnownPods = PodsView & { readonly pods: readonly PodView[] };

const known: WeakMap<StatefulSetView, KnownPods> = new WeakMap();

/** Returns the previous view if it has the same pods, because derived values are cached by the identity of the list. */
function sameAsBefore(set: StatefulSetView, view: KnownPods): PodsView {
  const before = known.get(set);
  const { pods } = view;
  if (before !== undefined && before.pods.length === pods.length && before.pods.every((pod, index) => pod === pods[index])) return before;
  known.set(set, view);
  return view;
}
