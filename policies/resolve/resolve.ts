// Resolves loaded documents to the definitions that the engine reads, and reports conflicts between documents.
import type { Adoption } from '../adopt/adopt.ts';
import type { GroupDefinition, PolicyBundle } from '../definition.ts';
import { type Finding, finding, sortFindings, sourceOf } from '../findings/finding.ts';
import { matchesSelector } from '../label-selector.ts';
import type { Loaded, LoadedDocument, Manifest } from '../load.ts';
import type { Kind } from '../schema/kinds.ts';
import type { ZoneSpec } from '../schema/rollout-group.ts';
import { textsOf, valueAt } from '../schema/schema-walk.ts';
import { compareText } from '../values/compare-text.ts';
import { documentSources, resolveGroup } from './group.ts';
import { resolveException, resolvePolicy } from './policy.ts';

export interface StatefulSetLabels {
  readonly namespace: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

export interface ResolveOptions {
  /** All StatefulSets. Without them, groups with a selector are not resolved. */
  readonly statefulSets?: readonly StatefulSetLabels[];
  /** True if the StatefulSets come from a cluster, not from manifests next to the policy files. */
  readonly isCluster?: boolean;
  /** The adopted groups. A written group with the same name, or with one of the members, replaces the adopted group completely. */
  readonly adoption?: Pick<Adoption, 'groups' | 'sources'>;
}

export interface Resolution {
  /** The definitions, sorted by namespace and name. */
  readonly bundle: PolicyBundle;
  readonly intents: readonly Loaded<'RolloutIntent'>[];
  readonly tests: readonly Loaded<'PolicyTest'>[];
  readonly findings: readonly Finding[];
}

/** Resolves documents without errors. Reports and omits repeated definitions, and groups whose members are unknown or unexpected. */
export function resolvePolicies(documents: readonly LoadedDocument[], options: ResolveOptions = {}): Resolution {
  const { kept, findings: repeated } = withoutRepeats(documents);
  const groups = ofKind(kept, 'RolloutGroup').map((document) => resolveWithMembers(document, options));
  const defined = groups.flatMap((one) => one.group ?? []);
  return {
    bundle: {
      groups: byName([...defined, ...adoptedGroups(options.adoption, defined)]),
      policies: byName(ofKind(kept, 'RolloutPolicy').map(resolvePolicy)),
      exceptions: byName(ofKind(kept, 'RolloutException').map(resolveException)),
    },
    intents: ofKind(kept, 'RolloutIntent'),
    tests: ofKind(kept, 'PolicyTest'),
    findings: sortFindings([...repeated, ...groups.flatMap((one) => one.findings)]),
  };
}

export function statefulSetsOf(manifests: readonly Manifest[]): readonly StatefulSetLabels[] {
  return manifests
    .filter((manifest) => manifest.kind === 'StatefulSet' && manifest.apiVersion.startsWith('apps/'))
    .map(({ namespace, name, value }) => ({ namespace, name, labels: textsOf(valueAt(value, ['metadata', 'labels'])) }));
}

export function ofKind<K extends Kind>(documents: readonly LoadedDocument[], kind: K): readonly Loaded<K>[] {
  return documents.filter((document): document is LoadedDocument & Loaded<K> => document.kind === kind);
}

function withoutRepeats(documents: readonly LoadedDocument[]) {
  const first = new Map<string, LoadedDocument>();
  const findings: Finding[] = [];
  for (const document of documents) {
    const key = `${document.kind} ${document.namespace}/${document.name}`;
    const before = first.get(key);
    if (!before) first.set(key, document);
    else {
      const message = `${key} is defined twice; this definition is ignored`;
      findings.push(finding('RG2101', document.place(['metadata', 'name']), message, { related: [sourceOf(before.place([]))] }));
    }
  }
  return { kept: [...first.values()], findings };
}

function resolveWithMembers(document: Loaded<'RolloutGroup'>, { statefulSets, isCluster }: ResolveOptions) {
  const { zones, selector, expect } = document.value.spec.members;
  const value = { ...document.value, metadata: { ...document.value.metadata, namespace: document.namespace } };
  if (zones) return { group: resolveGroup(value, zones, documentSources(document)), findings: [] };
  const place = document.place(['spec', 'members', 'selector'], 'key');
  const neighbours = statefulSets?.filter((one) => one.namespace === document.namespace) ?? [];
  if (!selector || (neighbours.length === 0 && isCluster !== true)) {
    return {
      findings: [finding('RG2111', place, `the members of ${document.name} are unknown: no StatefulSet of its namespace was read`)],
    };
  }
  const names = neighbours
    .filter((one) => matchesSelector(selector, one.labels))
    .map((one) => one.name)
    .sort();
  const problem = expectationProblem(names, expect);
  if (problem !== undefined) return { findings: [finding('RG2112', place, problem)] };
  const members: readonly ZoneSpec[] = names.map((name) => ({ name, statefulSet: name }));
  return { group: resolveGroup(value, members, documentSources(document)), findings: [] };
}

type Expectation = Loaded<'RolloutGroup'>['value']['spec']['members']['expect'];

function expectationProblem(found: readonly string[], expect: Expectation): string | undefined {
  const list = found.join(', ');
  if (found.length === 0) return 'the selector finds no StatefulSet';
  if (expect?.count !== undefined && expect.count !== found.length) {
    return `the selector finds ${found.length} StatefulSets (${list}) instead of ${expect.count}`;
  }
  const names = expect?.names && [...expect.names].sort();
  if (names && names.join() !== found.join()) return `the selector finds ${list} instead of ${names.join(', ')}`;
  return undefined;
}

function adoptedGroups(adoption: ResolveOptions['adoption'], defined: readonly GroupDefinition[]): readonly GroupDefinition[] {
  const taken = new Set(defined.flatMap((group) => group.zones.map((zone) => `${group.namespace}/${zone.statefulSet}`)));
  const names = new Set(defined.map((group) => `${group.namespace}/${group.name}`));
  return (adoption?.groups ?? []).flatMap((document) => {
    const { namespace = 'default', name } = document.metadata;
    const key = `${namespace}/${name}`;
    const zones = document.spec.members.zones ?? [];
    if (names.has(key) || zones.some((zone) => taken.has(`${namespace}/${zone.statefulSet}`))) return [];
    return [resolveGroup(document, zones, (path) => adoption?.sources[key]?.[path])];
  });
}

function byName<T extends { readonly namespace: string; readonly name: string }>(items: readonly T[]): readonly T[] {
  const key = (item: T) => `${item.namespace}/${item.name}`;
  return [...items].sort((a, b) => compareText(key(a), key(b)));
}
