import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { formatText } from '../../policies/format.ts';
import { writeDocument } from '../../policies/write.ts';
import { rounds } from '../kit/share.ts';
import { sampleDocuments, sampleText } from './sample-documents.ts';

const policy = (rest: string) => `apiVersion: rollout-group.dev/v1alpha1\nkind: RolloutPolicy\nmetadata:\n  name: p\n${rest}`;

describe('the canonical form', () => {
  it('has the fields in the order of the schema, and comments next to their fields', () => {
    const text = `# Owned by the metrics team.

kind: RolloutGroup
apiVersion: rollout-group.dev/v1alpha1
spec:
      # how it rolls
      rollout:
            maxUnavailable: 1   # one by one
            strategy: pinned     # since May


      # who is in it
      members:
        zones:
        # the first zone
        - statefulSet: x-a
          name: a
      # nothing after this
metadata: {namespace: mimir, name: x}
`;
    expect(formatText(text)).toMatchInlineSnapshot(`
      "# Owned by the metrics team.

      apiVersion: rollout-group.dev/v1alpha1
      kind: RolloutGroup
      metadata: { name: x, namespace: mimir }
      spec:
        # who is in it
        members:
          zones:
            # the first zone
            - name: a
              statefulSet: x-a
        # how it rolls
        rollout:
          strategy: pinned # since May
          maxUnavailable: 1 # one by one
        # nothing after this
      "
    `);
  });

  it('keeps a comment at the start of a document', () => {
    const text = 'kind: RolloutPolicy\napiVersion: rollout-group.dev/v1alpha1\nmetadata:\n  name: p\n';
    expect(formatText(`# first\n${text}---\n# second\n${text}`)).toBe(`# first\n${policy('')}---\n# second\n${policy('')}`);
  });

  it('quotes text that an older YAML reader reads as a boolean or a number', () => {
    const text = policy('  labels: { a: yes, b: on, on: n, c: 12:30:00, d: plain }\n');
    expect(formatText(text)).toBe(policy('  labels: { a: "yes", b: "on", "on": "n", c: "12:30:00", d: plain }\n'));
  });

  it('writes a collection in braces as a block when its line is longer than 120 characters', () => {
    const text = policy(
      `spec: { targets: { all: true }, rules: [{ name: r, actions: [scaleDown], effect: deny, message: "${'m'.repeat(70)}" }] }\n`,
    );
    expect(formatText(text)).toMatchInlineSnapshot(`
      "apiVersion: rollout-group.dev/v1alpha1
      kind: RolloutPolicy
      metadata:
        name: p
      spec:
        targets: { all: true }
        rules:
          - name: r
            actions: [scaleDown]
            effect: deny
            message: "mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm"
      "
    `);
  });

  it('separates documents with one marker and drops empty ones', () => {
    const a = policy('');
    expect(formatText(`---\n${a}---\n\n---\n# only a comment\n---\n${a}\n\n---\n`)).toBe(`${a}---\n# only a comment\n---\n${a}`);
  });

  it('ends lines with a line feed and the text with exactly one', () => {
    expect(formatText(`\uFEFF${policy('').replaceAll('\n', '\r\n').trimEnd()}`)).toBe(policy(''));
  });

  it.each([
    ['a document of another kind', 'kind:   Deployment\napiVersion:   apps/v1\n'],
    ['an anchor', policy('spec: { limits: &l { minReplicas: 3 }, targets: { all: true } }\n')],
    ['a tag', policy('spec:   { limits: !!map { minReplicas: 3 } }\n')],
    ['a syntax error', policy('spec: [\n')],
    ['a duplicate key', policy('spec: {}\nspec: {}\n')],
    ['a directive', `%YAML 1.1\n---\n${policy('spec:   {}\n')}`],
    ['content beside the marker', `--- # comment\n${policy('spec:   {}\n')}`],
    ['an end marker', `${policy('spec:   {}\n')}...\n`],
    ['a number that readers disagree on', policy('spec:   { limits: { minReplicas: 0777 } }\n')],
    ['no document', ''],
    ['too much nesting', `${'['.repeat(5000)}`],
    ['a number that would lose digits', policy('spec:   { limits: { minReplicas: 12345678901234567891 } }\n')],
  ])('keeps the notation of a text: %s', (_, text) => {
    expect(formatText(text)).toBe(text);
  });

  it('keeps block scalars and folded texts', () => {
    const text = policy('spec:\n  rules:\n    - name: r\n      message: |\n        one\n          two # no comment\n\n        three\n');
    expect(formatText(text)).toBe(text);
  });

  it('is the output of init', () => {
    const text = sampleDocuments.map((one) => writeDocument(one)).join('---\n');
    expect(formatText(text)).toBe(text);
  });
});

/** A text that says the same in another form: fields in another order, other indentation, comments and blank lines in between. */
function scrambled(seed: number): { readonly text: string; readonly comments: readonly string[] } {
  let state = seed;
  const next = (limit: number) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 8) % limit;
  };
  const documents = parseAllDocuments(sampleText).map((document) => document.toJS());
  const comments: string[] = [];
  const indent = 2 + next(3);
  const remark = (prefix: string) => {
    if (next(4) > 0) return '';
    comments.push(`# remark ${comments.length}`);
    return `${prefix}${comments.at(-1)}`;
  };
  const write = (value: unknown, depth: number): string => {
    const pad = ' '.repeat(depth * indent);
    const line = (text: string) => `${next(8) === 0 ? '\n' : ''}${remark(pad) && `${pad}${comments.at(-1)}\n`}${pad}${text}`;
    if (typeof value !== 'object' || value === null || next(6) === 0) return ` ${JSON.stringify(value)}${remark(' ')}\n`;
    if (Array.isArray(value)) return `\n${value.map((item) => line(`-${write(item, depth + 2)}`)).join('')}`;
    const entries = Object.entries(value).map((entry) => ({ entry, rank: next(1000) }));
    const sorted = entries.sort((a, b) => a.rank - b.rank).map(({ entry }) => entry);
    return `\n${sorted.map(([key, member]) => line(`${JSON.stringify(key)}:${write(member, depth + 1)}`)).join('')}`;
  };
  return { text: documents.map((document) => write(document, 0).replace(/^ \{/, '{')).join('---\n'), comments };
}

describe('formatting any text', () => {
  it('changes no value, loses no comment, and is stable', () => {
    fc.assert(
      fc.property(fc.nat(), (seed) => {
        const { text, comments } = scrambled(seed);
        const formatted = formatText(text);
        expect(parseAllDocuments(formatted).map((document) => document.toJS())).toEqual(
          parseAllDocuments(text).map((document) => document.toJS()),
        );
        expect((formatted.match(/# remark \d+/g) ?? []).sort()).toEqual([...comments].sort());
        expect(formatText(formatted)).toBe(formatted);
        // The last check of the formatter falls back to the text as it was; here it never has to.
        expect(formatted.match(/^(?:apiVersion: |\{ apiVersion: )/gm)).toHaveLength(sampleDocuments.length);
      }),
      { numRuns: rounds(60, 20), seed: 20_260_115 },
    );
  });
});
