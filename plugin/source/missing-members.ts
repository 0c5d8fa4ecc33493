// Finds members that a plan of files lacks: their manifests are in another namespace, or in files outside the plan.
import type { AbsentMembers } from '../../engine/plan/plan.ts';
import { result } from '../../engine/rule.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { type Place, placeText, sourceOf } from '../../policies/findings/finding.ts';
import { describeElsewhere, membersElsewhere } from '../../policies/lint/stray-statefulsets.ts';
import type { Manifest } from '../../policies/load.ts';
import { ofKind } from '../../policies/resolve/resolve.ts';
import type { PlanSources } from './plan-notes.ts';

/**
 * Returns why groups with missing members cannot be planned. A group without any member among the manifests is skipped, unless StatefulSets
 * with its names are in another namespace: policies often define more groups than the plan is about.
 */
export function absentMembers(sources: PlanSources, groups: readonly GroupDefinition[]): readonly AbsentMembers[] {
  const given = new Set([...sources.current, ...sources.desired].filter(({ kind }) => kind === 'StatefulSet').map(nameOf));
  return groups.flatMap((group): readonly AbsentMembers[] => {
    const missing = group.zones.filter(({ statefulSet }) => !given.has(`${group.namespace}/${statefulSet}`));
    if (missing.length === 0) return [];
    const elsewhere = textElsewhere(sources, group, given);
    const isMeant = missing.length < group.zones.length;
    const results = elsewhere === undefined ? (isMeant ? missing.map((zone) => notGiven(sources, group, zone)) : []) : [elsewhere];
    return results.length === 0 ? [] : [{ namespace: group.namespace, group: group.name, results }];
  });
}

type Answer = AbsentMembers['results'][number];

function textElsewhere({ files, groups }: PlanSources, group: GroupDefinition, given: ReadonlySet<string>): Answer | undefined {
  const { loaded: load, resolution } = files;
  const documents = ofKind(load.documents, 'RolloutGroup');
  const document = documents.find(({ namespace, name }) => namespace === group.namespace && name === group.name);
  if (document === undefined) return undefined;
  const taken = new Set(groups.flatMap(({ namespace, zones }) => zones.map(({ statefulSet }) => `${namespace}/${statefulSet}`)));
  const sets = membersElsewhere({ load, bundle: resolution.bundle, groups: documents }, document)
    .filter((set) => given.has(nameOf(set)))
    .filter((set) => !taken.has(nameOf(set)));
  if (sets.length === 0) return undefined;
  const { text, place } = describeElsewhere(document, sets);
  return never(`${text}; write the same metadata.namespace into the group and the StatefulSets (RG2119)`, place);
}

function notGiven({ files }: PlanSources, group: GroupDefinition, zone: GroupDefinition['zones'][number]): Answer {
  const document = ofKind(files.loaded.documents, 'RolloutGroup').find(
    ({ namespace, name }) => namespace === group.namespace && name === group.name,
  );
  const index = document?.value.spec.members.zones?.findIndex(({ statefulSet }) => statefulSet === zone.statefulSet) ?? -1;
  const path = index < 0 ? ['spec', 'members'] : ['spec', 'members', 'zones', index, 'statefulSet'];
  const manifest = files.loaded.manifests.find(
    (one) => one.kind === 'StatefulSet' && nameOf(one) === `${group.namespace}/${zone.statefulSet}`,
  );
  const where = manifest === undefined ? '' : `, and --file alone names its manifest (${placeText(manifest.place(['metadata', 'name']))})`;
  const fact = `the StatefulSet ${zone.statefulSet} of zone ${zone.name} is in no manifest of --current or --desired${where}; give it together with those of the other zones`;
  return never(fact, document?.place(path));
}

function never(fact: string, place: Place | undefined): Answer {
  return result('view-complete', 'no', fact, place === undefined ? {} : { source: sourceOf(place) });
}

function nameOf({ namespace, name }: Manifest): string {
  return `${namespace}/${name}`;
}
