// Notes on what a plan of files leaves out: groups with StatefulSets in another namespace, and StatefulSets in no group.

import type { AbsentMembers } from '../../engine/plan/plan.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { type Place, placeText } from '../../policies/findings/finding.ts';
import { describeElsewhere, membersElsewhere } from '../../policies/lint/stray-statefulsets.ts';
import type { Manifest } from '../../policies/load.ts';
import { ofKind } from '../../policies/resolve/resolve.ts';
import { canonicalJson } from '../../policies/values/canonical-json.ts';
import { exitCodes, Failure } from '../failure.ts';
import type { PolicyFiles } from '../policy-files.ts';

export interface PlanSources {
  /** The groups of the plan. */
  readonly groups: readonly GroupDefinition[];
  /** Every desired document, policies and manifests. */
  readonly files: Pick<PolicyFiles, 'loaded' | 'resolution'>;
  /** Manifests that run. */
  readonly current: readonly Manifest[];
  /** Desired manifests. */
  readonly desired: readonly Manifest[];
}

/**
 * Refuses `--set` for a group whose StatefulSets are all in another namespace: it would apply to nothing.
 *
 * @throws Failure with exit code 10.
 */
export function refuseOtherNamespace(sources: PlanSources): void {
  const [first] = groupsElsewhere(sources);
  const isMember = ({ namespace, name }: Manifest) =>
    sources.groups.some((group) => group.namespace === namespace && group.zones.some((zone) => zone.statefulSet === name));
  if (first === undefined || sources.desired.filter(isStatefulSet).some(isMember)) return;
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
      return `${namespace}/${group} cannot be rolled out: ${fact}${place}`;
    }),
  );
}

/**
 * Returns notes on groups whose StatefulSets are in another namespace, and on StatefulSets that change without a group. Kubernetes rolls
 * these at once, outside the plan. Groups with absent members are blocked in the plan itself.
 */
export function notesOf(sources: PlanSources, absent: readonly AbsentMembers[] = []): readonly string[] {
  const { groups, current, desired } = sources;
  if (groups.length === 0) return [];
  const elsewhere = groupsElsewhere(sources);
  const unsaid = elsewhere.filter(({ namespace, name }) => !absent.some((one) => one.namespace === namespace && one.group === name));
  if (elsewhere.length > 0) return unsaid.map(({ text, place }) => `${text} (RG2119, ${placeText(place)})`);
  const members = new Set(groups.flatMap(({ namespace, zones }) => zones.map((zone) => `${namespace}/${zone.statefulSet}`)));
  const before = new Map(current.filter(isStatefulSet).map((set) => [nameOf(set), set.value]));
  const alone = desired
    .filter((set) => isStatefulSet(set) && !members.has(nameOf(set)))
    .filter((set) => canonicalJson(before.get(nameOf(set)) ?? null) !== canonicalJson(set.value))
    .map(nameOf);
  return alone.length === 0 ? [] : [`this plan does not cover ${aloneText(alone)}`];
}

function groupsElsewhere({
  files,
}: PlanSources): readonly { readonly namespace: string; readonly name: string; readonly text: string; readonly place: Place }[] {
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
