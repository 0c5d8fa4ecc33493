import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { editorSchema, type JsonSchema, kindSchema, schemaOf } from '../../policies/schema/json-schema.ts';
import { type Kind, schemas } from '../../policies/schema/kinds.ts';
import { policyFileSchema } from '../../scripts/generated/output-schemas.ts';
import { sampleDocuments, sampleInputs } from './sample-documents.ts';

const kinds = Object.keys(schemas) as Kind[];

function validator(kind: Kind) {
  return new Ajv2020({ strict: true, strictRequired: false, allErrors: true, allowUnionTypes: true }).compile(editorSchema(kind));
}

/** The sample with the value at a path replaced; undefined removes it. */
function changed(kind: Kind, path: readonly (string | number)[], value: unknown): unknown {
  const copy: unknown = structuredClone(sampleInputs.find((one) => one.kind === kind)?.input);
  let parent: unknown = copy;
  for (const key of path.slice(0, -1)) parent = Reflect.get(parent as object, key);
  const last = path.at(-1) ?? '';
  if (value === undefined) Reflect.deleteProperty(parent as object, last);
  else Reflect.set(parent as object, last, value);
  return copy;
}

describe('the JSON Schema of a kind', () => {
  it.each(sampleInputs)('$kind accepts a document of a user', ({ kind, input }) => {
    const validate = validator(kind);
    validate(input);
    expect(validate.errors ?? []).toEqual([]);
  });

  it.each(sampleDocuments)('$kind accepts a document with every default filled in', (document) => {
    const validate = validator(document.kind);
    validate(JSON.parse(JSON.stringify(document)));
    expect(validate.errors ?? []).toEqual([]);
  });

  const broken: readonly (readonly [string, Kind, readonly (string | number)[], unknown])[] = [
    ['an unknown field', 'RolloutGroup', ['spec', 'rollout', 'speed'], 1],
    ['a missing required field', 'RolloutGroup', ['spec', 'rollout', 'strategy'], undefined],
    ['an unknown choice', 'RolloutGroup', ['spec', 'rollout', 'strategy'], 'magic'],
    ['a percentage over 100', 'RolloutGroup', ['spec', 'rollout', 'maxUnavailable'], '101%'],
    ['a wave with pods and percent', 'RolloutGroup', ['spec', 'rollout', 'waves', 0, 'percent'], 50],
    ['a wave with neither', 'RolloutGroup', ['spec', 'rollout', 'waves', 0, 'pods'], undefined],
    ['two sources of replicas', 'RolloutGroup', ['spec', 'replicas', 'count'], 3],
    ['a duration without unit', 'RolloutGroup', ['spec', 'scaling', 'down', 'betweenZones'], '13'],
    ['another kind', 'RolloutPolicy', ['kind'], 'RolloutGroup'],
    ['an exception without end', 'RolloutException', ['spec', 'expires'], undefined],
    ['a reserved name of a metric', 'RolloutPolicy', ['spec', 'inputs', 'metrics', '0bad'], { source: 'prod', query: 'up' }],
  ];
  it.each(broken)('rejects %s in a %s', (_, kind, path, value) => {
    const document = changed(kind, path, value);
    expect(validator(kind)(document)).toBe(false);
  });

  it('has no marker, and no limit that only comes from JavaScript numbers', () => {
    const text = JSON.stringify(kinds.map(editorSchema));
    expect(text.match(/"x-[a-z-]+"|9007199254740991/g)).toBeNull();
    expect(text.match(/"propertyNames":\{"type":"string"\}/g)).toBeNull();
  });

  it('describes every kind', () => {
    for (const kind of kinds) expect(editorSchema(kind)).toMatchObject({ title: kind, description: expect.stringMatching(/\.$/) });
  });

  it('of files chooses by kind', () => {
    const ajv = new Ajv2020({ strict: true, strictRequired: false, strictTypes: false, allowUnionTypes: true });
    for (const kind of kinds) ajv.addSchema(editorSchema(kind), `${kind}.json`);
    const validate = ajv.compile(policyFileSchema((kind) => `${kind}.json`));
    expect(sampleInputs.map(({ input }) => validate(input))).toEqual(sampleInputs.map(() => true));
    expect(validate(changed('RolloutGroup', ['spec', 'rollout', 'strategy'], 'magic'))).toBe(false);
    expect(validate({ apiVersion: 'rollout-group.dev/v1alpha1', kind: 'Other' })).toBe(false);
  });
});

describe('cleaning a schema', () => {
  it('keeps explicit limits', () => {
    const group = kindSchema('RolloutGroup').properties?.['spec']?.properties;
    const maxUnavailable = group?.['disruption']?.properties?.['maxUnavailable'];
    expect(maxUnavailable).toEqual({
      type: 'integer',
      minimum: 0,
      maximum: 100_000,
      description: 'Maximum number of unavailable pods: in one zone, or in one data partition across all zones.',
    } satisfies JsonSchema);
  });

  it('works on the schema of a status too', () => {
    expect(schemaOf(schemas.RolloutIntent).required).toEqual(['apiVersion', 'kind', 'metadata', 'spec']);
  });
});
