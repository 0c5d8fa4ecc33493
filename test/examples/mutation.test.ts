// Takes every rule out of the examples, one at a time: a rule that no case misses is not tested.
import { afterAll, describe, expect, it } from 'vitest';
import type { LoadedDocument } from '../../policies/load.ts';
import { type ExampleTest, exampleNames, runExample, testsOf } from './examples.ts';
import { type Removal, removalsOf } from './removals.ts';

/** The documents of a test without the rule; the cases stay as they are. */
function documentsWithout({ load }: ExampleTest, { document: changed, without }: Removal): readonly LoadedDocument[] {
  return load.documents.flatMap((document) => {
    if (document.kind !== changed.kind || document.name !== changed.name) return [document];
    return without === undefined ? [] : [without];
  });
}

/**
 * The cases that are answered otherwise without the rule. A case that can no longer be asked, because it names the rule, does not count: only
 * a decision that differs shows what the rule does.
 */
function casesThatMiss(removal: Removal, tests: readonly ExampleTest[]): readonly string[] {
  return tests.flatMap((test) =>
    runExample(test, documentsWithout(test, removal)).flatMap(({ name, passed, decision }) => (passed || decision === '' ? [] : [name])),
  );
}

describe.each(exampleNames)('examples/%s', (name) => {
  const tests = testsOf(name).filter(({ load }) => load.documents.length > 0);
  const removals = removalsOf(tests[0]?.load.documents ?? []);
  const counts: (readonly [rule: string, cases: number])[] = [];

  it('has rules, and cases that all pass with them', () => {
    expect(removals.length).toBeGreaterThan(0);
    expect(tests.flatMap((test) => runExample(test)).filter(({ passed }) => !passed)).toEqual([]);
  });

  it.each(removals.map((removal) => [removal.rule, removal] as const))('is not the same without %s', (rule, removal) => {
    const cases = casesThatMiss(removal, tests);
    counts.push([rule, cases.length]);
    expect(cases).not.toEqual([]);
  });

  afterAll(() => {
    const lines = counts.map(([rule, cases]) => `  ${String(cases).padStart(3)} ${rule}`);
    process.stdout.write(`${[`examples/${name}: cases that fail without each of ${removals.length} rules`, ...lines].join('\n')}\n`);
  });
});
