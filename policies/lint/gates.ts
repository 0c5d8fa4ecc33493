// Gates: names, uses, and whether it is said when they pass.
import { finding } from '../findings/finding.ts';
import type { Loaded } from '../load.ts';
import { eachGroup, type LintCheck, repeats } from './context.ts';

function gatesOf(group: Loaded<'RolloutGroup'>) {
  return group.value.spec.gates ?? [];
}

export const uniqueGates: LintCheck = eachGroup((group) =>
  repeats(gatesOf(group), (gate) => gate.name).map(({ index }) =>
    finding('RG2108', group.place(['spec', 'gates', index, 'name']), `the gate name ${gatesOf(group)[index]?.name} is used twice`),
  ),
);

export const unusedGates: LintCheck = eachGroup((group) => {
  const waves = group.value.spec.rollout.waves ?? [];
  const used = new Set(waves.flatMap((wave) => [...(wave.before?.gates ?? []), ...(wave.after?.gates ?? [])]));
  return gatesOf(group).flatMap(({ name }, index) =>
    used.has(name) ? [] : [finding('RG2109', group.place(['spec', 'gates', index, 'name']), `no wave names the gate ${name}`)],
  );
});

/** A metric has no value that is good by itself; a number of failing pods or instances has one. */
export const gatesWithoutCondition: LintCheck = eachGroup((group) =>
  gatesOf(group).flatMap((gate, index) => {
    if (gate.pass !== undefined || gate.prometheus === undefined) return [];
    return [finding('RG2011', group.place(['spec', 'gates', index]), `the gate ${gate.name} needs pass to say when it passes`)];
  }),
);

/** Before the first wave no pod is updated, and no data passes only when the gate says so. */
export const probesOfNobody: LintCheck = eachGroup((group) =>
  (group.value.spec.rollout.waves?.[0]?.before?.gates ?? []).flatMap((name, index) => {
    const gate = gatesOf(group).find((one) => one.name === name);
    if (gate?.http === undefined || gate.noData === 'pass') return [];
    const place = group.place(['spec', 'rollout', 'waves', 0, 'before', 'gates', index]);
    return [finding('RG2011', place, `the gate ${name} probes updated pods, of which there are none before the first wave`)];
  }),
);
