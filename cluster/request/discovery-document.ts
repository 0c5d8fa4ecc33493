// The documents in which API servers describe what they serve: the aggregated one, and the classic ones of every server.
import { isJsonObject, type JsonObject } from './json.ts';
import type { Resource } from './resource.ts';

export interface ServedVersion {
  readonly group: string;
  readonly version: string;
  readonly resources: readonly { readonly resource: Resource; readonly subresources: ReadonlySet<string> }[];
  /** Why the resources are not all known. */
  readonly failure?: string;
}

/** Versions of an APIGroupDiscoveryList, in order of preference; undefined when the document is another one. */
export function aggregatedVersions(document: JsonObject): readonly ServedVersion[] | undefined {
  if (document['kind'] !== 'APIGroupDiscoveryList') return undefined;
  return objectsIn(document['items']).flatMap(({ metadata, versions }) => {
    const group = isJsonObject(metadata) ? textOf(metadata['name']) : '';
    return objectsIn(versions).map((entry) => aggregatedVersion(group, entry));
  });
}

function aggregatedVersion(group: string, { version, resources, freshness }: JsonObject): ServedVersion {
  const served = {
    group,
    version: textOf(version),
    resources: objectsIn(resources).flatMap(({ resource, responseKind, scope, subresources }) => {
      const kind = isJsonObject(responseKind) ? textOf(responseKind['kind']) : '';
      // A resource without a kind is there for its subresources only.
      if (kind === '') return [];
      const names = objectsIn(subresources).map((entry) => textOf(entry['subresource']));
      const plural = textOf(resource);
      return [
        { resource: { group, version: textOf(version), plural, kind, isNamespaced: scope === 'Namespaced' }, subresources: new Set(names) },
      ];
    }),
  };
  return freshness === 'Stale' ? { ...served, failure: 'the extension server of this group does not answer' } : served;
}

/** The versions that an APIGroupList or APIVersions names, the preferred one of each group first; undefined when the document is another one. */
export function classicGroups(document: JsonObject): readonly Pick<Resource, 'group' | 'version'>[] | undefined {
  if (Array.isArray(document['versions'])) return document['versions'].map((version) => ({ group: '', version: textOf(version) }));
  if (!Array.isArray(document['groups'])) return undefined;
  return objectsIn(document['groups']).flatMap(({ name, versions, preferredVersion }) => {
    const preferred = isJsonObject(preferredVersion) ? textOf(preferredVersion['version']) : '';
    const all = objectsIn(versions).map(({ version }) => textOf(version));
    const first = all.filter((version) => version === preferred);
    return [...first, ...all.filter((version) => version !== preferred)].map((version) => ({ group: textOf(name), version }));
  });
}

/** Returns the content of an APIResourceList. Throws for another document. */
export function classicVersion({ group, version }: Pick<Resource, 'group' | 'version'>, document: JsonObject): ServedVersion {
  if (!Array.isArray(document['resources'])) throw new Error('it is no list of resources');
  const entries = objectsIn(document['resources']);
  const subresourcesOf = (plural: string): ReadonlySet<string> =>
    new Set(entries.map(({ name }) => textOf(name).split('/')).flatMap(([parent, name]) => (parent === plural && name ? [name] : [])));
  return {
    group,
    version,
    resources: entries
      .filter(({ name }) => !textOf(name).includes('/'))
      .map(({ name, kind, namespaced }) => {
        const plural = textOf(name);
        const resource = { group, version, plural, kind: textOf(kind), isNamespaced: namespaced === true };
        return { resource, subresources: subresourcesOf(plural) };
      }),
  };
}

function objectsIn(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
