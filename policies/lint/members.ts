// Lint checks of the members of groups: selectors, and StatefulSets that are missing or in two groups.
import { type Finding, finding, sourceOf } from '../findings/finding.ts';
import { contradictionOf, isEmptySelector, isWithin } from '../label-selector.ts';
import type { Loaded } from '../load.ts';
import type { LabelSelector } from '../schema/scalars.ts';
import { listed, suggestion } from '../wording.ts';
import type { Path } from '../yaml/document.ts';
import type { LintCheck, LintContext } from './context.ts';
import { membersElsewhere } from './stray-statefulsets.ts';

type Group = Loaded<'RolloutGroup'>;

/** Reports StatefulSets that are members of two groups. */
export const findSharedMembers: LintCheck = ({ bundle, groups }) => {
  const owners = new Map<string, string>();
  return bundle.groups.flatMap((group) =>
    group.zones.flatMap((zone): readonly Finding[] => {
      const key = `${group.namespace}/${zone.statefulSet}`;
      const owner = owners.get(key);
      if (owner === undefined) owners.set(key, group.name);
      if (owner === undefined || owner === group.name) return [];
      const document = groups.find((one) => one.namespace === group.namespace && one.name === group.name);
      if (!document) return [];
      const other = groups.find((one) => one.namespace === group.namespace && one.name === owner);
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

/**
 * Reports StatefulSets of zones that are missing, if the manifests contain another member of the group or a similar name. Otherwise the manifests
 * of the group are not among the files, which is only a notice.
 */
export const findMissingStatefulSets: LintCheck = (context) => {
  const { groups, statefulSets, isCluster = false } = context;
  return groups.flatMap((group): readonly Finding[] => {
    const zones = group.value.spec.members.zones ?? [];
    const names = statefulSets.filter((one) => one.namespace === group.namespace).map((one) => one.name);
    const free = names.filter((name) => !zones.some((zone) => zone.statefulSet === name));
    // Members in another namespace have their own finding.
    const elsewhere = new Set(membersElsewhere(context, group).map(({ name }) => name));
    const elsewhereMembers = zones.filter(({ statefulSet }) => elsewhere.has(statefulSet));
    const missing = zones.flatMap((zone, index) => {
      if (names.includes(zone.statefulSet) || elsewhere.has(zone.statefulSet)) return [];
      return [{ zone, index, near: suggestion(zone.statefulSet, free) }];
    });
    const hasNone = missing.length + elsewhereMembers.length === zones.length && missing.every(({ near }) => near === undefined);
    if (!isCluster && missing.length > 0 && hasNone) {
      const which =
        elsewhereMembers.length === 0
          ? ''
          : ` for ${listed(
              missing.map(({ zone }) => `zone ${zone.name}`),
              'and',
            )}`;
      const checked = elsewhereMembers.length === 0 ? 'its members were' : `${missing.length === 1 ? 'it was' : 'they were'}`;
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

/** Returns a hint with the namespaces that have a StatefulSet of this name; undefined if no namespace has one. */
function namesakeOf({ statefulSets, isCluster = false }: LintContext, name: string): string | undefined {
  const others = isCluster ? [] : statefulSets.filter((one) => one.name === name).map((one) => one.namespace);
  return others.length === 0 ? undefined : `a StatefulSet of this name is in the namespace ${listed([...new Set(others)].sort(), 'and')}`;
}

interface SelectorAt {
  readonly selector: LabelSelector;
  readonly path: Path;
  readonly document: Group | Loaded<'RolloutPolicy'>;
}

function selectorsOf({ groups, policies }: LintContext): readonly SelectorAt[] {
  return [
    ...groups.map((document) => ({ document, selector: document.value.spec.members.selector, path: ['spec', 'members', 'selector'] })),
    ...policies.map((document) => ({ document, selector: document.value.spec.targets.selector, path: ['spec', 'targets', 'selector'] })),
  ].flatMap(({ selector, ...rest }) => (selector ? [{ selector, ...rest }] : []));
}

export const findUnusableSelectors: LintCheck = (context) =>
  selectorsOf(context).flatMap(({ selector, path, document }) => {
    const place = document.place(path, 'key');
    if (isEmptySelector(selector)) return [finding('RG2114', place, 'the selector is empty: it matches every object')];
    const contradiction = contradictionOf(selector);
    return contradiction === undefined ? [] : [finding('RG2115', place, `the selector can never match: ${contradiction}`)];
  });

export const findSelectorsWithoutExpectation: LintCheck = ({ groups }) =>
  groups.flatMap((group) => {
    const { selector, expect } = group.value.spec.members;
    if (!selector || expect?.count !== undefined || expect?.names !== undefined) return [];
    const message = `the group ${group.name} does not detect lost members: expect is missing`;
    return [finding('RG2113', group.place(['spec', 'members', 'selector'], 'key'), message)];
  });

/** Reports selectors that surely overlap: one selector has all requirements of the other one. */
export const findOverlappingSelectors: LintCheck = ({ groups }) =>
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
