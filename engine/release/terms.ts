// Keeps the release terms of a group in its ledger: the StatefulSets that Kubernetes rolls after the group is deleted. Finds out whether
// the definition of the group was deleted.
import type { GroupDefinition } from '../../policies/definition.ts';
import { traitsOf } from '../../policies/strategies.ts';
import { isSameValue } from '../../policies/values/canonical-json.ts';
import { unreadReasonOf } from '../observe/view.ts';
import { isUnknown, type Ledger, type PodView, type ReleaseTerms, type Snapshot, type StatefulSetView, type Unknown } from '../snapshot.ts';

type DefinitionSource = 'directory' | 'objects' | 'adopted';

/** The state of a source. `complete`: every definition of the source was read. `none`: the source does not exist. */
export type SourceState = 'complete' | 'none' | Unknown;

export interface Definitions {
  readonly groups: readonly GroupDefinition[];
  readonly sources: Readonly<Record<DefinitionSource, SourceState>>;
}

/** Returns the release terms of a group; undefined without `onPolicyDeleted: release`, or if its strategy uses no partition. */
export function termsOf(group: GroupDefinition): ReleaseTerms | undefined {
  if (group.rollout.onPolicyDeleted !== 'release' || !traitsOf(group).holdsPartition || group.zones.length === 0) return undefined;
  return {
    source: sourceOf(group),
    zones: group.zones.map(({ name, statefulSet }) => ({ zone: name, statefulSet })),
  };
}

/** Returns the origin of a group that is not adopted. */
export function sourceOf({ sources }: GroupDefinition): ReleaseTerms['source'] {
  return sources['']?.file === undefined ? 'objects' : 'directory';
}

/** Returns the ledger with these terms; the same ledger if it has them already. */
export function withTerms(ledger: Ledger, terms: ReleaseTerms | undefined): Ledger {
  if (isSameValue(ledger.release, terms)) return ledger;
  const { release: _release, ...rest } = ledger;
  return terms === undefined ? rest : { ...rest, release: terms };
}

/** `defined`: the group exists. `elsewhere`: another group names a member. `unsure`: a source that cannot be read may define the group. */
type DefinitionState = { readonly kind: 'defined' | 'elsewhere' | 'gone' } | { readonly kind: 'unsure'; readonly because: string };

/** Returns whether the group, or another group with its members, is defined. `gone` requires that every source was read completely. */
export function definitionStateOf(
  { namespace, group }: Pick<Ledger, 'namespace' | 'group'>,
  { source, zones }: Pick<ReleaseTerms, 'source' | 'zones'>,
  { groups, sources }: Definitions,
): DefinitionState {
  const local = groups.filter((one) => one.namespace === namespace);
  if (local.some(({ name }) => name === group)) return { kind: 'defined' };
  const members = new Set(zones.map(({ statefulSet }) => statefulSet));
  if (local.some((one) => one.zones.some(({ statefulSet }) => members.has(statefulSet)))) return { kind: 'elsewhere' };
  const unread = Object.values(sources).find((state) => isUnknown(state));
  if (unread !== undefined) return { kind: 'unsure', because: unread.unknown };
  if (sources[source] === 'none') return { kind: 'unsure', because: `the source of its definition (${source}) is no longer read` };
  return { kind: 'gone' };
}

/** A StatefulSet of a group without a definition. */
export interface Member {
  readonly zone: string;
  readonly statefulSet: string;
  readonly unknown?: string;
  /** Absent if the StatefulSet does not exist or is terminating. */
  readonly set?: StatefulSetView;
  /** The pods within `spec.replicas`. */
  readonly pods: readonly PodView[];
}

export function viewMember(
  snapshot: Pick<Snapshot, 'statefulSets' | 'pods' | 'unread'>,
  namespace: string,
  { zone, statefulSet }: ReleaseTerms['zones'][number],
): Member {
  const named = { zone, statefulSet, pods: [] };
  const unread = unreadReasonOf(snapshot, 'StatefulSet', namespace, statefulSet);
  if (unread !== undefined) return { ...named, unknown: unread };
  const set = snapshot.statefulSets.find((one) => one.namespace === namespace && one.name === statefulSet);
  if (set === undefined || set.isTerminating) return named;
  const pods = snapshot.pods.find((one) => one.namespace === namespace && one.statefulSet === statefulSet)?.pods;
  if (pods === undefined || isUnknown(pods)) return { ...named, set, unknown: pods?.unknown ?? `the pods of ${statefulSet} are not known` };
  const end = set.firstOrdinal + set.replicas;
  return { ...named, set, pods: pods.filter(({ ordinal }) => ordinal >= set.firstOrdinal && ordinal < end) };
}

/** Returns the pods that are not at the update revision. */
export function outdatedOf({ set, pods }: Pick<Member, 'set' | 'pods'>): readonly PodView[] {
  return set === undefined ? [] : pods.filter(({ revision }) => revision !== set.status.updateRevision);
}
