// Parses path and query of a request as the API server routes them.
import type { ServedKind } from './kinds.ts';
import { badRequest, methodNotAllowed, noSuchResource, notFound } from './refusal.ts';
import type { ModelRequest } from './request.ts';

export interface Route {
  readonly kind: ServedKind;
  /** Empty for cluster-scoped kinds and for all namespaces. */
  readonly namespace: string;
  /** Empty for a collection. */
  readonly name: string;
  /** Empty without one. */
  readonly subresource: string;
  readonly verb: Verb;
}

export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'deletecollection';

export interface Address {
  readonly path: string;
  readonly query: URLSearchParams;
}

const noQuery = new URLSearchParams();

/** Path and query of a request; the query is not changed. */
export function addressOf(text: string): Address {
  const at = text.indexOf('?');
  return at < 0 ? { path: text, query: noQuery } : { path: text.slice(0, at), query: new URLSearchParams(text.slice(at + 1)) };
}

/** Finds kinds by `group/version` and plural. */
export interface KindIndex {
  readonly find: (group: string, version: string, plural: string) => ServedKind | undefined;
  /** Returns whether the group is served in that version. */
  readonly has: (group: string, version: string) => boolean;
  /** Returns whether the group is built in. */
  readonly isBuiltIn: (group: string) => boolean;
}

/** Returns the target of the request; undefined for paths outside of the API. Throws Refusal for unknown targets. */
export function routeOf({ path, query }: Address, method: ModelRequest['method'], kinds: KindIndex): Route | undefined {
  const parts = path.split('/').slice(1).map(decodeURIComponent);
  const isCore = parts[0] === 'api';
  if (!isCore && parts[0] !== 'apis') return undefined;
  const [group = '', version = '', ...rest] = isCore ? ['', ...parts.slice(1)] : parts.slice(1);
  if (rest.length === 0) return undefined;
  // Groups of custom kinds answer unknown paths without a Status.
  if (!kinds.isBuiltIn(group) && !kinds.has(group, version)) return undefined;
  const place = kinds.has(group, version) ? placeOf(rest, (plural) => kinds.find(group, version, plural)) : undefined;
  if (place === undefined && !kinds.isBuiltIn(group)) return undefined;
  if (place === undefined) throw noSuchResource();
  return { ...place, verb: verbOf(place, method, query) };
}

type Place = Omit<Route, 'verb'>;

function placeOf(parts: readonly string[], find: (plural: string) => ServedKind | undefined): Place | undefined {
  const isInside = parts[0] === 'namespaces' && parts.length > 2 && find(parts[2] ?? '')?.isNamespaced === true;
  const [namespace = '', plural = '', name = '', subresource = '', ...more] = isInside ? parts.slice(1) : ['', ...parts];
  const kind = find(plural);
  if (kind === undefined || more.length > 0 || (isInside && namespace === '')) return undefined;
  if (kind.isNamespaced && namespace === '' && name !== '') return undefined;
  if (subresource === '' || hasSubresource(kind, subresource)) return { kind, namespace, name, subresource };
  if (kind.isCustom) throw notFound(kind, name);
  return undefined;
}

/** Returns whether the kind has the subresource. */
export function hasSubresource(kind: ServedKind, subresource: string): boolean {
  if (subresource === 'status') return kind.hasStatus;
  if (subresource === 'scale') return kind.scale !== undefined;
  return subresource === 'eviction' && kind.group === '' && kind.plural === 'pods';
}

function verbOf({ kind, namespace, name, subresource }: Place, method: ModelRequest['method'], query: URLSearchParams): Verb {
  if (subresource === 'eviction') {
    if (method !== 'POST') throw methodNotAllowed();
    return 'create';
  }
  if (name === '') {
    const isWatch = ['1', 'true'].includes(query.get('watch') ?? '');
    if (method === 'GET') return isWatch ? 'watch' : 'list';
    if (method === 'DELETE' && (!kind.isNamespaced || namespace !== '')) return 'deletecollection';
    if (method === 'POST' && (!kind.isNamespaced || namespace !== '')) return 'create';
    if (kind.isCustom && (method === 'PUT' || method === 'PATCH')) throw badRequest('name must be provided');
    throw methodNotAllowed();
  }
  switch (method) {
    case 'GET':
      return 'get';
    case 'PUT':
      return 'update';
    case 'PATCH':
      return 'patch';
    case 'DELETE':
      if (subresource !== '') throw methodNotAllowed();
      return 'delete';
    case 'POST':
      // The server of custom kinds ignores the name in the path.
      if (kind.isCustom && subresource === '') return 'create';
      throw methodNotAllowed();
    default:
      return method satisfies never;
  }
}
