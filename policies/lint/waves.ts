// Checks waves and gates for lint: unknown and duplicate names, amounts that do not grow, and zones that never finish.
import { finding, sourceOf } from '../findings/finding.ts';
import type { Loaded } from '../load.ts';
import { emptyFirstWaves } from '../rollout/empty-waves.ts';
import type { WaveSpec } from '../schema/rollout-group.ts';
import { listed, suggestion } from '../wording.ts';
import type { Path } from '../yaml/document.ts';
import { definitionOf, eachGroup, type LintCheck, repeatedNames } from './context.ts';
import { manifestOf, replicasInFiles } from './manifests.ts';

type Group = Loaded<'RolloutGroup'>;

const wavesPath: Path = ['spec', 'rollout', 'waves'];

function wavesOf(group: Group): readonly WaveSpec[] {
  return group.value.spec.rollout.waves ?? [];
}

/** Reports zones of waves that the group does not have. With a selector, the zones are the StatefulSets that match. */
const findUnknownZonesInWaves: LintCheck = eachGroup((group, context) => {
  const names = definitionOf(context, group)?.zones.map((zone) => zone.name) ?? [];
  if (names.length === 0) return [];
  const named = new Set(wavesOf(group).flatMap((wave) => wave.zones));
  const left = names.filter((name) => !named.has(name));
  return wavesOf(group).flatMap((wave, index) =>
    wave.zones.flatMap((zone, position) => {
      if (names.includes(zone)) return [];
      const message = `wave ${wave.name} names an unknown zone: ${zone} is not in the group`;
      return [finding('RG2105', group.place([...wavesPath, index, 'zones', position]), message, { hint: zoneHint(zone, names, left) })];
    }),
  );
});

/** Returns a hint for an unknown zone, preferably a zone without a wave. A name of one letter is similar to every name of one letter. */
function zoneHint(zone: string, names: readonly string[], left: readonly string[]): string {
  const near = zone.length > 1 || left.length === 1 ? suggestion(zone, left) : undefined;
  return near ?? (zone.length > 1 ? suggestion(zone, names) : undefined) ?? `zones of the group are ${listed(names, 'and')}`;
}

const findUnknownGatesInWaves: LintCheck = eachGroup((group) => {
  const names = (group.value.spec.gates ?? []).map((gate) => gate.name);
  return wavesOf(group).flatMap((wave, index) =>
    (['before', 'after'] as const).flatMap((part) =>
      (wave[part]?.gates ?? []).flatMap((gate, position) => {
        if (names.includes(gate)) return [];
        const message = `wave ${wave.name} names an unknown gate: the group does not define ${gate}`;
        return [finding('RG2107', group.place([...wavesPath, index, part, 'gates', position]), message, { hint: suggestion(gate, names) })];
      }),
    ),
  );
});

const findDuplicateWaves: LintCheck = eachGroup((group) => repeatedNames(group, wavesPath, 'wave', wavesOf(group)));

/**
 * Reports waves with smaller amounts than earlier waves. Amounts are cumulative for each zone. A number of pods counts as smaller than 100
 * percent, but not as smaller than any other percentage.
 */
const findShrinkingWaves: LintCheck = eachGroup((group) => {
  const before = new Map<string, WaveSpec>();
  return wavesOf(group).flatMap((wave, index) => {
    const shrunk = wave.zones.find((zone) => isSmaller(wave, before.get(zone)));
    for (const zone of wave.zones) before.set(zone, wave);
    if (shrunk === undefined) return [];
    const message = `wave ${wave.name} updates nothing in zone ${shrunk}: an earlier wave already updates more than ${amountText(wave)}`;
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
  return pods === undefined ? `${percent} percent` : `${pods} pods`;
}

const findApprovalAfterLastWave: LintCheck = eachGroup((group) => {
  const index = wavesOf(group).length - 1;
  const last = wavesOf(group)[index];
  if (!last?.after?.approval) return [];
  const message = `the approval after wave ${last.name} blocks no pod: it is the last wave`;
  return [finding('RG2202', group.place([...wavesPath, index, 'after', 'approval'], 'key'), message)];
});

/** Reports zones that no wave updates to 100 percent. A number of pods does not count, because the zone may have more pods. */
const findUnfinishedZones: LintCheck = eachGroup((group, context) => {
  const waves = wavesOf(group);
  const resolved = definitionOf(context, group);
  if (waves.length === 0 || !resolved) return [];
  const finished = new Set(waves.filter((wave) => wave.percent === 100).flatMap((wave) => wave.zones));
  const left = resolved.zones.map((zone) => zone.name).filter((zone) => !finished.has(zone));
  if (left.length === 0) return [];
  const message = `no wave completes ${left.length === 1 ? 'zone' : 'zones'} ${left.join(', ')}: percent: 100 is missing`;
  return [finding('RG2203', group.place(wavesPath, 'key'), message)];
});

/** Reports waves without pods at the start of a rollout: a later wave is then the first test of the update revision. */
const findEmptyFirstWaves: LintCheck = eachGroup((group, context) => {
  const resolved = definitionOf(context, group);
  if (resolved === undefined) return [];
  const empty = resolved.zones.filter((zone) => replicasInFiles(context, resolved, zone) === 0);
  const emptyNames = empty.map(({ name }) => name);
  const idle = emptyFirstWaves(resolved.rollout.waves, emptyNames);
  if (idle === undefined) return [];
  const related = empty
    .filter(({ name }) => idle.zones.includes(name))
    .flatMap((zone) => manifestOf(context, resolved, zone)?.find(['spec', 'replicas']) ?? [])
    .map(sourceOf);
  const place = group.find([...wavesPath, 0, 'zones']) ?? group.place(['spec', 'rollout', 'schedule'], 'key');
  return [finding('RG2217', place, idle.text, { related })];
});

function gatesOf(group: Loaded<'RolloutGroup'>) {
  return group.value.spec.gates ?? [];
}

const findDuplicateGates: LintCheck = eachGroup((group) => repeatedNames(group, ['spec', 'gates'], 'gate', gatesOf(group)));

const findUnusedGates: LintCheck = eachGroup((group) => {
  const waves = group.value.spec.rollout.waves ?? [];
  const used = new Set(waves.flatMap((wave) => [...(wave.before?.gates ?? []), ...(wave.after?.gates ?? [])]));
  return gatesOf(group).flatMap(({ name }, index) =>
    used.has(name)
      ? []
      : [finding('RG2109', group.place(['spec', 'gates', index, 'name']), `the gate ${name} is never used: no wave names it`)],
  );
});

/** Reports Prometheus gates without `pass`. Other gates count pods or instances, so they have a default condition. */
const findGatesWithoutCondition: LintCheck = eachGroup((group) =>
  gatesOf(group).flatMap((gate, index) => {
    if (gate.pass !== undefined || gate.prometheus === undefined) return [];
    return [finding('RG2011', group.place(['spec', 'gates', index]), `the gate ${gate.name} has no condition: pass is missing`)];
  }),
);

/** Reports HTTP gates before the first wave: no pod is updated yet, and missing data passes only with `noData: pass`. */
const findProbesBeforeFirstWave: LintCheck = eachGroup((group) =>
  (group.value.spec.rollout.waves?.[0]?.before?.gates ?? []).flatMap((name, index) => {
    const gate = gatesOf(group).find((one) => one.name === name);
    if (gate?.http === undefined || gate.noData === 'pass') return [];
    const place = group.place(['spec', 'rollout', 'waves', 0, 'before', 'gates', index]);
    return [
      finding('RG2011', place, `the gate ${name} never passes before the first wave: it probes updated pods, and no pod is updated yet`),
    ];
  }),
);

export const waveChecks: readonly LintCheck[] = [
  findUnknownZonesInWaves,
  findUnknownGatesInWaves,
  findDuplicateWaves,
  findShrinkingWaves,
  findApprovalAfterLastWave,
  findUnfinishedZones,
  findEmptyFirstWaves,
  findDuplicateGates,
  findUnusedGates,
  findGatesWithoutCondition,
  findProbesBeforeFirstWave,
];
