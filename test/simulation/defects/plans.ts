// The stored plans of defects: one scenario for each, which finds it and finds nothing in the sources as they are.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { readPlan, type StoredPlan, writeScenario } from '../../../simulation/search/replay.ts';

const folder = 'test/simulation/plans/defects';

/** From the root of the repository. */
export function planFile(id: string): string {
  return `${folder}/${id}.json`;
}

/** undefined when there is none. Throws PlanError for one that cannot be played. */
export function planOf(id: string): StoredPlan | undefined {
  const file = planFile(id);
  return existsSync(file) ? readPlan(readFileSync(file, 'utf8'), file) : undefined;
}

export function storePlan(plan: StoredPlan): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(planFile(plan.name), writeScenario(plan));
}
