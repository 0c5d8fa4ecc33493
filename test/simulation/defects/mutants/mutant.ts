// Defines a mutant: a small defect for which no plan was made, so that it measures what random seeds find.

import { featuresOf } from '../../../../scripts/soak/search/features.ts';
import type { Scenario } from '../../../../simulation/scenario.ts';
import type { Defect } from '../defect.ts';

export interface Mutant extends Pick<Defect, 'id' | 'title' | 'edits'> {
  /** Returns whether the scenario may reach the edit; absent: every scenario may. */
  readonly needs?: (scenario: Scenario) => boolean;
}

type Row = readonly [id: string, title: string, find: string, replace: string, needs?: Mutant['needs']];

/** Returns the mutants of one file. Each replaces one passage. */
export function mutantsOf(file: string, rows: readonly Row[]): readonly Mutant[] {
  return rows.map(([id, title, find, replace, needs]) => ({
    id,
    title,
    edits: [{ file, find, replace }],
    ...(needs === undefined ? {} : { needs }),
  }));
}

/** Returns the needs of a mutant that is reached only with one of these features or requests (`featuresOf`). */
export function anyOf(...names: readonly string[]): NonNullable<Mutant['needs']> {
  return (scenario) => featuresOf(scenario).some((name) => names.includes(name));
}

/** Returns the needs of a mutant that is reached only with one of these events. */
export function anyEvent(...kinds: readonly Scenario['events'][number]['kind'][]): NonNullable<Mutant['needs']> {
  return ({ events }) => events.some(({ kind }) => kinds.includes(kind));
}

export const prepares: NonNullable<Mutant['needs']> = ({ group }) => group.delaySeconds > 0 || group.prepares === true;
