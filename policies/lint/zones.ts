// Lint checks of zones: duplicate names, leaders and replicas.
import { type Finding, finding, sourceOf } from '../findings/finding.ts';
import type { Loaded } from '../load.ts';
import type { ZoneSpec } from '../schema/rollout-group.ts';
import { suggestion } from '../wording.ts';
import type { Path } from '../yaml/document.ts';
import { definitionOf, eachGroup, type LintCheck, repeats } from './context.ts';

type Group = Loaded<'RolloutGroup'>;

const zonesPath: Path = ['spec', 'members', 'zones'];

function zonesOf(group: Group): readonly ZoneSpec[] {
  return group.value.spec.members.zones ?? [];
}

/** Reports duplicate zone names and StatefulSets. */
export const findDuplicateZones: LintCheck = eachGroup((group) => {
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

/** Reports `follows` with an unknown zone. */
export const findUnknownLeaders: LintCheck = eachGroup((group) => {
  const names = zonesOf(group).map((zone) => zone.name);
  return zonesOf(group).flatMap(({ name, follows }, index) => {
    if (follows === undefined || names.includes(follows)) return [];
    const message = `zone ${name} follows an unknown zone: ${follows} is not in the group`;
    return [finding('RG2105', group.place([...zonesPath, index, 'follows']), message, { hint: suggestion(follows, names) })];
  });
});

/** Reports zones that follow themselves, directly or through other zones. Each cycle is reported once, at its first zone. */
export const findLeaderCycles: LintCheck = eachGroup((group) => {
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

/** Reports followers with replicas: a follower always has the replicas of its leader. */
export const findFollowersWithReplicas: LintCheck = eachGroup((group) =>
  zonesOf(group).flatMap(({ name, follows, replicas }, index) => {
    if (follows === undefined || !replicas || !(replicas.count !== undefined || replicas.mirror || replicas.leader)) return [];
    const message = `the replicas of zone ${name} have no effect: it follows ${follows}`;
    return [finding('RG2011', group.place([...zonesPath, index, 'replicas'], 'key'), message, { hint: 'remove follows, or replicas' })];
  }),
);

export const findForcedReplicas: LintCheck = eachGroup((group) =>
  zonesOf(group).flatMap(({ name, forceReplicas }, index) => {
    if (forceReplicas === undefined) return [];
    return [
      finding(
        'RG2207',
        group.place([...zonesPath, index, 'forceReplicas'], 'key'),
        `the replicas of zone ${name} are forced to ${forceReplicas}`,
      ),
    ];
  }),
);

/** Reports a time between zones in a group of one zone. */
export const findDelayInSingleZone: LintCheck = (context) =>
  context.groups.flatMap((group) => {
    if (definitionOf(context, group)?.zones.length !== 1) return [];
    const below: Path = ['scaling', 'down', 'betweenZones'];
    return [group.find(['spec', ...below], 'key'), group.find([...zonesPath, 0, ...below], 'key')].flatMap((place) =>
      place ? [finding('RG2211', place, `betweenZones has no effect: the group ${group.name} has a single zone`)] : [],
    );
  });
