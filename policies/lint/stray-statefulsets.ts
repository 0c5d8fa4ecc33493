// Lint checks of StatefulSets in another namespace than their group, or in no group.

import { finding, type Place, sourceOf } from '../findings/finding.ts';
import { matchesSelector } from '../label-selector.ts';
import type { Loaded, Manifest } from '../load.ts';
import { labelsOf } from '../resolve/resolve.ts';
import { didYouMean } from '../text/did-you-mean.ts';
import { counted, listed } from '../wording.ts';
import { definitionOf, type LintCheck, type LintContext } from './context.ts';
import { setManifests } from './member-manifests.ts';

type Group = Loaded<'RolloutGroup'>;
type Files = Pick<LintContext, 'load' | 'bundle' | 'groups' | 'isCluster'>;

/** Messages name at most this many StatefulSets and count the others. */
const mostNamed = 5;

/**
 * Returns the StatefulSets that the group names or selects but that the files have only in another namespace. StatefulSets of a group in their
 * own namespace are excluded, because one repository can have the policies of several clusters.
 */
export function membersElsewhere(context: Files, group: Group): readonly Manifest[] {
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

/** Returns the message about a group and its `membersElsewhere` (at least one), and the place of the namespace of the group. */
export function describeElsewhere(group: Group, sets: readonly Manifest[]): { readonly text: string; readonly place: Place } {
  const written = group.find(['metadata', 'namespace']);
  const unnamed = namesNamespace(sets) ? '' : ' (their manifests set no namespace)';
  const own = written === undefined ? `${group.namespace} (its document sets no namespace)` : group.namespace;
  const text = `the group ${group.name} has no StatefulSet in its namespace ${own}: ${named(sets)} are in ${listed(namespacesOf(sets), 'and')}${unnamed}`;
  return { text, place: written ?? group.place(['metadata', 'name']) };
}

/** Reports groups whose StatefulSets are in another namespace: a changed namespace leaves them without a group, and nothing else reports it. */
export const findGroupsInOtherNamespace: LintCheck = (context) =>
  context.groups.flatMap((group) => {
    const sets = membersElsewhere(context, group);
    if (sets.length === 0) return [];
    const { text, place } = describeElsewhere(group, sets);
    const related = sets.slice(0, mostNamed).map((set) => sourceOf(set.find(['metadata', 'namespace']) ?? set.place(['metadata', 'name'])));
    if (isMisspelt(context, group, sets)) return [finding('RG2119', place, text, { related })];
    const isWritten = group.find(['metadata', 'namespace']) !== undefined && namesNamespace(sets);
    return [finding('RG2119', place, text, { related, severity: 'notice', hint: isWritten ? writtenHint : unwrittenHint })];
  });

const writtenHint =
  'write the same metadata.namespace into the group and the StatefulSets, or add the manifests of the namespace of the group';
const unwrittenHint =
  'write metadata.namespace into the group and the StatefulSets, or lint the rendered manifests: kustomize build . | kubectl rollout-group lint -';

/**
 * Reports whether the namespace of the group is probably misspelled. Two namespaces can also be two environments, and kustomize, Helm or Argo CD can
 * set a namespace later. A misspelling is likely only if the group names its members, both sides write a namespace, the two words nearly match, and
 * nothing else in the files is in the namespace of the group. Labels do not help: they are the same in every environment.
 */
function isMisspelt({ load }: Files, group: Group, sets: readonly Manifest[]): boolean {
  if (group.value.spec.members.zones === undefined || group.find(['metadata', 'namespace']) === undefined || !namesNamespace(sets))
    return false;
  const isOther = ({ kind, name, namespace }: { readonly kind: string; readonly name: string; readonly namespace: string }): boolean =>
    (namespace === group.namespace && !(kind === group.kind && name === group.name)) || (kind === 'Namespace' && name === group.namespace);
  if ([...load.documents, ...load.manifests].some(isOther)) return false;
  return namespacesOf(sets).some((namespace) => isSameWord(group.namespace, namespace));
}

/** `mimr` is a misspelled `mimir`. `mimir-2` and `mimir-1`, or `mimir-eu` and `mimir-us`, are different environments. */
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

/** Reports all StatefulSets without a group in one notice. Files without groups have no finding. */
export const findStatefulSetsWithoutGroup: LintCheck = (context) => {
  const { bundle, load, groups } = context;
  // The members of an unusable group are unknown.
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
