// Defines a mutant: a small defect for which no plan was made, so that it measures what random seeds find.
import type { Defect } from '../defect.ts';

export interface Mutant extends Pick<Defect, 'id' | 'title' | 'edits'> {
  /** The features of scenarios (`featuresOf`) of which at least one is needed to reach the edit; absent: every scenario may reach it. */
  readonly needs?: readonly string[];
}

type Row = readonly [id: string, title: string, find: string, replace: string, needs?: readonly string[]];

/** Returns the mutants of one file. Each replaces one passage. */
export function mutantsOf(file: string, rows: readonly Row[]): readonly Mutant[] {
  return rows.map(([id, title, find, replace, needs]) => ({
    id,
    title,
    edits: [{ file, find, replace }],
    ...(needs === undefined ? {} : { needs }),
  }));
}
