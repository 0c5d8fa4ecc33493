// What a lint check sees: every document with its places, and what they resolve to.
import type { GroupDefinition, PolicyBundle } from '../definition.ts';
import { type Finding, finding, type Place } from '../findings/finding.ts';
import type { Loaded, LoadResult, ObjectName } from '../load.ts';
import type { StatefulSetLabels } from '../resolve/resolve.ts';
import { suggestion } from '../wording.ts';

export interface LintContext {
  readonly load: LoadResult;
  readonly bundle: PolicyBundle;
  readonly groups: readonly Loaded<'RolloutGroup'>[];
  readonly policies: readonly Loaded<'RolloutPolicy'>[];
  readonly exceptions: readonly Loaded<'RolloutException'>[];
  readonly intents: readonly Loaded<'RolloutIntent'>[];
  /** The StatefulSets of the manifests that were given with the policies. */
  readonly statefulSets: readonly StatefulSetLabels[];
  /** Whether the documents and StatefulSets are those of a cluster, and not what lies in files. */
  readonly isCluster?: boolean;
  /** The namespace whose policies may name other namespaces. */
  readonly agentNamespace: string;
  /** Rules of the engine that an exception can name; undefined when the caller does not say. */
  readonly engineRules: readonly string[] | undefined;
}

/** One question about all documents. */
export type LintCheck = (context: LintContext) => readonly Finding[];

/** A check of each group document on its own. */
export function eachGroup(check: (group: Loaded<'RolloutGroup'>) => readonly Finding[]): LintCheck {
  return ({ groups }) => groups.flatMap(check);
}

/** A check of each policy document on its own. */
export function eachPolicy(check: (policy: Loaded<'RolloutPolicy'>) => readonly Finding[]): LintCheck {
  return ({ policies }) => policies.flatMap(check);
}

/** What a group document resolved to; undefined when its members are not known. */
export function definitionOf(
  { bundle }: Pick<LintContext, 'bundle'>,
  group: Pick<ObjectName, 'namespace' | 'name'>,
): GroupDefinition | undefined {
  return bundle.groups.find((one) => one.namespace === group.namespace && one.name === group.name);
}

/** The group of this name that documents or adoption define, or whether a document of it exists that cannot be used. */
export function groupOf(context: LintContext, namespace: string, name: string): GroupDefinition | 'unusable' | undefined {
  const isSame = (one: { readonly namespace: string; readonly name: string }) => one.namespace === namespace && one.name === name;
  const found = context.bundle.groups.find(isSame);
  if (found) return found;
  const isKnown = context.groups.some(isSame) || context.load.unusable.some((one) => one.kind === 'RolloutGroup' && isSame(one));
  return isKnown ? 'unusable' : undefined;
}

/**
 * What is to be said of a group that no file defines: with other groups of its namespace beside it the name is most likely misspelt; without
 * any it may be adopted, or written elsewhere.
 */
export function unknownGroup(context: LintContext, place: Place, name: string, namespaces: readonly string[]): Finding {
  const isThere = ({ namespace }: { readonly namespace: string }) => namespaces.includes(namespace);
  const unusable = context.load.unusable.filter((one) => one.kind === 'RolloutGroup');
  const known = [...context.bundle.groups, ...context.groups, ...unusable].filter(isThere).map((group) => group.name);
  const namespace = namespaces.join(', ');
  if (known.length === 0) return finding('RG2206', place, `only the agent knows the group ${name} of the namespace ${namespace}`);
  const message = `the group ${name} does not exist in the namespace ${namespace}`;
  return finding('RG2301', place, message, { hint: suggestion(name, known) });
}

/** Indices of items whose key occurred before, with the index of the first one. */
export function repeats<T>(items: readonly T[], keyOf: (item: T) => string): readonly { readonly index: number; readonly first: number }[] {
  const seen = new Map<string, number>();
  return items.flatMap((item, index) => {
    const key = keyOf(item);
    const first = seen.get(key);
    if (first === undefined) seen.set(key, index);
    return first === undefined ? [] : [{ index, first }];
  });
}
