// Conversion as a whole: whatever it is given, in whatever order, it answers with documents that hold to the schema and with findings.
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { schemas } from '../../../policies/schema/kinds.ts';
import { converted, phased, rollout, statefulSetText } from './foreign-kit.ts';

const originals = [
  readFileSync('examples/phased-rollout/original/ledger.yaml', 'utf8'),
  readFileSync('examples/statefulset-rollout/original/queue.yaml', 'utf8'),
  readFileSync('examples/phased-rollout/manifests/ledger.yaml', 'utf8'),
];
const keys = { 'payments/prometheus': ['username', 'password'] };

describe('conversion', () => {
  it('has the same result for any order of its input', () => {
    const texts = [...originals, phased(), statefulSetText(), rollout(), phased({ name: 'rival' })];
    const meant = ({ groups, documents, statefulSets, findings }: ReturnType<typeof converted>) => ({
      groups,
      documents,
      statefulSets,
      findings: findings.map(({ code, object, message }) => `${code} ${object} ${message}`).sort(),
    });
    const inOrder = (order: readonly string[]) =>
      meant(
        converted(
          order.map((text, index) => ({ name: `${index}.yaml`, text })),
          keys,
        ),
      );
    const expected = inOrder(texts);
    expect(expected.groups.length).toBeGreaterThan(2);
    expect(inOrder([...texts].reverse())).toEqual(expected);
  });

  it('skips other objects', () => {
    const other = phased().replace('sts.plus/v1alpha1', 'example.com/v1');
    const none = { groups: [], documents: [], statefulSets: [], findings: [] };
    expect(converted([{ name: 'a.yaml', text: `${other}---\n${statefulSetText()}` }])).toEqual(none);
  });

  it('never throws, and writes no invalid document, for any damaged objects', () => {
    const pieces = ['null', '[]', '{}', '-1', '1e99', '"x"', 'true', '- a', 'name:', '2147483648', '../x', '\u0000', 'https://', '#', '%'];
    const damage = fc.array(
      fc.record({
        file: fc.nat(2),
        at: fc.double({ min: 0, max: 1, noNaN: true }),
        piece: fc.constantFrom(...pieces),
        removed: fc.nat(25),
      }),
      { minLength: 1, maxLength: 4 },
    );
    fc.assert(
      fc.property(damage, (changes) => {
        const texts = changes.reduce((before, { file, at, piece, removed }) => {
          const text = before[file] ?? '';
          const start = Math.floor(at * text.length);
          return before.with(file, `${text.slice(0, start)}${piece}${text.slice(start + removed)}`);
        }, originals);
        const { groups, documents, findings } = converted(
          texts.map((text, index) => ({ name: `${index}.yaml`, text })),
          keys,
        );
        for (const document of [...groups, ...documents]) expect(schemas[document.kind].safeParse(document).success).toBe(true);
        for (const group of groups.filter(({ spec }) => spec.rollout.strategy === 'partition')) {
          expect(group.spec.rollout.waves?.every((wave) => wave.before?.gates?.length === 1)).toBe(true);
          expect(group.spec.gates).toHaveLength(1);
        }
        expect(findings.filter(({ line, message }) => line < 1 || /undefined|NaN|\[object/.test(message))).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });
});
