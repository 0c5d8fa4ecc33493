// Notes on what a plan of files leaves out: groups with StatefulSets in another namespace, and StatefulSets in no group.

import type { AbsentMembers } from '../../engine/plan/plan.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { type Place, placeText } from '../../policies/findings/finding.ts';
import { describeElsewhere, membersElsewhere } from '../../policies/lint/stray-statefulsets.ts';
import type { Manifest } from '../../policies/load.ts';
import { ofKind } from '../../policies/resolve/resolve.ts';
import { canonicalJson } from '../../policies/values/canonical-json.ts';
import { exitCodes } from '../exit-code.ts';
import { Failure } from '../failure.ts';
import type { PolicyFiles } from '../policy-files.ts';

export interface BesidePlan {
  /** The groups of the plan. */
  readonly groups: readonly GroupDefinition[];
  /** Everything that is asked for, policies and manifests. */
  readonly files: Pick<PolicyFiles, 'loaded' | 'resolution'>;
  /** Manifests of what runs. */
  readonly current: readonly Manifest[];
  /** Manifests of what is asked for. */
  readonly desired: readonly Manifest[];
}

/**
 * A change by `--set` of a group whose StatefulSets are all beside it would be said to apply to nothing, and not why.
 *
 * @throws Failure with exit code 10.
 */
export function refuseOtherNamespace(beside: BesidePlan): void {
  const [first] = groupsElsewhere(beside);
  const isMember = ({ namespace, name }: Manifest) =>
    beside.groups.some((group) => group.namespace === namespace && group.zones.some((zone) => zone.statefulSet === name));
  if (first === undefined || beside.desired.filter(isStatefulSet).some(isMember)) return;
  throw new Failure({
    exitCode: exitCodes.notFound,
    what: '--set applies to nothing: no group has a member here',
    why: `${first.text} (${placeText(first.place)})`,
    todo: 'write the same metadata.namespace into the group and the StatefulSets',
  });
}

/** Returns notes on groups without their members, with places, for verbs that do not show the plan. */
export function absenceNotes(absent: readonly AbsentMembers[] = []): readonly string[] {
  return absent.flatMap(({ namespace, group, results }) =>
    results.map(({ fact, source }) => {
      const place = source?.file === undefined ? '' : ` (${source.file}:${source.line}:${source.column})`;
      return `${namespace}/${group} can never be done: ${fact}${place}`;
    }),
  );
}

/**
 * Notes on a group beside its StatefulSets, and on StatefulSets that change without a group: Kubernetes rolls those at once, and the plan says nothing
 * of them. The plan itself says why groups are blocked whose members are absent.
 */
export function notesOf(beside: BesidePlan, absent: readonly AbsentMembers[] = []): readonly string[] {
  const { groups, current, desired } = beside;
  if (groups.length === 0) return [];
  const elsewhere = groupsElsewhere(beside);
  const unsaid = elsewhere.filter(({ namespace, name }) => !absent.some((one) => one.namespace === namespace && one.group === name));
  if (elsewhere.length > 0) return unsaid.map(({ text, place }) => `${text} (RG2119, ${placeText(place)})`);
  const members = new Set(groups.flatMap(({ namespace, zones }) => zones.map((zone) => `${namespace}/${zone.statefulSet}`)));
  const before = new Map(current.filter(isStatefulSet).map((set) => [nameOf(set), set.value]));
  const alone = desired
    .filter((set) => isStatefulSet(set) && !members.has(nameOf(set)))
    .filter((set) => canonicalJson(before.get(nameOf(set)) ?? null) !== canonicalJson(set.value))
    .map(nameOf);
  return alone.length === 0 ? [] : [`this plan says nothing of ${aloneText(alone)}`];
}

function groupsElsewhere({
  files,
}: BesidePlan): readonly { readonly namespace: string; readonly name: string; readonly text: string; readonly place: Place }[] {
  const { loaded: load, resolution } = files;
  const groups = ofKind(load.documents, 'RolloutGroup');
  return groups.flatMap((group) => {
    const sets = membersElsewhere({ load, bundle: resolution.bundle, groups }, group);
    return sets.length === 0 ? [] : [{ namespace: group.namespace, name: group.name, ...describeElsewhere(group, sets) }];
  });
}

function aloneText(names: readonly string[]): string {
  const shown = names.slice(0, 5).join(', ');
  const more = names.length > 5 ? ` and ${names.length - 5} more` : '';
  return `${names.length === 1 ? 'a StatefulSet that is' : `${names.length} StatefulSets that are`} in no group and ${names.length === 1 ? 'changes' : 'change'}: ${shown}${more}`;
}

function nameOf({ namespace, name }: Manifest): string {
  return `${namespace}/${name}`;
}

function isStatefulSet({ kind }: Manifest): boolean {
  return kind === 'StatefulSet';
}
