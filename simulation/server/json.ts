// Applies merge patches and JSON patches to JSON values. No function mutates its arguments.
import { isJsonObject as isObject, isSameJson as isSame, asJsonObject as objectOf } from '../../cluster/request/json.ts';

export { isObject, isSame, objectOf };

/** Applies a JSON merge patch (RFC 7386): merges objects, removes a field for `null`, and replaces every other value. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const before = objectOf(target);
  let merged: Record<string, unknown> | undefined = isObject(target) ? undefined : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === undefined) continue;
    if (value === null) {
      if (key in before || merged !== undefined) {
        merged ??= { ...before };
        delete merged[key];
      }
      continue;
    }
    const next = mergePatch(before[key], value);
    if (next === before[key] && key in before) continue;
    merged ??= { ...before };
    merged[key] = next;
  }
  return merged ?? target;
}

export interface Operation {
  readonly op: string;
  readonly path: string;
  readonly value?: unknown;
}

/**
 * Applies a JSON patch (RFC 6902) as the API server does: `replace` adds a missing field. Returns undefined if an operation fails, and for
 * `move` and `copy`.
 */
export function jsonPatch(target: unknown, operations: readonly Operation[]): unknown {
  let result = target;
  for (const operation of operations) {
    const next = applied(result, operation);
    if (next === undefined) return undefined;
    result = next.value;
  }
  return result;
}

type Outcome = { readonly value: unknown } | undefined;

function applied(document: unknown, { op, path, value }: Operation): Outcome {
  const keys = keysOf(path);
  switch (op) {
    case 'test':
      return isSame(valueAt(document, keys) ?? null, value ?? null) ? { value: document } : undefined;
    case 'add':
    case 'replace':
    case 'remove':
      return changed(document, keys, { op, value });
    default:
      return undefined;
  }
}

function keysOf(path: string): readonly string[] {
  return path
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
}

function valueAt(document: unknown, keys: readonly string[]): unknown {
  let value = document;
  for (const key of keys) {
    if (Array.isArray(value)) value = value[Number(key)];
    else if (isObject(value)) value = value[key];
    else return undefined;
  }
  return value;
}

interface Edit {
  readonly op: 'add' | 'replace' | 'remove';
  readonly value?: unknown;
}

function changed(document: unknown, keys: readonly string[], edit: Edit): Outcome {
  const { op, value } = edit;
  const [key, ...rest] = keys;
  if (key === undefined) return op === 'remove' ? undefined : { value };
  if (Array.isArray(document)) return changedArray(document, key, rest, edit);
  if (!isObject(document)) return undefined;
  if (rest.length > 0) {
    const inner = key in document ? changed(document[key], rest, edit) : undefined;
    return inner === undefined ? undefined : { value: { ...document, [key]: inner.value } };
  }
  if (op !== 'remove') return { value: { ...document, [key]: value } };
  if (!(key in document)) return undefined;
  const { [key]: _, ...others } = document;
  return { value: others };
}

function changedArray(document: readonly unknown[], key: string, rest: readonly string[], edit: Edit): Outcome {
  const { op, value } = edit;
  const index = key === '-' ? document.length : Number(key);
  const isInside = Number.isInteger(index) && index >= 0 && index < document.length;
  if (rest.length > 0) {
    const inner = isInside ? changed(document[index], rest, edit) : undefined;
    return inner === undefined ? undefined : { value: document.map((item, at) => (at === index ? inner.value : item)) };
  }
  if (op === 'add' && Number.isInteger(index) && index >= 0 && index <= document.length)
    return { value: document.toSpliced(index, 0, value) };
  if (!isInside) return undefined;
  return { value: op === 'remove' ? document.toSpliced(index, 1) : document.map((item, at) => (at === index ? value : item)) };
}
