// Explains a plan of files: places of its objects, missing members, and StatefulSets in another namespace.
import type { AbsentMembers } from '../../engine/plan/plan.ts';
import { result } from '../../engine/rule.ts';
import type { GroupDefinition, Source } from '../../policies/definition.ts';
import { type Place, placeText, sourceOf } from '../../policies/findings/finding.ts';
import { describeElsewhere, membersElsewhere } from '../../policies/lint/members.ts';
import type { Manifest } from '../../policies/load.ts';
import { ofKind } from '../../policies/resolve/resolve.ts';
import { isRecord } from '../../policies/values/is-record.ts';
import { notFoundFailure } from '../failure.ts';
import type { PolicyFiles } from '../policy-files.ts';

export interface PlanSources {
  readonly groups: readonly GroupDefinition[];
  /** All desired documents: policies and manifests. */
  readonly files: Pick<PolicyFiles, 'loaded' | 'resolution'>;
  readonly current: readonly Manifest[];
  readonly desired: readonly Manifest[];
}

/** Throws Failure with exit code 10 if no group has a member here, and StatefulSets of a group are in another namespace. */
export function refuseOtherNamespace(sources: PlanSources): void {
  const [first] = groupsElsewhere(sources);
  const isMember = ({ namespace, name }: Manifest) =>
    sources.groups.some((group) => group.namespace === namespace && group.zones.some((zone) => zone.statefulSet === name));
  if (first === undefined || sources.desired.filter(isStatefulSet).some(isMember)) return;
  throw notFoundFailure('--set applies to nothing: no group has a member here', {
    why: `${first.text} (${placeText(first.place)})`,
    todo: 'write the same metadata.namespace into the group and the StatefulSets',
  });
}

/** Returns notes on groups with missing members, with places, for verbs that do not show the plan. */
export function absenceNotes(absent: readonly AbsentMembers[] = []): readonly string[] {
  return absent.flatMap(({ namespace, group, results }) =>
    results.map(({ fact, source }) => {
      const place = source?.file === undefined ? '' : ` (${source.file}:${source.line}:${source.column})`;
      return `${namespace}/${group} cannot be rolled out: ${fact}${place}`;
    }),
  );
}

export function notesOf(sources: PlanSources, absent: readonly AbsentMembers[] = []): readonly string[] {
  if (sources.groups.length === 0) return [];
  return groupsElsewhere(sources)
    .filter(({ namespace, name }) => !absent.some((one) => one.namespace === namespace && one.group === name))
    .map(({ text, place }) => `${text} (RG2119, ${placeText(place)})`);
}

/** Returns the groups with StatefulSets in another namespace. Only StatefulSets that `isCounted` accepts count. */
function groupsElsewhere({ files }: PlanSources, isCounted: (set: Manifest) => boolean = () => true) {
  const { loaded: load, resolution } = files;
  const groups = ofKind(load.documents, 'RolloutGroup');
  return groups.flatMap((group) => {
    const sets = membersElsewhere({ load, bundle: resolution.bundle, groups }, group).filter(isCounted);
    return sets.length === 0 ? [] : [{ namespace: group.namespace, name: group.name, ...describeElsewhere(group, sets) }];
  });
}

function nameOf({ namespace, name }: Manifest): string {
  return `${namespace}/${name}`;
}

function isStatefulSet({ kind }: Manifest): boolean {
  return kind === 'StatefulSet';
}

/** Returns why groups with missing members cannot be planned. Skips groups without any member, unless another namespace has the members. */
export function absentMembers(sources: PlanSources, groups: readonly GroupDefinition[]): readonly AbsentMembers[] {
  const given = new Set([...sources.current, ...sources.desired].filter(isStatefulSet).map(nameOf));
  const taken = new Set(sources.groups.flatMap(({ namespace, zones }) => zones.map(({ statefulSet }) => `${namespace}/${statefulSet}`)));
  const elsewhere = groupsElsewhere(sources, (set) => given.has(nameOf(set)) && !taken.has(nameOf(set)));
  return groups.flatMap((group): readonly AbsentMembers[] => {
    const missing = group.zones.filter(({ statefulSet }) => !given.has(`${group.namespace}/${statefulSet}`));
    if (missing.length === 0) return [];
    const other = elsewhere.find(({ namespace, name }) => namespace === group.namespace && name === group.name);
    if (other === undefined && missing.length === group.zones.length) return [];
    const results =
      other === undefined
        ? missing.map((zone) => notGiven(sources, group, zone))
        : [blockedBy(`${other.text}; write the same metadata.namespace into the group and the StatefulSets (RG2119)`, other.place)];
    return [{ namespace: group.namespace, group: group.name, results }];
  });
}

type Answer = AbsentMembers['results'][number];

function notGiven({ files }: PlanSources, group: GroupDefinition, zone: GroupDefinition['zones'][number]): Answer {
  const document = ofKind(files.loaded.documents, 'RolloutGroup').find(
    ({ namespace, name }) => namespace === group.namespace && name === group.name,
  );
  const index = document?.value.spec.members.zones?.findIndex(({ statefulSet }) => statefulSet === zone.statefulSet) ?? -1;
  const path = index < 0 ? ['spec', 'members'] : ['spec', 'members', 'zones', index, 'statefulSet'];
  const manifest = files.loaded.manifests.find((one) => isStatefulSet(one) && nameOf(one) === `${group.namespace}/${zone.statefulSet}`);
  const where =
    manifest === undefined ? '' : `, and only --filename names its manifest (${placeText(manifest.place(['metadata', 'name']))})`;
  const fact = `the StatefulSet ${zone.statefulSet} of zone ${zone.name} is in no manifest of --current or --desired${where}; give its manifest together with the manifests of the other zones`;
  return blockedBy(fact, document?.place(path));
}

function blockedBy(fact: string, place: Place | undefined): Answer {
  return result('view-complete', 'no', fact, place === undefined ? {} : { source: sourceOf(place) });
}

/** A function that adds file and line to a source if a manifest of its object was given. */
type Locate = (source: Source) => Source;

/**
 * Returns a function that locates objects among these manifests. A source that has a file, or names a field outside the manifest, stays
 * unchanged.
 */
export function locateIn(manifests: readonly Manifest[]): Locate {
  const byName = new Map(manifests.map((manifest) => [`${manifest.kind} ${manifest.namespace}/${manifest.name}`, manifest]));
  return (source) => {
    const manifest = source.file === undefined && source.object !== undefined ? byName.get(source.object) : undefined;
    const place = manifest === undefined ? undefined : placeOf(manifest, source.field);
    const { file, line, column } = place === undefined ? {} : sourceOf(place);
    return file === undefined || line === undefined || column === undefined ? source : { ...source, file, line, column };
  };
}

/** Returns the place of an annotation, label or field, undefined if the manifest lacks it. Without `field`, returns the place of the name. */
function placeOf(manifest: Manifest, field: string | undefined): Place | undefined {
  if (field === undefined) return manifest.find(['metadata', 'name']);
  const { find } = manifest;
  return find(['metadata', 'annotations', field]) ?? find(['metadata', 'labels', field]) ?? find(field.split('.'));
}

/** Returns a plan or a decision, with file and line in each source that `locate` finds. */
export function located<Value>(value: Value, locate: Locate): Value;
export function located(value: unknown, locate: Locate): unknown {
  if (Array.isArray(value)) return value.map((part) => located(part, locate));
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, part]) => [key, key === 'source' && isRecord(part) ? locate(part) : located(part, locate)]),
  );
}
