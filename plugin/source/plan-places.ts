// Adds file and line to the objects of a plan, which the engine knows by name only.
import type { GroupDecision, RuleResult } from '../../engine/decision.ts';
import type { GroupPlan, Plan, PlannedStep } from '../../engine/plan/document.ts';
import type { Source } from '../../policies/definition.ts';
import { type Place, sourceOf } from '../../policies/findings/finding.ts';
import type { Manifest } from '../../policies/load.ts';

/** Adds file and line to a source if a manifest of its object was given. */
type Locate = (source: Source) => Source;

/** Finds objects among manifests. Sources with a file and fields outside the manifest stay unchanged. */
export function locateIn(manifests: readonly Manifest[]): Locate {
  const byName = new Map(manifests.map((manifest) => [`${manifest.kind} ${manifest.namespace}/${manifest.name}`, manifest]));
  return (source) => {
    const manifest = source.file === undefined && source.object !== undefined ? byName.get(source.object) : undefined;
    const place = manifest === undefined ? undefined : placeOf(manifest, source.field);
    const { file, line, column } = place === undefined ? {} : sourceOf(place);
    return file === undefined || line === undefined || column === undefined ? source : { ...source, file, line, column };
  };
}

/** Returns the place of a field, label or annotation, else of the object's name. */
function placeOf(manifest: Manifest, field: string | undefined): Place | undefined {
  if (field === undefined) return manifest.find(['metadata', 'name']);
  const { find } = manifest;
  return find(['metadata', 'annotations', field]) ?? find(['metadata', 'labels', field]) ?? find(field.split('.'));
}

/** Returns the plan with file and line of every object among the manifests. */
export function locatedPlan(plan: Plan, locate: Locate): Plan {
  return { ...plan, groups: plan.groups.map((group) => locatedGroup(group, locate)) };
}

/** Returns the decision with file and line in every rule result. */
export function locatedDecision(decision: GroupDecision, locate: Locate): GroupDecision {
  const located = (results: readonly RuleResult[]) => results.map((one) => withPlace(one, locate));
  return {
    ...decision,
    steps: decision.steps.map((step) => ({ ...step, results: located(step.results) })),
    waits: located(decision.waits),
    warnings: located(decision.warnings),
  };
}

function locatedGroup(group: GroupPlan, locate: Locate): GroupPlan {
  const located = (results: readonly RuleResult[]) => results.map((one) => withPlace(one, locate));
  const steps = (list: readonly PlannedStep[]) => list.map((step) => ({ ...withPlace(step, locate), rules: located(step.rules) }));
  return {
    ...group,
    waves: group.waves.map((wave) => ({ ...wave, steps: steps(wave.steps) })),
    refused: group.refused.map((refusal) => ({ ...refusal, results: located(refusal.results) })),
    risks: group.risks.map((risk) => withPlace(risk, locate)),
    waits: located(group.waits),
  };
}

function withPlace<T extends { readonly source?: Source }>(one: T, locate: Locate): T {
  return one.source === undefined ? one : { ...one, source: locate(one.source) };
}
