// Generates the JSON Schema of a kind for editors, and its CustomResourceDefinition for the API server.
import * as z from 'zod';
import { apiGroup, apiVersion, type Kind, kinds, schemas } from './kinds.ts';

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
  readonly items?: JsonSchema;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | JsonSchema;
  readonly propertyNames?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  /** The fields of which exactly one is required, or at most one if `leader` is among them. */
  readonly [oneOfFields]?: readonly string[];
  readonly [atMostOneOfFields]?: readonly string[];
  readonly 'x-kubernetes-int-or-string'?: boolean;
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean;
}

export const oneOfFields = 'x-rollout-group-one-of';
export const atMostOneOfFields = 'x-rollout-group-at-most-one-of';

export const draft = 'https://json-schema.org/draft/2020-12/schema';

/** The fields of one object that exclude each other. */
export interface Choice {
  readonly fields: readonly string[];
  /** True if one of the fields is required. A source of replicas is optional: without it, users scale the zones without `follows`. */
  readonly isNeeded: boolean;
}

/** Returns the fields of an object that exclude each other, without those of nested objects. */
export function choicesIn({ [oneOfFields]: fields, [atMostOneOfFields]: exclusive }: JsonSchema): readonly Choice[] {
  return [
    ...(fields ? [{ fields, isNeeded: !fields.includes('leader') }] : []),
    ...(exclusive ? [{ fields: exclusive, isNeeded: false }] : []),
  ];
}

/** Returns the schema of a kind with the markers for CRDs. Fields with defaults are optional. */
export function kindSchema(kind: Kind): JsonSchema {
  return schemaOf(schemas[kind]);
}

/** Returns the JSON Schema of a zod schema, without the limits of JavaScript numbers and without `propertyNames` that only set a type. */
export function schemaOf(schema: z.ZodType): JsonSchema {
  const { $schema: _, ...generated } = z.toJSONSchema(schema, { io: 'input', reused: 'inline' });
  return mapSchema(generated as JsonSchema, withoutNoise);
}

/** Returns the JSON Schema of a kind for editors, with `oneOf` for exclusive fields instead of markers. */
export function editorSchema(kind: Kind): JsonSchema {
  return { $schema: draft, title: kind, description: kinds[kind].summary, ...mapSchema(kindSchema(kind), forEditors) } as JsonSchema;
}

/** Replaces a schema and all schemas in it, from the inside out. */
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

/** The columns of `kubectl get` after the name. */
const columns: Readonly<Partial<Record<Kind, readonly (readonly [name: string, type: string, jsonPath: string])[]>>> = {
  RolloutGroup: [
    ['Phase', 'string', '.status.phase'],
    ['Updated', 'integer', '.status.updatedPods'],
    ['Ready', 'integer', '.status.readyPods'],
    ['Pods', 'integer', '.status.pods'],
    ['Stopped', 'string', '.status.conditions[?(@.type=="Stopped")].reason'],
    ['Reason', 'string', '.status.reason'],
  ],
  RolloutException: [
    ['Rule', 'string', '.spec.rule'],
    ['Group', 'string', '.spec.target.group'],
    ['Expires', 'string', '.spec.expires'],
    ['By', 'string', '.spec.requestedBy.user'],
  ],
  RolloutIntent: [
    ['Group', 'string', '.spec.group'],
    ['Action', 'string', '.spec.action'],
    ['By', 'string', '.spec.requestedBy.user'],
  ],
  RolloutRun: [
    ['Group', 'string', '.spec.group'],
    ['Kind', 'string', '.spec.kind'],
    ['Outcome', 'string', '.spec.outcome'],
    ['Started', 'date', '.spec.startedAt'],
    ['Took', 'integer', '.spec.took'],
    ['Waited', 'integer', '.spec.waited'],
  ],
};

/** Returns the `apiextensions.k8s.io/v1` object of a kind; undefined for a kind that exists only in files. */
export function customResourceDefinition(kind: Kind): CustomResourceDefinition | undefined {
  const { plural, shortNames, status, hasScale } = kinds[kind];
  if (plural === undefined) return undefined;
  return definitionObject(apiGroup, apiVersion.slice(apiGroup.length + 1), {
    names: { kind, plural, ...(shortNames && { shortNames }), categories: ['rollout-group'] },
    columns: printerColumns(kind),
    schema: objectSchema(kind),
    ...(status && { subresources: { status: {}, ...(hasScale && { scale: scalePaths }) } }),
  });
}

interface DefinitionParts {
  readonly names: { readonly kind: string; readonly plural: string } & Readonly<Record<string, unknown>>;
  readonly columns?: readonly object[];
  readonly schema: object;
  readonly subresources?: object;
}

type CustomResourceDefinition = ReturnType<typeof definitionObject>;

/** Returns the definition of a namespaced kind with one version. */
export function definitionObject(group: string, version: string, { names, columns, schema, subresources }: DefinitionParts) {
  const { kind, plural, ...otherNames } = names;
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}`, labels: { 'app.kubernetes.io/part-of': 'rollout-group' } },
    spec: {
      group,
      names: { kind, listKind: `${kind}List`, plural, singular: kind.toLowerCase(), ...otherNames },
      scope: 'Namespaced',
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          ...(columns && { additionalPrinterColumns: columns }),
          schema: { openAPIV3Schema: schema },
          ...(subresources && { subresources }),
        },
      ],
    },
  };
}

const scalePaths = {
  specReplicasPath: '.spec.replicas.count',
  statusReplicasPath: '.status.replicas',
  labelSelectorPath: '.status.selector',
};

function printerColumns(kind: Kind): readonly object[] {
  const age = ['Age', 'date', '.metadata.creationTimestamp'] as const;
  return [...(columns[kind] ?? []), age].map(([name, type, jsonPath]) => ({ name, type, jsonPath }));
}

/** Returns the schema of an object. The API server itself checks apiVersion, kind and metadata, so these fields have only a type. */
function objectSchema(kind: Kind): JsonSchema {
  const { status, summary } = kinds[kind];
  const spec = kindSchema(kind).properties?.['spec'] ?? {};
  return {
    type: 'object',
    description: summary,
    required: ['spec'],
    properties: {
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      metadata: { type: 'object' },
      spec: structural(spec),
      // Before the first status, kstatus must not count a new object as reconciled.
      ...(status && { status: { ...structural(schemaOf(status)), default: { observedGeneration: -1 } } }),
    },
  };
}

/** Returns the schema in the structural form of CRDs: no `const`, no boolean `additionalProperties`, CEL rules for exclusive fields. */
export function structural(schema: JsonSchema): JsonSchema {
  return mapSchema(schema, structuralNode);
}

function structuralNode(schema: JsonSchema): JsonSchema {
  // A value without a type needs `x-kubernetes-preserve-unknown-fields`. For a list of such values, the marker moves to the items.
  const {
    title: _,
    const: only,
    additionalProperties,
    propertyNames: _names,
    [oneOfFields]: _one,
    [atMostOneOfFields]: _atMostOne,
    anyOf,
    items,
    ...rest
  } = schema;
  const { 'x-kubernetes-preserve-unknown-fields': keepsUnknownFields, ...withoutMarker } = rest;
  const isTyped = schema.type !== undefined;
  const choices = choicesIn(schema);
  return {
    ...(isTyped ? withoutMarker : rest),
    ...(only !== undefined && { enum: [only] }),
    ...(typeof additionalProperties === 'object' && { additionalProperties }),
    ...(items && {
      items: Object.keys(items).length === 0 ? { 'x-kubernetes-preserve-unknown-fields': keepsUnknownFields === true } : items,
    }),
    ...(anyOf && intOrString(anyOf)),
    ...(choices.length > 0 && { 'x-kubernetes-validations': choices.map(validation) }),
  } as JsonSchema;
}

/** Joins the limits of all alternatives: number limits apply only to numbers, patterns only to text. */
function intOrString(alternatives: readonly JsonSchema[]): JsonSchema {
  const numbers = alternatives.find((one) => one.minimum !== undefined);
  const patterns = alternatives.flatMap((one) => (one.pattern !== undefined ? [one.pattern] : (one.enum ?? []).map((text) => `^${text}$`)));
  return {
    'x-kubernetes-int-or-string': true,
    ...(numbers?.minimum !== undefined && { minimum: numbers.minimum }),
    ...(numbers?.maximum !== undefined && { maximum: numbers.maximum }),
    ...(patterns.length > 0 && { pattern: patterns.join('|') }),
  };
}

function validation({ fields, isNeeded }: Choice): { readonly rule: string; readonly message: string } {
  const count = fields.map((field) => `(has(self.${field}) ? 1 : 0)`).join(' + ');
  if (isNeeded) return { rule: `${count} == 1`, message: `exactly one of ${fields.join(', ')} must be set` };
  return { rule: `${count} <= 1`, message: `at most one of ${fields.join(', ')} may be set` };
}
