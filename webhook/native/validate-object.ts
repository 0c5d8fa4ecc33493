// What lint says of one object of our kinds, as if it were a file of its own.
import { isJsonObject, type JsonObject } from '../../cluster/request/json.ts';
import { ruleCatalog } from '../../engine/rules/catalog.ts';
import { type Finding, sortFindings } from '../../policies/findings/finding.ts';
import { checkDocuments } from '../../policies/lint/lint.ts';
import { loadObjects } from '../../policies/live/objects.ts';
import type { LoadedDocument, LoadResult } from '../../policies/load.ts';
import { ofKind, resolvePolicies } from '../../policies/resolve/resolve.ts';

/**
 * Errors and warnings of the object alone, in the order of its fields. What other objects say does not matter: in which order they are applied is
 * not for us to say. Notices are left out.
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

/** The object as a document; none when its schema does not take it. */
export function documentOf(object: JsonObject): LoadedDocument | undefined {
  return loadObject(object).documents[0];
}

function loadObject(object: JsonObject): LoadResult {
  return loadObjects([withName(object)]);
}

/** An object that is to be named by the API server has no name yet. */
function withName(object: JsonObject): JsonObject {
  const { metadata } = object;
  if (!isJsonObject(metadata) || typeof metadata['generateName'] !== 'string' || metadata['name'] !== undefined) return object;
  return { ...object, metadata: { ...metadata, name: `${metadata['generateName'].slice(0, 248)}xxxxx` } };
}
