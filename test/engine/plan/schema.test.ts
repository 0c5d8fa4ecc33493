import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { planSchema } from '../../../scripts/generated/plan-schema.ts';
import { blocked, ingester, mirrorDownscale, planOf, refusedDownscale, unchanged } from '../../plugin/plan-kit.ts';

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

  it('accepts the checks that follow after a wait', () => {
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
  ])('refuses %s', (_, document, problem) => {
    expect(problems(document)).toEqual([problem]);
  });
});
