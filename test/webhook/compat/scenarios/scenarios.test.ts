// Plays every recorded scenario against its endpoint, and holds that no row of the tables is without one.
import { describe, expect, it } from 'vitest';
import type { Answer } from '../../../../webhook/review/review.ts';
import { scenarios } from './all.ts';
import { playHandler, playText, reviewUid } from './play.ts';
import type { Json, WebhookScenario } from './scenario.ts';
import type { World } from './world.ts';

function numbered(endpoint: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `${endpoint} ${index + 1}`);
}

/** The rows of the tables of behaviour that the compatibility endpoints keep to, in the order in which each endpoint evaluates them. */
const rows: readonly string[] = [
  ...numbered('no-downscale', 11),
  ...numbered('prepare-downscale', 15),
  // With the zone tracker, these stand in place of rows 10 and 14.
  'zone-tracker 10',
  'zone-tracker 14',
  'zone-tracker first downscale',
  'zone-tracker lock',
  'zone-tracker without a group',
];

describe('the list of scenarios', () => {
  it('has one for each row, and no other', () => {
    const proved = new Set(scenarios.flatMap((scenario) => scenario.rows));
    expect(rows.filter((row) => !proved.has(row))).toEqual([]);
    expect([...proved].filter((row) => !rows.includes(row))).toEqual([]);
  });

  it('names each scenario once', () => {
    const names = scenarios.map(({ rows: [row], name }) => `${row}: ${name}`);
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
  });

  it('has at least 60', () => {
    expect(scenarios.length).toBeGreaterThanOrEqual(60);
  });
});

describe.each(scenarios.map((scenario) => [`${scenario.rows.join(', ')}: ${scenario.name}`, scenario] as const))('%s', (_, scenario) => {
  it('is the same for the handler', async () => {
    const { world, answer } = await playHandler(scenario);
    expectAnswer(answer, scenario);
    expectCalls(world, scenario);
  });

  it('is the same for the review as text', async () => {
    const { world, response, apiVersion } = await playText(scenario);
    expect(apiVersion).toBe(scenario.request.apiVersion ?? 'admission.k8s.io/v1');
    expect(response['uid']).toBe(reviewUid);
    const { allowed, status, warnings } = response as { allowed: boolean; status?: Json; warnings?: readonly string[] };
    const { message, code, reason } = (status ?? {}) as Pick<Answer, 'message' | 'code' | 'reason'>;
    const told = {
      ...(message !== undefined && { message }),
      ...(code !== undefined && { code }),
      ...(reason !== undefined && { reason }),
    };
    expectAnswer({ allowed, ...told, ...(warnings !== undefined && { warnings }) }, scenario);
    expectCalls(world, scenario);
  });
});

function expectAnswer(answer: Answer, { expected }: WebhookScenario): void {
  const { allowed, code, reason, message = [], warnings = [] } = expected;
  expect({ allowed: answer.allowed, code: answer.code, reason: answer.reason }).toEqual({ allowed, code, reason });
  expect(answer.patch).toBeUndefined();
  if (message.length === 0) expect(answer.message).toBeUndefined();
  for (const part of message) expect(answer.message).toContain(part);
  expect(answer.warnings ?? []).toHaveLength(warnings.length);
  warnings.forEach((parts, index) => {
    for (const part of parts) expect(answer.warnings?.[index]).toContain(part);
  });
}

function expectCalls(world: World, { expected }: WebhookScenario): void {
  const wanted = expected.calls.map((call) => (typeof call === 'string' ? { call } : call));
  expect(world.calls.map(({ call }) => call)).toEqual(wanted.map(({ call }) => call));
  wanted.forEach((call, index) => {
    if ('body' in call) expect(world.calls[index]?.body).toMatchObject(call.body);
  });
  for (const [place, part] of Object.entries(expected.after ?? {})) {
    const [resource = '', name = ''] = place.split('/');
    const object = world.get(resource, name);
    if (part === undefined) expect(object).toBeUndefined();
    else expect(object).toMatchObject(part);
  }
}
