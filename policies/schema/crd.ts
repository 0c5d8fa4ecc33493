// CustomResourceDefinitions: the schema of a kind in the subset that the API server takes, with columns, status and scale.
import { atMostOneOfFields, type Choice, choicesIn, type JsonSchema, kindSchema, mapSchema, oneOfFields, schemaOf } from './json-schema.ts';
import { apiGroup, apiVersion, type Kind, kinds } from './kinds.ts';

/** Columns of `kubectl get` after the name. */
const columns: Readonly<Partial<Record<Kind, readonly (readonly [name: string, type: string, jsonPath: string])[]>>> = {
  RolloutGroup: [
    ['Phase', 'string', '.status.phase'],
    ['Updated', 'integer', '.status.updatedPods'],
    ['Ready', 'integer', '.status.readyPods'],
    ['Pods', 'integer', '.status.pods'],
    ['Reason', 'string', '.status.reason'],
  ],
  RolloutException: [
    ['Rule', 'string', '.spec.rule'],
    ['Group', 'string', '.spec.target.group'],
    ['Expires', 'string', '.spec.expires'],
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

/** The `apiextensions.k8s.io/v1` object of a kind; undefined for a kind that lives in files only. */
export function customResourceDefinition(kind: Kind): object | undefined {
  const { plural, singular, shortNames, status, hasScale } = kinds[kind];
  if (plural === undefined) return undefined;
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${apiGroup}`, labels: { 'app.kubernetes.io/part-of': 'rollout-group' } },
    spec: {
      group: apiGroup,
      names: { kind, listKind: `${kind}List`, plural, singular, ...(shortNames && { shortNames }), categories: ['rollout-group'] },
      scope: 'Namespaced',
      versions: [
        {
          name: apiVersion.slice(apiGroup.length + 1),
          served: true,
          storage: true,
          additionalPrinterColumns: printerColumns(kind),
          schema: { openAPIV3Schema: objectSchema(kind) },
          ...(status && { subresources: { status: {}, ...(hasScale && { scale: scalePaths }) } }),
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

/** The API server owns apiVersion, kind and metadata, and refuses schemas that say more about them. */
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
      ...(status && { status: structural(schemaOf(status)) }),
    },
  };
}

/**
 * Returns the schema in the API server's form: no `const`, no `additionalProperties` together with `properties`, no choice of types except
 * integer or string, and one validation rule for exclusive fields
 * (https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema).
 */
export function structural(schema: JsonSchema): JsonSchema {
  return mapSchema(schema, structuralNode);
}

function structuralNode(schema: JsonSchema): JsonSchema {
  // `x-kubernetes-preserve-unknown-fields` belongs to a value without a type; a list of such values keeps its type.
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

/** The limits of all alternatives in one place: those of numbers act on numbers only, patterns on texts only. */
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

interface Validation {
  readonly rule: string;
  readonly message: string;
}

function validation({ fields, isNeeded }: Choice): Validation {
  if (isNeeded) return { rule: `${countOf(fields)} == 1`, message: `exactly one of ${fields.join(', ')} must be set` };
  return { rule: `${countOf(fields)} <= 1`, message: `at most one of ${fields.join(', ')} may be set` };
}

function countOf(fields: readonly string[]): string {
  return fields.map((field) => `(has(self.${field}) ? 1 : 0)`).join(' + ');
}
