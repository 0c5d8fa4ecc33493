// Defines the input of lint checks (documents with places, and resolved definitions) and functions that several checks use.
import type { GroupDefinition, PolicyBundle } from '../definition.ts';
import { type Finding, finding, type Place } from '../findings/finding.ts';
import { policiesFor } from '../join.ts';
import type { Loaded, LoadResult, ObjectName } from '../load.ts';
import { ofKind, type StatefulSetLabels } from '../resolve/resolve.ts';
import type { Kind } from '../schema/kinds.ts';
import { suggestion } from '../wording.ts';
import type { Path, Places } from '../yaml/document.ts';

export interface LintContext {
  readonly load: LoadResult;
  readonly bundle: PolicyBundle;
  readonly groups: readonly Loaded<'RolloutGroup'>[];
  readonly policies: readonly Loaded<'RolloutPolicy'>[];
  readonly exceptions: readonly Loaded<'RolloutException'>[];
  readonly intents: readonly Loaded<'RolloutIntent'>[];
  readonly statefulSets: readonly StatefulSetLabels[];
  /** True if the documents and StatefulSets come from a cluster instead of files. */
  readonly isCluster?: boolean;
  /** The namespace whose policies may name other namespaces. */
  readonly agentNamespace: string;
  /** The ids of all rules of the engine; undefined if not known. */
  readonly engineRules: readonly string[] | undefined;
}

/** The input of all checks. If `intents` is absent, the checks use the RolloutIntents of the documents. */
export type LintInput = Omit<LintContext, 'groups' | 'policies' | 'exceptions' | 'intents'> & Partial<Pick<LintContext, 'intents'>>;

export function lintContext(input: LintInput): LintContext {
  const { documents } = input.load;
  return {
    intents: ofKind(documents, 'RolloutIntent'),
    ...input,
    groups: ofKind(documents, 'RolloutGroup'),
    policies: ofKind(documents, 'RolloutPolicy'),
    exceptions: ofKind(documents, 'RolloutException'),
  };
}

type NamedObject = Pick<ObjectName, 'namespace' | 'name'>;

export type LintCheck = (context: LintContext) => readonly Finding[];

type DocumentCheck<K extends Kind> = (document: Loaded<K>, context: LintContext) => readonly Finding[];

export function eachGroup(check: DocumentCheck<'RolloutGroup'>): LintCheck {
  return (context) => context.groups.flatMap((group) => check(group, context));
}

export function eachPolicy(check: DocumentCheck<'RolloutPolicy'>): LintCheck {
  return (context) => context.policies.flatMap((policy) => check(policy, context));
}

export function eachException(check: DocumentCheck<'RolloutException'>): LintCheck {
  return (context) => context.exceptions.flatMap((exception) => check(exception, context));
}

export function findNamed<T extends NamedObject>(objects: readonly T[], { namespace, name }: NamedObject): T | undefined {
  return objects.find((one) => one.namespace === namespace && one.name === name);
}

/** Returns the definition of a group document; undefined if its members are unknown. */
export function definitionOf({ bundle }: Pick<LintContext, 'bundle'>, group: NamedObject): GroupDefinition | undefined {
  return findNamed(bundle.groups, group);
}

export function targetsOf({ bundle, agentNamespace }: LintContext, policy: NamedObject): readonly GroupDefinition[] {
  const resolved = findNamed(bundle.policies, policy);
  return resolved === undefined ? [] : bundle.groups.filter((group) => policiesFor([resolved], group, agentNamespace).length > 0);
}

/** Returns the group of this name from documents or adoption; `unusable` if its document has errors or its members are unknown. */
export function groupOf(context: LintContext, namespace: string, name: string): GroupDefinition | 'unusable' | undefined {
  const unusable = context.load.unusable.filter(({ kind }) => kind === 'RolloutGroup');
  const found = definitionOf(context, { namespace, name });
  return found ?? (findNamed([...context.groups, ...unusable], { namespace, name }) && 'unusable');
}

/** Returns the finding for an undefined group: a warning in a cluster or if the files define other groups of the namespaces, otherwise a notice. */
export function unknownGroup(context: LintContext, place: Place, name: string, namespaces: readonly string[]): Finding {
  const isThere = ({ namespace }: { readonly namespace: string }) => namespaces.includes(namespace);
  const unusable = context.load.unusable.filter((one) => one.kind === 'RolloutGroup');
  const known = [...context.bundle.groups, ...context.groups, ...unusable].filter(isThere).map((group) => group.name);
  const namespace = namespaces.join(', ');
  if (known.length === 0 && context.isCluster !== true)
    return finding('RG2206', place, `the group ${name} of the namespace ${namespace} is not in the files: only the agent can check it`);
  const message = `the group ${name} does not exist in the namespace ${namespace}`;
  return finding('RG2301', place, message, { hint: suggestion(name, known) });
}

/** Reports the names that occur twice in a list of the document. */
export function repeatedNames(document: Places, path: Path, noun: string, items: readonly { readonly name: string }[]): readonly Finding[] {
  return repeats(items, ({ name }) => name).map(({ index, item }) =>
    finding('RG2108', document.place([...path, index, 'name']), `the ${noun} name ${item.name} is used twice`),
  );
}

/** Returns the items whose key occurred before, each with its index and the index of the first item with this key. */
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
