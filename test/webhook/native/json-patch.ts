// JSON patches applied as an API server applies them (RFC 6902), as far as our endpoints write them.
import { isDeepStrictEqual } from 'node:util';
import type { PatchOperation } from '../../../webhook/review/review.ts';

export type Json = Readonly<Record<string, unknown>>;

/** The object after the patch; what was given stays as it is. Throws when a test in it does not hold, or a place is not there. */
export function applyPatch(object: Json, patch: readonly PatchOperation[]): Json {
  const after = structuredClone(object);
  for (const operation of patch) {
    const keys = operation.path
      .split('/')
      .slice(1)
      .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
    const last = keys.pop() ?? '';
    let parent: unknown = after;
    for (const key of keys) parent = placeIn(parent, key, operation.path);
    if (typeof parent !== 'object' || parent === null) throw new Error(`nothing is at ${operation.path}`);
    if (operation.op !== 'add') placeIn(parent, last, operation.path);
    if (operation.op === 'test') {
      if (!isDeepStrictEqual(Reflect.get(parent, last), operation.value)) throw new Error(`the test of ${operation.path} fails`);
    } else if (operation.op === 'remove') Reflect.deleteProperty(parent, last);
    else Object.defineProperty(parent, last, { value: operation.value, enumerable: true, writable: true, configurable: true });
  }
  return after;
}

function placeIn(parent: unknown, key: string, path: string): unknown {
  if (typeof parent !== 'object' || parent === null || !Object.hasOwn(parent, key)) throw new Error(`nothing is at ${path}`);
  return Reflect.get(parent, key);
}
