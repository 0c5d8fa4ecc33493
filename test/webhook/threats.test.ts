import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { defectOf, type NamedTest } from '../kit/named-tests.ts';
import type { Threat } from './threats.ts';
import { openRows, threats } from './threats.ts';

const open = threats.filter(({ open: reason }) => reason !== undefined);
const told = open.map(({ id, open: reason }) => `threat ${id} is open: ${reason}`);

function problemOf({ file, title }: NamedTest): string | undefined {
  const defect = existsSync(file) ? defectOf(readFileSync(file, 'utf8'), title) : 'there is no such file';
  return defect === undefined ? undefined : `${file}: "${title}": ${defect}`;
}

function problemsOf({ id, stride, threat, rule, tests, open: reason }: Threat): readonly string[] {
  const problems = [
    ...(/^[STRIDE]+$/.test(stride) ? [] : ['no letters of STRIDE']),
    ...(threat.length < 20 || rule.length < 20 ? ['it says nothing'] : []),
    ...(tests.length === 0 && reason === undefined ? ['no test shows it'] : []),
    ...(reason !== undefined && reason.length < 20 ? ['it is open without a reason'] : []),
    ...tests.flatMap((test) => problemOf(test) ?? []),
  ];
  return problems.map((problem) => `threat ${id}: ${problem}`);
}

describe('the threats to the webhooks', () => {
  it('are all there, each once', () => {
    expect(threats.map(({ id }) => id)).toEqual(Array.from({ length: 22 }, (_, index) => index + 1));
  });

  it.each(threats.map((threat) => [threat.id, threat] as const))(
    '%d is covered by tests that exist, run and expect something',
    (_, threat) => {
      expect(problemsOf(threat)).toEqual([]);
    },
  );

  // The title is what every run prints.
  it(`that are open become fewer: ${open.length} of ${threats.length}${told.map((line) => `\n      OPEN ${line}`).join('')}`, () => {
    expect(open.length, `openRows in threats.ts says ${openRows}: lower it when a row is closed, and never raise it`).toBe(openRows);
  });
});

describe('a row', () => {
  const row: Threat = {
    id: 1,
    stride: 'S',
    threat: 'somebody does what is not right',
    rule: 'we do not let it be done',
    tests: [],
  };
  const named = (file: string, title: string): Threat => ({ ...row, tests: [{ file, title }] });

  it('without a test, without words, or with a missing test is found', () => {
    expect(problemsOf(row)).toEqual(['threat 1: no test shows it']);
    expect(problemsOf({ ...row, open: 'nobody has thought of a way to show it yet' })).toEqual([]);
    expect(problemsOf({ ...row, open: 'later' })).toEqual(['threat 1: it is open without a reason']);
    expect(problemsOf({ ...row, stride: 'X', rule: '', open: 'nobody has thought of a way to show it yet' })).toHaveLength(2);
    expect(problemsOf(named('test/webhook/nowhere.test.ts', 'x'))[0]).toContain('there is no such file');
    expect(problemsOf(named('test/webhook/threats.test.ts', 'a title of no test'))[0]).toContain('there is no test of this title');
    expect(problemsOf(named('test/webhook/threats.test.ts', 'are all there, each once'))).toEqual([]);
  });
});

describe('a named test', () => {
  const whole = `expect(1 / 2).toBe(/[/"']/.exec(text)?.length ?? 0.5);`;

  it.each([
    ['it', `it('a', () => { ${whole} });`],
    ['one of a suite', `describe('b', () => { it("a", async () => { ${whole} }); });`],
    ['one with a table', `it.each<[string, { readonly a: (b: string) => number }]>([['x', /\\(/]])('a', (x) => { ${whole} });`],
    ['one with a template', `it(\`a\`, () => { ${whole} });`],
    ['a suite', `describe.each(places)('a', (place) => { for (const one of place) it(\`\${one} (\`, () => { ${whole} }); });`],
    ['a suite of ours', `describeOnControlPlane(\n  'a',\n  (cp) => { it('b', () => { ${whole} }); },\n  { zones: [] },\n);`],
    ['one after a comment', `// it('a', () => {});\n/* it.skip('a') */ it('a', () => { ${whole} });`],
  ])('counts: %s', (_, source) => {
    expect(defectOf(source, 'a')).toBeUndefined();
  });

  it.each([
    ['there is no test', `it('b', () => { ${whole} });`],
    ['there is no test', `// it('a', () => { ${whole} });`],
    ['there is no test', `const text = "it('a', () => { expect(1).toBe(1); })";`],
    ['not run always (.skip)', `it.skip('a', () => { ${whole} });`],
    ['not run always (.skip)', `describe.skip('b', () => { it('a', () => { ${whole} }); });`],
    ['not run always (.todo)', `it.todo('a');`],
    ['not run always (.skipIf)', `it.skipIf(isOld(1))('a', () => { ${whole} });`],
    ['not run always (.fails)', `it.fails('a', () => { ${whole} });`],
    ['nothing is expected', `it('a', () => {});`],
    ['nothing is expected', `it('a', () => { /* expect(1).toBe(1); */ console.log("expect(1)"); });`],
    ['nothing is expected', `it('a', () => {}); it('b', () => { ${whole} });`],
    ['nothing is expected', `describe('a', () => { it('b', () => { ${whole} }); it('c', () => {}); });`],
    ['nothing is expected', `it('a', () => { ${whole} }); describe('b', () => { it('a', () => {}); });`],
    ['its table is empty', `it.each([])('a', () => { ${whole} });`],
    ['it has no tests', `describe('a', () => { ${whole} });`],
  ])('does not count: %s', (why, source) => {
    expect(defectOf(source, 'a')).toContain(why);
  });
});
