// StatefulSets that lie beside the groups: in another namespace than the group that names them, or in no group at all.

import { finding, type Place, sourceOf } from '../findings/finding.ts';
import { matchesSelector } from '../label-selector.ts';
import type { Loaded, Manifest } from '../load.ts';
import { labelsOf } from '../resolve/resolve.ts';
import { didYouMean } from '../text/did-you-mean.ts';
import { counted, listed } from '../wording.ts';
import { definitionOf, type LintCheck, type LintContext } from './context.ts';
import { setManifests } from './stated.ts';

type Group = Loaded<'RolloutGroup'>;
type Files = Pick<LintContext, 'load' | 'bundle' | 'groups' | 'isCluster'>;

/** More names than these are counted. */
const mostNamed = 5;

/**
 * The StatefulSets that the group means and that the files have in another namespace alone: of exactly the names of its zones, or with the labels of its
 * selector. Those that a group of their own namespace names are its own, as where one repository has the policies of several clusters.
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

/** What is to be said of a group and its `membersElsewhere`, at least one, and where the group says its namespace. */
export function elsewhereText(group: Group, sets: readonly Manifest[]): { readonly text: string; readonly place: Place } {
  const written = group.find(['metadata', 'namespace']);
  const unnamed = namesNamespace(sets) ? '' : ', since their manifests name none';
  const own = written === undefined ? `${group.namespace}, since it names none` : group.namespace;
  const text = `the group ${group.name} is in the namespace ${own}, and its StatefulSets ${named(sets)} are in ${listed(namespacesOf(sets), 'and')}${unnamed}`;
  return { text, place: written ?? group.place(['metadata', 'name']) };
}

/** Whoever changes one of two namespaces leaves the StatefulSets without a group, and nothing else says so. */
export const groupsElsewhere: LintCheck = (context) =>
  context.groups.flatMap((group) => {
    const sets = membersElsewhere(context, group);
    if (sets.length === 0) return [];
    const { text, place } = elsewhereText(group, sets);
    const related = sets.slice(0, mostNamed).map((set) => sourceOf(set.find(['metadata', 'namespace']) ?? set.place(['metadata', 'name'])));
    if (isMisspelt(context, group, sets)) return [finding('RG2119', place, text, { related })];
    const isWritten = group.find(['metadata', 'namespace']) !== undefined && namesNamespace(sets);
    return [finding('RG2119', place, text, { related, severity: 'notice', hint: isWritten ? writtenHint : unwrittenHint })];
  });

const writtenHint =
  'if these are meant, write the same metadata.namespace into the group and the StatefulSets; if not, give the manifests of that namespace too';
const unwrittenHint =
  'write metadata.namespace into the group and the StatefulSets, or check what kustomize or helm makes of them: kustomize build . | kubectl rollout-group lint -';

/**
 * Two namespaces that differ are a slip, or two environments of which the files have one; and what names no namespace is put into one by kustomize, Helm
 * or Argo CD. The files show a slip only where the group names its members, both sides write a namespace, the two are the same word but for a letter,
 * and nothing else of the files is in the group's: an environment has more than one object. Labels are the same in every environment by design.
 */
function isMisspelt({ load }: Files, group: Group, sets: readonly Manifest[]): boolean {
  if (group.value.spec.members.zones === undefined || group.find(['metadata', 'namespace']) === undefined || !namesNamespace(sets))
    return false;
  const isOther = ({ kind, name, namespace }: { readonly kind: string; readonly name: string; readonly namespace: string }): boolean =>
    (namespace === group.namespace && !(kind === group.kind && name === group.name)) || (kind === 'Namespace' && name === group.namespace);
  if ([...load.documents, ...load.manifests].some(isOther)) return false;
  return namespacesOf(sets).some((namespace) => isSameWord(group.namespace, namespace));
}

/** `mimr` is `mimir` misspelt; `mimir-2` is no `mimir-1`, nor `mimir-eu` a `mimir-us`: numbers and short parts tell environments apart. */
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
