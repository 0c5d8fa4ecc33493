// A table of what rollouts can do, each row with the tests that show it, and what is wrong with a row.
import { existsSync, readFileSync } from 'node:fs';
import { defectOf, type NamedTest } from '../kit/named-tests.ts';

export interface Row {
  readonly id: number;
  /** What one of the operators before us does, or does wrong. */
  readonly what: string;
  /** What is done here. */
  readonly here: string;
  readonly tests: readonly NamedTest[];
  /** What of it is not done here, and why. */
  readonly open?: string;
}

/** What is wrong with a row, each as one line. */
export function problemsOf(row: Row): readonly string[] {
  const { id, what, here, tests, open } = row;
  const problems = [
    ...(what.length < 10 || here.length < 10 ? ['it says nothing'] : []),
    ...(tests.length === 0 && open === undefined ? ['no test shows it'] : []),
    ...(open !== undefined && open.length < 20 ? ['it is open without a reason'] : []),
    ...tests.flatMap((test) => problemOf(test) ?? []),
  ];
  return problems.map((problem) => `row ${id}: ${problem}`);
}

function problemOf({ file, title }: NamedTest): string | undefined {
  const defect = existsSync(file) ? defectOf(readFileSync(file, 'utf8'), title) : 'there is no such file';
  return defect === undefined ? undefined : `${file}: "${title}": ${defect}`;
}
