// Lists: all of a collection as of one version, in pages that tell of the same moment.
import type { WatchCache } from './front-end.ts';
import { apiVersionOf, type ServedKind } from './kinds.ts';
import { badRequest, expired, invalid, type Refusal } from './refusal.ts';
import type { ModelObject } from './request.ts';
import { labelRequirements, selectionOf } from './selector.ts';
import { keyOf, textOf } from './store.ts';

interface Wanted {
  /** Revision of the pages; undefined for the newest one. */
  readonly exact: number | undefined;
  /** At least this one, from the cache; undefined when the storage is asked. */
  readonly notOlderThan: number | undefined;
  /** The key after which the page begins; empty for the first page. */
  readonly after: string;
  /** 0 for everything. */
  readonly limit: number;
}

/** The body of the answer; a promise when the front end has to see more first. Throws Refusal. */
export function listText(cache: WatchCache, kind: ServedKind, namespace: string, query: URLSearchParams): string | Promise<string> {
  // In the order in which the server takes a query apart.
  labelRequirements(query.get('labelSelector') ?? '');
  const asked = wantedOf(query);
  const selection = selectionOf(kind, query);
  const wanted = selection.name === undefined ? asked : ofOneName(asked, query);
  const { storage } = cache.frontEnd;
  const page = (): string => {
    const version = wanted.notOlderThan === undefined ? storage.revision : cache.version();
    const revision = wanted.exact ?? version;
    const all = cache.collection.listAt(revision).filter(({ metadata }) => namespace === '' || metadata.namespace === namespace);
    const rest = wanted.after === '' ? all : all.filter((object) => keyOf(object) > wanted.after);
    const selected = selection.selects === undefined ? rest : rest.filter(selection.selects);
    const items = wanted.limit > 0 ? selected.slice(0, wanted.limit) : selected;
    const leftCount = selected.length - items.length;
    // What follows the last of a full page may be of no interest: that is found out on the next one, unless an index knows.
    const last = leftCount > 0 || (wanted.limit > 0 && items.length === wanted.limit) ? items.at(-1) : undefined;
    const isMore = last !== undefined && (isIndexed(query) ? leftCount > 0 : rest.at(-1) !== last);
    return textOfList(kind, items, {
      resourceVersion: String(revision),
      ...(isMore && { continue: tokenOf(revision, keyOf(last)) }),
      ...(leftCount > 0 && !selection.isFiltered && { remainingItemCount: leftCount }),
    });
  };
  const { exact } = wanted;
  if (exact !== undefined && exact <= storage.revision && exact < storage.compacted) throw tooOld(wanted);
  const needed = exact !== undefined && exact > storage.revision ? exact : (wanted.notOlderThan ?? 0);
  if (needed === 0 || cache.version() >= needed) return page();
  return cache.reach(needed).then(page);
}

/** Caches of pods know them by node; the fields of other kinds do not have this one. */
function isIndexed(query: URLSearchParams): boolean {
  return /(?:^|,)spec\.nodeName==?[^=]/.test(query.get('fieldSelector') ?? '');
}

/** One key is read, of which there are no pages; a limit does not make the version an exact one either. */
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
  if (token !== '') {
    if (version !== '' && version !== '0') throw badRequest('specifying resource version is not allowed when using continue');
    const { revision, after } = parseToken(token);
    return { exact: revision < 0 ? undefined : revision, notOlderThan: undefined, after, limit };
  }
  if (!/^\d*$/.test(version)) {
    const why = `strconv.ParseUint: parsing "${version}": invalid syntax`;
    throw badRequest(`invalid resource version: resourceVersion: Invalid value: "${version}": ${why}`);
  }
  if (version === '') return { exact: undefined, notOlderThan: undefined, after: '', limit };
  const revision = Number(version);
  // A limit with a version and no word on how to match it has always meant that version.
  const isExact = match === 'Exact' || (match === '' && limit > 0 && revision > 0);
  if (isExact) return { exact: revision, notOlderThan: undefined, after: '', limit };
  // Of any version, the watch cache answers everything at once.
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

/** The page of a snapshot that is gone comes with a token that goes on from where it was, in whatever is there now. */
function tooOld({ exact = 0, after }: Wanted): Refusal {
  if (after === '') return expired(`The resourceVersion for the provided list is too old.`);
  const message =
    'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue ' +
    'parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token ' +
    'results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now ' +
    'may show up in the list.';
  return expired(message, exact > 0 ? { continue: tokenOf(-1, after) } : {});
}

/** As etcd3 storage writes them: where the next page begins is right after the last key. */
function tokenOf(revision: number, after: string): string {
  const text = JSON.stringify({ v: 'meta.k8s.io/v1', rv: revision, start: `${after}\u0000` });
  return Buffer.from(text).toString('base64url');
}

function parseToken(token: string): { readonly revision: number; readonly after: string } {
  try {
    const { rv, start } = JSON.parse(Buffer.from(token, 'base64url').toString()) as { readonly rv: number; readonly start: string };
    if (Number.isInteger(rv) && typeof start === 'string') return { revision: rv, after: start.slice(0, -1) };
  } catch {
    // What is no JSON is refused as what lacks its fields.
  }
  throw badRequest('invalid continue token: continue key is not valid');
}

/** Items of Kubernetes' own kinds come without apiVersion and kind, for the list says them. */
function textOfList(kind: ServedKind, items: readonly ModelObject[], metadata: object): string {
  const name = `"kind":"${kind.kind}List"`;
  const version = `"apiVersion":"${apiVersionOf(kind)}"`;
  const prefix = prefixOf(kind);
  const texts = kind.isCustom ? items.map(textOf) : items.map((item) => `{${textOf(item).slice(prefix.length)}`);
  return `{${name},${version},"metadata":${JSON.stringify(metadata)},"items":[${texts.join(',')}]}`;
}

/** How the text of every stored object of the kind begins. */
function prefixOf(kind: ServedKind): string {
  return `{"kind":"${kind.kind}","apiVersion":"${apiVersionOf(kind)}",`;
}
