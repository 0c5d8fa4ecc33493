import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { defaultAssumptions } from '../../engine/plan/document.ts';
import { planGroups } from '../../engine/plan/plan.ts';
import { findingCodes } from '../../policies/findings/codes.ts';
import { lintPolicies } from '../../policies/lint/lint.ts';

const folder = join(import.meta.dirname, 'corpus');
/** Inputs by name. Each archive holds the inputs of one family of codes after lines `-- NAME --`; `{{text*n}}` stands for n repeats of a text. */
const texts = new Map(
  readdirSync(folder)
    .sort()
    .flatMap((archive) => inputsOf(readFileSync(join(folder, archive), 'utf8'))),
);
const files = [...texts.keys()];

function inputsOf(archive: string): readonly (readonly [string, string])[] {
  const [, ...parts] = archive.split(/^-- (\S+) --\n/m);
  return parts.flatMap((name, index) => (index % 2 === 0 ? [[`${name}.yaml`, repeated(parts[index + 1] ?? '')] as const] : []));
}

function repeated(text: string): string {
  return text.replace(/\{\{(.+?)\*(\d+)\}\}/g, (_, piece: string, count: string) => piece.replaceAll('\\n', '\n').repeat(Number(count)));
}

function textOf(file: string): string {
  return texts.get(file) ?? '';
}

/** Codes of risks, which only a plan can see: the same manifests are asked for with another version of the image. */
const isRisk = (file: string) => file.startsWith('rg5');

function risksOf(text: string): readonly string[] {
  const read = (version: string) => lintPolicies([{ name: 'files.yaml', text: text.replaceAll('mimir:1.0', `mimir:${version}`) }]);
  const { loaded: load, resolution } = read('1.0');
  const objects = (manifests: typeof load.manifests) => manifests.map(({ value }) => value);
  const plan = planGroups({
    ...resolution.bundle,
    policyDigest: '',
    current: objects(load.manifests),
    desired: objects(read('1.1').loaded.manifests),
    assumptions: defaultAssumptions,
    nowMs: 0,
  });
  return plan.groups.flatMap((group) => group.risks.map((risk) => risk.code));
}

describe('the corpus of broken policy files', () => {
  for (const file of files.filter((one) => !isRisk(one))) {
    const text = textOf(file);
    it(`${file} has its code at its place`, () => {
      const [, code, line, column] = /^# expect: (RG\d{4}) (\d+):(\d+)\n/.exec(text) ?? [];
      expect(file.slice(0, 6).toUpperCase()).toBe(code);
      const { findings } = lintPolicies([{ name: file, text }]);
      expect(findings.map((one) => `${one.code} ${one.line}:${one.column}`)).toContain(`${code} ${line}:${column}`);
    });
  }

  for (const file of files.filter(isRisk)) {
    it(`${file} is planned with its risk and no other`, () => {
      const text = textOf(file);
      expect(text.startsWith(`# expect: ${file.slice(0, 6).toUpperCase()}\n`)).toBe(true);
      expect(risksOf(text)).toEqual([file.slice(0, 6).toUpperCase()]);
    });
  }

  it('has an input for every code', () => {
    const covered = new Set(files.map((file) => file.slice(0, 6).toUpperCase()));
    // What is wrong with an installation stands in no file, only a cluster has a partition, a run, a former member or a rolled-back revision, only review writes an approved plan (RG5020), init alone reads other operators, and only two revisions have a difference.
    // A plan of 5,000 pods (RG5015) takes long; the tests of extreme numbers make it. The waves of RG5017 are also a warning of lint (RG2203), and the StatefulSets of RG5018 an error (RG2117).
    const ofFiles = Object.keys(findingCodes).filter((code) => !/^RG[678]|^RG501[2-9]|^RG5020/.test(code));
    expect(ofFiles.filter((code) => !covered.has(code))).toEqual([]);
    expect(covered.size).toBe(ofFiles.length);
  });

  it('has only the error or warning of each input', () => {
    const noisy = files.flatMap((file) => {
      const { findings } = lintPolicies([{ name: file, text: textOf(file) }]);
      const others = findings.filter((one) => one.severity !== 'notice' && one.code !== file.slice(0, 6).toUpperCase());
      return others.map((one) => `${file}: ${one.code} ${one.line}:${one.column} ${one.message}`);
    });
    expect(noisy).toMatchInlineSnapshot(`
      [
        "rg1009-boolean-key.yaml: RG2003 10:3 spec has no field on",
        "rg1009-boolean-word.yaml: RG2005 11:24 spec.protect.noDelete is "yes"; it takes true or false",
        "rg2107-unknown-gate.yaml: RG2109 14:19 the gate errors is never used: no wave names it",
        "rg2108-gate-twice.yaml: RG2109 12:15 the gate up is never used: no wave names it",
        "rg2108-gate-twice.yaml: RG2109 13:15 the gate up is never used: no wave names it",
        "rg5008-budget-of-none.yaml: RG2216 39:25 PodDisruptionBudget ingester blocks every pod of zones a and b: maxUnavailable is 0; no rollout of the group ingester can replace a pod",
        "rg5009-canary-of-none.yaml: RG2217 13:32 wave canary has no pods: zone a has 0 replicas; wave rest updates the first pods",
      ]
    `);
  });

  it('has findings and never an exception, for any damaged files', () => {
    const short = files.map(textOf).filter((text) => text.length < 4000);
    const piece = fc.constantFrom(
      'null',
      '{',
      ']',
      '"',
      ': ',
      '- ',
      '*a',
      '&a ',
      '!',
      '<<: *a',
      '1e999',
      '\n',
      '---\n',
      '|',
      '%',
      '?',
      '\u0000',
      '\ud800',
    );
    const damage = fc.array(fc.record({ at: fc.double({ min: 0, max: 1, noNaN: true }), piece, removed: fc.nat(20) }), {
      minLength: 1,
      maxLength: 6,
    });
    fc.assert(
      fc.property(fc.constantFrom(...short), damage, (text, changes) => {
        const damaged = changes.reduce((before, { at, piece: added, removed }) => {
          const start = Math.floor(at * before.length);
          return `${before.slice(0, start)}${added}${before.slice(start + removed)}`;
        }, text);
        const { findings } = lintPolicies([{ name: 'damaged.yaml', text: damaged }]);
        expect(findings.filter((one) => one.line < 1 || one.column < 1 || /undefined|NaN|\[object/.test(one.message))).toEqual([]);
      }),
      { numRuns: 200 },
    );
  });
});
