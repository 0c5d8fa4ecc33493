// Discovers the kinds that the API server serves, and their paths.
import type { ClusterEnv } from '../env.ts';
import { inParallel } from '../pods.ts';
import { ApiFailure, TransportFailure } from './failure.ts';
import { isJsonObject, type JsonObject } from './json.ts';
import { parseBody } from './read.ts';
import { apiVersionOf, type Resource } from './resource.ts';

/** The Accept header for the aggregated document. Servers before 1.30, and proxies that drop the header, answer with classic documents. */
const aggregated = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json';
const site = 'discovery.read';
const parallelReads = 8;

type Version = Pick<Resource, 'group' | 'version'>;

export interface Discovery {
  /** Returns every resource of that kind, the preferred version first, without subresources. */
  readonly find: (kind: { readonly group: string; readonly version?: string | undefined; readonly kind: string }) => readonly Resource[];
  /** Reports whether this version of the resource is served. */
  readonly has: (resource: Version & Pick<Resource, 'plural'>) => boolean;
  /** Reports whether the group and version could be read. If not, a missing resource in `find` or `has` means nothing. */
  readonly knows: (resource: Version) => boolean;
}

/** Reads the served kinds. Rejects with ApiFailure or TransportFailure if the groups cannot be listed. */
export async function discover(env: Pick<ClusterEnv, 'kubernetes'>, options: { readonly timeoutMs?: number } = {}): Promise<Discovery> {
  const { timeoutMs = 30_000 } = options;
  const ask = async (path: string): Promise<JsonObject> => {
    const response = await env.kubernetes.request({ method: 'GET', path, accept: aggregated, timeoutMs, site });
    if (response.status !== 200) throw new ApiFailure(response, site);
    return parseBody(response.body, site);
  };
  const [core, groups] = await Promise.all([ask('/api'), ask('/apis')]);
  return discoveryOf([...(await versionsOf(core, ask)), ...(await versionsOf(groups, ask))]);
}

async function versionsOf(document: JsonObject, ask: (path: string) => Promise<JsonObject>): Promise<readonly ServedVersion[]> {
  const listed = aggregatedVersions(document);
  if (listed !== undefined) return listed;
  const named = classicGroups(document);
  // An unknown document is a failure: an empty result would mean that the server serves nothing.
  if (named === undefined) throw new TransportFailure('the API server lists no served kinds', { site, mayBeApplied: false });
  return inParallel(named, (version) => readClassic(version, ask), parallelReads);
}

/** Reads one version. Returns a failure for an extension server that is down, so that other groups stay known. */
async function readClassic(version: Version, ask: (path: string) => Promise<JsonObject>): Promise<ServedVersion> {
  try {
    return classicVersion(version, await ask(`${version.group === '' ? '/api' : '/apis'}/${apiVersionOf(version)}`));
  } catch {
    return { ...version, resources: [], isUnread: true };
  }
}

function discoveryOf(versions: readonly ServedVersion[]): Discovery {
  const all = versions.flatMap(({ resources }) => resources);
  const served = new Set(all.map(keyOf));
  const unread = versions.filter(({ isUnread }) => isUnread);
  return {
    find: ({ group, version, kind }) =>
      all.filter((one) => one.group === group && one.kind === kind && (version === undefined || one.version === version)),
    has: (resource) => served.has(keyOf(resource)),
    knows: ({ group, version }) => !unread.some((one) => one.group === group && one.version === version),
  };
}

function keyOf({ group, version, plural }: Version & Pick<Resource, 'plural'>): string {
  return `${group}/${version}/${plural}`;
}

interface ServedVersion extends Version {
  /** The resources without subresources. */
  readonly resources: readonly Resource[];
  /** True if the resources could not be read. */
  readonly isUnread?: boolean;
}

/** Returns the versions of an APIGroupDiscoveryList in order of preference; undefined for another document. */
function aggregatedVersions(document: JsonObject): readonly ServedVersion[] | undefined {
  if (document['kind'] !== 'APIGroupDiscoveryList') return undefined;
  return objectsIn(document['items']).flatMap(({ metadata, versions }) => {
    const group = isJsonObject(metadata) ? textOf(metadata['name']) : '';
    return objectsIn(versions).map((entry) => aggregatedVersion(group, entry));
  });
}

function aggregatedVersion(group: string, { version, resources, freshness }: JsonObject): ServedVersion {
  return {
    group,
    version: textOf(version),
    resources: objectsIn(resources).flatMap(({ resource, responseKind, scope }) => {
      const kind = isJsonObject(responseKind) ? textOf(responseKind['kind']) : '';
      // A resource without a kind has only subresources.
      return kind === '' ? [] : [{ group, version: textOf(version), plural: textOf(resource), kind, isNamespaced: scope === 'Namespaced' }];
    }),
    // The extension server of a stale group does not answer.
    isUnread: freshness === 'Stale',
  };
}

/** Returns the versions of an APIGroupList or APIVersions, the preferred one of each group first; undefined for another document. */
function classicGroups(document: JsonObject): readonly Version[] | undefined {
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
function classicVersion({ group, version }: Version, document: JsonObject): ServedVersion {
  if (!Array.isArray(document['resources'])) throw new Error('it is not a list of resources');
  const entries = objectsIn(document['resources']).filter(({ name }) => !textOf(name).includes('/'));
  const resources = entries.map(({ name, kind, namespaced }) => {
    return { group, version, plural: textOf(name), kind: textOf(kind), isNamespaced: namespaced === true };
  });
  return { group, version, resources };
}

function objectsIn(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
