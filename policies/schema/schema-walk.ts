// Finds schemas and values by path.
import * as z from 'zod';
import { isRecord } from '../values/is-record.ts';
import type { PathKey } from '../yaml/value.ts';

/** Returns the schema inside optional, nullable, default and prefault. */
export function unwrapped(schema: unknown): z.ZodType | undefined {
  let inner = schema;
  while (isWrapper(inner)) inner = inner.unwrap();
  return inner instanceof z.ZodType ? inner : undefined;
}

function isWrapper(schema: unknown): schema is z.ZodOptional | z.ZodNullable | z.ZodDefault | z.ZodPrefault {
  return (
    schema instanceof z.ZodOptional || schema instanceof z.ZodNullable || schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault
  );
}

/** Returns the schema of the value at a key or index; undefined if the schema does not define that value. */
export function schemaBelow(schema: unknown, key: PathKey): z.ZodType | undefined {
  const inner = unwrapped(schema);
  if (inner instanceof z.ZodObject) return Object.hasOwn(inner.shape, key) ? unwrapped(inner.shape[String(key)]) : undefined;
  if (inner instanceof z.ZodArray) return unwrapped(inner.element);
  if (inner instanceof z.ZodRecord) return unwrapped(inner.valueType);
  return undefined;
}

export function schemaAt(schema: unknown, path: readonly PathKey[]): z.ZodType | undefined {
  return path.reduce<z.ZodType | undefined>(schemaBelow, unwrapped(schema));
}

/** Returns the names of the fields of an object schema, in the order of the schema. */
export function fieldNames(schema: z.ZodType | undefined): readonly string[] {
  return schema instanceof z.ZodObject ? Object.keys(schema.shape) : [];
}

/** Calls `visit` for the value and everything in it, with the schema of each. Skips values without a schema. */
export function walkWithSchema(
  schema: z.ZodType | undefined,
  value: unknown,
  visit: (schema: z.ZodType, value: unknown, path: readonly PathKey[]) => void,
  path: readonly PathKey[] = [],
): void {
  if (!schema || value === undefined) return;
  visit(schema, value, path);
  if (Array.isArray(value)) {
    value.forEach((item, index) => {
      walkWithSchema(schemaBelow(schema, index), item, visit, [...path, index]);
    });
  } else if (isRecord(value)) {
    for (const [key, item] of Object.entries(value)) walkWithSchema(schemaBelow(schema, key), item, visit, [...path, key]);
  }
}

/** Returns the text entries of a map, such as labels. Returns {} if the value is not a map. */
export function textsOf(value: unknown): Readonly<Record<string, string>> {
  const entries = Object.entries(isRecord(value) ? value : {});
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'));
}

/** Returns the value at a path in plain data; undefined if the data does not contain the path. */
export function valueAt(value: unknown, path: readonly PathKey[]): unknown {
  return path.reduce<unknown>((inner, key) => {
    if (Array.isArray(inner)) return typeof key === 'number' ? inner[key] : undefined;
    return isRecord(inner) && Object.hasOwn(inner, key) ? inner[key] : undefined;
  }, value);
}

/** Returns the text at a path; undefined if there is no text, or if it is empty. */
export function textAt(value: unknown, path: readonly PathKey[]): string | undefined {
  const found = valueAt(value, path);
  return typeof found === 'string' && found !== '' ? found : undefined;
}

/** Returns a path as text: `spec.rollout.waves[0].zones`. */
export function fieldText(path: readonly PathKey[]): string {
  return path.reduce<string>((text, key) => {
    if (typeof key === 'number') return `${text}[${key}]`;
    const step = /^[A-Za-z_][-\w]*$/.test(key) ? key : `"${key}"`;
    return text === '' ? step : `${text}.${step}`;
  }, '');
}
