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

/** A metric has no value that is good by itself; a number of failing pods has one. */
export const gatesWithoutCondition: LintCheck = eachGroup((group) =>
  gatesOf(group).flatMap((gate, index) => {
    const isComplete = gate.pass !== undefined || gate.http || gate.podsAvailable || gate.consul?.passing !== undefined;
    if (isComplete) return [];
    const missing = gate.consul ? 'pass or consul.passing' : 'pass';
    return [finding('RG2011', group.place(['spec', 'gates', index]), `the gate ${gate.name} needs ${missing} to say when it passes`)];
  }),
);
