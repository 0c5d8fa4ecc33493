// Implements lists of the API server: all pages of a list show the collection at one revision.
import type { WatchCache } from './front-end.ts';
import { apiVersionOf, type ServedKind } from './kinds.ts';
import { badRequest, expired, invalid, type Refusal } from './refusal.ts';
import type { ModelObject } from './request.ts';
import { labelRequirements, type Selection, selectionOf } from './selector.ts';
import { keyOf, textOf } from './store.ts';

interface ListOptions {
  /** The revision of the pages; undefined for the newest revision. */
  readonly exact: number | undefined;
  /** The oldest accepted revision for a read from the cache; undefined for a read from the storage. */
  readonly notOlderThan: number | undefined;
  /** The last key of the previous page; empty for the first page. */
  readonly after: string;
  /** The most items of a page; 0 means no limit. */
  readonly limit: number;
}

/** Returns the body of the answer, or a promise if the front end must catch up. Throws Refusal. */
export function listText(cache: WatchCache, kind: ServedKind, namespace: string, query: URLSearchParams): string | Promise<string> {
  // The label selector is parsed first, so that several errors are reported in the order of the API server.
  labelRequirements(query.get('labelSelector') ?? '');
  const given = listOptionsOf(query);
  const selection = selectionOf(kind, query);
  const options = selection.name === undefined ? given : ofOneName(given, query);
  const { storage } = cache.frontEnd;
  const page = (): string => pageText(cache, kind, options, { ...selection, namespace, isIndexed: isIndexed(query) });
  const { exact } = options;
  if (exact !== undefined && exact <= storage.revision && exact < storage.compacted) throw tooOld(options);
  const needed = exact !== undefined && exact > storage.revision ? exact : (options.notOlderThan ?? 0);
  if (needed === 0 || cache.version() >= needed) return page();
  return cache.reach(needed).then(page);
}

interface ListSelection extends Selection {
  /** The namespace; empty for all namespaces. */
  readonly namespace: string;
  readonly isIndexed: boolean;
}

function pageText(
  cache: WatchCache,
  kind: ServedKind,
  { exact, notOlderThan, after, limit }: ListOptions,
  selection: ListSelection,
): string {
  const { namespace, selects, isFiltered } = selection;
  const version = notOlderThan === undefined ? cache.frontEnd.storage.revision : cache.version();
  const revision = exact ?? version;
  const all = cache.collection.listAt(revision).filter(({ metadata }) => namespace === '' || metadata.namespace === namespace);
  const rest = after === '' ? all : all.filter((object) => keyOf(object) > after);
  const selected = selects === undefined ? rest : rest.filter(selects);
  const items = limit > 0 ? selected.slice(0, limit) : selected;
  const leftCount = selected.length - items.length;
  // After a full page another page follows, even if no further item matches, unless an index shows that.
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

/** Returns the options for a list of one name. Such a list has no pages, and a limit does not make its version exact. */
function ofOneName(options: ListOptions, query: URLSearchParams): ListOptions {
  const isExact = query.get('resourceVersionMatch') === 'Exact';
  return { ...options, limit: 0, exact: isExact ? options.exact : undefined };
}

function listOptionsOf(query: URLSearchParams): ListOptions {
  const version = query.get('resourceVersion') ?? '';
  const match = query.get('resourceVersionMatch') ?? '';
  const token = query.get('continue') ?? '';
  refuseMatch(match, version, token);
  const size = query.get('limit') ?? '';
  if (!/^-?\d*$/.test(size)) throw badRequest(`strconv.ParseInt: parsing "${size}": invalid syntax`);
  const limit = Math.max(0, Number(size));
  return token === '' ? optionsOfVersion(version, match, limit) : optionsOfNextPage(token, version, limit);
}

/** Returns the options for the next page of a list. */
function optionsOfNextPage(token: string, version: string, limit: number): ListOptions {
  if (version !== '' && version !== '0') throw badRequest('specifying resource version is not allowed when using continue');
  const { revision, after } = parseToken(token);
  return { exact: revision < 0 ? undefined : revision, notOlderThan: undefined, after, limit };
}

function optionsOfVersion(version: string, match: string, limit: number): ListOptions {
  if (!/^\d*$/.test(version)) {
    const why = `strconv.ParseUint: parsing "${version}": invalid syntax`;
    throw badRequest(`invalid resource version: resourceVersion: Invalid value: "${version}": ${why}`);
  }
  if (version === '') return { exact: undefined, notOlderThan: undefined, after: '', limit };
  const revision = Number(version);
  // With a limit and a version, but without a match parameter, the version is exact.
  const isExact = match === 'Exact' || (match === '' && limit > 0 && revision > 0);
  if (isExact) return { exact: revision, notOlderThan: undefined, after: '', limit };
  // With version 0, the watch cache ignores the limit.
  return { exact: undefined, notOlderThan: revision, after: '', limit: revision === 0 ? 0 : limit };
}

function refuseMatch(match: string, version: string, token: string): void {
  if (match === '') return;
  if (token !== '') throw wrongMatch('Forbidden: resourceVersionMatch is forbidden when continue is provided');
  if (version === '') throw wrongMatch('Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided');
  if (match === 'Exact' && version === '0') {
    throw wrongMatch('Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"');
  }
  if (match === 'Exact' || match === 'NotOlderThan') return;
  throw wrongMatch(`Unsupported value: "${match}": supported values: "Exact", "NotOlderThan", ""`, 'FieldValueNotSupported');
}

function wrongMatch(message: string, reason = 'FieldValueForbidden'): Refusal {
  return invalid({ group: 'meta.k8s.io', kind: 'ListOptions' }, '', [{ reason, message, field: 'resourceVersionMatch' }]);
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
  const prefix = prefixOf(kind);
  const texts = kind.isCustom ? items.map(textOf) : items.map((item) => `{${textOf(item).slice(prefix.length)}`);
  return `{${name},${version},"metadata":${JSON.stringify(metadata)},"items":[${texts.join(',')}]}`;
}

/** Returns the beginning of the text of every object of the kind. */
function prefixOf(kind: ServedKind): string {
  return `{"kind":"${kind.kind}","apiVersion":"${apiVersionOf(kind)}",`;
}
