// Answers discovery requests with the aggregated documents of the API server.
import { hasSubresource, type ServedKind } from './kinds.ts';
import { answer } from './refusal.ts';
import type { Json, ModelResponse } from './request.ts';

const verbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];
const aggregatedType = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';

/** Answers aggregated discovery requests, those for one version of a group, and `/version`. Returns undefined for other requests. */
export function discover(kinds: readonly ServedKind[], path: string, accept: string): ModelResponse | undefined {
  if (path === '/version') return answer(200, JSON.stringify(version));
  const [, group, name] = /^\/apis\/([^/]+)\/([^/]+)$/.exec(path) ?? [];
  if (group !== undefined) return ofVersion(kinds.filter((kind) => kind.group === group && kind.version === name));
  if ((path !== '/api' && path !== '/apis') || !accept.replaceAll(' ', '').includes(aggregatedType)) return undefined;
  return aggregated(kinds.filter(({ group }) => (group === '') === (path === '/api')));
}

/** Returns the classic document of the kinds of one version; undefined if the version serves no kind. */
function ofVersion(kinds: readonly ServedKind[]): ModelResponse | undefined {
  const resources = kinds.map(({ plural, kind, isNamespaced }) => ({ name: plural, kind, namespaced: isNamespaced }));
  return resources.length === 0 ? undefined : answer(200, JSON.stringify({ kind: 'APIResourceList', resources }));
}

const version = { major: '1', minor: '36', gitVersion: 'v1.36.3', platform: 'linux/amd64' };

function versionsOf(kinds: readonly ServedKind[]): ReadonlyMap<string, ReadonlySet<string>> {
  const groups = new Map<string, Set<string>>();
  for (const { group, version: name } of kinds) groups.set(group, (groups.get(group) ?? new Set<string>()).add(name));
  return groups;
}

function subresourcesOf(kind: ServedKind) {
  const { group, version: own } = kind;
  const changing = ['get', 'patch', 'update'];
  const all = [
    { name: 'eviction', kind: 'Eviction', group: 'policy', version: 'v1', verbs: ['create'] },
    { name: 'scale', kind: 'Scale', group: 'autoscaling', version: 'v1', verbs: changing },
    { name: 'status', kind: kind.kind, group, version: own, verbs: changing },
  ];
  return all.filter(({ name }) => hasSubresource(kind, name));
}

/** Returns one document for the groups of these kinds. API servers since 1.30 send it to clients that accept its type. */
function aggregated(kinds: readonly ServedKind[]): ModelResponse {
  const items = [...versionsOf(kinds)].map(([group, names]) => ({
    metadata: group === '' ? {} : { name: group },
    versions: [...names].map((name) => ({
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
