// Lints one object of our kinds like a file.
import { isJsonObject, type JsonObject } from '../../cluster/request/json.ts';
import { ruleCatalog } from '../../engine/rules/catalog.ts';
import { type Finding, sortFindings } from '../../policies/findings/finding.ts';
import { checkDocuments } from '../../policies/lint/lint.ts';
import { loadObjects } from '../../policies/live/objects.ts';
import type { LoadedDocument, LoadResult } from '../../policies/load.ts';
import { ofKind, resolvePolicies } from '../../policies/resolve/resolve.ts';

/**
 * Returns the errors and warnings of the object alone, in field order. Other objects do not matter, because they may be applied in any
 * order. Notices are omitted.
 */
export function findingsOf(object: JsonObject, { agentNamespace }: { readonly agentNamespace: string }): readonly Finding[] {
  const load = loadObject(object);
  const resolution = resolvePolicies(load.documents);
  const checked = checkDocuments({
    load,
    bundle: resolution.bundle,
    groups: ofKind(load.documents, 'RolloutGroup'),
    policies: ofKind(load.documents, 'RolloutPolicy'),
    exceptions: ofKind(load.documents, 'RolloutException'),
    intents: ofKind(load.documents, 'RolloutIntent'),
    statefulSets: [],
    agentNamespace,
    engineRules: ruleCatalog.map(({ id }) => id),
  });
  return sortFindings([...load.findings, ...resolution.findings, ...checked]).filter(({ severity }) => severity !== 'notice');
}

/** Returns the object as a document; undefined if its schema does not accept it. */
export function documentOf(object: JsonObject): LoadedDocument | undefined {
  return loadObject(object).documents[0];
}

function loadObject(object: JsonObject): LoadResult {
  return loadObjects([withName(object)]);
}

/** Adds a name for an object with `generateName`. */
function withName(object: JsonObject): JsonObject {
  const { metadata } = object;
  if (!isJsonObject(metadata) || typeof metadata['generateName'] !== 'string' || metadata['name'] !== undefined) return object;
  return { ...object, metadata: { ...metadata, name: `${metadata['generateName'].slice(0, 248)}xxxxx` } };
}
