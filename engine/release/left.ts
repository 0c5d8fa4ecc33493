// Finds StatefulSets that left a group and keep the partition that the agent wrote: template changes do not reach their pods.
import { traitsOf } from '../../policies/strategies.ts';
import { isSameValue } from '../../policies/values/canonical-json.ts';
import { compareText } from '../../policies/values/compare-text.ts';
import type { GroupContext } from '../context.ts';
import type { LeftMember } from '../decision.ts';
import { partitionOrdinal, unreadReasonOf } from '../observe/view.ts';
import { type Ledger, type ReleaseTerms, type Snapshot, type StatefulSetView, setNamed } from '../snapshot.ts';

type Named = ReleaseTerms['zones'][number];

/** The interval at which a group looks at such StatefulSets, because a change of one wakes no group. In milliseconds. */
export const lookAgainMs = 60_000;

/**
 * Returns the ledger with the members whose partition the agent holds. A former member stays until its partition is 0, until another group
 * contains it, or until it is deleted.
 */
export function withMembers(ledger: Ledger, { snapshot, group }: Pick<GroupContext, 'snapshot' | 'group'>): Ledger {
  const { members: _members, ...rest } = ledger;
  const present = traitsOf(group).holdsPartition ? group.zones.map(({ name, statefulSet }) => ({ zone: name, statefulSet })) : [];
  const former = formerMembers(ledger, snapshot).filter(({ set, isUnread }) => isUnread || set !== undefined);
  const members = [...present, ...former.map(({ zone, statefulSet }) => ({ zone, statefulSet }))];
  members.sort((a, b) => compareText(a.statefulSet, b.statefulSet));
  if (isSameValue(members, ledger.members ?? [])) return ledger;
  return members.length === 0 ? rest : { ...rest, members };
}

const again = 'add the StatefulSet to the group again';

/** Returns the former members of the group with a partition. */
export function leftWithPartition({ snapshot, view }: Pick<GroupContext, 'snapshot' | 'view'>): readonly LeftMember[] {
  return formerMembers(view.ledger, snapshot).flatMap(({ zone, statefulSet, set }) => {
    if (set === undefined) return [];
    const { partition } = set;
    return [
      {
        zone,
        statefulSet,
        fact: `StatefulSet ${statefulSet} left the group and keeps the partition ${partition}, so a new template reaches ${reachedPods(set)}`,
        ...(isUpdated(set) ? { endsWith: releaseCommand(set), alternatives: [again] } : { endsWith: again, alternatives: [] }),
      },
    ];
  });
}

interface FormerMember extends Named {
  /** Absent if the StatefulSet does not exist, could not be read, or has no partition. */
  readonly set?: StatefulSetView;
  readonly isUnread: boolean;
}

function formerMembers(
  { namespace, members = [] }: Ledger,
  snapshot: Pick<Snapshot, 'groups' | 'statefulSets' | 'unread'>,
): readonly FormerMember[] {
  const local = snapshot.groups.filter((one) => one.namespace === namespace);
  const grouped = new Set(local.flatMap(({ zones }) => zones.map(({ statefulSet }) => statefulSet)));
  return members
    .filter(({ statefulSet }) => !grouped.has(statefulSet))
    .map((member) => {
      const isUnread = unreadReasonOf(snapshot, 'StatefulSet', namespace, member.statefulSet) !== undefined;
      const set = setNamed(snapshot, namespace, member.statefulSet);
      const isHeld = set !== undefined && !set.isTerminating && set.updateStrategy === 'RollingUpdate' && set.partition > 0;
      return { ...member, isUnread, ...(isHeld ? { set } : {}) };
    });
}

/** Returns the pods that a new template reaches, in words, for a partition above 0. */
export function reachedPods(set: Pick<StatefulSetView, 'firstOrdinal' | 'partition' | 'replicas'>): string {
  return set.partition >= set.replicas ? 'no pod' : `no pod below ordinal ${partitionOrdinal(set)}`;
}

/**
 * Returns how to release a StatefulSet without a group. While pods are outdated, the admission policy of the installation denies a lower
 * partition: the controllers of all zones would replace pods at the same time. The agent can release one zone after another.
 */
export function releaseAdvice(set: StatefulSetView): string {
  if (isUpdated(set)) return `Define the group, or release the StatefulSet: ${releaseCommand(set)}`;
  return 'Not all its pods are at the update revision, so do not lower the partition by hand. Define the group again: its waves replace the outdated pods. To release the zones one by one instead, define it with spec.rollout.onPolicyDeleted: release, and delete it while the agent runs';
}

/** Reports whether all pods are at the update revision. The admission policy of the installation decides with the same fields. */
function isUpdated({ generation, status }: StatefulSetView): boolean {
  const { observedGeneration, currentRevision, updateRevision, updatedReplicas, replicas } = status;
  return observedGeneration === generation && currentRevision === updateRevision && updatedReplicas === replicas;
}

/** Returns the command that removes the partition; the StatefulSet controller then replaces every outdated pod. */
export function releaseCommand({ namespace, name }: { readonly namespace: string; readonly name: string }): string {
  const patch = JSON.stringify({ spec: { updateStrategy: { rollingUpdate: { partition: 0 } } } });
  return `kubectl patch statefulset ${name} -n ${namespace} --type merge -p '${patch}'`;
}
