// Proposes groups for StatefulSets that are in no group, from their names and the zones of their pods. Each proposal states its reason.
import { matchesSelector } from '../label-selector.ts';
import { apiVersion, type RolloutGroup, schemas } from '../schema/kinds.ts';
import { textAt, textsOf, valueAt } from '../schema/schema-walk.ts';
import { holdingPartition, type StrategyName } from '../strategies.ts';
import { defined } from '../values/defined.ts';
import { firstByKey, groupBy } from '../values/group-by.ts';
import { listOf } from '../values/list-of.ts';
import { labelKeys } from './keys.ts';
import { groupName, zoneNames } from './names.ts';
import { phasedOwner } from './phased-rollout.ts';

export interface GuessedGroup {
  readonly group: RolloutGroup;
  /** The comment lines for users: the reason of the proposal, points to check, and the reason of the strategy. */
  readonly comment: readonly string[];
  readonly because: string;
}

interface LeftOut {
  readonly namespace: string;
  readonly name: string;
  readonly why: string;
}

export interface Guesses {
  readonly groups: readonly GuessedGroup[];
  readonly leftOut: readonly LeftOut[];
  /** The StatefulSets that are in a group already, as `namespace/name`, sorted. */
  readonly members: readonly string[];
}

export interface GuessInput {
  /** The objects; only StatefulSets are read. */
  readonly objects: readonly unknown[];
  /** The existing groups: their members get no proposal, and their names are in use. */
  readonly groups: readonly RolloutGroup[];
  /** The objects of other operators, by `namespace/name` of the StatefulSet that each names. Such a StatefulSet gets no proposal. */
  readonly claimed?: ReadonlyMap<string, string>;
}

const usualNamespace = 'default';

const maxZones = 50;

/** Proposes groups. The order of the objects does not matter. */
export function guessGroups({ objects, groups, claimed = new Map() }: GuessInput): Guesses {
  const leftOut: LeftOut[] = [];
  const sets: ZoneCandidate[] = [];
  const members: string[] = [];
  for (const set of readZones(objects)) {
    const why = reasonAgainst(set, groups, claimed);
    if (why === undefined) sets.push(set);
    else if (why === isMember) members.push(keyOf(set));
    else leftOut.push({ namespace: set.namespace, name: set.name, why });
  }
  const guessed: GuessedGroup[] = [];
  const taken = new Set(groups.map(({ metadata }) => `${metadata.namespace ?? usualNamespace}/${metadata.name}`));
  for (const candidate of candidateGroups(sets)) {
    const proposed = propose(candidate, taken);
    if (typeof proposed === 'string')
      leftOut.push(...candidate.sets.map(({ namespace: of, name }) => ({ namespace: of, name, why: proposed })));
    else {
      guessed.push(proposed);
      taken.add(keyOf(proposed.group.metadata));
    }
  }
  return {
    groups: guessed.sort((a, b) => (keyOf(a.group.metadata) < keyOf(b.group.metadata) ? -1 : 1)),
    leftOut: leftOut.sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1)),
    members,
  };
}

function keyOf({ namespace = '', name }: { readonly namespace?: string | undefined; readonly name: string }): string {
  return `${namespace}/${name}`;
}

function readZones(objects: readonly unknown[]): readonly ZoneCandidate[] {
  const sets = objects.flatMap((object) => {
    const [name, kind] = [textAt(object, ['metadata', 'name']), valueAt(object, ['kind'])];
    if (name === undefined || (kind !== undefined && kind !== 'StatefulSet')) return [];
    return [readCandidate(object, { name, namespace: textAt(object, ['metadata', 'namespace']) ?? usualNamespace })];
  });
  return firstByKey(sets, keyOf);
}

const isMember = 'it is a member of a group';

function reasonAgainst(set: ZoneCandidate, groups: readonly RolloutGroup[], claimed: ReadonlyMap<string, string>): string | undefined {
  const { namespace, owner, isLabelled, phasedBy } = set;
  const ofNamespace = groups.filter(({ metadata }) => (metadata.namespace ?? usualNamespace) === namespace);
  if (isLabelled || ofNamespace.some((group) => hasMember(group, set))) return isMember;
  const claim = claimed.get(keyOf(set)) ?? (phasedBy === undefined ? undefined : `PhasedRollout ${namespace}/${phasedBy}`);
  if (claim !== undefined) return `it belongs to ${claim}, whose settings a proposal would lack`;
  if (namespace === 'kube-system') return 'kube-system contains components of Kubernetes';
  return owner === undefined ? undefined : `${owner} owns it, and its operator would revert other writes`;
}

function hasMember({ spec: { members } }: RolloutGroup, { name, labels }: ZoneCandidate): boolean {
  if (members.zones !== undefined) return members.zones.some((zone) => zone.statefulSet === name);
  return members.selector !== undefined && matchesSelector(members.selector, labels);
}

interface CandidateGroup {
  readonly sets: readonly ZoneCandidate[];
  readonly base: string;
  readonly because: string;
}

/** Groups StatefulSets by name, then by the zone of their pods. Each remaining StatefulSet is a candidate group alone. */
function candidateGroups(sets: readonly ZoneCandidate[]): readonly CandidateGroup[] {
  const left = new Set(sets);
  const found: CandidateGroup[] = [];
  const take = (
    candidates: ReadonlyMap<string, readonly ZoneCandidate[]>,
    read: (members: readonly ZoneCandidate[]) => Omit<CandidateGroup, 'sets'> | undefined,
  ): void => {
    for (const members of candidates.values()) {
      const candidate = members.length < 2 || members.length > maxZones ? undefined : read(members);
      if (candidate === undefined) continue;
      found.push({ ...candidate, sets: members });
      for (const set of members) left.delete(set);
    }
  };
  take(
    groupBy([...left], ({ namespace, base, suffix, app }) => base && `${namespace} ${base} ${suffix} ${app}`),
    byName,
  );
  take(
    groupBy([...left], ({ namespace, app, onlyZone }) => (app === '' ? undefined : onlyZone && `${namespace} ${app}`)),
    byPlace,
  );
  return [...found, ...[...left].map((set) => ({ sets: [set], base: set.name, because: `the StatefulSet ${set.name} alone` }))];
}

/** Returns the candidate group by names. A number may count shards, so it is a zone only if the pods run in separate availability zones. */
function byName(members: readonly ZoneCandidate[]): Omit<CandidateGroup, 'sets'> | undefined {
  const [{ base = '', suffix } = { suffix: undefined }] = members;
  const areApart = areInOwnZones(members);
  if (suffix === 'number' && !areApart) return undefined;
  const names = members.map(({ name }) => name).join(', ');
  return {
    base,
    because: `the names ${names} differ in a ${suffix} at their end${areApart ? ', and the StatefulSets run in different zones' : ''}`,
  };
}

function byPlace(members: readonly ZoneCandidate[]): Omit<CandidateGroup, 'sets'> | undefined {
  const [first] = members;
  if (first === undefined || !areInOwnZones(members)) return undefined;
  const places = members.map(({ name, onlyZone }) => `${name} in ${onlyZone}`).join(', ');
  return { base: first.app.split(' of ').join('-'), because: `the StatefulSets are all ${first.app} and in different zones: ${places}` };
}

function areInOwnZones(members: readonly ZoneCandidate[]): boolean {
  return new Set(members.flatMap(({ onlyZone }) => onlyZone ?? [])).size === members.length;
}

/** Returns the proposal, or why no proposal is possible. */
function propose({ sets, base, because }: CandidateGroup, taken: ReadonlySet<string>): GuessedGroup | string {
  const zones = zoneNames(sets.map(({ name }) => name));
  const { strategy, lines } = strategyFor(sets.map(({ strategy: written }) => written));
  const document = schemas.RolloutGroup.safeParse({
    apiVersion,
    kind: 'RolloutGroup',
    metadata: { name: groupName(base), namespace: sets[0]?.namespace },
    spec: {
      members: { zones: sets.map(({ name }) => ({ name: zones.get(name), statefulSet: name })) },
      rollout: { strategy },
    },
  });
  if (!document.success) return document.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`).join('; ');
  const group = document.data;
  if (taken.has(keyOf(group.metadata))) return `the group ${keyOf(group.metadata)} already exists`;
  const one = sets.length === 1 ? ['The group has one zone, so no rule compares zones.'] : ['Zones roll in this order, one at a time.'];
  return {
    group,
    because,
    comment: [`Guessed by init: ${because}.`, ...one, 'This is a proposal: review it before you apply it.', ...lines],
  };
}

/** Returns the proposed strategy, `pinned` if all update strategies permit it and otherwise `onDelete`, with comment lines for users. */
function strategyFor(strategies: readonly UpdateStrategy[]): { readonly strategy: StrategyName; readonly lines: readonly string[] } {
  const isRolling = ({ type, partition = holdingPartition }: UpdateStrategy): boolean =>
    type === 'RollingUpdate' && partition === holdingPartition;
  if (strategies.every(isRolling)) {
    return {
      strategy: 'pinned',
      lines: [
        `The strategy is pinned, which is recommended: every StatefulSet has RollingUpdate, without a partition or with ${holdingPartition}.`,
        'It needs the webhook on the creation of pods: kubectl rollout-group install.',
      ],
    };
  }
  const toPin = `To use pinned, which is recommended, give every StatefulSet the strategy RollingUpdate, without a partition or with ${holdingPartition}.`;
  if (strategies.every(({ type }) => type === 'OnDelete'))
    return { strategy: 'onDelete', lines: ['The strategy is onDelete, because every StatefulSet has the strategy OnDelete.', toPin] };
  return {
    strategy: 'onDelete',
    lines: [
      'The strategy is onDelete, because the update strategies differ or set a partition. The agent replaces pods only if their StatefulSet has OnDelete.',
      'Kubernetes rolls the other StatefulSets when their template changes.',
      toPin,
    ],
  };
}

/** The part of a StatefulSet name that names the zone. */
type SuffixKind = 'zone' | 'cloud zone' | 'letter' | 'number';

interface ZoneCandidate {
  readonly namespace: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The name without its zone; undefined if the name contains no zone. */
  readonly base?: string;
  readonly suffix?: SuffixKind;
  /** The one availability zone in which its pods may run. */
  readonly onlyZone?: string;
  /** The application and its instance from labels, such as `mimir of prod`; may be empty. */
  readonly app: string;
  readonly strategy: UpdateStrategy;
  /** The kind and name of the controller that owns the StatefulSet and reverts other writes. */
  readonly owner?: string;
  /** True if it has the label of a group of grafana/rollout-operator, so that adoption handles it. */
  readonly isLabelled: boolean;
  readonly phasedBy?: string;
}

interface UpdateStrategy {
  /** The type; RollingUpdate if the manifest has no type, as in the API server. */
  readonly type: string;
  /** The partition; absent if the manifest has no partition, or if a stored object has 0, the default of the API server. */
  readonly partition?: number;
}

/** Ends of names, the most specific first: `-zone-a` or `-rack2`, `-us-east-1a` or `-europe-west1-b`, `-a`, `-2`. */
const suffixes: readonly (readonly [SuffixKind, RegExp])[] = [
  ['zone', /^(.+)-(?:zone|az|rack)(?:-[a-z0-9-]+|\d+|[a-z])$/],
  [
    'cloud zone',
    /^(.+?)-(?:us|eu|ap|sa|ca|me|af|il|mx|cn|europe|asia|africa|australia|northamerica|southamerica)(?:-gov)?-[a-z]+-?\d+-?[a-z]$/,
  ],
  ['letter', /^(.+)-[a-z]$/],
  ['number', /^(.+)-\d{1,2}$/],
];

const zoneKeys: readonly string[] = ['topology.kubernetes.io/zone', 'failure-domain.beta.kubernetes.io/zone'];

/** Reads a raw `apps/v1` StatefulSet that has a name. */
function readCandidate(set: unknown, { namespace, name }: Pick<ZoneCandidate, 'namespace' | 'name'>): ZoneCandidate {
  const [found] = suffixes.flatMap(([suffix, pattern]) => {
    const base = pattern.exec(name)?.[1];
    return base === undefined ? [] : [{ base, suffix }];
  });
  const onlyZone = pinnedZone(valueAt(set, ['spec', 'template', 'spec']));
  const owner = ownerOf(valueAt(set, ['metadata', 'ownerReferences']));
  const phasedBy = valueAt(set, ['metadata', 'annotations', phasedOwner]);
  return {
    namespace,
    name,
    labels: textsOf(valueAt(set, ['metadata', 'labels'])),
    ...found,
    ...defined({ onlyZone }),
    app: appOf(set, name),
    strategy: strategyOf(valueAt(set, ['spec', 'updateStrategy']), valueAt(set, ['metadata', 'uid']) !== undefined),
    ...defined({ owner }),
    isLabelled: valueAt(set, ['metadata', 'labels', labelKeys.group]) !== undefined,
    ...(typeof phasedBy === 'string' ? { phasedBy } : {}),
  };
}

/** Returns application and instance from labels of the pods or the StatefulSet. The component label is not read: it may name the zone. */
function appOf(set: unknown, own: string): string {
  const label = (key: string): string => {
    const value = valueAt(set, ['spec', 'template', 'metadata', 'labels', key]) ?? valueAt(set, ['metadata', 'labels', key]);
    return typeof value === 'string' && value !== own ? value : '';
  };
  const [name, instance] = [label('app.kubernetes.io/name') || label('app'), label('app.kubernetes.io/instance')];
  return name === '' ? '' : [name, instance].filter((part) => part !== '').join(' of ');
}

/** Returns the zone of a node selector, or of a required affinity with a single zone. */
function pinnedZone(spec: unknown): string | undefined {
  const selected = zoneKeys.map((key) => valueAt(spec, ['nodeSelector', key])).find((value) => typeof value === 'string');
  if (typeof selected === 'string') return selected;
  const required = ['affinity', 'nodeAffinity', 'requiredDuringSchedulingIgnoredDuringExecution', 'nodeSelectorTerms'];
  const [term, ...others] = listOf(valueAt(spec, required));
  if (others.length > 0) return undefined;
  const values = listOf(valueAt(term, ['matchExpressions']))
    .filter((one) => zoneKeys.includes(String(valueAt(one, ['key']))) && valueAt(one, ['operator']) === 'In')
    .map((one) => listOf(valueAt(one, ['values'])));
  const [only, ...rest] = values[0] ?? [];
  return typeof only === 'string' && rest.length === 0 ? only : undefined;
}

function strategyOf(value: unknown, isStored: boolean): UpdateStrategy {
  const [type, partition] = [valueAt(value, ['type']), valueAt(value, ['rollingUpdate', 'partition'])];
  const isWritten = typeof partition === 'number' && !(isStored && partition === 0);
  return { type: typeof type === 'string' ? type : 'RollingUpdate', ...(isWritten ? { partition } : {}) };
}

function ownerOf(references: unknown): string | undefined {
  const owner = listOf(references).find((one) => valueAt(one, ['controller']) === true);
  return owner === undefined ? undefined : `${String(valueAt(owner, ['kind']))} ${String(valueAt(owner, ['name']))}`;
}
