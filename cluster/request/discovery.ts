// Discovers the kinds that the API server serves, and their paths.

import { messageOf } from '../../policies/error-message.ts';
import type { ClusterEnv } from '../env.ts';
import { aggregatedVersions, classicGroups, classicVersion, type ServedVersion } from './discovery-document.ts';
import { ApiFailure, TransportFailure } from './failure.ts';
import type { JsonObject } from './json.ts';
import { parseBody } from './read.ts';
import { apiVersionOf, type Resource } from './resource.ts';

/** Everything in two answers; servers before 1.26, and proxies that drop the header, answer with the classic documents. */
const aggregated = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json';
const site = 'discovery.read';
/** Classic documents that are asked for at the same time. */
const width = 8;

type Version = Pick<Resource, 'group' | 'version'>;

export interface Discovery {
  /** Every resource of that kind, the version that the server prefers first; subresources are not among them. */
  readonly find: (kind: { readonly group: string; readonly version?: string | undefined; readonly kind: string }) => readonly Resource[];
  /** Reports whether the resource is served, in that version. */
  readonly has: (resource: Version & Pick<Resource, 'plural'>) => boolean;
  /** Reports whether the resource has that subresource, such as `scale`. */
  readonly hasSubresource: (resource: Version & Pick<Resource, 'plural'>, subresource: string) => boolean;
  /** False when the group, or that version of it, could not be read: then `find` and `has` say nothing about it. */
  readonly knows: (resource: { readonly group: string; readonly version?: string | undefined }) => boolean;
  /** Groups and versions that could not be read. */
  readonly failures: readonly DiscoveryFailure[];
}

export interface DiscoveryFailure extends Version {
  readonly message: string;
}

/** Asks the API server. Rejects with ApiFailure or TransportFailure when not even the groups can be listed. */
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

/** In the order of preference within each group. */
async function versionsOf(document: JsonObject, ask: (path: string) => Promise<JsonObject>): Promise<readonly ServedVersion[]> {
  const whole = aggregatedVersions(document);
  if (whole !== undefined) return whole;
  const named = classicGroups(document);
  // Read as an empty one, it would say that nothing is served.
  if (named === undefined) throw new TransportFailure('the API server lists no served kinds', { site, mayBeApplied: false });
  const served: ServedVersion[] = [];
  for (let at = 0; at < named.length; at += width) {
    served.push(...(await Promise.all(named.slice(at, at + width).map((version) => readClassic(version, ask)))));
  }
  return served;
}

/** One extension server that is down must not hide the groups of the others. */
async function readClassic(version: Version, ask: (path: string) => Promise<JsonObject>): Promise<ServedVersion> {
  try {
    return classicVersion(version, await ask(`${version.group === '' ? '/api' : '/apis'}/${apiVersionOf(version)}`));
  } catch (error) {
    return { ...version, resources: [], failure: messageOf(error) };
  }
}

function discoveryOf(versions: readonly ServedVersion[]): Discovery {
  const served = new Map<string, ReadonlySet<string>>();
  for (const { resources } of versions) for (const { resource, subresources } of resources) served.set(keyOf(resource), subresources);
  const failures = versions.flatMap(({ group, version, failure }) => (failure === undefined ? [] : [{ group, version, message: failure }]));
  return {
    find: ({ group, version, kind }) =>
      versions
        .filter((candidate) => candidate.group === group && (version === undefined || candidate.version === version))
        .flatMap(({ resources }) => resources.map(({ resource }) => resource).filter((resource) => resource.kind === kind)),
    has: (resource) => served.has(keyOf(resource)),
    hasSubresource: (resource, subresource) => served.get(keyOf(resource))?.has(subresource) ?? false,
    knows: ({ group, version }) =>
      !failures.some((failure) => failure.group === group && (version === undefined || failure.version === version)),
    failures,
  };
}

function keyOf({ group, version, plural }: Version & Pick<Resource, 'plural'>): string {
  return `${group}/${version}/${plural}`;
}
