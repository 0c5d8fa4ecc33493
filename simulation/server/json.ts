// Applies the three patch formats of the API server to JSON values, and compares JSON values. No function mutates its arguments.

import type { Json } from './request.ts';

/** Returns whether the value is a JSON object, not an array and not null. */
export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the value if it is a JSON object, else an empty object. */
export function objectOf(value: unknown): Json {
  return isObject(value) ? value : {};
}

/** Returns whether two values are equal JSON. The order of keys does not matter, and `undefined` equals an absent key. */
export function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    return Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((item, index) => isSame(item, b[index]));
  }
  const [one, other] = [a as Json, b as Json];
  for (const key in one) if (!isSame(one[key], other[key])) return false;
  for (const key in other) if (other[key] !== undefined && one[key] === undefined) return false;
  return true;
}

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
  readonly from?: string;
  readonly value?: unknown;
}

/** Applies a JSON patch (RFC 6902) as the API server does: `replace` adds a missing field. Returns undefined if an operation fails. */
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

function applied(document: unknown, { op, path, from = '', value }: Operation): Outcome {
  const keys = keysOf(path);
  switch (op) {
    case 'test':
      return isSame(valueAt(document, keys) ?? null, value ?? null) ? { value: document } : undefined;
    case 'add':
    case 'replace':
    case 'remove':
      return changed(document, keys, { op, value });
    case 'copy':
    case 'move': {
      const moved = valueAt(document, keysOf(from));
      if (moved === undefined) return undefined;
      const rest = op === 'move' ? changed(document, keysOf(from), { op: 'remove' }) : { value: document };
      return rest === undefined ? undefined : changed(rest.value, keys, { op: 'add', value: moved });
    }
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

/** A change of one value in a document. */
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

/** The merge key of each list that a strategic merge patch merges item by item. */
const keysOfLists: Readonly<Record<string, string>> = {
  containers: 'name',
  initContainers: 'name',
  ephemeralContainers: 'name',
  env: 'name',
  volumes: 'name',
  volumeMounts: 'mountPath',
  ports: 'containerPort',
  conditions: 'type',
  ownerReferences: 'uid',
  imagePullSecrets: 'name',
  hostAliases: 'ip',
};

/** Applies a strategic merge patch. The only supported directive is `$patch: delete` of an item. */
export function strategicPatch(target: unknown, patch: Json): Json {
  const before = objectOf(target);
  const simple: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(patch)) {
    if (isObject(value)) simple[key] = strategicPatch(before[key], value);
    else simple[key] = Array.isArray(value) ? mergedList(key, before[key], value) : value;
  }
  return mergePatch(before, simple) as Json;
}

function mergedList(field: string, target: unknown, patch: readonly unknown[]): readonly unknown[] {
  const before: readonly unknown[] = Array.isArray(target) ? target : [];
  if (field === 'finalizers') return [...before, ...patch.filter((one) => !before.includes(one))];
  const key = keysOfLists[field];
  if (key === undefined) return patch;
  const result = [...before];
  for (const item of patch) {
    const { $patch: directive, ...rest } = objectOf(item);
    const at = result.findIndex((one) => objectOf(one)[key] === rest[key]);
    if (directive === 'delete') {
      if (at >= 0) result.splice(at, 1);
    } else if (at >= 0) result[at] = strategicPatch(result[at], rest);
    else result.push(rest);
  }
  return result;
}
