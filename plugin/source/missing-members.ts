// Members that can never come in a plan of files alone: their manifests lie in another namespace, or in files that are no part of the plan.
import type { AbsentMembers } from '../../engine/plan/plan.ts';
import { result } from '../../engine/rule.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { type Place, placeText, sourceOf } from '../../policies/findings/finding.ts';
import { describeElsewhere, membersElsewhere } from '../../policies/lint/stray-statefulsets.ts';
import type { Manifest } from '../../policies/load.ts';
import { ofKind } from '../../policies/resolve/resolve.ts';
import type { BesidePlan } from './plan-notes.ts';

/**
 * Of each group that the request is about and that misses a member, why it can never be done. A group none of whose members is given is not meant,
 * unless StatefulSets of its names lie beside it: policies are given whole where a request is about one group of several.
 */
export function absentMembers(beside: BesidePlan, groups: readonly GroupDefinition[]): readonly AbsentMembers[] {
  const given = new Set([...beside.current, ...beside.desired].filter(({ kind }) => kind === 'StatefulSet').map(nameOf));
  return groups.flatMap((group): readonly AbsentMembers[] => {
    const missing = group.zones.filter(({ statefulSet }) => !given.has(`${group.namespace}/${statefulSet}`));
    if (missing.length === 0) return [];
    const elsewhere = textElsewhere(beside, group, given);
    const isMeant = missing.length < group.zones.length;
    const results = elsewhere === undefined ? (isMeant ? missing.map((zone) => notGiven(beside, group, zone)) : []) : [elsewhere];
    return results.length === 0 ? [] : [{ namespace: group.namespace, group: group.name, results }];
  });
}

type Answer = AbsentMembers['results'][number];

function textElsewhere({ files, groups }: BesidePlan, group: GroupDefinition, given: ReadonlySet<string>): Answer | undefined {
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

function notGiven({ files }: BesidePlan, group: GroupDefinition, zone: GroupDefinition['zones'][number]): Answer {
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
