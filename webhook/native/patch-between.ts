// Computes the JSON patch between two objects, as fine as the number of operations allows.
import { isJsonObject, isSameJson, type JsonObject } from '../../cluster/request/json.ts';
import type { PatchOperation } from '../review/review.ts';

/** Deeper than fields of pods. */
const deepest = 12;

/**
 * Returns at most `most` operations from `before` to `after`; `most` is at least the number of common top-level fields. If single values
 * are too many, their parent is replaced. A list whose length changes is replaced. Empty for equal objects.
 */
export function patchBetween(before: JsonObject, after: JsonObject, most: number): readonly PatchOperation[] {
  for (let depth = deepest; depth > 1; depth -= 1) {
    const operations = changes('', before, after, depth);
    if (operations.length <= most) return operations;
  }
  return changes('', before, after, 1);
}

function changes(path: string, before: unknown, after: unknown, depth: number): readonly PatchOperation[] {
  if (isSameJson(before, after)) return [];
  if (depth > 0 && isJsonObject(before) && isJsonObject(after)) {
    const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])];
    return keys.flatMap((key) => fieldChanges(`${path}/${escaped(key)}`, before[key], after[key], depth - 1));
  }
  if (depth > 0 && Array.isArray(before) && Array.isArray(after) && before.length === after.length) {
    return before.flatMap((item, index) => changes(`${path}/${index}`, item, after[index], depth - 1));
  }
  return [{ op: 'replace', path, value: after }];
}

/** `undefined` stands for a missing field. */
function fieldChanges(path: string, before: unknown, after: unknown, depth: number): readonly PatchOperation[] {
  if (before === undefined) return after === undefined ? [] : [{ op: 'add', path, value: after }];
  return after === undefined ? [{ op: 'remove', path }] : changes(path, before, after, depth);
}

/** Escapes a key for a JSON pointer (RFC 6901). */
function escaped(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}
