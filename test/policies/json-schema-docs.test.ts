import { describe, expect, it } from 'vitest';
import { schemaDocs } from '../../policies/schema/schema-docs.ts';
import { allFields, kindMarkdown } from '../../scripts/generated/pages.ts';

describe('the documentation of a path', () => {
  it('of a field has its type, default and meaning', () => {
    expect(schemaDocs('RolloutGroup.spec.rollout.maxUnavailable')).toEqual({
      kind: 'RolloutGroup',
      field: {
        path: 'spec.rollout.maxUnavailable',
        name: 'maxUnavailable',
        type: 'integer 0 to 100000 | string like `^(?:[1-9]\\d?|100)%$` | fromBudget',
        isRequired: false,
        defaultText: '1',
        description:
          'Maximum number of unavailable pods in one zone: a number, a percentage of its replicas, or `fromBudget` (its PodDisruptionBudget).',
        choices: [],
      },
      fields: [],
    });
  });

  it('of a list of objects has the fields of its items, and which of them exclude each other', () => {
    const docs = schemaDocs('rg.spec.rollout.waves');
    expect('fields' in docs && { ...docs.field, fields: docs.fields.map(({ path, type }) => `${path}: ${type}`) }).toEqual({
      path: 'spec.rollout.waves',
      name: 'waves',
      type: 'list of objects',
      isRequired: false,
      description: 'Waves of the rollout. Without waves each zone is updated completely, in the listed order.',
      choices: [{ fields: ['pods', 'percent'], isNeeded: true }],
      fields: [
        'spec.rollout.waves[].name: short name',
        'spec.rollout.waves[].zones: list of short names',
        'spec.rollout.waves[].pods: integer 0 to 100000',
        'spec.rollout.waves[].percent: integer 0 to 100',
        'spec.rollout.waves[].before: object',
        'spec.rollout.waves[].after: object',
      ],
    });
  });

  it.each([
    ['rolloutgroups.spec.gates.every', 'spec.gates[].every'],
    ['ROLLOUTGROUP.spec.gates[0].every', 'spec.gates[].every'],
    ['RolloutGroup.spec.gates[].every', 'spec.gates[].every'],
    ['RolloutPolicy.spec.inputs.metrics.queue.maxAge', 'spec.inputs.metrics.<name>.maxAge'],
    ['PolicyTest.spec.cases.given.zones.a.replicas', 'spec.cases[].given.zones.<name>.replicas'],
    ['RolloutGroup', ''],
  ])('contains %s', (path, expected) => {
    const docs = schemaDocs(path);
    expect('field' in docs ? docs.field.path : docs).toBe(expected);
  });

  it.each([
    ['RolloutGruop', { unknown: 'RolloutGruop', suggestion: 'RolloutGroup' }],
    ['RolloutGroup.spec.rolout.strategy', { unknown: 'rolout', suggestion: 'rollout' }],
    ['RolloutGroup.spec.rollout.strategy.what', { unknown: 'what' }],
    ['', { unknown: '' }],
  ])('names the unknown part of %j', (path, expected) => {
    expect(schemaDocs(path)).toEqual(expected);
  });
});

describe('the page of a kind', () => {
  it('has a row for every field', () => {
    const rows = kindMarkdown('RolloutIntent')
      .split('\n')
      .filter((line) => line.startsWith('| `'));
    expect(rows).toHaveLength(allFields('RolloutIntent').length);
    expect(rows.find((row) => row.includes('spec.action'))).toBe(
      '| `spec.action` | pause \\| approve \\| reject \\| promote \\| abort \\| retry \\| undo \\| cancel \\| protect | required | Requested action. The plugin has a command of the same name for each action. |',
    );
  });

  it('lists the fields that exclude each other', () => {
    expect(kindMarkdown('MetricSource')).toContain('- `spec`: exactly one of `prometheus`, `consul`\n');
    const lines = kindMarkdown('RolloutGroup').split('\n');
    expect(lines.filter((line) => line.includes('at most one of'))).toEqual([
      '- `spec.members.zones[].replicas`: at most one of `count`, `mirror`, `leader`',
      '- `spec.replicas`: at most one of `count`, `mirror`, `leader`',
      '- `spec.rollout`: at most one of `waves`, `schedule`',
      '- `spec.disruption`: at most one of `maxUnavailable`, `maxUnavailablePercent`',
    ]);
  });
});
