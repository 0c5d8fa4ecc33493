import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { evaluateCondition } from '../../../policies/condition/condition.ts';
import { conditionLimits, operators } from '../../../policies/condition/shape.ts';
import { type ConditionType, describeType, typeAt } from '../../../policies/condition/types.ts';
import {
  gateVariables,
  isUnknownValue,
  messageVariables,
  ruleVariables,
  substitute,
  variablePaths,
} from '../../../policies/condition/variables.ts';
import { didYouMean } from '../../../policies/text/did-you-mean.ts';

const nowMs = Date.parse('2026-01-15T10:00:00Z');

const zone = { name: 'a', statefulSet: 'ingester-zone-a', replicas: 3, ready: 2, updated: 1, available: 2, isReady: false, follows: '' };

/** Every variable with a value. */
const data = {
  action: 'scaleDown',
  change: { from: 3, to: 2, delta: -1 },
  target: {
    name: 'ingester-zone-a',
    namespace: 'mimir',
    zone: 'a',
    labels: { 'app.kubernetes.io/name': 'ingester', team: 'db' },
    annotations: { note: 'first\u001b[31m\nsecond' },
    replicas: 3,
    ready: 2,
    available: 2,
    updated: 1,
    lastDownscaleAt: nowMs - 3_600_000,
  },
  group: { name: 'ingester', namespace: 'mimir', labels: {}, zones: [zone], phase: 'Rolling', wave: 'canary', notReadyZones: ['a', 'c'] },
  inputs: { metrics: { queue: 12.5, errors: { unknown: 'no reading' } } },
  user: { name: 'ada', groups: ['oncall'] },
  now: nowMs,
};

describe('the variables of rules', () => {
  const variables = ruleVariables(['queue']);

  it('are complete', () => {
    expect(variablePaths(variables)).toEqual([
      'action',
      'change.from',
      'change.to',
      'change.delta',
      'target.name',
      'target.namespace',
      'target.zone',
      'target.labels.*',
      'target.annotations.*',
      'target.replicas',
      'target.ready',
      'target.available',
      'target.updated',
      'target.lastDownscaleAt',
      'group.name',
      'group.namespace',
      'group.labels.*',
      'group.zones',
      'group.zones[].name',
      'group.zones[].statefulSet',
      'group.zones[].replicas',
      'group.zones[].ready',
      'group.zones[].updated',
      'group.zones[].available',
      'group.zones[].isReady',
      'group.zones[].follows',
      'group.phase',
      'group.wave',
      'group.notReadyZones',
      'inputs.metrics.queue',
      'user.name',
      'user.groups',
      'now',
    ]);
    expect(variablePaths(gateVariables)).toEqual(['value']);
  });

  it('have the documented types in the data', () => {
    const found = variablePaths(variables)
      .filter((path) => !path.includes('[]') && !path.endsWith('.*'))
      .map((path) => [path, typeAt(variables, path.split('.')), evaluateCondition({ var: path }, data, nowMs)] as const);
    for (const [path, type, result] of found)
      expect([path, result.kind === 'value' && isOfType(result.value, type as ConditionType)]).toEqual([path, true]);
  });

  it('are described with their articles', () => {
    const paths = ['action', 'now', 'group.zones', 'target', 'target.labels', 'change.from'];
    expect(paths.map((path) => describeType(typeAt(variables, path.split('.')) as ConditionType))).toEqual([
      'text',
      'an instant',
      'a list',
      'an object',
      'an object',
      'a number',
    ]);
  });
});

function isOfType(value: unknown, type: ConditionType): boolean {
  switch (type.kind) {
    case 'text':
      return typeof value === 'string' && (type.values === undefined || type.values.includes(value));
    case 'number':
    case 'instant':
      return typeof value === 'number';
    case 'list':
      return Array.isArray(value) && value.length > 0 && value.every((item) => isOfType(item, type.of));
    case 'record':
      return typeof value === 'object' && value !== null && Object.keys(type.fields).sort().join() === Object.keys(value).sort().join();
    default:
      return false;
  }
}

describe('the marker of an unreadable value', () => {
  it.each<readonly [value: unknown, expected: boolean]>([
    [{ unknown: 'no data' }, true],
    [{ unknown: 'a', other: 'b' }, false],
    [{ unknown: 1 }, false],
    [[], false],
    [null, false],
    ['unknown', false],
    [{}, false],
  ])('%j: %s', (value, expected) => {
    expect(isUnknownValue(value)).toBe(expected);
  });
});

describe('a message', () => {
  it.each<readonly [message: string, expected: string]>([
    ['queue is ${inputs.metrics.queue}; wait', 'queue is 12.5; wait'],
    ['errors are ${inputs.metrics.errors}', 'errors are unknown'],
    ['not ready: ${group.notReadyZones}', 'not ready: a, c'],
    ['${target.labels.app.kubernetes.io/name} of ${target.labels.team}', 'ingester of db'],
    ['last ${target.lastDownscaleAt}, now ${now}', 'last 2026-01-15T09:00:00Z, now 2026-01-15T10:00:00Z'],
    ['${change.from} to ${change.to}', '3 to 2'],
    ['${absent} ${constructor} ${__proto__.x} ${} ${group} ${group.name.length}', 'unknown unknown unknown unknown unknown unknown'],
    ['$target.name {target.name} $${target.zone}', '$target.name {target.name} $a'],
    ['${target.annotations.note}', 'first [31m second'],
    ['no variables', 'no variables'],
  ])('%j becomes %j', (message, expected) => {
    expect(substitute(message, data)).toBe(expected);
  });

  it('is bounded, and so is each value in it', () => {
    const long = { target: { name: 'x'.repeat(10_000) } };
    expect(substitute('${target.name}', long)).toBe(`${'x'.repeat(255)}…`);
    expect(substitute('${target.name}'.repeat(70), long).length).toBe(2048);
  });

  it('does not expand text in a value', () => {
    expect(substitute('${target.name}', { target: { name: '${now} $& $1' }, now: 1 })).toBe('${now} $& $1');
  });

  it('names its variables', () => {
    expect(messageVariables('${a.b} of ${c} and ${a.b}, not $d or {e}')).toEqual(['a.b', 'c', 'a.b']);
  });
});

describe('the suggested name', () => {
  const names = ['target', 'group', 'inputs', 'action', 'now', 'scaleDown'];

  it.each<readonly [name: string, expected: string | undefined]>([
    ['targt', 'target'],
    ['tagret', 'target'],
    ['gruop', 'group'],
    ['scaledown', 'scaleDown'],
    ['nwo', 'now'],
    ['policy', undefined],
    ['', undefined],
    ['x'.repeat(10_000), undefined],
  ])('%s: %s', (name, expected) => {
    expect(didYouMean(name, names)).toBe(expected);
  });

  it('does not depend on the order of the names', () => {
    expect([didYouMean('aax', ['aay', 'aaz']), didYouMean('aax', ['aaz', 'aay'])]).toEqual(['aay', 'aay']);
  });
});

describe('docs/conditions.md', () => {
  const page = readFileSync('docs/conditions.md', 'utf8');
  const code = new Set([...page.matchAll(/`([^`\n]+)`/g)].flatMap((match) => (match[1] ?? '').split(' ')));

  it('names every operator', () => {
    expect([...operators.keys()].filter((name) => !code.has(name))).toEqual([]);
  });

  it('names every variable, and every field of a zone', () => {
    const names = variablePaths(ruleVariables(['NAME'])).map((path) => path.replace(/\.\*$/, '').replace(/^.*\[\]\./, ''));
    expect(names.filter((name) => !code.has(name))).toEqual([]);
  });

  it('names the limits', () => {
    const { depth, nodes, textLength, listLength } = conditionLimits;
    expect(page.replaceAll('\n', ' ')).toContain(
      `${nodes} nodes, ${depth} levels, ${listLength} items in a list and ${textLength.toLocaleString('en-US')} characters`,
    );
  });
});
