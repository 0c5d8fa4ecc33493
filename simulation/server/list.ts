// Implements lists of the API server: all pages of a list show the collection at one revision.
import { apiVersionOf } from '../../cluster/request/resource.ts';
import type { WatchCache } from './front-end.ts';
import type { ServedKind } from './kinds.ts';
import { badRequest, expired, type Refusal } from './refusal.ts';
import type { ModelObject } from './request.ts';
import { labelRequirements, type Selection, selectionOf } from './selector.ts';
import { keyOf, textOf } from './store.ts';

interface ListOptions {
  /** The revision of the first page; undefined for the first page itself. */
  readonly exact?: number;
  /** True for a read from the cache, which may lag. */
  readonly isCached: boolean;
  /** The last key of the previous page; empty for the first page. */
  readonly after: string;
  /** The maximum number of items on a page; 0 means no limit. */
  readonly limit: number;
}

/** Returns the body of the response. Throws Refusal. */
export function listText(cache: WatchCache, kind: ServedKind, namespace: string, query: URLSearchParams): string {
  // The label selector is parsed first, so that several errors are reported in the order of the API server.
  labelRequirements(query.get('labelSelector') ?? '');
  const given = listOptionsOf(query);
  const selection = selectionOf(kind, query);
  // A list of one name has no pages.
  const options = selection.name === undefined ? given : { isCached: given.isCached, after: given.after, limit: 0 };
  if (options.exact !== undefined && options.exact < cache.frontEnd.storage.compacted) throw tooOld(options);
  return pageText(cache, kind, options, { ...selection, namespace, isIndexed: isIndexed(query) });
}

interface ListSelection extends Selection {
  /** The namespace; empty for all namespaces. */
  readonly namespace: string;
  readonly isIndexed: boolean;
}

function pageText(cache: WatchCache, kind: ServedKind, { exact, isCached, after, limit }: ListOptions, selection: ListSelection): string {
  const { namespace, selects, isFiltered } = selection;
  const revision = exact ?? (isCached ? cache.version() : cache.frontEnd.storage.revision);
  const all = cache.collection.listAt(revision).filter(({ metadata }) => namespace === '' || metadata.namespace === namespace);
  const rest = after === '' ? all : all.filter((object) => keyOf(object) > after);
  const selected = selects === undefined ? rest : rest.filter(selects);
  const items = limit > 0 ? selected.slice(0, limit) : selected;
  const leftCount = selected.length - items.length;
  // Without an index, a full page is followed by another page if any object remains, even if no remaining object matches.
  const last = leftCount > 0 || (limit > 0 && items.length === limit) ? items.at(-1) : undefined;
  const isMore = last !== undefined && (selection.isIndexed ? leftCount > 0 : rest.at(-1) !== last);
  return textOfList(kind, items, {
    resourceVersion: String(revision),
    ...(isMore && { continue: tokenOf(revision, keyOf(last)) }),
    ...(leftCount > 0 && !isFiltered && { remainingItemCount: leftCount }),
  });
}

/** Returns whether an index serves the query: the cache of pods has an index by node. */
function isIndexed(query: URLSearchParams): boolean {
  return /(?:^|,)spec\.nodeName==?[^=]/.test(query.get('fieldSelector') ?? '');
}

/** Returns the options of a query. Clients list the newest state, any state (version 0), or the next page. */
function listOptionsOf(query: URLSearchParams): ListOptions {
  const version = query.get('resourceVersion') ?? '';
  if (version !== '' && version !== '0') throw badRequest(`a list of resource version "${version}" is not modelled`);
  const size = query.get('limit') ?? '';
  if (!/^-?\d*$/.test(size)) throw badRequest(`strconv.ParseInt: parsing "${size}": invalid syntax`);
  const limit = Math.max(0, Number(size));
  const token = query.get('continue') ?? '';
  if (token !== '') {
    const { revision, after } = parseToken(token);
    return { ...(revision >= 0 && { exact: revision }), isCached: false, after, limit };
  }
  // With version 0, the watch cache answers and ignores the limit.
  return version === '0' ? { isCached: true, after: '', limit: 0 } : { isCached: false, after: '', limit };
}

/** Returns the refusal for a compacted revision. For a page it contains a token with which the list continues in the current state. */
function tooOld({ exact = 0, after }: ListOptions): Refusal {
  if (after === '') return expired(`The resourceVersion for the provided list is too old.`);
  const message =
    'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue ' +
    'parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token ' +
    'results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now ' +
    'may show up in the list.';
  return expired(message, exact > 0 ? { continue: tokenOf(-1, after) } : {});
}

/** Returns the continue token. As in the storage of etcd3, the next page begins after the last key. */
function tokenOf(revision: number, after: string): string {
  const text = JSON.stringify({ v: 'meta.k8s.io/v1', rv: revision, start: `${after}\u0000` });
  return Buffer.from(text).toString('base64url');
}

function parseToken(token: string): { readonly revision: number; readonly after: string } {
  try {
    const { rv, start } = JSON.parse(Buffer.from(token, 'base64url').toString()) as { readonly rv: number; readonly start: string };
    if (Number.isInteger(rv) && typeof start === 'string') return { revision: rv, after: start.slice(0, -1) };
  } catch {
    // Invalid JSON is rejected in the same way as missing fields.
  }
  throw badRequest('invalid continue token: continue key is not valid');
}

/** Returns the list as text. Items of built-in kinds have no apiVersion and kind, because the list has them. */
function textOfList(kind: ServedKind, items: readonly ModelObject[], metadata: object): string {
  const name = `"kind":"${kind.kind}List"`;
  const version = `"apiVersion":"${apiVersionOf(kind)}"`;
  const prefix = `{"kind":"${kind.kind}","apiVersion":"${apiVersionOf(kind)}",`;
  const texts = kind.isCustom ? items.map(textOf) : items.map((item) => `{${textOf(item).slice(prefix.length)}`);
  return `{${name},${version},"metadata":${JSON.stringify(metadata)},"items":[${texts.join(',')}]}`;
}
