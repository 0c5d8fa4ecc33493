// Implements lists: a collection at one version, in pages of the same version.
import type { WatchCache } from './front-end.ts';
import { apiVersionOf, type ServedKind } from './kinds.ts';
import { badRequest, expired, invalid, type Refusal } from './refusal.ts';
import type { ModelObject } from './request.ts';
import { labelRequirements, type Selection, selectionOf } from './selector.ts';
import { keyOf, textOf } from './store.ts';

interface Wanted {
  /** Revision of the pages; undefined for the newest one. */
  readonly exact: number | undefined;
  /** Oldest acceptable revision, from the cache; undefined reads the storage. */
  readonly notOlderThan: number | undefined;
  /** The key before the page; empty for the first page. */
  readonly after: string;
  /** 0 means no limit. */
  readonly limit: number;
}

/** Returns the body; a promise if the front end must catch up. Throws Refusal. */
export function listText(cache: WatchCache, kind: ServedKind, namespace: string, query: URLSearchParams): string | Promise<string> {
  // In the server's order of query parameters.
  labelRequirements(query.get('labelSelector') ?? '');
  const asked = wantedOf(query);
  const selection = selectionOf(kind, query);
  const wanted = selection.name === undefined ? asked : ofOneName(asked, query);
  const { storage } = cache.frontEnd;
  const page = (): string => pageText(cache, kind, wanted, { ...selection, namespace, isIndexed: isIndexed(query) });
  const { exact } = wanted;
  if (exact !== undefined && exact <= storage.revision && exact < storage.compacted) throw tooOld(wanted);
  const needed = exact !== undefined && exact > storage.revision ? exact : (wanted.notOlderThan ?? 0);
  if (needed === 0 || cache.version() >= needed) return page();
  return cache.reach(needed).then(page);
}

interface ListSelection extends Selection {
  /** Empty for all namespaces. */
  readonly namespace: string;
  readonly isIndexed: boolean;
}

function pageText(cache: WatchCache, kind: ServedKind, { exact, notOlderThan, after, limit }: Wanted, selection: ListSelection): string {
  const { namespace, selects, isFiltered } = selection;
  const version = notOlderThan === undefined ? cache.frontEnd.storage.revision : cache.version();
  const revision = exact ?? version;
  const all = cache.collection.listAt(revision).filter(({ metadata }) => namespace === '' || metadata.namespace === namespace);
  const rest = after === '' ? all : all.filter((object) => keyOf(object) > after);
  const selected = selects === undefined ? rest : rest.filter(selects);
  const items = limit > 0 ? selected.slice(0, limit) : selected;
  const leftCount = selected.length - items.length;
  // Items after a full page may not match: the next page shows it, unless an index knows.
  const last = leftCount > 0 || (limit > 0 && items.length === limit) ? items.at(-1) : undefined;
  const isMore = last !== undefined && (selection.isIndexed ? leftCount > 0 : rest.at(-1) !== last);
  return textOfList(kind, items, {
    resourceVersion: String(revision),
    ...(isMore && { continue: tokenOf(revision, keyOf(last)) }),
    ...(leftCount > 0 && !isFiltered && { remainingItemCount: leftCount }),
  });
}

/** Caches of pods have an index by node; other kinds do not have this field. */
function isIndexed(query: URLSearchParams): boolean {
  return /(?:^|,)spec\.nodeName==?[^=]/.test(query.get('fieldSelector') ?? '');
}

/** A read of one key has no pages; a limit does not make its version exact. */
function ofOneName(wanted: Wanted, query: URLSearchParams): Wanted {
  const isExact = query.get('resourceVersionMatch') === 'Exact';
  return { ...wanted, limit: 0, exact: isExact ? wanted.exact : undefined };
}

function wantedOf(query: URLSearchParams): Wanted {
  const version = query.get('resourceVersion') ?? '';
  const match = query.get('resourceVersionMatch') ?? '';
  const token = query.get('continue') ?? '';
  refuseMatch(match, version, token);
  const size = query.get('limit') ?? '';
  if (!/^-?\d*$/.test(size)) throw badRequest(`strconv.ParseInt: parsing "${size}": invalid syntax`);
  const limit = Math.max(0, Number(size));
  return token === '' ? wantedVersion(version, match, limit) : wantedPage(token, version, limit);
}

/** The next page of a list. */
function wantedPage(token: string, version: string, limit: number): Wanted {
  if (version !== '' && version !== '0') throw badRequest('specifying resource version is not allowed when using continue');
  const { revision, after } = parseToken(token);
  return { exact: revision < 0 ? undefined : revision, notOlderThan: undefined, after, limit };
}

function wantedVersion(version: string, match: string, limit: number): Wanted {
  if (!/^\d*$/.test(version)) {
    const why = `strconv.ParseUint: parsing "${version}": invalid syntax`;
    throw badRequest(`invalid resource version: resourceVersion: Invalid value: "${version}": ${why}`);
  }
  if (version === '') return { exact: undefined, notOlderThan: undefined, after: '', limit };
  const revision = Number(version);
  // A limit with a version and without a match parameter means exactly that version.
  const isExact = match === 'Exact' || (match === '' && limit > 0 && revision > 0);
  if (isExact) return { exact: revision, notOlderThan: undefined, after: '', limit };
  // For any version, the watch cache returns everything at once.
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

/** A page of an expired snapshot returns a token that continues in the current state. */
function tooOld({ exact = 0, after }: Wanted): Refusal {
  if (after === '') return expired(`The resourceVersion for the provided list is too old.`);
  const message =
    'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue ' +
    'parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token ' +
    'results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now ' +
    'may show up in the list.';
  return expired(message, exact > 0 ? { continue: tokenOf(-1, after) } : {});
}

/** As in etcd3 storage: the next page begins after the last key. */
function tokenOf(revision: number, after: string): string {
  const text = JSON.stringify({ v: 'meta.k8s.io/v1', rv: revision, start: `${after}\u0000` });
  return Buffer.from(text).toString('base64url');
}

function parseToken(token: string): { readonly revision: number; readonly after: string } {
  try {
    const { rv, start } = JSON.parse(Buffer.from(token, 'base64url').toString()) as { readonly rv: number; readonly start: string };
    if (Number.isInteger(rv) && typeof start === 'string') return { revision: rv, after: start.slice(0, -1) };
  } catch {
    // Invalid JSON is refused like missing fields.
  }
  throw badRequest('invalid continue token: continue key is not valid');
}

/** Items of built-in kinds have no apiVersion and kind, because the list has them. */
function textOfList(kind: ServedKind, items: readonly ModelObject[], metadata: object): string {
  const name = `"kind":"${kind.kind}List"`;
  const version = `"apiVersion":"${apiVersionOf(kind)}"`;
  const prefix = prefixOf(kind);
  const texts = kind.isCustom ? items.map(textOf) : items.map((item) => `{${textOf(item).slice(prefix.length)}`);
  return `{${name},${version},"metadata":${JSON.stringify(metadata)},"items":[${texts.join(',')}]}`;
}

/** Beginning of every stored text of the kind. */
function prefixOf(kind: ServedKind): string {
  return `{"kind":"${kind.kind}","apiVersion":"${apiVersionOf(kind)}",`;
}
