// Implements strategic merge patches as kubectl and controllers send them: keyed lists are merged by key, everything else as in a merge
// patch.
import { isObject, mergePatch, objectOf } from './json.ts';
import type { Json } from './request.ts';

/** Lists of objects with their merge key. */
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

/** Returns the merged object. Of the directives it supports `$patch: delete` of an item. */
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
