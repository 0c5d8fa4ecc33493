// Builds whole snapshots. Parts that a test omits are those of a healthy cluster.
import { emptySnapshot, type Snapshot, type StatefulSetView } from '../../engine/snapshot.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { kitNowMs, type PodChanges, podsOf, type StatefulSetOverrides, statefulSet } from './objects.ts';

export type SnapshotOverrides = Partial<Snapshot> & {
  /** Common fields of all StatefulSets that the test does not list, such as `replicas`. */
  readonly everySet?: StatefulSetOverrides;
  /** Changed fields of pods, by name of the StatefulSet and ordinal. */
  readonly podChanges?: Readonly<Record<string, PodChanges>>;
  /** The names of StatefulSets that do not exist. */
  readonly absent?: readonly string[];
};

/**
 * Builds a snapshot at `kitNowMs`. Zones without a StatefulSet get one. StatefulSets without pods get all of them, ready and at their
 * current revision.
 */
export function snapshotOf(overrides: SnapshotOverrides = {}): Snapshot {
  const { everySet, podChanges, absent = [], ...rest } = overrides;
  const listed = rest.statefulSets ?? [];
  const missing = (rest.groups ?? []).flatMap((one) => missingSets(one, listed, everySet));
  const statefulSets = [...listed, ...missing].filter(({ name }) => !absent.includes(name));
  const pods = statefulSets
    .filter((set) => !rest.pods?.some((view) => view.namespace === set.namespace && view.statefulSet === set.name))
    .map((set) => podsOf(set, podChanges?.[set.name]));
  return { ...emptySnapshot(kitNowMs), ...rest, statefulSets, pods: [...(rest.pods ?? []), ...pods] };
}

function missingSets(
  one: GroupDefinition,
  listed: readonly StatefulSetView[],
  everySet?: StatefulSetOverrides,
): readonly StatefulSetView[] {
  const { namespace } = one;
  return one.zones
    .filter((zone) => !listed.some((set) => set.namespace === namespace && set.name === zone.statefulSet))
    .map((zone) => statefulSet({ ...everySet, namespace, name: zone.statefulSet }));
}
