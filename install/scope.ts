// Derives the scope of an installation from policies: namespaces, StatefulSets and the objects that replicas mirror.
import type { MirrorDefinition, PolicyBundle } from '../policies/definition.ts';
import { secretKeysOf } from '../policies/integrations/channel.ts';
import type { LoadedDocument } from '../policies/load.ts';
import { ofKind } from '../policies/resolve/resolve.ts';
import { type StrategyTraits, traitsOf } from '../policies/strategies.ts';
import { firstByKey, groupBy } from '../policies/values/group-by.ts';

/** A kind in one namespace whose replicas a group mirrors. */
export interface MirrorSource {
  readonly namespace: string;
  /** The API group; empty for the core group. */
  readonly group: string;
  readonly kind: string;
  /** The names of the objects, sorted. */
  readonly names: readonly string[];
  readonly readsScale: boolean;
  readonly writesStatus: boolean;
}

export interface Member {
  readonly namespace: string;
  readonly statefulSet: string;
}

/** The namespaces and StatefulSets of the groups of one strategy. */
interface StrategyScope {
  /** The namespaces that have, or may have, a group of this strategy, sorted; undefined if every namespace may have one. */
  readonly namespaces: readonly string[] | undefined;
  /** The StatefulSets of these groups, sorted, except those known only by labels. */
  readonly members: readonly Member[];
}

export interface InstallScope {
  /** The namespaces with groups, sorted; empty means every namespace. */
  readonly namespaces: readonly string[];
  /** The mirrored kinds, sorted by namespace, group and kind. */
  readonly mirrors: readonly MirrorSource[];
  /** The Secrets in the agent's namespace that metric sources and channels name, sorted. */
  readonly secrets: readonly string[];
  /** Every StatefulSet of a group, sorted; undefined if some are known only by labels, or the groups are unknown. */
  readonly members: readonly Member[] | undefined;
  /** The groups of the strategy `pinned`, whose pods the webhook on pod creation pins. */
  readonly pinned: StrategyScope;
  /** The groups of the strategy `partition`, whose partition the agent lowers. */
  readonly partition: StrategyScope;
}

const anyGroup: StrategyScope = { namespaces: undefined, members: [] };

/** The scope of an installation without policies: every namespace. */
export const everywhere: InstallScope = {
  namespaces: [],
  mirrors: [],
  secrets: [],
  members: undefined,
  pinned: anyGroup,
  partition: anyGroup,
};

export function usesStrategy({ namespaces }: StrategyScope): boolean {
  return namespaces === undefined || namespaces.length > 0;
}

/** The kinds whose namespace has, or may have, groups. */
const kindsOfGroups: ReadonlySet<string> = new Set(['RolloutPolicy', 'RolloutGroup', 'RolloutException', 'RolloutIntent']);

/** Returns the scope of these policies and of additional namespaces. */
export function installScope(
  documents: readonly LoadedDocument[],
  { groups }: PolicyBundle,
  { agentNamespace, namespaces }: { readonly agentNamespace: string; readonly namespaces: readonly string[] },
): InstallScope {
  const named = documents.flatMap((document) => {
    const isOfAgent = document.kind === 'RolloutPolicy' && document.namespace === agentNamespace;
    if (isOfAgent) return document.value.spec.targets.namespaces ?? [];
    return kindsOfGroups.has(document.kind) ? [document.namespace] : [];
  });
  const all = sorted([...named, ...groups.map(({ namespace }) => namespace), ...namespaces]);
  const declared = ofKind(documents, 'RolloutGroup');
  const isEveryGroupKnown = declared.every((one) => groups.some(({ namespace, name }) => namespace === one.namespace && name === one.name));
  const hasSelectors = declared.some(({ value }) => value.spec.members.selector !== undefined);
  // The groups of an additional namespace are unknown.
  const unknown = namespaces.filter((one) => !declared.some(({ namespace }) => namespace === one));
  const scopeOf = (hasTrait: (traits: StrategyTraits) => boolean): StrategyScope => ({
    namespaces: sorted([...unknown, ...declared.filter(({ value }) => hasTrait(traitsOf(value.spec))).map(({ namespace }) => namespace)]),
    members: firstByKey(membersOf(groups.filter((group) => hasTrait(traitsOf(group)))), memberKey),
  });
  const members = membersOf(groups);
  return {
    namespaces: all,
    mirrors: mirrorsOf(groups),
    secrets: sorted(documents.flatMap((document) => secretKeysOf(document, agentNamespace).map(({ name }) => name))),
    members: isEveryGroupKnown && members.length > 0 && !hasSelectors ? firstByKey(members, memberKey) : undefined,
    pinned: scopeOf(({ pinsPods }) => pinsPods),
    partition: scopeOf(({ lowersPartition }) => lowersPartition),
  };
}

export function membersOf(groups: PolicyBundle['groups']): readonly Member[] {
  return groups.flatMap(({ namespace, zones }) => zones.map(({ statefulSet }) => ({ namespace, statefulSet })));
}

export function mirrorsOf(groups: PolicyBundle['groups']): readonly MirrorSource[] {
  const sources = groups.flatMap(({ namespace, zones }) =>
    zones.flatMap(({ replicas }) => (replicas.kind === 'mirror' ? [mirrorOf(namespace, replicas)] : [])),
  );
  const merged = [...groupBy(sources, mirrorKey).values()].map((same) => same.reduce(mergedSource));
  return firstByKey(merged, mirrorKey);
}

function mirrorOf(namespace: string, { apiVersion, resourceKind, name, read, writeBack }: MirrorDefinition): MirrorSource {
  return {
    namespace,
    group: apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : '',
    kind: resourceKind,
    names: [name],
    readsScale: read === 'scale',
    writesStatus: writeBack === 'status',
  };
}

function mergedSource(a: MirrorSource, b: MirrorSource): MirrorSource {
  return {
    ...a,
    names: sorted([...a.names, ...b.names]),
    readsScale: a.readsScale || b.readsScale,
    writesStatus: a.writesStatus || b.writesStatus,
  };
}

function mirrorKey({ namespace, group, kind }: MirrorSource): string {
  return `${namespace} ${group} ${kind}`;
}

export function memberKey({ namespace, statefulSet }: Member): string {
  return `${namespace}/${statefulSet}`;
}

function sorted(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)].sort();
}
