// The examples do what their PolicyTests say, are clean, and can be planned.
import { describe, expect, it } from 'vitest';
import { coverageOf } from '../../engine/policy-test.ts';
import { lintPolicies } from '../../policies/lint/lint.ts';
import { bundleOf, exampleNames, filesBelow, runExample, testsOf } from './examples.ts';

describe.each(exampleNames)('examples/%s', (name) => {
  const tests = testsOf(name);

  it('passes every case of its PolicyTests', () => {
    const failed = tests.flatMap((test) => runExample(test).filter(({ passed }) => !passed));
    expect(tests.length).toBeGreaterThan(0);
    expect(
      failed.map(({ name: caseName, decision, rules, message, problems }) => ({ caseName, problems, decision, rules, message })),
    ).toEqual([]);
  });

  it('has no error and no warning', () => {
    const findings = lintPolicies([
      ...filesBelow(`examples/${name}/policies`),
      ...filesBelow(`examples/${name}/tests`),
      ...filesBelow(`examples/${name}/manifests`),
    ]).findings;
    expect(findings.filter(({ severity }) => severity !== 'notice')).toEqual([]);
  });

  it('has seen every rule hold and let pass', () => {
    const [first] = tests;
    const native = tests.filter((test) => test.load.documents.length > 0);
    const bundle = first === undefined ? undefined : bundleOf(native[0]?.load.documents ?? [], native[0]?.load ?? { manifests: [] });
    const seen =
      bundle === undefined
        ? []
        : coverageOf(
            bundle,
            native.flatMap((test) => runExample(test)),
          );
    expect(
      seen
        .filter(({ held, passed }) => held.length === 0 || passed.length === 0)
        .map(({ rule, held, passed }) => ({ rule, held: held.length, passed: passed.length })),
    ).toEqual([]);
  });
});
