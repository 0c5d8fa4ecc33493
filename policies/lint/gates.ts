// Lint checks of gates: duplicate names, unused gates and missing conditions.
import { finding } from '../findings/finding.ts';
import type { Loaded } from '../load.ts';
import { eachGroup, type LintCheck, repeats } from './context.ts';

function gatesOf(group: Loaded<'RolloutGroup'>) {
  return group.value.spec.gates ?? [];
}

export const findDuplicateGates: LintCheck = eachGroup((group) =>
  repeats(gatesOf(group), (gate) => gate.name).map(({ index }) =>
    finding('RG2108', group.place(['spec', 'gates', index, 'name']), `the gate name ${gatesOf(group)[index]?.name} is used twice`),
  ),
);

export const findUnusedGates: LintCheck = eachGroup((group) => {
  const waves = group.value.spec.rollout.waves ?? [];
  const used = new Set(waves.flatMap((wave) => [...(wave.before?.gates ?? []), ...(wave.after?.gates ?? [])]));
  return gatesOf(group).flatMap(({ name }, index) =>
    used.has(name)
      ? []
      : [finding('RG2109', group.place(['spec', 'gates', index, 'name']), `the gate ${name} is never used: no wave names it`)],
  );
});

/** Reports gates on Prometheus without `pass`: only a number of failing pods or instances has a default condition. */
export const findGatesWithoutCondition: LintCheck = eachGroup((group) =>
  gatesOf(group).flatMap((gate, index) => {
    if (gate.pass !== undefined || gate.prometheus === undefined) return [];
    return [finding('RG2011', group.place(['spec', 'gates', index]), `the gate ${gate.name} has no condition: pass is missing`)];
  }),
);

/** Reports HTTP gates before the first wave: no pod is updated yet, and missing data passes only with `noData: pass`. */
export const findProbesBeforeFirstWave: LintCheck = eachGroup((group) =>
  (group.value.spec.rollout.waves?.[0]?.before?.gates ?? []).flatMap((name, index) => {
    const gate = gatesOf(group).find((one) => one.name === name);
    if (gate?.http === undefined || gate.noData === 'pass') return [];
    const place = group.place(['spec', 'rollout', 'waves', 0, 'before', 'gates', index]);
    return [
      finding('RG2011', place, `the gate ${name} never passes before the first wave: it probes updated pods, and no pod is updated yet`),
    ];
  }),
);
