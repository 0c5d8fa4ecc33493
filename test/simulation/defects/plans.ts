// The stored plans of defects: one scenario for each, which finds it and finds nothing in the sources as they are.
import { readFileSync, writeFileSync } from 'node:fs';
import { readPlans, type StoredPlan, writeScenario } from '../../../scripts/soak/search/replay.ts';

/** From the root of the repository. */
export const plansFile = 'test/simulation/plans/defects.json';

/** Returns the plans by the id of their defect. Throws PlanError for a plan that cannot be played. */
export function defectPlans(): ReadonlyMap<string, StoredPlan> {
  return new Map(readPlans(readFileSync(plansFile, 'utf8'), plansFile).map((plan) => [plan.name, plan]));
}

export function storePlan(plan: StoredPlan): void {
  const plans = [...new Map(defectPlans()).set(plan.name, plan).values()];
  writeFileSync(plansFile, writeScenario(plans.sort((one, other) => (one.name < other.name ? -1 : 1))));
}
