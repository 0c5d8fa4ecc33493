// StatefulSets that lie beside the groups: in another namespace than the group that names them, or in no group at all.
import { finding, sourceOf } from '../findings/finding.ts';
import { matchesSelector } from '../label-selector.ts';
import type { Loaded, Manifest } from '../load.ts';
import { labelsOf } from '../resolve/resolve.ts';
import { counted, listed } from '../wording.ts';
import { definitionOf, type LintCheck, type LintContext } from './context.ts';
import { setManifests } from './stated.ts';

type Group = Loaded<'RolloutGroup'>;

/** More names than these are counted. */
const mostNamed = 5;

/**
 * The StatefulSets that the group means and that the files have in another namespace alone: of exactly the names of its zones, or with the labels of its
 * selector. Those that a group of their own namespace names are its own, as where one repository has the policies of several clusters.
 */
export function membersElsewhere(context: LintContext, group: Group): readonly Manifest[] {
  if (context.isCluster === true) return [];
  const { zones, selector } = group.value.spec.members;
  const isMeant = ({ name, value }: Manifest): boolean =>
    zones?.some(({ statefulSet }) => statefulSet === name) ??
    (selector !== undefined && matchesSelector(selector, labelsOf(value['metadata'])));
  const meant = setManifests(context).filter(isMeant);
  if (meant.some(({ namespace }) => namespace === group.namespace)) return [];
  const isTaken = ({ namespace, name }: Manifest): boolean =>
    context.groups.some(
      (one) => one.namespace === namespace && definitionOf(context, one)?.zones.some((zone) => zone.statefulSet === name),
    );
  return meant.filter((set) => !isTaken(set));
}

/** Whoever changes one of two namespaces leaves the StatefulSets without a group, and nothing else says so. */
export const groupsElsewhere: LintCheck = (context) =>
  context.groups.flatMap((group) => {
    const sets = membersElsewhere(context, group);
    if (sets.length === 0) return [];
    const namespaces = listed([...new Set(sets.map(({ namespace }) => namespace))].sort(), 'and');
    const unnamed = sets.every((set) => set.find(['metadata', 'namespace']) === undefined) ? ', since their manifests name none' : '';
    const own = group.find(['metadata', 'namespace']) === undefined ? `${group.namespace}, since it names none` : group.namespace;
    const message = `the group ${group.name} is in the namespace ${own}, and its StatefulSets ${named(sets)} are in ${namespaces}${unnamed}`;
    const place = group.find(['metadata', 'namespace']) ?? group.place(['metadata', 'name']);
    const related = sets.slice(0, mostNamed).map((set) => sourceOf(set.find(['metadata', 'namespace']) ?? set.place(['metadata', 'name'])));
    return [finding('RG2119', place, message, { related })];
  });

/** One notice for all of them, and none where no file has anything to do with groups. */
export const setsWithoutGroup: LintCheck = (context) => {
  const { bundle, load, groups } = context;
  // Who the members of a group are is not known when it cannot be used.
  const isUndecided =
    load.unusable.some(({ kind }) => kind === 'RolloutGroup') ||
    groups.some((group) => !bundle.groups.some((one) => one.namespace === group.namespace && one.name === group.name));
  if (context.isCluster === true || bundle.groups.length === 0 || isUndecided) return [];
  const taken = new Set([
    ...bundle.groups.flatMap((group) => group.zones.map(({ statefulSet }) => `${group.namespace}/${statefulSet}`)),
    ...groups.flatMap((group) => membersElsewhere(context, group)).map(({ namespace, name }) => `${namespace}/${name}`),
  ]);
  const left = setManifests(context).filter(({ namespace, name }) => !taken.has(`${namespace}/${name}`));
  const [first] = left;
  if (first === undefined) return [];
  const related = left.slice(1, mostNamed).map((set) => sourceOf(set.place(['metadata', 'name'])));
  const message = `${counted(left.length, 'StatefulSet')} ${left.length === 1 ? 'is' : 'are'} in no group: ${named(left, 'full')}`;
  return [finding('RG2120', first.place(['metadata', 'name']), message, { related })];
};

function named(sets: readonly Manifest[], form: 'short' | 'full' = 'short'): string {
  const names = [...new Set(sets.map(({ namespace, name }) => (form === 'full' ? `${namespace}/${name}` : name)))];
  const more = names.length - mostNamed;
  return more > 0 ? `${names.slice(0, mostNamed).join(', ')} and ${more} more` : listed(names, 'and');
}
