// Fields of a kind by their path, read from the JSON Schema of the kind.
import { z } from 'zod';
import { type Kind, kinds, schemas } from '../policies/schema/kinds.ts';

/** The part of JSON Schema that our schemas use. */
export interface JsonSchema {
  readonly type?: string;
  readonly title?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly items?: JsonSchema;
  readonly additionalProperties?: JsonSchema | boolean;
  readonly anyOf?: readonly JsonSchema[];
  readonly minimum?: number;
  readonly maximum?: number;
}

export interface Field {
  readonly name: string;
  readonly schema: JsonSchema;
  readonly isRequired: boolean;
}

/** The kind of this name: in any case, as singular, plural or short name. */
export function kindOf(name: string): Kind | undefined {
  const wanted = name.toLowerCase();
  return kindNames().find((kind) => {
    const { plural, singular, shortNames = [] } = kinds[kind];
    return [kind.toLowerCase(), plural, singular, ...shortNames].includes(wanted);
  });
}

/** All kinds, in the order of their registry. */
export function kindNames(): readonly Kind[] {
  return Object.keys(schemas).filter((name): name is Kind => Object.hasOwn(schemas, name));
}

/** What may be written in a document of the kind, before defaults are filled in. */
export function jsonSchemaOf(kind: Kind): JsonSchema {
  return z.toJSONSchema(schemas[kind], { io: 'input' }) as JsonSchema;
}

/** The schema of a field; steps go through lists and maps without naming them. Undefined when there is no such field. */
export function schemaAt(root: JsonSchema, path: readonly string[]): JsonSchema | undefined {
  let schema: JsonSchema | undefined = root;
  for (const step of path) schema = schema && fieldsOf(schema).find(({ name }) => name === step)?.schema;
  return schema;
}

/** The fields of an object, or of the objects in a list or map of them. */
export function fieldsOf(schema: JsonSchema): readonly Field[] {
  const objects = objectsIn(schema);
  return objects.flatMap(({ properties = {}, required = [] }) =>
    Object.entries(properties).map(([name, field]) => ({ name, schema: field, isRequired: required.includes(name) })),
  );
}

function objectsIn(schema: JsonSchema): readonly JsonSchema[] {
  if (schema.properties !== undefined) return [schema];
  const inner = [
    schema.items,
    typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined,
    ...(schema.anyOf ?? []),
  ];
  return inner.flatMap((one) => (one === undefined ? [] : objectsIn(one)));
}

/** The type in a few words: `integer`, `list of objects`, `map of strings`, `10% | integer`. */
export function typeText(schema: JsonSchema): string {
  const { type, title, const: only, enum: values, items, anyOf, additionalProperties } = schema;
  if (only !== undefined) return String(only);
  if (values !== undefined) return values.join(' | ');
  if (anyOf !== undefined) return [...new Set(anyOf.map(typeText))].join(' or ');
  if (items !== undefined) return `list of ${typeText(items)}`;
  if (type === 'object' && typeof additionalProperties === 'object') return `map of ${typeText(additionalProperties)}`;
  return title ?? type ?? 'any';
}
