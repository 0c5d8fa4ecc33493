import { readdirSync, readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { cliApiVersion } from '../../plugin/output/formats.ts';
import { phases, runPhases } from '../../policies/rollout/phases.ts';
import { outputSchemas } from '../../scripts/generated/output-schemas.ts';
import { planSchema } from '../../scripts/generated/plan-schema.ts';
import { checkOutput } from './output-schema.ts';
import { blocked, ingester, mirrorDownscale, planOf, refusedDownscale, unchanged } from './plan-kit.ts';

describe('the schemas of documents for programs', () => {
  it('has a table with every phase', () => {
    const [, section = ''] = readFileSync('docs/output.md', 'utf8').split('\n## Phases\n');
    const named = [...(section.split('\n## ')[0] ?? '').matchAll(/^\| `(\w+)` \|/gm)].map(([, phase]) => phase);
    expect(named).toEqual(phases);
    const [, ofConditions = ''] = /\| `group\.phase` \|(.*)/.exec(readFileSync('docs/conditions.md', 'utf8')) ?? [];
    expect([...ofConditions.matchAll(/`(\w+)`/g)].map(([, phase = '']) => phase).sort()).toEqual([...runPhases].sort());
  });

  it('are published and documented, one for each kind', () => {
    const page = readFileSync('docs/output.md', 'utf8');
    const kinds = Object.keys(outputSchemas());
    expect(kinds.filter((kind) => !page.includes(`\`${kind}\``))).toEqual([]);
    const published = readdirSync('deploy/schemas/output').filter((file) => !page.includes(`\`output/${file}\``));
    expect(published).toEqual([]);
    expect(readdirSync('deploy/schemas/output')).toHaveLength(kinds.length - 2);
  });

  // The tests of all verbs call this for everything that the plugin prints.
  it('reject a document without its fields, and an unknown kind', () => {
    const document = { apiVersion: cliApiVersion, kind: 'Version', client: { version: '1', node: '2' } };
    expect(() => checkOutput(JSON.stringify(document))).not.toThrow();
    expect(() => checkOutput(JSON.stringify({ ...document, client: {} }))).toThrow('Version does not follow its schema');
    expect(() => checkOutput(JSON.stringify({ ...document, kind: 'Other' }))).toThrow('no schema is published for the kind Other');
  });
});

const ajv = new Ajv2020({ strict: true, allErrors: true, formats: { 'date-time': true } });
const validate = ajv.compile(planSchema);

function problems(document: unknown): readonly string[] {
  // What a program reads is JSON: members that are undefined are not there.
  return validate(JSON.parse(JSON.stringify(document)))
    ? []
    : (validate.errors ?? []).map((error) => `${error.instancePath} ${error.message}`);
}

const plan = planOf([ingester(), blocked(), refusedDownscale(), mirrorDownscale(), unchanged()], { startsAt: '2026-11-18T17:20:00Z' });

describe('the schema of the plan document', () => {
  it('accepts every plan of the kit', () => {
    expect(problems(plan)).toEqual([]);
  });

  it('accepts the checks that follow a wait', () => {
    const checksAfterWait = [{ wave: 'rest', kinds: ['soak', 'gate', 'approval'] as const }];
    expect(problems(planOf([{ ...blocked(), checksAfterWait }]))).toEqual([]);
  });

  it.each([
    ['another version', { ...plan, apiVersion: 'rollout-group.dev/cli/v2' }, '/apiVersion must be equal to constant'],
    ['an unknown member', { ...plan, extra: 1 }, ' must NOT have additional properties'],
    ['an unknown outcome', { ...plan, outcome: 'fine' }, '/outcome must be equal to one of the allowed values'],
    ['a missing member', { ...plan, groups: [{ ...unchanged(), totals: undefined }] }, "/groups/0 must have required property 'totals'"],
    [
      'a negative time',
      planOf([{ ...ingester(), totals: { ...ingester().totals, p50Seconds: -1 } }]),
      '/groups/0/totals/p50Seconds must be >= 0',
    ],
  ])('rejects %s', (_, document, problem) => {
    expect(problems(document)).toEqual([problem]);
  });
});
