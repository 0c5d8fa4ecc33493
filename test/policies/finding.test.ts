import { describe, expect, it } from 'vitest';
import { type CodeEntry, explainCode, findingCodes } from '../../policies/findings/codes.ts';
import {
  countFindings,
  type Finding,
  finding,
  jsonPointer,
  objectPlace,
  type Place,
  placeText,
  renderFinding,
  sortFindings,
  sourceOf,
} from '../../policies/findings/finding.ts';
import { maskText, withoutCredentials } from '../../policies/text/credentials.ts';
import { parseDocuments } from '../../policies/yaml/document.ts';
import { placeOf, textLines } from '../../policies/yaml/text-lines.ts';
import { findingsMarkdown } from '../../scripts/generated/pages.ts';

/** The place of the first occurrence of `part` in `text`. */
function placeIn(text: string, part: string, pointer = ''): Place {
  const start = text.indexOf(part);
  return placeOf(textLines('policies/ingester.yaml', text), start, start + part.length, pointer);
}

it.each([
  ['password: x', 'password: ***'],
  ['--auth.token="a b" --b', '--auth.token=*** --b'],
  ['db_password_old=x', 'db_password_old=***'],
  ['password: "a b', 'password: ***'],
  ["password: 'a b", 'password: ***'],
  [String.raw`password: "a\"b" # c`, 'password: *** # c'],
  ["password: 'a''b' # c", 'password: *** # c'],
  ['{ password: a;b&c,d, user: e }', '{ password: ***, user: e }'],
  ['--set=password=a,user=b', '--set=password=***,user=b'],
  ['{"token":1,"user":"a"}', '{"token":***,"user":"a"}'],
  ['password: !!str &own x', 'password: !!str &own ***'],
  ['$(SCHEME)://me:x@db', '$(SCHEME)://***@db'],
  ['send BEARER dXNlcjpw', 'send BEARER ***'],
  ['Authorization: Bearer x', 'Authorization: Bearer ***'],
  ['send Basic dXNlcjpw', 'send Basic ***'],
  ['send basic dXNlcjpw', 'send basic ***'],
  ['pg://me:x@db/a?sig=x&b', 'pg://***@db/a?sig=***&***'],
  ['https://hooks.example.com/x', 'https://hooks.example.com/***'],
  ['app --password hunter2 --b c', 'app --password *** --b c'],
  ['app -auth.token "a b" c', 'app -auth.token *** c'],
  ['args: ["--password", "hunter2"]', 'args: ["--password", ***]'],
  ["args: ['--password', 'hunter2', a]", "args: ['--password', ***, a]"],
  ['args: [--password, hunter2]', 'args: [--password, ***'],
  [String.raw`--config={\"password\":\"hunter2\",\"a\":1}`, String.raw`--config={\"password\":***,\"a\":1}`],
  [String.raw`--config={\"password\": \"hun\\\"ter2\"}`, String.raw`--config={\"password\": ***}`],
  [String.raw`sh -c \"app --password \"hunter2 3\"`, String.raw`sh -c \"app --password ***`],
  ['app --token --next a | b', 'app --token --next a | b'],
  ['app --token | b', 'app --token | b'],
  ['["--token", "--next", "a"]', '["--token", "--next", "a"]'],
  ['app --token-file /etc/token', 'app --token-file /etc/token'],
  ['secretName: db', 'secretName: db'],
  ['tokenRef: db', 'tokenRef: db'],
  ['secret: { name: db }', 'secret: { name: db }'],
  ['the basic requirements', 'the basic requirements'],
])('masks the credentials of %j', (text, masked) => {
  expect(maskText(text)).toBe(masked);
  // An excerpt of a file hides the same parts, and keeps the length.
  const excerpt = withoutCredentials(text);
  expect([excerpt.length, excerpt.replaceAll(/\*+/g, '***')]).toEqual([text.length, masked]);
});

it.each([
  'headers: [{ name: A, value: s3cr3t x }]',
  '  value: "s3cr3t, x"',
  'password: a s3cr3t',
  'metadata: { name: x, annotations: { a/b: s3cr3t }, colour: red }',
  '{"name":"A","value":"s3cr3t"}',
  'value: a,s3cr3t',
  '  - value: abc}s3cr3t',
  'value: "a", s3cr3t',
  'value: "a" s3cr3t # c',
  'value: &a "x, s3cr3t"',
  '[{ name: A, value: &a "x, s3cr3t" }]',
  'password: x, s3cr3t',
  '"env": {"value": "s3cr3t"}',
  'env:  {value: s3cr3t}',
  'value : s3cr3t',
  '"value" : "s3cr3t"',
  '{ value : s3cr3t, a: b }',
])('hides the values of pairs and annotations in the excerpt %j', (text) => {
  const excerpt = withoutCredentials(text);
  expect([excerpt.length, excerpt.includes('s3cr3t')]).toEqual([text.length, false]);
});

// A pattern whose time grows with the square of the length would not return.
it.each([' ', '-', '- ', 'a: ', 'value: ', 'value: "', '"value": ', '--token ', String.raw`"\"`])(
  'hides a value in an excerpt of 400,000 characters: %j',
  (part) => {
    expect(withoutCredentials(`${part.repeat(400_000 / part.length)}\nvalue: s3cr3t`)).not.toContain('s3cr3t');
  },
);

it.each([
  ['a Secret', 'kind: Secret\nstringData:\n  db: |\n    s3cr3t\n'],
  ['a Secret with a space before the colon', 'kind : Secret\nstringData:\n  db: s3cr3t\n'],
  ['a Secret in JSON', '{ "kind" : "Secret",\n  "stringData": {\n  "db": "s3cr3t" } }\n'],
  ['a map of annotations with a comment', 'metadata:\n  annotations:\n# comment\n    text: s3cr3t\n'],
  ['a value of several lines', 'env:\n  - name: A\n    value: |\n      more\n\n      s3cr3t\n'],
  ['a value on the next line', 'env:\n  - value:\n      s3cr3t\n'],
  ['a value that goes on', 'env:\n  - value: "a\n      s3cr3t"\n'],
  ['a credential of several lines', 'password: >-\n  a: s3cr3t\n'],
  ['a flag', 'args:\n  - --password\n  - s3cr3t\n'],
  ['a flag in JSON', '"args": [\n  "--password",\n  "s3cr3t"\n]\n'],
  ['a list of credentials', 'passwords:\n- a\n- s3cr3t\n'],
  ['a map of annotations', 'metadata:\n  annotations:\n    text: |\n      more\n      s3cr3t\n'],
])('hides every value of %s in an excerpt', (_, text) => {
  const document = `kind: Pod\n---\n${text}---\nkind: Pod\n`;
  const lines = textLines('a.yaml', document);
  const start = document.indexOf('s3cr3t');
  expect(JSON.stringify(placeOf(lines, start, start + 6, ''))).not.toContain('s3cr3t');
  expect(placeOf(lines, 0, 4, '').excerpt?.at(-1)?.text).toBe('kind: Pod');
  expect(placeOf(lines, document.lastIndexOf('kind'), document.length, '').excerpt?.at(-1)?.text).toBe('kind: Pod');
});

it.each([
  ['env:\n  - value: a\n    name: shown\n', 'shown'],
  ['volumes:\n  - name: a\n    secret:\n      secretName: shown\n', 'shown'],
  ['{ value: true, colour: shown }\n', 'shown'],
  ['- --password\n- --shown\n', '--shown'],
  ['- --password-file\n- shown\n', 'shown'],
  ['value: 30s # shown\n', 'value: 30s # shown'],
])('shows the other fields of the excerpt %j', (text, shown) => {
  const { excerpt } = placeIn(text, 'shown');
  expect(excerpt?.at(-1)?.text).toContain(shown);
});

it('names no alias, anchor or tag, because a credential can begin with their characters', () => {
  const { documents } = parseDocuments('a.yaml', 'a: { password: *s3cr3t }\n---\na: { password: &s3cr3t 1, token: !s3cr3t 2 }\n');
  const findings = documents.flatMap(({ errors, dialect }) => [...errors, ...dialect]);
  expect(findings.map(({ message }) => message)).toEqual([
    'the alias has no anchor before it',
    'the anchor is not allowed in policies',
    'the tag is not allowed in policies',
  ]);
});

describe('the table of codes', () => {
  const entries: readonly (readonly [string, CodeEntry])[] = Object.entries(findingCodes);

  it('has a title without a full stop and an explanation of whole sentences for every code', () => {
    const wrong = entries.filter(([, { title, explanation }]) => !/^[A-Z].*[^.]$/.test(title) || !/^[A-Z`].*\.$/.test(explanation));
    expect(wrong).toEqual([]);
  });

  it('has hints that continue after `fix:`', () => {
    expect(entries.filter(([, { hint }]) => hint !== undefined && !/^[a-z].*[^.]$/.test(hint))).toEqual([]);
  });

  it('has no two codes with one title', () => {
    const titles = entries.map(([, { title }]) => title);
    expect(titles.filter((title, index) => titles.indexOf(title) !== index)).toEqual([]);
  });

  it('explains every code on one page', () => {
    const page = findingsMarkdown();
    expect(entries.filter(([code, { title }]) => !page.includes(`### ${code}: ${title}\n`))).toEqual([]);
    expect(page.split('\n').filter((line) => line.startsWith('## '))).toMatchInlineSnapshot(`
      [
        "## RG1xxx: Syntax and files",
        "## RG2xxx: Schema, names and meaning",
        "## RG3xxx: Conditions",
        "## RG4xxx: Settings adopted from grafana/rollout-operator",
        "## RG5xxx: Risks of a plan",
        "## RG6xxx: The installation",
        "## RG7xxx: Objects of other rollout operators",
        "## RG8xxx: Effects of a change",
      ]
    `);
  });

  it('accepts only known codes', () => {
    expect(explainCode('RG2106')?.title).toBe('Zones follow each other in a cycle');
    expect([explainCode('RG9999'), explainCode('constructor')]).toEqual([undefined, undefined]);
  });
});

describe('a finding', () => {
  const place = placeIn('spec:\n  rollout: { strategy: promot }\n', 'promot', '/spec/rollout/strategy');

  it('has the severity and hint of the table, or of its options', () => {
    expect(finding('RG2203', place, 'no wave completes zone c: percent: 100 is missing')).toMatchInlineSnapshot(`
      {
        "code": "RG2203",
        "column": 24,
        "endColumn": 30,
        "excerpt": [
          {
            "line": 1,
            "text": "spec:",
          },
          {
            "line": 2,
            "text": "  rollout: { strategy: promot }",
          },
        ],
        "file": "policies/ingester.yaml",
        "hint": "add a last wave with percent: 100",
        "line": 2,
        "message": "no wave completes zone c: percent: 100 is missing",
        "pointer": "/spec/rollout/strategy",
        "severity": "warning",
      }
    `);
    const softer = finding('RG2203', place, 'the same', { severity: 'notice', hint: 'wait' });
    expect([softer.severity, softer.hint]).toEqual(['notice', 'wait']);
  });

  it('has its place with and without a file', () => {
    const inCluster = objectPlace('StatefulSet mimir/ingester-zone-a', ['metadata', 'labels', 'a/b~c']);
    expect([placeText(place), placeText(inCluster)]).toEqual([
      'policies/ingester.yaml:2:24',
      'StatefulSet mimir/ingester-zone-a metadata.labels.a/b~c',
    ]);
    expect([sourceOf(place), sourceOf(inCluster)]).toEqual([
      { file: 'policies/ingester.yaml', line: 2, column: 24 },
      { object: 'StatefulSet mimir/ingester-zone-a', field: 'metadata.labels.a/b~c' },
    ]);
  });

  it('writes pointers by RFC 6901', () => {
    expect(jsonPointer(['spec', 'rules', 2, 'when', '</>', 'a~b'])).toBe('/spec/rules/2/when/<~1>/a~0b');
  });

  it('is sorted by place, without repetition', () => {
    const at = (file: string, line: number, column: number): Finding => finding('RG2003', { file, line, column, pointer: '' }, 'x');
    const sorted = [at('a.yaml', 2, 9), at('a.yaml', 10, 1), at('b.yaml', 1, 1)];
    expect(sortFindings([...sorted, ...sorted].reverse())).toEqual(sorted);
    expect(countFindings([...sorted, finding('RG2111', place, 'y')])).toEqual({ error: 3, warning: 0, notice: 1 });
  });
});

describe('the text of a finding', () => {
  it('shows the line before, the line, and a caret under the value', () => {
    const text = 'spec:\n  rollout: { strategy: promot }\n';
    const one = finding('RG2006', placeIn(text, 'promot'), 'spec.rollout.strategy is "promot"', { hint: 'did you mean pinned' });
    expect(renderFinding({ ...one, related: [{ file: 'b.yaml', line: 3, column: 5 }] })).toMatchInlineSnapshot(`
      "policies/ingester.yaml:2:24 error RG2006 spec.rollout.strategy is "promot"
         1 | spec:
         2 |   rollout: { strategy: promot }
           |                        ^^^^^^
         see b.yaml:3:5
         fix: did you mean pinned"
    `);
  });

  it('keeps the caret in place after tabs, and cuts long lines around it', () => {
    const text = `a: 1\nlist: [\t${'x, '.repeat(80)}wrong${', y'.repeat(40)}]\n`;
    expect(renderFinding(finding('RG2005', placeIn(text, 'wrong'), 'list[80] is wrong'))).toMatchInlineSnapshot(`
      "policies/ingester.yaml:2:249 error RG2005 list[80] is wrong
         2 |  x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, wrong, y, y, y, y, y, y, y, y, y, y, y, y, y, y, y, y,
           |                                                        ^^^^^"
    `);
  });

  it('omits lines that no user wrote', () => {
    const text = `list: [${'x, '.repeat(400)}wrong]\n`;
    expect(renderFinding(finding('RG2005', placeIn(text, 'wrong'), 'list[400] is wrong'))).toBe(
      'policies/ingester.yaml:1:1208 error RG2005 list[400] is wrong',
    );
  });

  it('shows control and bidirectional characters as escapes, so that a file cannot write to the terminal', () => {
    const text = 'name: \u001b[2Jx\u202ey # end\n';
    const rendered = renderFinding(finding('RG2007', placeIn(text, '\u001b[2Jx\u202ey'), 'name is "\u001b[2Jx"'));
    expect(rendered).toMatchInlineSnapshot(`
      "policies/ingester.yaml:1:7 error RG2007 name is "\\u001b[2Jx"
         1 | name: \\u001b[2Jx\\u202ey # end
           |       ^^^^^^^^^^^^^^^^^"
    `);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: their absence is the point.
    expect(rendered).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/);
  });

  it('names each part for a reader that adds colour', () => {
    const one = finding('RG2109', placeIn('gates: [errors]\n', 'errors'), 'the gate errors is never used: no wave names it');
    expect(renderFinding(one, (part, text) => `<${part}>${text}</>`)).toMatchInlineSnapshot(`
      "<place>policies/ingester.yaml:1:9</> <warning>warning</> <code>RG2109</> the gate errors is never used: no wave names it
         1 | gates: [errors]
           |         <caret>^^^^^^</>
      <hint>   fix: name the gate in a wave, or remove it</>"
    `);
  });
});
