// Pairs the groups of the two sides of a review, and compares the definitions that bind them.
import { fieldAt } from '../engine/observe/raw.ts';
import type { ExceptionDefinition, GroupDefinition, PolicyBundle, PolicyDefinition } from '../policies/definition.ts';
import { policiesFor } from '../policies/join.ts';
import { canonicalJson } from '../policies/values/canonical-json.ts';
import { groupBy } from '../policies/values/group-by.ts';
import { isRecord } from '../policies/values/is-record.ts';
import { keptByObject } from '../policies/values/map.ts';

/** One side of a review: the policies and manifests of a revision, without errors. */
export interface Side {
  readonly bundle: PolicyBundle;
  /** The Kubernetes objects of the revision. */
  readonly manifests: readonly unknown[];
  readonly agentNamespace: string;
}

export interface Sides {
  readonly before: Side;
  readonly after: Side;
}

/** A group on one side, with the policies that bind it. */
export interface BoundGroup {
  readonly group: GroupDefinition;
  readonly policies: readonly PolicyDefinition[];
  readonly exceptions: readonly ExceptionDefinition[];
}

/** A group before and after the change. A new group has no `before`, a removed group has no `after`. */
export interface Pair {
  readonly namespace: string;
  /** The name after the change, or the name before it if the group is removed. */
  readonly name: string;
  readonly before?: BoundGroup;
  readonly after?: BoundGroup;
}

/** Pairs groups by name. Pairs a removed group with a new group that has one of its StatefulSets. */
export function pairGroups(before: Side, after: Side): readonly Pair[] {
  const rest = [...after.bundle.groups];
  const take = (isWanted: (group: GroupDefinition) => boolean): GroupDefinition | undefined => {
    const index = rest.findIndex(isWanted);
    return index < 0 ? undefined : rest.splice(index, 1)[0];
  };
  const named = before.bundle.groups.map((old) => {
    return { old, next: take(({ namespace, name }) => namespace === old.namespace && name === old.name) };
  });
  const pairs = named.map(({ old, next }) => {
    const sets = new Set(old.zones.map(({ statefulSet }) => statefulSet));
    const successor = next ?? take((group) => group.namespace === old.namespace && group.zones.some((zone) => sets.has(zone.statefulSet)));
    return pairOf(bound(before, old), successor && bound(after, successor));
  });
  const added = rest.map((group) => pairOf(undefined, bound(after, group)));
  const key = ({ namespace, name }: Pair): string => `${namespace}/${name}`;
  return [...pairs, ...added].sort((a, b) => (key(a) < key(b) ? -1 : 1));
}

function pairOf(before: BoundGroup | undefined, after: BoundGroup | undefined): Pair {
  const { namespace = '', name = '' } = (after ?? before)?.group ?? {};
  return { namespace, name, ...(before && { before }), ...(after && { after }) };
}

export function bound({ bundle, agentNamespace }: Side, group: GroupDefinition): BoundGroup {
  return {
    group,
    policies: policiesFor(bundle.policies, group, agentNamespace),
    exceptions: bundle.exceptions.filter((one) => one.namespace === group.namespace && one.group === group.name),
  };
}

/** Returns the text of every definition that decides about a group: its own, its policies, and the budgets of its namespace. */
export function decidingText(side: BoundGroup | undefined, { namespace }: Pick<Pair, 'namespace'>, of: Side): string {
  return comparableText({ group: side?.group, policies: side?.policies ?? [], values: budgetTexts(of, namespace) });
}

export function isBudget(object: unknown): boolean {
  return /DisruptionBudget$/.test(String(fieldAt(object, ['kind'])));
}

/** Returns the disruption budgets of a namespace as texts. Every group of a namespace has the same ones. */
export function budgetTexts({ manifests }: Side, namespace: string): readonly string[] {
  return (
    budgetsByNamespace(manifests)
      .get(namespace)
      ?.map(({ text }) => text) ?? []
  );
}

const budgetsByNamespace = keptByObject((manifests: readonly unknown[]) => {
  const texts = manifests.filter(isBudget).map((budget) => {
    return { namespace: String(fieldAt(budget, ['metadata', 'namespace']) ?? 'default'), text: comparableText(budget) };
  });
  return groupBy(texts, ({ namespace }) => namespace);
});

/**
 * Returns a definition as text, without the positions in files, and with sorted lists where the order has no meaning. Definitions with equal
 * texts give equal decisions.
 */
export function comparableText(definition: unknown): string {
  return canonicalJson(comparable(definition, ''));
}

/** Reports whether a part of the group or its policies differs between the sides, or only one side has the group. */
export function differs({ before, after }: Pair, partOf: (side: BoundGroup) => unknown): boolean {
  if (before === undefined || after === undefined) return true;
  return comparableText({ values: partOf(before) }) !== comparableText({ values: partOf(after) });
}

/** The fields with positions in files, which no decision reads. */
const positions: ReadonlySet<string> = new Set(['source', 'sources', 'limitSources']);

/** The lists whose order has no meaning. */
const sets: ReadonlySet<string> = new Set(
  'rules windows actions ranges groups namespaces from events notify gates values and or policies exceptions metrics'.split(' '),
);

function comparable(value: unknown, key: string): unknown {
  if (Array.isArray(value)) {
    // The order of the arguments of `in` matters. A list among them has the values to compare with, in any order.
    const items = value.map((item) => comparable(item, key === 'in' && Array.isArray(item) ? 'values' : ''));
    return sets.has(key)
      ? items
          .map((item) => [canonicalJson(item), item] as const)
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([, item]) => item)
      : items;
  }
  if (!isRecord(value)) return value;
  const kept = Object.entries(value).filter(([name, part]) => !(positions.has(name) && typeof part === 'object'));
  return Object.fromEntries(kept.map(([name, part]) => [name, comparable(part, name)]));
}
