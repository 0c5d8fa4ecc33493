// Checks the members of groups for lint: zones, selectors, and StatefulSets that are missing, in two groups or in no group.
import { type Finding, finding, type Place, sourceOf } from '../findings/finding.ts';
import { contradictionOf, isEmptySelector, isWithin, matchesSelector } from '../label-selector.ts';
import type { Loaded, Manifest } from '../load.ts';
import type { ZoneSpec } from '../schema/rollout-group.ts';
import { textsOf, valueAt } from '../schema/schema-walk.ts';
import { didYouMean } from '../text/did-you-mean.ts';
import { counted, listed, suggestion } from '../wording.ts';
import type { Path } from '../yaml/document.ts';
import { definitionOf, eachGroup, findNamed, type LintCheck, type LintContext, repeats } from './context.ts';
import { setManifests } from './manifests.ts';

type Group = Loaded<'RolloutGroup'>;

const findSharedMembers: LintCheck = ({ bundle, groups }) => {
  const owners = new Map<string, string>();
  return bundle.groups.flatMap((group) =>
    group.zones.flatMap((zone): readonly Finding[] => {
      const key = `${group.namespace}/${zone.statefulSet}`;
      const owner = owners.get(key);
      if (owner === undefined) owners.set(key, group.name);
      if (owner === undefined || owner === group.name) return [];
      const document = findNamed(groups, group);
      if (!document) return [];
      const other = findNamed(groups, { namespace: group.namespace, name: owner });
      const message = `the StatefulSet ${zone.statefulSet} is in two groups: ${owner} and ${group.name}`;
      const related = other ? [sourceOf(other.place(['spec', 'members'], 'key'))] : [];
      return [finding('RG2102', memberPlace(document, zone.statefulSet), message, { related })];
    }),
  );
};

function memberPlace(group: Group, statefulSet: string) {
  const index = (group.value.spec.members.zones ?? []).findIndex((zone) => zone.statefulSet === statefulSet);
  return index < 0 ? group.place(['spec', 'members', 'selector'], 'key') : group.place(['spec', 'members', 'zones', index, 'statefulSet']);
}

/** Reports missing StatefulSets of zones. If the files contain no member of the group and no similar name, this is only a notice. */
const findMissingStatefulSets: LintCheck = (context) => {
  const { groups, statefulSets, isCluster = false } = context;
  return groups.flatMap((group): readonly Finding[] => {
    const zones = group.value.spec.members.zones ?? [];
    const present = statefulSets.filter((one) => one.namespace === group.namespace).map((one) => one.name);
    const free = present.filter((name) => !zones.some((zone) => zone.statefulSet === name));
    // Members in another namespace have their own finding.
    const elsewhere = new Set(membersElsewhere(context, group).map(({ name }) => name));
    const elsewhereMembers = zones.filter(({ statefulSet }) => elsewhere.has(statefulSet));
    const missing = zones.flatMap((zone, index) => {
      if (present.includes(zone.statefulSet) || elsewhere.has(zone.statefulSet)) return [];
      return [{ zone, index, near: suggestion(zone.statefulSet, free) }];
    });
    const hasNone = missing.length + elsewhereMembers.length === zones.length && missing.every(({ near }) => near === undefined);
    if (!isCluster && missing.length > 0 && hasNone) {
      const names = missing.map(({ zone }) => `zone ${zone.name}`);
      const which = elsewhereMembers.length === 0 ? '' : ` for ${listed(names, 'and')}`;
      const checked = elsewhereMembers.length === 0 ? 'its members were' : names.length === 1 ? 'it was' : 'they were';
      const message = `the files contain no StatefulSet${which} of the group ${group.name} in the namespace ${group.namespace}: ${checked} not checked`;
      return [finding('RG2111', group.place(['spec', 'members'], 'key'), message)];
    }
    return missing.map(({ zone, index, near }) => {
      const message = `the StatefulSet ${zone.statefulSet} of zone ${zone.name} ${isCluster ? 'does not exist' : 'is not in the files'}`;
      return finding('RG2110', group.place(['spec', 'members', 'zones', index, 'statefulSet']), message, {
        hint: near ?? namesakeOf(context, zone.statefulSet),
      });
    });
  });
};

/** Returns a hint with the namespaces that contain a StatefulSet of this name; undefined for a cluster, or if no namespace contains it. */
function namesakeOf({ statefulSets, isCluster = false }: LintContext, name: string): string | undefined {
  const others = isCluster ? [] : statefulSets.filter((one) => one.name === name).map((one) => one.namespace);
  return others.length === 0 ? undefined : `a StatefulSet of this name is in the namespace ${listed([...new Set(others)].sort(), 'and')}`;
}

function selectorsOf({ groups, policies }: LintContext) {
  return [
    ...groups.map((document) => ({ document, selector: document.value.spec.members.selector, path: ['spec', 'members', 'selector'] })),
    ...policies.map((document) => ({ document, selector: document.value.spec.targets.selector, path: ['spec', 'targets', 'selector'] })),
  ].flatMap(({ selector, ...rest }) => (selector ? [{ selector, ...rest }] : []));
}

const findUnusableSelectors: LintCheck = (context) =>
  selectorsOf(context).flatMap(({ selector, path, document }) => {
    const place = document.place(path, 'key');
    if (isEmptySelector(selector)) return [finding('RG2114', place, 'the selector is empty: it matches every object')];
    const contradiction = contradictionOf(selector);
    return contradiction === undefined ? [] : [finding('RG2115', place, `the selector can never match: ${contradiction}`)];
  });

const findSelectorsWithoutExpectation: LintCheck = eachGroup((group) => {
  const { selector, expect } = group.value.spec.members;
  if (!selector || expect?.count !== undefined || expect?.names !== undefined) return [];
  const message = `the group ${group.name} does not detect lost members: expect is missing`;
  return [finding('RG2113', group.place(['spec', 'members', 'selector'], 'key'), message)];
});

/** Reports selectors that certainly overlap: one selector has all requirements of the other selector. */
const findOverlappingSelectors: LintCheck = ({ groups }) =>
  groups.flatMap((group, index) => {
    const selector = group.value.spec.members.selector;
    if (!selector || contradictionOf(selector) !== undefined) return [];
    const other = groups.slice(0, index).find((one) => {
      const earlier = one.value.spec.members.selector;
      return one.namespace === group.namespace && earlier && (isWithin(selector, earlier) || isWithin(earlier, selector));
    });
    if (!other) return [];
    const message = `the selectors of ${other.name} and ${group.name} overlap: they match the same StatefulSets`;
    const path: Path = ['spec', 'members', 'selector'];
    return [finding('RG2116', group.place(path, 'key'), message, { related: [sourceOf(other.place(path, 'key'))] })];
  });

const zonesPath: Path = ['spec', 'members', 'zones'];

function zonesOf(group: Group): readonly ZoneSpec[] {
  return group.value.spec.members.zones ?? [];
}

const findDuplicateZones: LintCheck = eachGroup((group) => {
  const zones = zonesOf(group);
  const report = (code: 'RG2103' | 'RG2104', field: 'name' | 'statefulSet', message: (zone: ZoneSpec | undefined) => string) =>
    repeats(zones, (zone) => zone[field]).map(({ index, first }) =>
      finding(code, group.place([...zonesPath, index, field]), message(zones[index]), {
        related: [sourceOf(group.place([...zonesPath, first, field]))],
      }),
    );
  return [
    ...report('RG2103', 'name', (zone) => `the zone name ${zone?.name} is used twice`),
    ...report('RG2104', 'statefulSet', (zone) => `the StatefulSet ${zone?.statefulSet} is in two zones`),
  ];
});

const findUnknownLeaders: LintCheck = eachGroup((group) => {
  const names = zonesOf(group).map((zone) => zone.name);
  return zonesOf(group).flatMap(({ name, follows }, index) => {
    if (follows === undefined || names.includes(follows)) return [];
    const message = `zone ${name} follows an unknown zone: ${follows} is not in the group`;
    return [finding('RG2105', group.place([...zonesPath, index, 'follows']), message, { hint: suggestion(follows, names) })];
  });
});

/** Reports zones that follow themselves, directly or through other zones. Each cycle is reported once, at its first zone. */
const findLeaderCycles: LintCheck = eachGroup((group) => {
  const zones = zonesOf(group);
  const leaderOf = new Map(zones.map((zone) => [zone.name, zone.follows]));
  const reported = new Set<string>();
  return zones.flatMap((zone, index): readonly Finding[] => {
    const chain = [zone.name];
    for (let leader = zone.follows; leader !== undefined && !chain.includes(leader); leader = leaderOf.get(leader)) chain.push(leader);
    const closes = leaderOf.get(chain.at(-1) ?? '') === zone.name;
    if (!closes || reported.has(zone.name)) return [];
    for (const name of chain) reported.add(name);
    const message = `zones follow each other in a cycle: ${[...chain, zone.name].join(' follows ')}`;
    return [finding('RG2106', group.place([...zonesPath, index, 'follows']), message)];
  });
});

/** Reports followers with a source of replicas: a follower copies the replicas of its leader. */
const findFollowersWithReplicas: LintCheck = eachGroup((group) =>
  zonesOf(group).flatMap(({ name, follows, replicas }, index) => {
    if (follows === undefined || !replicas || !(replicas.count !== undefined || replicas.mirror || replicas.leader)) return [];
    const message = `the replicas of zone ${name} have no effect: it follows ${follows}`;
    return [finding('RG2011', group.place([...zonesPath, index, 'replicas'], 'key'), message, { hint: 'remove follows, or replicas' })];
  }),
);

const findForcedReplicas: LintCheck = eachGroup((group) =>
  zonesOf(group).flatMap(({ name, forceReplicas }, index) => {
    if (forceReplicas === undefined) return [];
    const place = group.place([...zonesPath, index, 'forceReplicas'], 'key');
    return [finding('RG2207', place, `the replicas of zone ${name} are forced to ${forceReplicas}`)];
  }),
);

const findDelayInSingleZone: LintCheck = eachGroup((group, context) => {
  if (definitionOf(context, group)?.zones.length !== 1) return [];
  const below: Path = ['scaling', 'down', 'betweenZones'];
  return [group.find(['spec', ...below], 'key'), group.find([...zonesPath, 0, ...below], 'key')].flatMap((place) =>
    place ? [finding('RG2211', place, `betweenZones has no effect: the group ${group.name} has a single zone`)] : [],
  );
});

/** Reports delays that apply to no scale-down: only the agent applies a delay, but other clients write the replicas of these zones. */
const findDelaysOfDirectScaling: LintCheck = eachGroup((group, context) => {
  const { zones = [] } = definitionOf(context, group) ?? {};
  const direct = zones.filter((zone) => zone.delayed !== undefined && zone.follows === undefined && zone.replicas.kind === 'leader');
  if (direct.length === 0) return [];
  const names = direct.map(({ name }) => name);
  const below: Path = ['scaling', 'down', 'delayed'];
  const index = zonesOf(group).findIndex(({ name }) => names.includes(name));
  const place = group.find([...zonesPath, index, ...below], 'key') ?? group.place(['spec', ...below], 'key');
  const which = `zone${names.length === 1 ? '' : 's'} ${listed(names, 'and')}`;
  return [finding('RG2218', place, `the delay applies to no scale-down of ${which}: it needs replicas that the agent writes`)];
});

type Files = Pick<LintContext, 'load' | 'bundle' | 'groups' | 'isCluster'>;

/** The maximum number of StatefulSets that a message names; the message counts the others. */
const maxNamed = 5;

/** Returns the StatefulSets that the group names or selects, if all are in other namespaces. Omits members of other groups. */
export function membersElsewhere(context: Files, group: Group): readonly Manifest[] {
  if (context.isCluster === true) return [];
  const { zones, selector } = group.value.spec.members;
  const isExpected = ({ name, value }: Manifest): boolean =>
    zones?.some(({ statefulSet }) => statefulSet === name) ??
    (selector !== undefined && matchesSelector(selector, textsOf(valueAt(value, ['metadata', 'labels']))));
  const expected = setManifests(context).filter(isExpected);
  if (expected.some(({ namespace }) => namespace === group.namespace)) return [];
  const isTaken = ({ namespace, name }: Manifest): boolean =>
    context.groups.some(
      (one) => one.namespace === namespace && definitionOf(context, one)?.zones.some((zone) => zone.statefulSet === name),
    );
  return expected.filter((set) => !isTaken(set));
}

/** Returns the message about a group and its `membersElsewhere` (at least one), and the place of the namespace of the group. */
export function describeElsewhere(group: Group, sets: readonly Manifest[]): { readonly text: string; readonly place: Place } {
  const written = group.find(['metadata', 'namespace']);
  const unnamed = namesNamespace(sets) ? '' : ' (their manifests set no namespace)';
  const own = written === undefined ? `${group.namespace} (its document sets no namespace)` : group.namespace;
  const are = new Set(sets.map(({ name }) => name)).size === 1 ? 'is' : 'are';
  const text = `the group ${group.name} has no StatefulSet in its namespace ${own}: ${named(sets)} ${are} in ${listed(namespacesOf(sets), 'and')}${unnamed}`;
  return { text, place: written ?? group.place(['metadata', 'name']) };
}

/** Reports groups whose StatefulSets are in another namespace. After a change of the namespace, no other check reports their loss. */
const findGroupsInOtherNamespace: LintCheck = eachGroup((group, context) => {
  const sets = membersElsewhere(context, group);
  if (sets.length === 0) return [];
  const { text, place } = describeElsewhere(group, sets);
  const related = sets.slice(0, maxNamed).map((set) => sourceOf(set.find(['metadata', 'namespace']) ?? set.place(['metadata', 'name'])));
  if (isMisspelled(context, group, sets)) return [finding('RG2119', place, text, { related })];
  const isWritten = group.find(['metadata', 'namespace']) !== undefined && namesNamespace(sets);
  return [finding('RG2119', place, text, { related, severity: 'notice', hint: isWritten ? writtenHint : unwrittenHint })];
});

const writtenHint =
  'write the same metadata.namespace into the group and the StatefulSets, or add the manifests of the namespace of the group';
const unwrittenHint =
  'write metadata.namespace into the group and the StatefulSets, or lint the rendered manifests: kustomize build . | kubectl rollout-group lint -';

/**
 * Returns whether the namespace is probably misspelled. The group must name its zones, both namespaces must be written and similar, and
 * the namespace of the group must have no other objects. Otherwise the namespaces may be environments.
 */
function isMisspelled({ load }: Files, group: Group, sets: readonly Manifest[]): boolean {
  if (group.value.spec.members.zones === undefined || group.find(['metadata', 'namespace']) === undefined || !namesNamespace(sets))
    return false;
  const isOther = ({ kind, name, namespace }: { readonly kind: string; readonly name: string; readonly namespace: string }): boolean =>
    (namespace === group.namespace && !(kind === group.kind && name === group.name)) || (kind === 'Namespace' && name === group.namespace);
  if ([...load.documents, ...load.manifests].some(isOther)) return false;
  return namespacesOf(sets).some((namespace) => isSameWord(group.namespace, namespace));
}

/** Reports whether one name is a misspelling of the other: `mimr` and `mimir`, but not `mimir-2` and `mimir-1`, or `eu` and `us`. */
function isSameWord(name: string, other: string): boolean {
  const [parts, others] = [name.split('-'), other.split('-')];
  const different = parts.flatMap((part, index) => (part === others[index] ? [] : [[part, others[index] ?? ''] as const]));
  const [pair] = different;
  if (parts.length !== others.length || different.length !== 1 || pair === undefined) return false;
  return pair.every((part) => /^[a-z]{4,}$/.test(part)) && didYouMean(pair[0], [pair[1]]) !== undefined;
}

function namesNamespace(sets: readonly Manifest[]): boolean {
  return sets.some((set) => set.find(['metadata', 'namespace']) !== undefined);
}

function namespacesOf(sets: readonly Manifest[]): readonly string[] {
  return [...new Set(sets.map(({ namespace }) => namespace))].sort();
}

const findStatefulSetsWithoutGroup: LintCheck = (context) => {
  const { bundle, load, groups } = context;
  // The members of an unusable group are unknown.
  const isUndecided =
    load.unusable.some(({ kind }) => kind === 'RolloutGroup') || groups.some((group) => definitionOf(context, group) === undefined);
  if (context.isCluster === true || bundle.groups.length === 0 || isUndecided) return [];
  const taken = new Set([
    ...bundle.groups.flatMap((group) => group.zones.map(({ statefulSet }) => `${group.namespace}/${statefulSet}`)),
    ...groups.flatMap((group) => membersElsewhere(context, group)).map(({ namespace, name }) => `${namespace}/${name}`),
  ]);
  const left = setManifests(context).filter(({ namespace, name }) => !taken.has(`${namespace}/${name}`));
  const [first] = left;
  if (first === undefined) return [];
  const related = left.slice(1, maxNamed).map((set) => sourceOf(set.place(['metadata', 'name'])));
  const message = `${counted(left.length, 'StatefulSet')} ${left.length === 1 ? 'is' : 'are'} in no group: ${named(left, 'full')}`;
  return [finding('RG2120', first.place(['metadata', 'name']), message, { related })];
};

function named(sets: readonly Manifest[], form: 'short' | 'full' = 'short'): string {
  const names = [...new Set(sets.map(({ namespace, name }) => (form === 'full' ? `${namespace}/${name}` : name)))];
  const more = names.length - maxNamed;
  return more > 0 ? `${names.slice(0, maxNamed).join(', ')} and ${more} more` : listed(names, 'and');
}

export const memberChecks: readonly LintCheck[] = [
  findSharedMembers,
  findMissingStatefulSets,
  findUnusableSelectors,
  findSelectorsWithoutExpectation,
  findOverlappingSelectors,
  findDuplicateZones,
  findUnknownLeaders,
  findLeaderCycles,
  findFollowersWithReplicas,
  findForcedReplicas,
  findDelayInSingleZone,
  findDelaysOfDirectScaling,
  findGroupsInOtherNamespace,
  findStatefulSetsWithoutGroup,
];
