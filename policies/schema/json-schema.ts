// The schema of a kind as JSON Schema: as it comes, for CRDs and documentation, and as editors read it.
import { z } from 'zod';
import { type Kind, kinds, schemas } from './kinds.ts';

/** The part of JSON Schema (draft 2020-12) that our schemas use. */
export interface JsonSchema {
  readonly type?: string;
  readonly title?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly items?: JsonSchema;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | JsonSchema;
  readonly propertyNames?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  /** Exactly one of these fields must be there. */
  readonly [oneOfFields]?: readonly string[];
  /** No two of these fields may be there. */
  readonly [atMostOneOfFields]?: readonly string[];
  readonly 'x-kubernetes-int-or-string'?: boolean;
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean;
}

export const oneOfFields = 'x-rollout-group-one-of';
export const atMostOneOfFields = 'x-rollout-group-at-most-one-of';

const draft = 'https://json-schema.org/draft/2020-12/schema';

/** Fields of one object that exclude each other. */
export interface Choice {
  readonly fields: readonly string[];
  /** True if one of the fields is required. A source of replicas is optional: without it the group scales through its leader. */
  readonly isNeeded: boolean;
}

/** The fields directly in an object of which no two may be there. */
export function choicesIn({ [oneOfFields]: fields, [atMostOneOfFields]: exclusive }: JsonSchema): readonly Choice[] {
  return [
    ...(fields ? [{ fields, isNeeded: !fields.includes('leader') }] : []),
    ...(exclusive ? [{ fields: exclusive, isNeeded: false }] : []),
  ];
}

/** The schema of a kind with the markers that CRDs need. A field with a default may be left out. */
export function kindSchema(kind: Kind): JsonSchema {
  return schemaOf(schemas[kind]);
}

/** The JSON Schema of any zod schema, cleaned of what says nothing: limits of JavaScript's numbers, keys that are texts. */
export function schemaOf(schema: z.ZodType): JsonSchema {
  const { $schema: _, ...generated } = z.toJSONSchema(schema, { io: 'input', reused: 'inline' });
  return mapSchema(generated as JsonSchema, withoutNoise);
}

/** The JSON Schema of a kind for editors and validators: what excludes each other is `oneOf`, and the markers are gone. */
export function editorSchema(kind: Kind): JsonSchema {
  return { $schema: draft, title: kind, description: kinds[kind].summary, ...mapSchema(kindSchema(kind), forEditors) } as JsonSchema;
}

/** One JSON Schema for files with documents of any kind; `reference` gives the address of the schema of a kind. */
export function policyFileSchema(reference: (kind: Kind) => string): object {
  const all = Object.keys(schemas) as Kind[];
  return {
    $schema: draft,
    title: 'A document of a policy file',
    type: 'object',
    required: ['apiVersion', 'kind'],
    properties: { kind: { enum: all } },
    // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema.
    allOf: all.map((kind) => ({ if: { properties: { kind: { const: kind } } }, then: { $ref: reference(kind) } })),
  };
}

/** Replaces a schema and everything in it, from the inside out. */
export function mapSchema(schema: JsonSchema, replace: (schema: JsonSchema) => JsonSchema): JsonSchema {
  const { items, properties, additionalProperties, anyOf } = schema;
  return replace({
    ...schema,
    ...(items && { items: mapSchema(items, replace) }),
    ...(properties && {
      properties: Object.fromEntries(Object.entries(properties).map(([name, property]) => [name, mapSchema(property, replace)])),
    }),
    ...(typeof additionalProperties === 'object' && { additionalProperties: mapSchema(additionalProperties, replace) }),
    ...(anyOf && { anyOf: anyOf.map((option) => mapSchema(option, replace)) }),
  });
}

function withoutNoise(schema: JsonSchema): JsonSchema {
  const { minimum, maximum, propertyNames, ...rest } = schema;
  return {
    ...rest,
    ...(minimum !== undefined && minimum > Number.MIN_SAFE_INTEGER && { minimum }),
    ...(maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER && { maximum }),
    ...(propertyNames && Object.keys(propertyNames).some((key) => key !== 'type') && { propertyNames }),
  };
}

function forEditors(schema: JsonSchema): JsonSchema {
  const {
    [oneOfFields]: _one,
    [atMostOneOfFields]: _atMostOne,
    'x-kubernetes-int-or-string': _isIntOrString,
    'x-kubernetes-preserve-unknown-fields': _keepsUnknownFields,
    ...rest
  } = schema;
  const [choice] = choicesIn(schema);
  if (choice === undefined) return rest;
  const each = choice.fields.map((field): JsonSchema => ({ required: [field] }));
  const none = { not: { anyOf: each } } as JsonSchema;
  return { ...rest, oneOf: choice.isNeeded ? each : [...each, none] };
}
