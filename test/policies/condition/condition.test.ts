import { describe, expect, it } from 'vitest';
import { evaluateCondition } from '../../../policies/condition/condition.ts';

const nowMs = Date.parse('2026-01-15T10:00:00Z');

function answer(condition: unknown, data: unknown = {}): unknown {
  const result = evaluateCondition(condition, data, nowMs);
  return result.kind === 'value' ? result.value : { unknown: [...result.paths], reason: result.reason };
}

const data = {
  n: 3,
  zero: 0,
  text: 'zone-a',
  empty: '',
  yes: true,
  no: false,
  numbers: [1, 2, 3],
  none: [],
  words: ['a', 'b'],
  zones: [
    { name: 'a', replicas: 3, ready: 3 },
    { name: 'b', replicas: 3, ready: 2 },
  ],
  labels: { 'app.kubernetes.io/name': 'mimir', team: 'db' },
};

/** Facts of classic JsonLogic, and of the operators added to it, one per row. */
const facts: readonly (readonly [condition: unknown, expected: unknown])[] = [
  [true, true],
  ['text', 'text'],
  [
    [1, { var: 'n' }],
    [1, 3],
  ],
  [{ var: 'n' }, 3],
  [{ var: ['n'] }, 3],
  [{ var: 'zones.1.ready' }, 2],
  [{ var: ['absent', 7] }, 7],
  [{ var: ['n', 7] }, 3],
  [{ var: ['zero', 7] }, 0],
  [{ var: ['empty', 'x'] }, ''],
  [{ var: ['absent', null] }, null],
  [{ val: ['labels', 'app.kubernetes.io/name'] }, 'mimir'],
  [{ val: 'n' }, 3],
  [{ val: ['zones', 0, 'name'] }, 'a'],
  [{ has: 'labels.team' }, true],
  [{ has: ['labels', 'app.kubernetes.io/name'] }, true],
  [{ has: 'labels.absent' }, false],
  [{ has: 'absent.below' }, false],
  [{ known: 'n' }, true],
  [{ known: 'absent' }, false],
  [{ missing: ['n', 'absent', 'empty'] }, ['absent', 'empty']],
  [{ missing: 'absent' }, ['absent']],
  [{ missing: { merge: ['n', ['absent']] } }, ['absent']],
  [{ missing_some: [1, ['n', 'absent']] }, []],
  [{ missing_some: [2, ['n', 'absent']] }, ['absent']],
  [{ if: [false, 1, true, 2, 3] }, 2],
  [{ if: [false, 1, 3] }, 3],
  [{ if: [false, 1] }, null],
  [{ '?:': [{ var: 'yes' }, 1, 2] }, 1],
  [{ '==': [1, '1'] }, true],
  [{ '==': ['', 0] }, true],
  [{ '===': [1, '1'] }, false],
  [{ '===': [{ var: 'n' }, 3] }, true],
  [{ '!=': [{ var: 'text' }, 'zone-b'] }, true],
  [{ '!==': [1, '1'] }, true],
  [{ '!': [[]] }, true],
  [{ '!': { var: 'zero' } }, true],
  [{ '!!': ['0'] }, true],
  [{ '!!': { var: 'none' } }, false],
  [{ '!!': { var: 'numbers' } }, true],
  [{ and: [1, 'x', 0, 2] }, 0],
  [{ and: [1, 'x'] }, 'x'],
  [{ or: [0, '', 'x', 1] }, 'x'],
  [{ or: [0, ''] }, ''],
  [{ '>': [{ var: 'n' }, 2] }, true],
  [{ '>': ['10', '9'] }, false],
  [{ '>=': [3, { var: 'n' }] }, true],
  [{ '<': [1, { var: 'n' }, 5] }, true],
  [{ '<': [1, { var: 'n' }, 3] }, false],
  [{ '<=': [1, { var: 'n' }, 3] }, true],
  [{ '<=': [4, { var: 'n' }] }, false],
  [{ min: [3, 1, 2] }, 1],
  [{ max: [3, 1, 2] }, 3],
  [{ '+': [1, '2', 3] }, 6],
  [{ '+': '3.5' }, 3.5],
  [{ '-': [5, 3] }, 2],
  [{ '-': { var: 'n' } }, -3],
  [{ '-': { var: 'zero' } }, 0],
  [{ '*': [2, '3', 4] }, 24],
  [{ '/': [1, 4] }, 0.25],
  [{ '%': [7, 3] }, 1],
  [{ map: [{ var: 'numbers' }, { '*': [{ var: '' }, 2] }] }, [2, 4, 6]],
  [{ filter: [{ var: 'numbers' }, { '%': [{ var: '' }, 2] }] }, [1, 3]],
  [{ reduce: [{ var: 'numbers' }, { '+': [{ var: 'current' }, { var: 'accumulator' }] }, 10] }, 16],
  [{ all: [{ var: 'numbers' }, { '>': [{ var: '' }, 0] }] }, true],
  [{ all: [{ var: 'none' }, true] }, false],
  [{ some: [{ var: 'zones' }, { '<': [{ var: 'ready' }, { var: 'replicas' }] }] }, true],
  [{ some: [{ var: 'none' }, true] }, false],
  [{ none: [{ var: 'numbers' }, { '>': [{ var: '' }, 3] }] }, true],
  [{ none: [{ var: 'none' }, true] }, true],
  [{ map: ['no list', 1] }, []],
  [{ count: [{ var: 'zones' }, { '==': [{ var: 'ready' }, 3] }] }, 1],
  [{ count: { var: 'zones' } }, 2],
  [{ count: { var: 'none' } }, 0],
  [{ merge: [1, [2, 3], [[4]]] }, [1, 2, 3, [4]]],
  [{ in: ['a', { var: 'words' }] }, true],
  [{ in: ['c', { var: 'words' }] }, false],
  [{ in: ['one-', { var: 'text' }] }, true],
  [{ in: ['a', 7] }, false],
  [{ in: ['', ''] }, false],
  [{ in: ['', 'a'] }, true],
  [{ cat: ['zone-', { var: 'n' }, true] }, 'zone-3true'],
  [{ substr: [{ var: 'text' }, -1] }, 'a'],
  [{ substr: [{ var: 'text' }, 0, 4] }, 'zone'],
  [{ substr: [{ var: 'text' }, 0, -2] }, 'zone'],
  [{ startsWith: [{ var: 'text' }, 'zone-'] }, true],
  [{ endsWith: [{ var: 'text' }, '-b'] }, false],
  [{ glob: [{ var: 'text' }, 'z*-*'] }, true],
  [{ glob: ['aXbXc', 'a*b*c'] }, true],
  [{ glob: ['abc', 'abc'] }, true],
  [{ glob: ['abcd', 'abc'] }, false],
  [{ glob: ['aba', 'ab*ba'] }, false],
  [{ glob: ['a.c', 'a.c'] }, true],
  [{ glob: ['abc', 'a.c'] }, false],
  [{ glob: ['', '*'] }, true],
  [{ percentOf: [1, 4] }, 25],
  [{ duration: '1h30m' }, 5_400_000],
  [{ instant: '2026-01-15T11:00:00+01:00' }, nowMs],
  [{ age: { instant: '2026-01-15T04:00:00Z' } }, 21_600_000],
  [{ age: '2026-01-15T09:59:59Z' }, 1000],
];

describe('a condition over complete data', () => {
  it.each(facts)('%j is %j', (condition, expected) => {
    expect(answer(condition, data)).toEqual(expected);
  });

  it('is true by the rules of JsonLogic', () => {
    const truths = [0, '', [], null, false, '0', [0], 'x'].map((value) => {
      const result = evaluateCondition(value, {}, nowMs);
      return result.kind === 'value' && result.isTrue;
    });
    expect(truths).toEqual([false, false, false, false, false, true, true, true]);
  });

  it('reads elements of lists, keys with dots and lists without names', () => {
    const condition = {
      and: [
        { some: [{ filter: [{ var: 'zones' }, { '==': [{ var: 'name' }, 'b'] }] }, { '<': [{ var: 'ready' }, { var: 'replicas' }] }] },
        { has: ['labels', 'app.kubernetes.io/name'] },
        { '==': [{ reduce: [{ var: 'zones' }, { '+': [{ var: 'current.ready' }, { var: 'accumulator' }] }, 0] }, 5] },
        { some: [[1, 2], { '==': [{ var: '' }, 2] }] },
      ],
    };
    expect(evaluateCondition(condition, data, nowMs)).toEqual({ kind: 'value', value: true, isTrue: true });
  });
});

describe('a condition over incomplete data', () => {
  const unread = { unknown: 'no reading' };
  const partly = {
    q: unread,
    n: 1,
    gone: null,
    bad: Number.NaN,
    zones: [
      { name: 'a', ready: 3 },
      { name: 'b', ready: unread },
    ],
    map: unread,
  };

  it.each<readonly [condition: unknown, path: string, reason: string]>([
    [{ '>': [{ var: 'q' }, 100] }, 'q', 'no reading'],
    [{ var: ['q', 0] }, 'q', 'no reading'],
    [{ var: 'map.queue' }, 'map.queue', 'no reading'],
    [{ var: 'absent' }, 'absent', 'absent'],
    [{ var: 'n.below' }, 'n.below', 'absent'],
    [{ var: 'gone' }, 'gone', 'absent'],
    [{ var: 'bad' }, 'bad', 'not a finite number'],
    [{ or: [{ var: 'q' }, true] }, 'q', 'no reading'],
    [{ none: [{ var: 'absent' }, true] }, 'absent', 'absent'],
    [{ some: [{ var: 'zones' }, { '<': [{ var: 'ready' }, 3] }] }, 'zones[].ready', 'no reading'],
    [{ in: [3, { map: [{ var: 'zones' }, { var: 'ready' }] }] }, 'zones[].ready', 'no reading'],
    [{ '==': [{ var: 'zones' }, 1] }, 'zones[].ready', 'no reading'],
    [{ filter: [{ var: 'zones' }, true] }, 'zones[].ready', 'no reading'],
    [{ has: 'map.queue' }, 'map.queue', 'no reading'],
  ])('%j is unknown because of %s', (condition, path, reason) => {
    expect(answer(condition, partly)).toEqual({ unknown: [path], reason });
  });

  it.each<readonly [condition: unknown, expected: unknown]>([
    [{ and: [false, { var: 'q' }] }, false],
    [{ or: [true, { var: 'q' }] }, true],
    [{ if: [true, 1, { var: 'q' }] }, 1],
    [{ known: 'q' }, false],
    [{ known: 'map.queue' }, false],
    [{ has: 'q' }, true],
    [{ missing: ['n', 'q'] }, ['q']],
    [{ missing_some: [1, ['n', 'q']] }, []],
    [{ var: ['gone', 5] }, 5],
    [{ some: [{ var: 'zones' }, { '==': [{ var: 'name' }, 'b'] }] }, true],
    [{ some: [{ var: 'zones' }, { '==': [{ var: 'ready' }, 3] }] }, true],
    [{ count: { var: 'zones' } }, 2],
    [{ all: [{ filter: [{ var: 'zones' }, { known: 'ready' }] }, { '>': [{ var: 'ready' }, 2] }] }, true],
  ])('%j does not read the unknown value and is %j', (condition, expected) => {
    expect(answer(condition, partly)).toEqual(expected);
  });

  it('reads an object with more keys than unknown as data', () => {
    expect(answer({ var: 'labels.unknown' }, { labels: { unknown: 'a', other: 'b' } })).toBe('a');
  });
});

describe('a condition without a result is unknown, never permission', () => {
  it.each<readonly [condition: unknown, reason: string]>([
    [{ '/': [0, 0] }, 'the result of / is not a finite number'],
    [{ '%': [1, 0] }, 'the result of % is not a finite number'],
    [{ '+': ['three', 1] }, 'the result of + is not a finite number'],
    [{ '*': [1, 'x'] }, 'the result of * is not a finite number'],
    [{ max: [] }, 'the result of max is not a finite number'],
    [{ percentOf: [1, 0] }, 'the result of percentOf is not a finite number'],
    [{ percentOf: ['1', 4] }, 'percentOf takes numbers'],
    [{ startsWith: [1, 'a'] }, 'startsWith takes text'],
    [{ duration: 'soon' }, 'the condition cannot be evaluated: not a duration: soon'],
    [{ instant: '2026-02-30T00:00:00Z' }, '"2026-02-30T00:00:00Z" is not an instant with an offset'],
    [{ '==': [1, 1], '>': [1, 2] }, 'The object has 2 operators: ==, >'],
    [{}, 'The object has no operator'],
    [{ and: [false, { typo: 1 }] }, 'The operator "typo" does not exist'],
    [{ log: 'x' }, 'The operator "log" is not supported: it has a side effect'],
    [{ method: ['x', 'y'] }, 'The operator "method" is not supported: it calls code of the host'],
    [Number.POSITIVE_INFINITY, 'The literal is not a finite number, text, boolean or null'],
    ['x'.repeat(4097), 'The text has 4097 characters; at most 4096 are allowed'],
  ])('%j', (condition, reason) => {
    expect(answer(condition)).toEqual({ unknown: [], reason });
  });

  it('with values that JavaScript cannot convert is unknown too', () => {
    expect(answer({ '==': [{ var: 'o' }, 'x'] }, { o: { toString: 1, valueOf: 1 } })).toEqual({
      unknown: [],
      reason: 'the condition cannot be evaluated: Cannot convert object to primitive value',
    });
  });
});

describe('the prototype is not accessible', () => {
  const names = ['constructor', 'toString', 'valueOf', 'hasOwnProperty', '__proto__', 'prototype', 'length', '#read', '#step', 'var.x'];

  it.each(names)('%s is no operator', (name) => {
    expect(answer(JSON.parse(`{${JSON.stringify(name)}: ["x"]}`))).toEqual({
      unknown: [],
      reason: expect.stringMatching(/does not exist|not supported/),
    });
  });

  it.each([
    'constructor',
    'toString',
    '__proto__',
    '__proto__.toString',
    'constructor.constructor',
    'list.length',
    'text.length',
    'text.0',
    'list.-1',
  ])('%s is no variable', (path) => {
    const own = { list: [1], text: 'abc' };
    expect(answer({ var: path }, own)).toEqual({ unknown: [path], reason: 'absent' });
    expect(answer([{ has: path }, { known: path }, { missing: [path] }], own)).toEqual([false, false, [path]]);
  });

  it('a key of such a name in the object is a normal key', () => {
    const own = JSON.parse('{"__proto__": {"constructor": 7}, "toString": 8}');
    expect(answer([{ var: '__proto__.constructor' }, { val: 'toString' }], own)).toEqual([7, 8]);
  });
});

describe('the work of a condition is bounded', () => {
  const numbers = Array.from({ length: 150 }, (_, index) => index);
  const outOfSteps = { unknown: [], reason: 'the condition needs more than 20000 steps' };

  const accumulate = (body: unknown) => ({ reduce: [numbers, body, 'xxxxxxxxxxxxxxxx'] });

  it.each<readonly [title: string, condition: unknown]>([
    ['a list that is merged with itself', { reduce: [numbers, { merge: [{ var: 'accumulator' }, { var: 'accumulator' }] }, [1]] }],
    ['lists that contain one another', accumulate([{ var: 'accumulator' }, { var: 'accumulator' }])],
    ['three nested loops over literals', { some: [numbers, { some: [numbers, { some: [numbers, { '>': [{ var: '' }, 1000] }] }] }] }],
    ['nested loops that contain no operator', { some: [numbers, { some: [numbers, { some: [numbers, false] }] }] }],
    ['a product of maps', { map: [numbers, { map: [numbers, { map: [numbers, 1] }] }] }],
    ['a search of long text in long text', { some: [numbers, { in: [{ cat: ['a'.repeat(2000), 'b'] }, 'a'.repeat(4096)] }] }],
    ['a pattern of many stars', { some: [numbers, { glob: ['a'.repeat(4096), `${'*a'.repeat(1500)}b`] }] }],
  ])('%s runs out of steps', (_, condition) => {
    // Unbounded, each of these takes minutes or all memory.
    expect(answer(condition)).toEqual(outOfSteps);
  });

  it('text grows to at most 16384 characters', () => {
    expect(answer(accumulate({ cat: [{ var: 'accumulator' }, { var: 'accumulator' }] }))).toEqual({
      unknown: [],
      reason: 'the text that cat builds has more than 16384 characters',
    });
  });

  it('2000 levels are rejected before evaluation', () => {
    let condition: unknown = true;
    for (let depth = 0; depth < 2000; depth += 1) condition = { '!': condition };
    expect(answer(condition)).toEqual({ unknown: [], reason: 'The condition is nested more than 32 deep' });
  });

  it('data 100000 levels deep is unknown', () => {
    let deep: unknown = 1;
    for (let depth = 0; depth < 100_000; depth += 1) deep = [deep];
    expect(answer({ '!!': { var: 'deep' } }, { deep })).toEqual({ unknown: [], reason: expect.stringMatching(/steps|call stack/) });
  });

  it('an evaluation at its limit does not reduce the steps of the next one', () => {
    answer(accumulate([{ var: 'accumulator' }, { var: 'accumulator' }]));
    expect(answer({ '==': [{ var: 'n' }, 3] }, data)).toBe(true);
  });
});
