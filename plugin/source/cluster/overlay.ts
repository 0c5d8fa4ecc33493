// Computes an object after an apply without the API server: from live object, manifest and last applied manifest.
import { entryKey, keyOf, type ObjectContent } from '../../../engine/diff/field-diff.ts';
import { fieldAt } from '../../../engine/observe/raw.ts';
import { nameOf } from '../../difference.ts';

const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration';

/**
 * Returns the live object with the manifest laid over it. Fields that only the last manifest named are removed; kubectl keeps that manifest
 * in an annotation. All other fields stay. List entries are matched by their keys.
 */
export function overlaid(live: ObjectContent | undefined, asked: ObjectContent): ObjectContent {
  if (live === undefined) return asked;
  const merged = merge(live, asked, lastManifest(live), '');
  return isMap(merged) ? merged : asked;
}

/**
 * Returns the live objects in order with the desired ones laid over them; new objects come last. Applying removes no object. StatefulSets
 * have replicas only if a manifest names them.
 */
export function overlaidAll(live: readonly ObjectContent[], asked: readonly ObjectContent[]): readonly ObjectContent[] {
  const wanted = new Map(asked.map((object) => [nameOf(object), object]));
  const present = new Set(live.map(nameOf));
  return [
    ...live.map((object) => {
      const manifest = wanted.get(nameOf(object));
      return withReplicasAsAsked(manifest === undefined ? object : overlaid(object, manifest), manifest);
    }),
    ...asked.filter((object) => !present.has(nameOf(object))),
  ];
}

/** Removes replicas that only the cluster names: a plan takes the number in a manifest as desired. */
export function withReplicasAsAsked(object: ObjectContent, manifest: ObjectContent | undefined): ObjectContent {
  const spec = object['spec'];
  if (object['kind'] !== 'StatefulSet' || !isMap(spec) || fieldAt(manifest, ['spec', 'replicas']) !== undefined) return object;
  const { replicas: _replicas, ...rest } = spec;
  return { ...object, spec: rest };
}

/** A field that neither side nor the last manifest has is undefined and left out. */
function merge(live: unknown, asked: unknown, last: unknown, name: string): unknown {
  if (asked === undefined) return last === undefined ? live : undefined;
  if (isMap(live) && isMap(asked)) return mergeMaps(live, asked, isMap(last) ? last : {});
  if (Array.isArray(live) && Array.isArray(asked)) return mergeLists(live, asked, Array.isArray(last) ? last : [], name);
  return asked;
}

function mergeMaps(live: ObjectContent, asked: ObjectContent, last: ObjectContent): ObjectContent {
  const keys = new Set([...Object.keys(live), ...Object.keys(asked)]);
  const members = [...keys].map((key): readonly [string, unknown] => [key, merge(live[key], asked[key], last[key], key)]);
  return Object.fromEntries(members.filter(([, value]) => value !== undefined));
}

function mergeLists(live: readonly unknown[], asked: readonly unknown[], last: readonly unknown[], name: string): readonly unknown[] {
  const key = entryKey(name, [live, asked, last]);
  // Without a key the list is one value, as it is for the API server.
  if (key === undefined || live.length === 0 || asked.length === 0) return asked;
  const keyed = (list: readonly unknown[]) => new Map(list.map((entry) => [keyOf(entry, key), entry]));
  const [present, wanted, before] = [keyed(live), keyed(asked), keyed(last)];
  const kept = live.filter((entry) => !wanted.has(keyOf(entry, key)) && !before.has(keyOf(entry, key)));
  return [...asked.map((entry) => merge(present.get(keyOf(entry, key)), entry, before.get(keyOf(entry, key)), '')), ...kept];
}

function lastManifest(live: ObjectContent): unknown {
  const text = fieldAt(live, ['metadata', 'annotations', lastApplied]);
  if (typeof text !== 'string') return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return value;
  } catch {
    return undefined;
  }
}

function isMap(value: unknown): value is ObjectContent {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
