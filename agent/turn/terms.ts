// What people have said of a group, as one snapshot has it: a decision is made by one such state and carried out while it stands, or not at all.
import { contextOf } from '../../engine/context.ts';
import { canonicalJson } from '../../engine/hash.ts';
import type { Snapshot } from '../../engine/snapshot.ts';
import type { GroupDefinition } from '../../policies/definition.ts';

/** The definition of the group that goes with the policies of the snapshot; undefined when they define it no more. */
export function definitionIn({ groups }: Snapshot, group: Pick<GroupDefinition, 'namespace' | 'name'>): GroupDefinition | undefined {
  return groups.find(({ namespace, name }) => namespace === group.namespace && name === group.name);
}

/** Reports whether both say the same. Definitions are made anew whenever anything about policies may have changed, so most are equal and not the same. */
export function isSameDefinition(group: GroupDefinition, other: GroupDefinition): boolean {
  return group === other || canonicalJson(group) === canonicalJson(other);
}

/** Everything by which people bind the group, and let it go, as text: its definition, policies, exceptions and intents. */
export function termsOf(snapshot: Snapshot, group: GroupDefinition): string {
  const { policies, exceptions, intents } = contextOf(snapshot, group);
  return canonicalJson([definitionIn(snapshot, group) ?? null, policies, exceptions, intents]);
}
