// A table of what rollouts can do, each row with the tests that show it, and what is wrong with a row.
import { existsSync, readFileSync } from 'node:fs';
import { defectOf } from '../webhook/named-tests.ts';

/** A test by its file and its title, or that of the suite around it. */
export interface NamedTest {
  readonly file: string;
  readonly title: string;
  /** The function of that file in which the test expects something, when it does so nowhere else. */
  readonly by?: string;
}

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

/** Names the tests of one file. */
export const of =
  (file: string): ((...titles: readonly string[]) => readonly NamedTest[]) =>
  (...titles) =>
    titles.map((title) => ({ file, title }));

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

function problemOf({ file, title, by }: NamedTest): string | undefined {
  const defect = existsSync(file) ? defectIn(readFileSync(file, 'utf8'), title, by) : 'there is no such file';
  return defect === undefined ? undefined : `${file}: "${title}": ${defect}`;
}

/** A function that expects something is read as if its name said so. */
function defectIn(source: string, title: string, by: string | undefined): string | undefined {
  if (by === undefined) return defectOf(source, title);
  const [body = ''] = new RegExp(`function ${by}\\b[\\s\\S]*?\\n {0,2}\\}\\n`).exec(source) ?? [];
  if (!/\bexpect\(/.test(body)) return `the function ${by} is not there, or expects nothing`;
  return defectOf(source.replaceAll(`${by}(`, `expect_${by}(`), title);
}
