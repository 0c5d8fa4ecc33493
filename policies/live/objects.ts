// Reads objects of our kinds from the API server like documents of a file. The places of findings are fields of the object.
import { type Finding, finding, objectPlace } from '../findings/finding.ts';
import { type LoadResult, readDocument, textAt } from '../load.ts';
import { withoutServerMetadata } from '../schema/kinds.ts';
import { valueAt } from '../schema/schema-walk.ts';
import { compareText } from '../values/compare-text.ts';
import { isRecord } from '../values/is-record.ts';
import { keptByObject } from '../values/map.ts';
import type { Path, YamlDocument } from '../yaml/document.ts';
import { yamlLimits } from '../yaml/scan.ts';
import { refusedKeys } from '../yaml/value.ts';

/** Reads raw objects in any order. Puts an unusable object into `unusable` and reports findings about it. */
export function loadObjects(objects: readonly unknown[]): LoadResult {
  const results = objects
    .map((raw) => (isRecord(raw) ? readOnce(raw) : read(raw)))
    .sort((a, b) => compareText(a.name, b.name))
    .map(({ result }) => result);
  return {
    documents: results.flatMap((result) => result.document ?? []),
    manifests: [],
    unusable: results.flatMap((result) => result.unusable ?? []),
    findings: results.flatMap((result) => result.findings),
  };
}

function read(raw: unknown) {
  const { name, document } = documentOf(raw);
  return { name, result: readDocument(document, {}) };
}

/** A change of one object resolves all policies again. The other objects are still those in the cache of their watch. */
const readOnce = keptByObject(read);

function documentOf(raw: unknown): { readonly name: string; readonly document: YamlDocument } {
  const value = withoutServerMetadata(raw);
  const part = (path: Path): string => textAt(value, path) ?? '';
  const name = `${part(['kind'])} ${part(['metadata', 'namespace'])}/${part(['metadata', 'name'])}`;
  const place = (path: Path) => objectPlace(name, path);
  const dialect = refusedParts(value, [], name);
  return {
    name,
    document: {
      file: '',
      value,
      errors: [],
      dialect,
      find: (path) => (valueAt(value, path) === undefined ? undefined : place(path)),
      place,
    },
  };
}

/** Returns findings for keys with a meaning in JavaScript and for values that are nested too deeply, as in files. */
function refusedParts(value: unknown, path: Path, name: string): readonly Finding[] {
  if (path.length > yamlLimits.depth) {
    return [finding('RG1003', objectPlace(name, path.slice(0, 3)), `the object is nested deeper than ${yamlLimits.depth} levels`)];
  }
  if (Array.isArray(value)) return value.flatMap((item, index) => refusedParts(item, [...path, index], name));
  if (!isRecord(value)) return [];
  return Object.entries(value).flatMap(([key, member]) =>
    refusedKeys.has(key)
      ? [finding('RG1011', objectPlace(name, [...path, key]), `the key ${key} is not allowed`)]
      : refusedParts(member, [...path, key], name),
  );
}
