// Waves: what they name, whether they grow, and whether they ever come to an end.
import { type Finding, finding, sourceOf } from '../findings/finding.ts';
import type { Loaded } from '../load.ts';
import { idleWaves } from '../rollout/idle-waves.ts';
import type { WaveSpec } from '../schema/rollout-group.ts';
import { listed, suggestion } from '../wording.ts';
import type { Path } from '../yaml/document.ts';
import { definitionOf, eachGroup, type LintCheck, repeats } from './context.ts';
import { manifestOf, statedReplicas } from './stated.ts';

type Group = Loaded<'RolloutGroup'>;

const wavesPath: Path = ['spec', 'rollout', 'waves'];

function wavesOf(group: Group): readonly WaveSpec[] {
  return group.value.spec.rollout.waves ?? [];
}

/** Waves name zones of the group. Members that are found by labels are checked against what was found. */
export const wavesNameZones: LintCheck = (context) =>
  context.groups.flatMap((group) => {
    const names = definitionOf(context, group)?.zones.map((zone) => zone.name) ?? [];
    if (names.length === 0) return [];
    const named = new Set(wavesOf(group).flatMap((wave) => wave.zones));
    const left = names.filter((name) => !named.has(name));
    return wavesOf(group).flatMap((wave, index) =>
      wave.zones.flatMap((zone, position) => {
        if (names.includes(zone)) return [];
        const message = `wave ${wave.name} names zone ${zone}, which is no zone of the group`;
        return [finding('RG2105', group.place([...wavesPath, index, 'zones', position]), message, { hint: zoneHint(zone, names, left) })];
      }),
    );
  });

/**
 * A zone that no wave names is meant rather than one that has its wave; of names of one letter each is as near to every other one, so that only one that is
 * left alone can be meant.
 */
function zoneHint(zone: string, names: readonly string[], left: readonly string[]): string {
  const near = zone.length > 1 || left.length === 1 ? suggestion(zone, left) : undefined;
  return near ?? (zone.length > 1 ? suggestion(zone, names) : undefined) ?? `zones of the group are ${listed(names, 'and')}`;
}

/** Waves name gates of the group, before or after. */
export const wavesNameGates: LintCheck = eachGroup((group) => {
  const names = (group.value.spec.gates ?? []).map((gate) => gate.name);
  return wavesOf(group).flatMap((wave, index) =>
    (['before', 'after'] as const).flatMap((part) =>
      (wave[part]?.gates ?? []).flatMap((gate, position) => {
        if (names.includes(gate)) return [];
        const message = `wave ${wave.name} names gate ${gate}, which the group does not define`;
        return [finding('RG2107', group.place([...wavesPath, index, part, 'gates', position]), message, { hint: suggestion(gate, names) })];
      }),
    ),
  );
});

export const uniqueWaves: LintCheck = eachGroup((group) =>
  repeats(wavesOf(group), (wave) => wave.name).map(({ index }) =>
    finding('RG2108', group.place([...wavesPath, index, 'name']), `the wave name ${wavesOf(group)[index]?.name} is used twice`),
  ),
);

/** Amounts are cumulative for each zone. A number of pods and a percentage compare only after everything is updated. */
export const shrinkingWaves: LintCheck = eachGroup((group) => {
  const before = new Map<string, WaveSpec>();
  return wavesOf(group).flatMap((wave, index) => {
    const shrunk = wave.zones.find((zone) => isSmaller(wave, before.get(zone)));
    for (const zone of wave.zones) before.set(zone, wave);
    if (shrunk === undefined) return [];
    const message = `wave ${wave.name} brings zone ${shrunk} to ${amountText(wave)}, which an earlier wave has already passed`;
    return [finding('RG2201', group.place([...wavesPath, index, wave.pods === undefined ? 'percent' : 'pods']), message)];
  });
});

function isSmaller(wave: WaveSpec, earlier: WaveSpec | undefined): boolean {
  if (!earlier) return false;
  if (wave.pods !== undefined && earlier.pods !== undefined) return wave.pods < earlier.pods;
  if (wave.percent !== undefined && earlier.percent !== undefined) return wave.percent < earlier.percent;
  return earlier.percent === 100;
}

function amountText({ pods, percent }: WaveSpec): string {
  return pods === undefined ? `${percent} percent` : `${pods} updated pods`;
}

export const approvalAfterLastWave: LintCheck = eachGroup((group) => {
  const index = wavesOf(group).length - 1;
  const last = wavesOf(group)[index];
  if (!last?.after?.approval) return [];
  const message = `wave ${last.name} is the last one, so the approval after it acts on nothing`;
  return [finding('RG2202', group.place([...wavesPath, index, 'after', 'approval'], 'key'), message)];
});

/** Every zone of the group is brought to 100 percent by some wave. Pods alone never say that a zone is complete. */
export const unfinishedZones: LintCheck = (context) =>
  context.groups.flatMap((group): readonly Finding[] => {
    const waves = wavesOf(group);
    const resolved = definitionOf(context, group);
    if (waves.length === 0 || !resolved) return [];
    const finished = new Set(waves.filter((wave) => wave.percent === 100).flatMap((wave) => wave.zones));
    const left = resolved.zones.map((zone) => zone.name).filter((zone) => !finished.has(zone));
    if (left.length === 0) return [];
    const message = `no wave brings ${left.length === 1 ? 'zone' : 'zones'} ${left.join(', ')} to 100 percent`;
    return [finding('RG2203', group.place(wavesPath, 'key'), message)];
  });

/**
 * The first wave has pods to try the new version on. A zone without any makes it an empty one: what it should have found out is found out by the
 * first wave that has pods, which is larger.
 */
export const emptyFirstWaves: LintCheck = (context) =>
  context.groups.flatMap((group): readonly Finding[] => {
    const resolved = definitionOf(context, group);
    if (resolved === undefined) return [];
    const empty = resolved.zones.filter((zone) => statedReplicas(context, resolved, zone) === 0);
    const idle = idleWaves(
      resolved.rollout.waves,
      empty.map(({ name }) => name),
    );
    if (idle === undefined) return [];
    const related = empty
      .filter(({ name }) => idle.zones.includes(name))
      .flatMap((zone) => manifestOf(context, resolved, zone)?.find(['spec', 'replicas']) ?? [])
      .map(sourceOf);
    const place = group.find([...wavesPath, 0, 'zones']) ?? group.place(['spec', 'rollout', 'schedule'], 'key');
    return [finding('RG2217', place, idle.text, { related })];
  });
