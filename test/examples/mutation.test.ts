// Removes each restriction of the examples, one at a time. The tests of an example must fail without it, or it is not tested.
import { afterAll, describe, expect, it } from 'vitest';
import type { LoadedDocument } from '../../policies/load.ts';
import { type ExampleTest, exampleNames, runExample, testsOf } from './examples.ts';
import { type Removal, removalsOf } from './removals.ts';

/** Returns the documents of a test without the restriction. The cases stay unchanged. A test may have its own version of a document. */
function documentsWithout({ load }: ExampleTest, { restriction }: Removal): readonly LoadedDocument[] {
  const removal = removalsOf(load.documents).find((one) => one.restriction === restriction);
  if (removal === undefined) return load.documents;
  const { document: changed, without } = removal;
  return load.documents.flatMap((document) => {
    if (document.kind !== changed.kind || document.name !== changed.name) return [document];
    return without === undefined ? [] : [without];
  });
}

/**
 * Returns the cases with another decision without the restriction. A case that names the restriction has no decision without it, and does
 * not count.
 */
function failingCases(removal: Removal, tests: readonly ExampleTest[]): readonly string[] {
  return tests.flatMap((test) =>
    runExample(test, documentsWithout(test, removal)).flatMap(({ name, passed, decision }) => (passed || decision === '' ? [] : [name])),
  );
}

describe.each(exampleNames)('examples/%s', (name) => {
  const tests = testsOf(name).filter(({ load }) => load.documents.length > 0);
  const removals = removalsOf(tests[0]?.load.documents ?? []);
  const counts: (readonly [restriction: string, cases: number])[] = [];

  it('has restrictions, and all its cases pass', () => {
    expect(removals.length).toBeGreaterThan(0);
    expect(tests.flatMap((test) => runExample(test)).filter(({ passed }) => !passed)).toEqual([]);
  });

  it.each(removals.map((removal) => [removal.restriction, removal] as const))(
    'has a case that fails without %s',
    (restriction, removal) => {
      const cases = failingCases(removal, tests);
      counts.push([restriction, cases.length]);
      expect(cases).not.toEqual([]);
    },
  );

  afterAll(() => {
    const lines = counts.map(([restriction, cases]) => `  ${String(cases).padStart(3)} ${restriction}`);
    process.stdout.write(`${[`examples/${name}: cases that fail without each of ${removals.length} restrictions`, ...lines].join('\n')}\n`);
  });
});
