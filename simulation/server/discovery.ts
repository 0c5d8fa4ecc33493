// Answers discovery requests with the aggregated or the classic documents of the API server.
import { apiVersionOf, hasSubresource, type ServedKind } from './kinds.ts';
import { answer, pageNotFound } from './refusal.ts';
import type { Json, ModelResponse } from './request.ts';

const verbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];
const aggregatedType = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';

/** Answers discovery paths and `/version`. Returns undefined for other paths. */
export function discover(kinds: readonly ServedKind[], path: string, accept: string): ModelResponse | undefined {
  if (isBelowVersion(path)) return undefined;
  const isAggregated = accept.replaceAll(' ', '').includes(aggregatedType);
  const [, root, ...rest] = path.replace(/\/$/, '').split('/');
  if (root === 'version' && rest.length === 0) return json(version);
  if (root === 'api') return discoverCore(kinds, rest, isAggregated);
  return root === 'apis' ? discoverGroups(kinds, rest, isAggregated) : undefined;
}

function discoverCore(kinds: readonly ServedKind[], rest: readonly string[], isAggregated: boolean): ModelResponse | undefined {
  if (rest.length === 0) return isAggregated ? aggregated(kinds.filter(({ group }) => group === '')) : json(coreVersions);
  return rest.length === 1 && rest[0] === 'v1' ? resources(kinds, '', 'v1') : undefined;
}

function discoverGroups(kinds: readonly ServedKind[], rest: readonly string[], isAggregated: boolean): ModelResponse | undefined {
  const [group, name, ...more] = rest;
  const named = kinds.filter((kind) => kind.group !== '');
  if (group === undefined) return isAggregated ? aggregated(named) : json(groupList(named));
  if (name === undefined) return groupDocument(named, group);
  return more.length === 0 ? resources(kinds, group, name) : undefined;
}

/** Returns whether the path is longer than a group version. Nearly every request has such a path, so this check saves time. */
function isBelowVersion(path: string): boolean {
  let slashes = 0;
  for (let index = path.indexOf('/'); index >= 0; index = path.indexOf('/', index + 1)) slashes += 1;
  return slashes > 4;
}

const version = { major: '1', minor: '36', gitVersion: 'v1.36.3', platform: 'linux/amd64' };
const coreVersions = { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] };

function json(document: Json): ModelResponse {
  return answer(200, JSON.stringify(document));
}

function versionsOf(kinds: readonly ServedKind[]): ReadonlyMap<string, readonly string[]> {
  const groups = new Map<string, string[]>();
  for (const { group, version: name } of kinds) {
    const known = groups.get(group) ?? [];
    if (!known.includes(name)) known.push(name);
    groups.set(group, known);
  }
  return groups;
}

function groupOf(name: string, versions: readonly string[]): Json {
  const entries = versions.map((one) => ({ groupVersion: `${name}/${one}`, version: one }));
  return { name, versions: entries, preferredVersion: entries[0] };
}

function groupList(kinds: readonly ServedKind[]): Json {
  return { kind: 'APIGroupList', apiVersion: 'v1', groups: [...versionsOf(kinds)].map(([name, versions]) => groupOf(name, versions)) };
}

function groupDocument(kinds: readonly ServedKind[], group: string): ModelResponse {
  const versions = versionsOf(kinds).get(group);
  return versions === undefined ? pageNotFound : json({ kind: 'APIGroup', apiVersion: 'v1', ...groupOf(group, versions) });
}

interface Subresource {
  readonly name: string;
  readonly kind: string;
  readonly group: string;
  readonly version: string;
  readonly verbs: readonly string[];
}

function subresourcesOf(kind: ServedKind): readonly Subresource[] {
  const { group, version: own } = kind;
  const changing = ['get', 'patch', 'update'];
  const all = [
    { name: 'eviction', kind: 'Eviction', group: 'policy', version: 'v1', verbs: ['create'] },
    { name: 'scale', kind: 'Scale', group: 'autoscaling', version: 'v1', verbs: changing },
    { name: 'status', kind: kind.kind, group, version: own, verbs: changing },
  ];
  return all.filter(({ name }) => hasSubresource(kind, name));
}

function resources(kinds: readonly ServedKind[], group: string, name: string): ModelResponse {
  const served = kinds.filter((kind) => kind.group === group && kind.version === name);
  const [first] = served;
  if (first === undefined) return pageNotFound;
  const entries = served.flatMap((kind) => [
    {
      name: kind.plural,
      singularName: kind.singular,
      namespaced: kind.isNamespaced,
      kind: kind.kind,
      verbs,
      ...(kind.shortNames !== undefined && { shortNames: kind.shortNames }),
    },
    ...subresourcesOf(kind).map((one) => ({
      name: `${kind.plural}/${one.name}`,
      singularName: '',
      namespaced: kind.isNamespaced,
      ...(one.group !== kind.group && { group: one.group, version: one.version }),
      kind: one.kind,
      verbs: one.verbs,
    })),
  ]);
  return json({ kind: 'APIResourceList', apiVersion: 'v1', groupVersion: apiVersionOf(first), resources: entries });
}

/** Returns one document for all groups, as API servers since 1.26 do for clients that accept it. */
function aggregated(kinds: readonly ServedKind[]): ModelResponse {
  const items = [...versionsOf(kinds)].map(([group, names]) => ({
    metadata: group === '' ? {} : { name: group },
    versions: names.map((name) => ({
      version: name,
      resources: kinds.filter((kind) => kind.group === group && kind.version === name).map(aggregatedResource),
      freshness: 'Current',
    })),
  }));
  const body = JSON.stringify({ kind: 'APIGroupDiscoveryList', apiVersion: 'apidiscovery.k8s.io/v2', metadata: {}, items });
  return { ...answer(200, body), headers: { 'content-type': aggregatedType } };
}

function aggregatedResource(kind: ServedKind): Json {
  const subresources = subresourcesOf(kind).map((one) => ({
    subresource: one.name,
    responseKind: { group: one.group, version: one.version, kind: one.kind },
    verbs: one.verbs,
  }));
  return {
    resource: kind.plural,
    responseKind: { group: kind.group, version: kind.version, kind: kind.kind },
    scope: kind.isNamespaced ? 'Namespaced' : 'Cluster',
    singularResource: kind.singular,
    verbs,
    ...(kind.shortNames !== undefined && { shortNames: kind.shortNames }),
    ...(subresources.length > 0 && { subresources }),
  };
}
