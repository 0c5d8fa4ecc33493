// The input of lint checks: documents with their places, and their resolved definitions.
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
  /** True if the documents and StatefulSets come from a cluster instead of files. */
  readonly isCluster?: boolean;
  /** The namespace whose policies may name other namespaces. */
  readonly agentNamespace: string;
  /** Rules of the engine that an exception can name; undefined if not known. */
  readonly engineRules: readonly string[] | undefined;
}

/** Returns the findings of one check of all documents. */
export type LintCheck = (context: LintContext) => readonly Finding[];

/** Makes a check that looks at each group document alone. */
export function eachGroup(check: (group: Loaded<'RolloutGroup'>) => readonly Finding[]): LintCheck {
  return ({ groups }) => groups.flatMap(check);
}

/** Makes a check that looks at each policy document alone. */
export function eachPolicy(check: (policy: Loaded<'RolloutPolicy'>) => readonly Finding[]): LintCheck {
  return ({ policies }) => policies.flatMap(check);
}

/** Returns the definition of a group document; undefined if its members are unknown. */
export function definitionOf(
  { bundle }: Pick<LintContext, 'bundle'>,
  group: Pick<ObjectName, 'namespace' | 'name'>,
): GroupDefinition | undefined {
  return bundle.groups.find((one) => one.namespace === group.namespace && one.name === group.name);
}

/** Returns the group of this name from documents or adoption, or `unusable` if its only document has errors. */
export function groupOf(context: LintContext, namespace: string, name: string): GroupDefinition | 'unusable' | undefined {
  const isSame = (one: { readonly namespace: string; readonly name: string }) => one.namespace === namespace && one.name === name;
  const found = context.bundle.groups.find(isSame);
  if (found) return found;
  const isKnown = context.groups.some(isSame) || context.load.unusable.some((one) => one.kind === 'RolloutGroup' && isSame(one));
  return isKnown ? 'unusable' : undefined;
}

/**
 * Returns the finding for a group that no file defines. If the files define other groups of the namespace, the name is probably misspelled.
 * Otherwise the group may be adopted or defined elsewhere.
 */
export function unknownGroup(context: LintContext, place: Place, name: string, namespaces: readonly string[]): Finding {
  const isThere = ({ namespace }: { readonly namespace: string }) => namespaces.includes(namespace);
  const unusable = context.load.unusable.filter((one) => one.kind === 'RolloutGroup');
  const known = [...context.bundle.groups, ...context.groups, ...unusable].filter(isThere).map((group) => group.name);
  const namespace = namespaces.join(', ');
  if (known.length === 0)
    return finding('RG2206', place, `the group ${name} of the namespace ${namespace} is not in the files: only the agent can check it`);
  const message = `the group ${name} does not exist in the namespace ${namespace}`;
  return finding('RG2301', place, message, { hint: suggestion(name, known) });
}

/** Returns the items whose key occurred before, each with its index and the index of its first occurrence. */
export function repeats<T>(
  items: readonly T[],
  keyOf: (item: T) => string,
): readonly { readonly index: number; readonly first: number; readonly item: T }[] {
  const seen = new Map<string, number>();
  return items.flatMap((item, index) => {
    const key = keyOf(item);
    const first = seen.get(key);
    if (first === undefined) seen.set(key, index);
    return first === undefined ? [] : [{ index, first, item }];
  });
}
