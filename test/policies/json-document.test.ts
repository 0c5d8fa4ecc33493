import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseDocuments } from '../../policies/yaml/document.ts';
import { plainYaml } from '../../policies/yaml/plain.ts';

/** The same text, which the YAML parser reads because of the comment. */
const asYaml = (text: string) => parseDocuments('x.json', `${text}\n# read as YAML`).documents[0];
const asJson = (text: string) => parseDocuments('x.json', text).documents[0];

const manifest = JSON.stringify(
  {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name: 'a', annotations: { note: 'quoted \\"key\\": {[,]} é 😀', empty: '' } },
    spec: { replicas: 3, ratio: 1.5e3, big: 1e21, list: [null, true, [], {}] },
  },
  null,
  2,
);

describe('manifests in JSON', () => {
  it('have the values that the YAML parser reads', () => {
    expect(asJson(manifest)?.value).toEqual(asYaml(manifest)?.value);
  });

  it('have the same places', () => {
    const paths = [[], ['spec', 'replicas'], ['spec', 'list', 1], ['spec', 'list', 3], ['metadata', 'annotations', 'note'], ['spec']];
    for (const text of [manifest, JSON.stringify(JSON.parse(manifest)), `  ${manifest}\n\n`]) {
      for (const part of ['value', 'key'] as const) {
        for (const path of paths) expect(asJson(text)?.find(path, part)).toEqual(asYaml(text)?.find(path, part));
      }
    }
    for (const path of paths) {
      expect(asJson(manifest)?.place([...path, 'absent'])).toEqual(asYaml(manifest)?.place([...path, 'absent']));
    }
    expect(asJson(manifest)?.find(['spec', 'absent'])).toBeUndefined();
  });

  it.each([
    ['a key that is written twice', '{"kind":"StatefulSet","spec":{"replicas":1,"replicas":2}}'],
    ['text behind the object', '{"kind":"StatefulSet"} x'],
    ['more nesting than is allowed', `{"a":${'['.repeat(100)}${']'.repeat(100)}}`],
    [
      'a document of ours',
      '{"apiVersion":"rollout-group.dev/v1alpha1","kind":"RolloutGroup","metadata":{"name":"a"},"spec":{"x":1,"x":2}}',
    ],
  ])('with %s are refused as in YAML', (_, text) => {
    const codes = (given: string) => {
      const { documents, findings } = parseDocuments('x.json', given);
      return [...findings, ...documents.flatMap(({ errors }) => errors)].map(({ code }) => code);
    };
    expect(codes(text)).not.toEqual([]);
    expect(codes(text)).toEqual(codes(` ${text}\n# read as YAML`));
  });

  it('may be larger than policies, since reading them costs little', () => {
    const items = Array.from({ length: 4000 }, (_, index) => ({ kind: 'ConfigMap', data: { text: 'x'.repeat(400), index } }));
    const document = asJson(JSON.stringify({ kind: 'List', items }));
    expect(document?.errors).toEqual([]);
    expect(document?.place(['items', 7])).toMatchObject({ line: 1, column: 1 });
  });
});

/** The same text, which the YAML parser reads because it contains our API group. */
const byParser = (text: string) => parseDocuments('x.yaml', `${text}\n# rollout-group.dev`);

const manifests = readdirSync('examples', { recursive: true, encoding: 'utf8' })
  .filter((name) => /^[\w-]+\/manifests\/[\w-]+\.yaml$/.test(name))
  .map((name) => readFileSync(`examples/${name}`, 'utf8'))
  .filter((text) => !text.includes('rollout-group.dev'));

const plainTexts = [
  'a:\n- b\n- c: d\n  e: f\n- - g\n  - h\n',
  'a: b c\nd:\n  - e # x\n  -\n    f: 1\ng:\nh: []\n',
  '- a\n-\n- b: {}\n',
  'x:\n  w:\n    - 1.5\n    - \'q\'\n    - "r: s"\n---\nz: [a, b, 2]\n# end\n---\n',
];

/** The parts of other forms of YAML. */
const parts = [
  ...[
    ' ',
    '  ',
    '- ',
    '-',
    ':',
    ': ',
    ' #',
    '#',
    "'",
    '"',
    'null',
    '~',
    '1',
    '.5',
    'e3',
    '\n',
    '\n  ',
    '---\n',
    '...\n',
    '{',
    '}',
    '[',
    ']',
  ],
  ...[
    ',',
    '!',
    '&a',
    '*a',
    '|\n',
    '>',
    '?',
    '? ',
    '<<: ',
    'yes',
    'true',
    '0x1',
    '%',
    '@',
    '/',
    'a: b',
    '- a\n',
    'key:\n',
    '\t',
    '\r',
    '\\',
  ],
];

/** Returns the text with some changes: lines that are removed, moved, or have another indent, and parts of other forms of YAML. */
function changed(text: string, random: (count: number) => number): string {
  const lines = text.split('\n');
  for (let count = random(3); count >= 0; count -= 1) {
    const at = random(lines.length);
    const line = lines[at] ?? '';
    const column = random(line.length + 1);
    const texts = [undefined, ` ${line}`, line.replace(/^ /, ''), lines[random(lines.length)]];
    const text =
      random(2) === 0 ? texts[random(4)] : `${line.slice(0, column)}${parts[random(parts.length)]}${line.slice(column + random(2))}`;
    lines.splice(at, 1, ...(text === undefined ? [] : [text]));
  }
  return lines.join('\n');
}

describe('plain YAML', () => {
  it('is the form of most manifests of the examples', () => {
    expect(manifests.filter((text) => plainYaml(text) !== undefined).length).toBeGreaterThan(manifests.length / 2);
    for (const text of plainTexts) expect(plainYaml(text)).toBeDefined();
  });

  it('has the values that the YAML parser reads, without findings, also after any change', () => {
    let seed = 1;
    const random = (count: number) => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
      return Math.floor((seed / 2_147_483_648) * count);
    };
    const start = [...manifests, ...plainTexts];
    const changes = Array.from({ length: 3000 }, () => changed(plainTexts[random(plainTexts.length)] ?? '', random));
    const read = [...start, ...changes].filter((text) => plainYaml(text) !== undefined);
    expect(read.length).toBeGreaterThan(start.length);
    for (const text of read) {
      const { documents, findings } = byParser(text);
      const values = documents.map(({ value }) => value);
      expect([text, findings, ...documents.flatMap(({ errors, dialect }) => [errors, dialect])].flat()).toEqual([text]);
      // The order of keys counts, too.
      expect([text, JSON.stringify(plainYaml(text))]).toEqual([text, JSON.stringify(values)]);
    }
  });

  it('has the same places', () => {
    const [text = ''] = manifests.filter((one) => plainYaml(one) !== undefined && one.includes('\n---\n'));
    const [fast, precise] = [parseDocuments('x.yaml', text).documents, byParser(text).documents];
    expect(fast.length).toBe(precise.length);
    const paths = [[], ['kind'], ['metadata', 'name'], ['spec', 'template', 'spec', 'containers', 0, 'image']];
    for (const [index, document] of fast.entries()) {
      for (const part of ['value', 'key'] as const) {
        for (const path of paths) expect(document.find(path, part)).toEqual(precise[index]?.find(path, part));
        for (const path of paths)
          expect(document.place([...path, 'absent'], part)).toEqual(precise[index]?.place([...path, 'absent'], part));
      }
    }
  });
});
