// Reads typed fields from JSON of unknown shape. An absent or null field is undefined. A field of the wrong type is recorded as a problem.
import { instantMs } from '../../policies/instant.ts';
import { valueAt } from '../../policies/schema/schema-walk.ts';
import { isRecord } from '../../policies/values/is-record.ts';

/** The typed fields of one JSON value. Paths are keys joined by dots. */
export interface Reader {
  text(path: string): string | undefined;
  /** A whole number that JavaScript represents exactly. */
  whole(path: string): number | undefined;
  /** A whole number of at most 32 bits, as in most number fields of Kubernetes. */
  int32(path: string): number | undefined;
  flag(path: string): boolean | undefined;
  /** Milliseconds of an RFC 3339 instant. */
  instant(path: string): number | undefined;
  /** A map of strings; empty if absent. */
  texts(path: string): Readonly<Record<string, string>>;
  /** The members of a list; empty if absent. */
  list(path: string): readonly unknown[];
  has(path: string): boolean;
  /** The first field that was read and had the wrong type, as a clause such as `spec.replicas is not a whole number`. */
  problem(): string | undefined;
}

export function reader(value: unknown): Reader {
  let first: string | undefined;
  const read = <Type>(path: string, what: string, parse: (found: unknown) => Type | undefined): Type | undefined => {
    const found = fieldAt(value, path.split('.'));
    if (found === undefined) return undefined;
    const parsed = parse(found);
    if (parsed === undefined) first ??= `${path} is not ${what}`;
    return parsed;
  };
  return {
    text: (path) => read(path, 'text', (found) => (typeof found === 'string' ? found : undefined)),
    whole: (path) =>
      read(path, 'a whole number', (found) => (typeof found === 'number' && Number.isSafeInteger(found) ? found : undefined)),
    int32: (path) =>
      read(path, 'a whole number of 32 bits', (found) => (typeof found === 'number' && (found | 0) === found ? found : undefined)),
    flag: (path) => read(path, 'true or false', (found) => (typeof found === 'boolean' ? found : undefined)),
    instant: (path) => read(path, 'an instant', (found) => (typeof found === 'string' ? instantMs(found) : undefined)),
    texts: (path) => read(path, 'a map of text', asTexts) ?? {},
    list: (path) => read(path, 'a list', (found): readonly unknown[] | undefined => (Array.isArray(found) ? found : undefined)) ?? [],
    has: (path) => fieldAt(value, path.split('.')) !== undefined,
    problem: () => first,
  };
}

/** Returns the field at the path of keys; undefined if the field or an object on the path is absent or null. */
export function fieldAt(value: unknown, keys: readonly string[]): unknown {
  return valueAt(value, keys) ?? undefined;
}

function asTexts(found: unknown): Readonly<Record<string, string>> | undefined {
  if (!isRecord(found)) return undefined;
  const entries = Object.entries(found).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  return entries.length === Object.keys(found).length ? Object.fromEntries(entries) : undefined;
}

/** Returns `namespace/name` of an object. The namespace is `default` if the object names no namespace. */
export function objectKey(object: unknown): string {
  return `${String(fieldAt(object, ['metadata', 'namespace']) ?? 'default')}/${String(fieldAt(object, ['metadata', 'name']) ?? '')}`;
}
