import { describe, expect, it } from 'vitest';
import { checkCondition, checkMessage } from '../../../policies/condition/check.ts';
import { operators } from '../../../policies/condition/shape.ts';
import { gateVariables, ruleVariables } from '../../../policies/condition/variables.ts';
import { explainCode } from '../../../policies/findings/codes.ts';

const variables = ruleVariables(['queue']);

function check(condition: unknown): unknown {
  return checkCondition(condition, variables);
}

const notReady = { '<': [{ var: 'ready' }, { var: 'replicas' }] };

describe('a valid condition has no problems', () => {
  it.each<unknown>([
    { '>': [{ var: 'inputs.metrics.queue' }, 100] },
    { some: [{ var: 'group.zones' }, notReady] },
    { '>': [{ count: [{ var: 'group.zones' }, notReady] }, 1] },
    { '>': [{ count: { filter: [{ var: 'group.zones' }, { '!': { var: 'isReady' } }] } }, 1] },
    { '==': [{ val: ['target', 'labels', 'app.kubernetes.io/name'] }, 'ingester'] },
    { '<': [{ age: { var: 'target.lastDownscaleAt' } }, { duration: '6h' }] },
    { '<': [{ var: 'now' }, { instant: '2026-12-18T18:00:00+01:00' }] },
    { '<': [{ '-': [{ var: 'now' }, { var: 'target.lastDownscaleAt' }] }, { '*': [2, { duration: '1h' }] }] },
    { '>': [{ percentOf: [{ var: 'change.delta' }, { var: 'change.from' }] }, -20] },
    { '>': [{ age: { instant: '2026-01-15T10:00:00Z' } }, { duration: '7d' }] },
    { in: [{ var: 'target.zone' }, ['a', 'b']] },
    { in: ['oncall', { var: 'user.groups' }] },
    { and: [{ has: ['target', 'annotations', 'example.com/pinned'] }, { known: 'inputs.metrics.queue' }] },
    { '!': { missing: ['user.name', 'group.wave'] } },
    { if: [{ '==': [{ var: 'action' }, 'scaleDown'] }, { '>': [{ var: 'change.to' }, 3] }, false] },
    { '==': [{ var: 'group.zones.0.name' }, 'a'] },
    { '==': [{ var: ['group.wave', ''] }, 'canary'] },
    { '>': [{ reduce: [{ var: 'group.zones' }, { '+': [{ var: 'current.ready' }, { var: 'accumulator' }] }, 0] }, 6] },
    { in: ['a', { map: [{ var: 'group.zones' }, { var: 'name' }] }] },
    { glob: [{ var: 'target.name' }, 'ingester-*'] },
    { '==': [{ var: 'group.phase' }, 'Rolling'] },
  ])('%j', (condition) => {
    expect(check(condition)).toEqual([]);
  });

  it('of a gate reads only value', () => {
    expect(checkCondition({ '<=': [{ var: 'value' }, 0.5] }, gateVariables)).toEqual([]);
    expect(checkCondition({ '<=': [{ var: 'target.ready' }, 0.5] }, gateVariables)).toEqual([
      { code: 'RG3006', path: ['<=', 0, 'var'], message: 'The variable "target.ready" does not exist', hint: 'valid names: value' },
    ]);
  });
});

type Row = readonly [condition: unknown, code: string, path: readonly (string | number)[], message: string, hint?: string];

const deep = Array.from({ length: 40 }).reduce<unknown>((inner) => ({ '!': inner }), { var: 'target.ready' });

/** One mistake per row. */
const mistakes: readonly Row[] = [
  [{ percentof: [1, 2] }, 'RG3001', ['percentof'], 'The operator "percentof" does not exist', 'did you mean "percentOf"?'],
  [{ and: [true, { equals: [1, 2] }] }, 'RG3001', ['and', 1, 'equals'], 'The operator "equals" does not exist'],
  [{ toString: [{ var: 'now' }] }, 'RG3001', ['toString'], 'The operator "toString" does not exist'],
  [{ log: { var: 'target.ready' } }, 'RG3002', ['log'], 'The operator "log" is not supported: it has a side effect'],
  [{ method: [{ var: 'target.name' }, 'x'] }, 'RG3002', ['method'], 'The operator "method" is not supported: it calls code of the host'],
  [{ '==': [{ var: 'now' }, 1], '>': [1, 2] }, 'RG3003', [], 'The object has 2 operators: ==, >'],
  [{ and: [{ var: 'group.zones' }, {}] }, 'RG3003', ['and', 1], 'The object has no operator'],
  [{ '>': [{ var: 'target.ready' }, 2, 1] }, 'RG3004', ['>'], 'The operator ">" takes 2 arguments, not 3'],
  [{ '!': [{ has: 'user.name' }, 1] }, 'RG3004', ['!'], 'The operator "!" takes 1 argument, not 2'],
  [{ '<': [{ var: 'target.ready' }] }, 'RG3004', ['<'], 'The operator "<" takes 2 to 3 arguments, not 1'],
  [{ and: [] }, 'RG3004', ['and'], 'The operator "and" takes at least 1 argument, not 0'],
  [{ '<': [{ var: 'target.ready' }, '3'] }, 'RG3005', ['<', 1], 'The argument is text; a number, an instant or a duration is expected'],
  [{ '==': [{ var: 'target.ready' }, '3'] }, 'RG3005', ['==', 1], 'The argument is text; the other arguments are a number'],
  [
    { '>': [{ age: { var: 'target.lastDownscaleAt' } }, 3600] },
    'RG3005',
    ['>', 1],
    'The argument is a number; the other arguments are a duration',
    'write a duration as { "duration": "6h" }',
  ],
  [
    { '==': [{ var: 'user.name' }, null] },
    'RG3005',
    ['==', 1],
    'The argument is null; a number, an instant, a duration, text or a boolean is expected',
    'use has or known; an absent value is unknown, never null',
  ],
  [{ '==': [{ var: 'action' }, 'scaledown'] }, 'RG3005', ['==', 1], 'The variable is never "scaledown"', 'did you mean "scaleDown"?'],
  [
    { in: [{ var: 'action' }, ['scaleDown', 'stop']] },
    'RG3005',
    ['in', 1],
    'The variable is never "stop"',
    'the values are scaleUp, scaleDown, rollout, restart, delete, evict',
  ],
  [{ in: [1, { var: 'user.groups' }] }, 'RG3005', ['in', 0], 'A number is never in this list: each item is text'],
  [{ in: ['a', { var: 'target.ready' }] }, 'RG3005', ['in', 1], 'The argument is a number; a list or text is expected'],
  [{ some: [{ var: 'group.name' }, true] }, 'RG3005', ['some', 0], 'The argument is text; a list is expected'],
  [
    { '==': [{ var: 'group.zones' }, 3] },
    'RG3005',
    ['==', 0],
    'The argument is a list; a number, an instant, a duration, text or a boolean is expected',
  ],
  [
    { '<': [{ age: { var: 'now' } }, { duration: '6 hours' }] },
    'RG3005',
    ['<', 1, 'duration'],
    'The argument is not a duration',
    'a duration is text such as 30s, 12h, 1h30m or 7d',
  ],
  [
    { '<': [{ var: 'now' }, { instant: '2026-12-18' }] },
    'RG3005',
    ['<', 1, 'instant'],
    'The argument is not an instant',
    'an instant is text with an offset, such as 2026-01-15T10:00:00Z',
  ],
  [
    { '==': [{ '+': [{ var: 'now' }, { var: 'now' }] }, 1] },
    'RG3005',
    ['==', 0, '+', 0],
    'Only durations can be added to an instant',
    'write a duration as { "duration": "6h" }',
  ],
  [{ var: 'target.ready' }, 'RG3005', [], 'The condition is a number, not true or false', 'compare it with a value'],
  [{ '==': [{ var: ['target.ready', 'none'] }, 3] }, 'RG3005', ['==', 0, 'var', 1], 'The default is text; the variable is a number'],
  [
    { '>': [{ var: 'target.redy' }, 2] },
    'RG3006',
    ['>', 0, 'var'],
    'The variable "target.redy" does not exist',
    'did you mean "target.ready"?',
  ],
  [
    { '>': [{ var: ['tagret.ready', 1] }, 2] },
    'RG3006',
    ['>', 0, 'var', 0],
    'The variable "tagret.ready" does not exist',
    'did you mean "target.ready"?',
  ],
  [{ some: [{ var: 'zones' }, true] }, 'RG3006', ['some', 0, 'var'], 'The variable "zones" does not exist', 'did you mean "group.zones"?'],
  [
    { '>': [{ var: 'inputs.metrics.queu' }, 2] },
    'RG3006',
    ['>', 0, 'var'],
    'The variable "inputs.metrics.queu" does not exist',
    'did you mean "inputs.metrics.queue"?',
  ],
  [
    { '>': [{ var: 'inputs.metrics.errors' }, 2] },
    'RG3006',
    ['>', 0, 'var'],
    'The variable "inputs.metrics.errors" does not exist',
    'declare the metric under spec.inputs.metrics',
  ],
  [
    { '==': [{ var: 'target.labels.app.kubernetes.io/name' }, 'x'] },
    'RG3006',
    ['==', 0, 'var'],
    'The variable "target.labels.app.kubernetes.io/name" does not exist',
    'write { "val": ["target", "labels", "app.kubernetes.io/name"] }',
  ],
  [
    { some: [{ var: 'group.zones' }, { '==': [{ var: 'target.zone' }, { var: 'name' }] }] },
    'RG3006',
    ['some', 1, '==', 0, 'var'],
    'The variable "target.zone" does not exist',
    'inside some a variable reads the element, which has available, follows, isReady, name, ready, replicas, statefulSet, updated',
  ],
  [
    { has: 'constructor' },
    'RG3006',
    ['has'],
    'The variable "constructor" does not exist',
    'valid names: action, change, group, inputs, now, target, user',
  ],
  [{ missing: ['user.name', 'user.nam'] }, 'RG3006', ['missing', 1], 'The variable "user.nam" does not exist', 'did you mean "user.name"?'],
  [
    { '==': [{ var: '' }, 1] },
    'RG3006',
    ['==', 0, 'var'],
    'The path of the variable is empty',
    'valid names: action, change, group, inputs, now, target, user',
  ],
  [{ '==': [{ var: { cat: ['target.', 'name'] } }, 'x'] }, 'RG3007', ['==', 0, 'var'], 'The path of the variable is computed'],
  [{ in: [{ var: 'target.name' }, Array.from({ length: 256 }, () => 'x')], '!': 1 }, 'RG3003', [], 'The object has 2 operators: in, !'],
  [{ or: [{ var: 'now' }, ...Array.from({ length: 500 }, () => true)] }, 'RG3008', [], 'The condition has more than 500 nodes'],
  [deep, 'RG3009', Array.from({ length: 32 }, () => '!'), 'The condition is nested more than 32 deep'],
  [{ '==': [{ var: 'target.name' }, 'x'.repeat(4097)] }, 'RG3010', ['==', 1], 'The text has 4097 characters; at most 4096 are allowed'],
  [
    { in: [{ var: 'target.name' }, Array.from({ length: 257 }, () => 'x')] },
    'RG3011',
    ['in', 1],
    'The list has 257 items; at most 256 are allowed',
  ],
  [{ '==': [1, 1] }, 'RG3012', [], 'The condition reads no variable, so its result never changes'],
  [true, 'RG3012', [], 'The condition reads no variable, so its result never changes'],
  [{ some: [[1, 2], { '==': [{ var: '' }, 1] }] }, 'RG3012', [], 'The condition reads no variable, so its result never changes'],
];

describe('a mistake in a condition is reported at its place', () => {
  it.each(mistakes)('%j is %s', (condition, code, path, message, hint) => {
    expect(check(condition)).toEqual([{ code, path, message, ...(hint === undefined ? {} : { hint }) }]);
  });

  it('together with all others', () => {
    const condition = {
      and: [{ '>': [{ var: 'target.redy' }, 2] }, { nope: [{ var: 'grop.name' }] }, { '<': [{ var: 'target.ready' }, 'x'] }],
    };
    const problems = checkCondition(condition, variables);
    expect(problems.map(({ code, path }) => [code, path.join('/')])).toEqual([
      ['RG3001', 'and/1/nope'],
      ['RG3006', 'and/0/>/0/var'],
      ['RG3006', 'and/1/nope/0/var'],
      ['RG3005', 'and/2/</1'],
    ]);
  });

  it('with codes in the table of findings', () => {
    const titles = [...new Set(mistakes.map(([, code]) => code))].sort().map((code) => `${code} ${explainCode(code)?.title}`);
    expect(titles).toEqual([
      'RG3001 The operator does not exist',
      'RG3002 The operator is not allowed',
      'RG3003 An operation needs exactly one operator',
      'RG3004 The operator has the wrong number of arguments',
      'RG3005 An argument has the wrong type',
      'RG3006 The variable does not exist',
      'RG3007 The path of a variable must be literal',
      'RG3008 The condition is too large',
      'RG3009 The condition is nested too deeply',
      'RG3010 A literal is too long',
      'RG3011 A list is too long',
      'RG3012 The condition is constant',
    ]);
  });
});

describe('every operator', () => {
  /** A use of each operator that passes, so that none is in the table without being usable. */
  const uses: Readonly<Record<string, unknown>> = {
    var: { '==': [{ var: 'target.name' }, 'x'] },
    val: { '==': [{ val: ['target', 'name'] }, 'x'] },
    has: { has: 'user.name' },
    known: { known: 'user.name' },
    missing: { '!': { missing: ['user.name'] } },
    missing_some: { '!': { missing_some: [1, ['user.name', 'group.wave']] } },
    if: { if: [{ has: 'user.name' }, true, false] },
    '?:': { '?:': [{ has: 'user.name' }, true, false] },
    map: { in: ['a', { map: [{ var: 'group.zones' }, { var: 'name' }] }] },
    reduce: { '>': [{ reduce: [{ var: 'group.zones' }, { max: [{ var: 'current.ready' }, { var: 'accumulator' }] }, 0] }, 1] },
    filter: { '!!': { filter: [{ var: 'group.zones' }, { var: 'isReady' }] } },
    count: { '>': [{ count: { var: 'group.zones' } }, 1] },
    in: { in: ['a', { var: 'group.notReadyZones' }] },
    merge: { in: ['a', { merge: [{ var: 'group.notReadyZones' }, 'b'] }] },
    cat: { '==': [{ cat: [{ var: 'group.name' }, '-zone-', { var: 'target.zone' }] }, 'x'] },
    substr: { '==': [{ substr: [{ var: 'target.name' }, -1] }, 'a'] },
    age: { '>': [{ age: { var: 'now' } }, { duration: '1h' }] },
    duration: { '>': [{ age: { var: 'now' } }, { duration: '1h' }] },
    instant: { '>': [{ var: 'now' }, { instant: '2026-01-15T10:00:00Z' }] },
    percentOf: { '>': [{ percentOf: [{ var: 'target.ready' }, { var: 'target.replicas' }] }, 50] },
  };
  const forms: readonly (readonly [names: readonly string[], use: (name: string) => unknown])[] = [
    [['==', '!=', '===', '!=='], (name) => ({ [name]: [{ var: 'target.name' }, 'x'] })],
    [['<', '<=', '>', '>='], (name) => ({ [name]: [{ var: 'target.ready' }, 1] })],
    [['!', '!!'], (name) => ({ [name]: { var: 'target.ready' } })],
    [['and', 'or'], (name) => ({ [name]: [{ has: 'user.name' }, { known: 'user.name' }] })],
    [['+', '-', '*', '/', '%', 'min', 'max'], (name) => ({ '>': [{ [name]: [{ var: 'target.ready' }, 2] }, 1] })],
    [['all', 'some', 'none'], (name) => ({ [name]: [{ var: 'group.zones' }, notReady] })],
    [['startsWith', 'endsWith', 'glob'], (name) => ({ [name]: [{ var: 'target.name' }, 'x'] })],
  ];

  it.each([...operators.keys()])('%s has a valid use', (name) => {
    const use = uses[name] ?? forms.find(([names]) => names.includes(name))?.[1](name);
    expect(JSON.stringify(use)).toContain(JSON.stringify(name));
    expect(check(use)).toEqual([]);
  });
});

describe('a message', () => {
  it('names only existing variables; a label may contain dots', () => {
    const message = '${target.labels.app.kubernetes.io/name} ${group.zones} ${inputs.metrics.queue} costs $5';
    expect(checkMessage(message, variables)).toEqual([]);
    expect(checkMessage('${target.redy} and ${target.redy} of ${target.replicas}', variables)).toEqual([
      { code: 'RG3006', path: [], message: 'The variable "target.redy" does not exist', hint: 'did you mean "target.ready"?' },
    ]);
  });
});
