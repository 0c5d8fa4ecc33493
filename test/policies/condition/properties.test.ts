import fc from 'fast-check';
import jsonLogic, { type RulesLogic } from 'json-logic-js';
import { describe, expect, it } from 'vitest';
import { checkCondition } from '../../../policies/condition/check.ts';
import { evaluateCondition } from '../../../policies/condition/condition.ts';
import { operators } from '../../../policies/condition/shape.ts';
import { boolean, listOf, number, record, text } from '../../../policies/condition/types.ts';
import { rounds } from '../../kit/share.ts';

const nowMs = 1_768_471_200_000;

/** Data with a value at every leaf; the paths below name all of them. */
const leaves = { n: fc.integer({ min: -5, max: 5 }), t: fc.constantFrom('', 'a', 'ab', '3'), b: fc.boolean() };
const plain = { noNullPrototype: true } as const;
const element = fc.record({ n: leaves.n, t: leaves.t }, plain);
const knownData = fc.record({ ...leaves, list: fc.array(leaves.n, { maxLength: 4 }), zones: fc.array(element, { maxLength: 3 }) }, plain);

const literal = fc.oneof(fc.integer({ min: -5, max: 5 }), fc.constantFrom('', 'a', 'ab', '3', '-1'), fc.boolean());

/** Conditions of classic JsonLogic that read only what the data has; inside a loop that is a field of the element. */
function conditions(extra: readonly fc.Arbitrary<unknown>[] = []): fc.Arbitrary<unknown> {
  const { root } = fc.letrec<{ root: unknown; inner: unknown }>((tie) => ({
    root: tree(
      fc.constantFrom({ var: 'n' }, { var: 't' }, { var: 'b' }, { var: 'list' }, { var: ['n', 1] }),
      tie('root'),
      tie('inner'),
      extra,
    ),
    inner: tree(fc.constantFrom({ var: 'n' }, { var: 't' }), tie('inner'), tie('inner'), extra),
  }));
  return root;
}

function tree(
  variable: fc.Arbitrary<unknown>,
  self: fc.Arbitrary<unknown>,
  inner: fc.Arbitrary<unknown>,
  extra: readonly fc.Arbitrary<unknown>[],
): fc.Arbitrary<unknown> {
  const operation = (names: readonly string[], fewest: number, most: number) =>
    fc.tuple(fc.constantFrom(...names), fc.array(self, { minLength: fewest, maxLength: most })).map(([name, args]) => ({ [name]: args }));
  const loop = fc
    .tuple(fc.constantFrom('map', 'filter', 'all', 'some', 'none'), fc.constant({ var: 'zones' }), inner)
    .map(([name, list, body]) => ({ [name]: [list, body] }));
  const sum = fc.constant({ reduce: [{ var: 'list' }, { '+': [{ var: 'current' }, { var: 'accumulator' }] }, 0] });
  return fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    variable,
    literal,
    operation(['==', '!=', '===', '!==', '<', '<=', '>', '>=', 'in', '-', '/', '%', 'substr'], 2, 2),
    operation(['<', '<=', 'if', '?:'], 3, 3),
    operation(['and', 'or', '+', '*', 'min', 'max', 'cat', 'merge'], 2, 3),
    operation(['!', '!!', '-', '+'], 1, 1),
    loop,
    sum,
    ...extra,
  );
}

describe('conditions', () => {
  it('have the result of json-logic-js if all values are known and the result is finite', () => {
    let answered = 0;
    const runs = rounds(3000, 1000);
    fc.assert(
      fc.property(conditions(), knownData, (condition, given) => {
        const result = evaluateCondition(condition, given, nowMs);
        if (result.kind === 'unknown') return;
        answered += 1;
        // As JSON, which has no negative zero: plain json-logic-js makes one of { "-": 0 }.
        expect(JSON.stringify(result.value)).toBe(JSON.stringify(jsonLogic.apply(condition as RulesLogic, given)));
        expect(result.isTrue).toBe(jsonLogic.truthy(result.value));
      }),
      { numRuns: runs },
    );
    expect(answered).toBeGreaterThan(runs / 2);
  });

  it('keep a decided result when an unknown value becomes known', () => {
    const has = fc.constantFrom(
      { has: 'n' },
      { has: 't' },
      { count: { var: 'zones' } },
      { count: [{ var: 'zones' }, { '>': [{ var: 'n' }, 0] }] },
    );
    const hidden = fc.tuple(knownData, fc.infiniteStream(fc.boolean()));
    let decided = 0;
    let undecided = 0;
    fc.assert(
      fc.property(conditions([has]), hidden, (condition, [known, hide]) => {
        const partly = evaluateCondition(condition, withUnknowns(known, hide), nowMs);
        if (partly.kind === 'unknown') {
          undecided += 1;
          return;
        }
        decided += 1;
        expect(evaluateCondition(condition, known, nowMs)).toEqual(partly);
      }),
      { numRuns: 3000 },
    );
    expect(Math.min(decided, undecided)).toBeGreaterThan(300);
  });

  it('never throw, for any JSON', () => {
    const names = [...operators.keys(), '__proto__', 'toString', 'log', 'x.y'];
    const { node } = fc.letrec<{ node: unknown }>((tie) => ({
      node: fc.oneof(
        { depthSize: 'small' },
        fc.jsonValue({ maxDepth: 3 }),
        fc.constantFrom('n', 'zones.0', '', '6h', '2026-01-15T10:00:00Z'),
        // Chance alone makes too few conditions that have nothing wrong with them.
        fc.constant({ '>': [{ var: 'n' }, 1] }),
        fc.array(tie('node'), { maxLength: 4 }),
        fc.tuple(fc.constantFrom(...names), fc.array(tie('node'), { maxLength: 4 })).map(([name, args]) => ({ [name]: args })),
        fc.tuple(fc.constantFrom(...names), tie('node')).map(([name, argument]) => ({ [name]: argument })),
      ),
    }));
    const variables = record({ n: number, t: text, b: boolean, list: listOf(number), zones: listOf(record({ n: number, t: text })) });
    const kinds = new Set<string>();
    fc.assert(
      fc.property(node, fc.oneof(fc.jsonValue(), knownData), (condition, given) => {
        kinds.add(evaluateCondition(condition, given, nowMs).kind);
        kinds.add(checkCondition(condition, variables).length === 0 ? 'good' : 'bad');
      }),
      { numRuns: rounds(5000, 1500) },
    );
    expect([...kinds].sort()).toEqual(['bad', 'good', 'unknown', 'value']);
  });

  it('have the same result each time', () => {
    fc.assert(
      fc.property(conditions(), knownData, (condition, given) => {
        expect(evaluateCondition(structuredClone(condition), given, nowMs)).toEqual(evaluateCondition(condition, given, nowMs));
      }),
    );
  });
});

/** The same data with some leaves, elements and lists replaced by the marker for *could not be read*. */
function withUnknowns(value: unknown, hide: Iterator<boolean>): unknown {
  if (hide.next().value && hide.next().value) return { unknown: 'hidden' };
  if (Array.isArray(value)) return value.map((item) => withUnknowns(item, hide));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withUnknowns(item, hide)]));
}
