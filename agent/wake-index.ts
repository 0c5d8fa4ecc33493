// Finds for the agent the groups that a change concerns: by members, budgets, mirrored objects and policies.

import type { GroupDefinition } from '../policies/definition.ts';
import { canonicalJson } from '../policies/values/canonical-json.ts';
import { getOrCreate } from '../policies/values/map.ts';
import type { ActivePolicies } from './policies/policies.ts';
import type { TurnReport } from './report.ts';
import type { CacheChange } from './watched/caches.ts';
import { sourceKeysOf } from './watched/replica-sources.ts';

export function groupKey({ namespace, name }: Pick<GroupDefinition, 'namespace' | 'name'>): string {
  return `${namespace}/${name}`;
}

export function removedKeys(keys: Iterable<string>, groups: readonly Pick<GroupDefinition, 'namespace' | 'name'>[]): readonly string[] {
  const kept = new Set(groups.map(groupKey));
  return [...keys].filter((key) => !kept.has(key));
}

/** The rules whose result depends on pods outside the group, because a budget may count these pods. */
const sharedRules: ReadonlySet<string> = new Set(['disruption-budget', 'eviction-budget']);

/** The index of all groups by the objects on which they depend. */
export class WakeIndex {
  #groups: ReadonlyMap<string, GroupDefinition> = new Map();
  #texts: ReadonlyMap<string, string> = new Map();
  #byMember: ReadonlyMap<string, readonly string[]> = new Map();
  #bySource: ReadonlyMap<string, readonly string[]> = new Map();
  #policiesText = '';
  readonly #waitingForBudgets = new Set<string>();

  group(key: string): GroupDefinition | undefined {
    return this.#groups.get(key);
  }

  /** Replaces the policies. Returns all groups if a definition or request changed; else the groups with other positions in policy files. */
  replace({ groups, digest, intents }: ActivePolicies): readonly string[] {
    const policiesText = canonicalJson([digest, intents]);
    const texts = new Map(groups.map((group) => [groupKey(group), canonicalJson(group)]));
    const isAll = policiesText !== this.#policiesText;
    const changed = [...texts].filter(([key, text]) => isAll || this.#texts.get(key) !== text).map(([key]) => key);
    this.#policiesText = policiesText;
    this.#texts = texts;
    this.#groups = new Map(groups.map((group) => [groupKey(group), group]));
    this.#byMember = grouped(groups, (group) => group.zones.map((zone) => `${group.namespace}/${zone.statefulSet}`));
    this.#bySource = grouped(groups, sourceKeysOf);
    for (const key of this.#waitingForBudgets) if (!this.#groups.has(key)) this.#waitingForBudgets.delete(key);
    return changed;
  }

  /** Returns the groups that a change may concern. */
  touchedBy(change: CacheChange): readonly string[] {
    switch (change.kind) {
      case 'statefulSet':
        return this.#membersOf(change.change.namespace, change.change.name);
      case 'pod': {
        const { namespace, view, before } = change.change;
        const owner = (view ?? before)?.owner;
        const own = owner?.kind === 'StatefulSet' ? this.#membersOf(namespace, owner.name) : [];
        const shared = [...this.#waitingForBudgets].filter((key) => this.#groups.get(key)?.namespace === namespace);
        return [...own, ...shared];
      }
      case 'budget':
        return [...this.#groups].filter(([, group]) => group.namespace === change.namespace).map(([key]) => key);
      case 'node':
      case 'state':
        return [...this.#groups.keys()];
      case 'policy':
        return [];
      default:
        return change satisfies never;
    }
  }

  mirroring(source: string): readonly string[] {
    return this.#bySource.get(source) ?? [];
  }

  /** Records whether the group waits for a rule that counts pods of other groups. */
  noteWaits({ group, decision }: TurnReport): void {
    const key = groupKey(group);
    if (decision?.waits.some(({ rule }) => sharedRules.has(rule))) this.#waitingForBudgets.add(key);
    else this.#waitingForBudgets.delete(key);
  }

  #membersOf(namespace: string, statefulSet: string): readonly string[] {
    return this.#byMember.get(`${namespace}/${statefulSet}`) ?? [];
  }
}

function grouped(
  groups: readonly GroupDefinition[],
  namesOf: (group: GroupDefinition) => readonly string[],
): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  for (const group of groups) {
    for (const name of namesOf(group)) getOrCreate(found, name, (): string[] => []).push(groupKey(group));
  }
  return found;
}
