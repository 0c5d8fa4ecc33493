// Reads one object, or a whole collection in pages. The API server answers with the current state, not with a stale cache.
import type { ClusterEnv } from '../env.ts';
import { ApiFailure, isStatus, TransportFailure } from './failure.ts';
import { isJsonObject, type JsonObject, parseJson } from './json.ts';
import { apiVersionOf, collectionPath, type KubernetesObject, objectPath, type Resource } from './resource.ts';

const defaultTimeoutMs = 30_000;
/** The number of objects per page: half as many as in kubectl, so that a page of large pods is about 3 MiB of text. */
const pageSize = 250;
/** The maximum number of restarts of a list whose continue token expired. */
const restarts = 3;

interface ReadOptions {
  readonly site: string;
  readonly timeoutMs?: number;
}

interface ListOptions extends ReadOptions {
  /** The namespace to list; all namespaces if absent. */
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

interface ListResult<Item> {
  readonly items: readonly Item[];
  /** The version of the collection: a watch from this version misses no change. */
  readonly resourceVersion: string;
}

/** Returns an object as it is now; undefined if it does not exist. Rejects with ApiFailure or TransportFailure. */
export async function getObject(
  env: Pick<ClusterEnv, 'kubernetes'>,
  resource: Resource,
  target: { readonly namespace?: string | undefined; readonly name: string },
  { site, timeoutMs = defaultTimeoutMs, subresource }: ReadOptions & { readonly subresource?: string },
): Promise<KubernetesObject | undefined> {
  const response = await env.kubernetes.request({ method: 'GET', path: objectPath(resource, target, subresource), timeoutMs, site });
  if (response.status === 200) return named(parseBody(response.body, site), resource, site);
  const failure = new ApiFailure(response, site);
  if (response.status === 404 && !isResourceMissing(failure)) return undefined;
  throw failure;
}

/** Returns every object of a collection at one moment, never a part. Rejects with ApiFailure or TransportFailure. */
export function listObjects(
  env: Pick<ClusterEnv, 'kubernetes'>,
  resource: Resource,
  options: ListOptions,
): Promise<ListResult<KubernetesObject>> {
  return listProjected(env, resource, { ...options, project: (object) => object });
}

/** Lists like `listObjects`, but keeps only the projection of each object, so that memory holds one page. Rejects if `project` throws. */
export async function listProjected<Item>(
  env: Pick<ClusterEnv, 'kubernetes'>,
  resource: Resource,
  options: ListOptions & { readonly project: (object: KubernetesObject) => Item },
): Promise<ListResult<Item>> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await listOnce(env, resource, options);
    } catch (error) {
      // The server has compacted the snapshot of the list, so no further page fits the pages read so far.
      if (!isStatus(error, 410) || attempt === restarts) throw error;
    }
  }
}

async function listOnce<Item>(
  env: Pick<ClusterEnv, 'kubernetes'>,
  resource: Resource,
  options: ListOptions & { readonly project: (object: KubernetesObject) => Item },
): Promise<ListResult<Item>> {
  const { site, timeoutMs = defaultTimeoutMs } = options;
  const items: Item[] = [];
  let token = '';
  for (;;) {
    const query = selectorQuery(options);
    query.set('limit', String(pageSize));
    if (token !== '') query.set('continue', token);
    const path = `${collectionPath(resource, options.namespace)}?${query}`;
    const response = await env.kubernetes.request({ method: 'GET', path, timeoutMs, site });
    if (response.status !== 200) throw new ApiFailure(response, site);
    const page = pageOf(response.body, resource, site);
    for (const object of page.items) items.push(options.project(object));
    if (page.token === '') return { items, resourceVersion: page.resourceVersion };
    if (page.token === token) throw malformed(site, 'the continue token did not change');
    token = page.token;
  }
}

export function selectorQuery({ labelSelector, fieldSelector }: Pick<ListOptions, 'labelSelector' | 'fieldSelector'>): URLSearchParams {
  const query = new URLSearchParams();
  if (labelSelector !== undefined) query.set('labelSelector', labelSelector);
  if (fieldSelector !== undefined) query.set('fieldSelector', fieldSelector);
  return query;
}

/** Returns the object with apiVersion and kind, which items of lists lack. Throws TransportFailure if it has no name. */
export function named(value: unknown, resource: Resource, site: string): KubernetesObject {
  if (!isJsonObject(value) || !isJsonObject(value['metadata']) || typeof value['metadata']['name'] !== 'string') {
    throw malformed(site, 'an object has no name');
  }
  const { apiVersion, kind, ...rest } = value;
  return {
    apiVersion: typeof apiVersion === 'string' ? apiVersion : apiVersionOf(resource),
    kind: typeof kind === 'string' ? kind : resource.kind,
    ...(rest as JsonObject & Pick<KubernetesObject, 'metadata'>),
  };
}

/** Returns the JSON object in a body. Throws TransportFailure for anything else. */
export function parseBody(body: string, site: string): JsonObject {
  let value: unknown;
  try {
    value = parseJson(body);
  } catch (cause) {
    throw malformed(site, 'it is not JSON', cause);
  }
  if (!isJsonObject(value)) throw malformed(site, 'it is not a JSON object');
  return value;
}

interface Page {
  /** The objects of the page. They can be iterated once. */
  readonly items: Iterable<KubernetesObject>;
  readonly resourceVersion: string;
  readonly token: string;
}

/** Parses a page. Throws for a list without items: an empty list would mean that everything was deleted. */
function pageOf(body: string, resource: Resource, site: string): Page {
  const split = splitList(body);
  const list = parseBody(split?.list ?? body, site);
  const { items, metadata } = list;
  // Go sometimes encodes an empty list as null.
  const entries = items === null ? [] : items;
  if (!Array.isArray(entries) || !isJsonObject(metadata)) throw malformed(site, 'it is not a list');
  if (typeof list['kind'] === 'string' && !list['kind'].endsWith('List')) throw malformed(site, `it is a ${list['kind']}, not a list`);
  const { resourceVersion, continue: token = '' } = metadata;
  if (typeof resourceVersion !== 'string' || resourceVersion === '') throw malformed(site, 'the list has no resourceVersion');
  if (typeof token !== 'string') throw malformed(site, 'its continue token is not a string');
  return { items: eachItem(body, split?.items ?? [], entries, { resource, site }), resourceVersion, token };
}

function* eachItem(
  body: string,
  places: ListText['items'],
  entries: readonly unknown[],
  { resource, site }: { readonly resource: Resource; readonly site: string },
): Generator<KubernetesObject> {
  for (const item of entries) yield named(item, resource, site);
  for (const [begin, end] of places) yield named(parseBody(body.slice(begin, end), site), resource, site);
}

/** Returns whether a 404 means that the server does not serve the resource. For a missing object, the Status has its name in `details`. */
function isResourceMissing(failure: ApiFailure): boolean {
  return failure.reason !== 'NotFound' || typeof failure.details['name'] !== 'string';
}

function malformed(site: string, what: string, cause?: unknown): TransportFailure {
  return new TransportFailure(`the answer of the API server is malformed: ${what}`, { site, mayBeApplied: true, cause });
}

interface ListText {
  /** The text of the list, with an empty array of items. */
  readonly list: string;
  readonly items: readonly (readonly [begin: number, end: number])[];
}

const mark = /["{}[\]]/g;
const backslash = 0x5c;

/**
 * Splits the text of a list into its items, because a page that is parsed at once needs several times its text in memory. Returns undefined
 * if the text has no array `items` of objects or is incomplete. The items may still be invalid JSON.
 */
export function splitList(text: string): ListText | undefined {
  const scan = new ListScan(text);
  mark.lastIndex = 0;
  for (let found = mark.exec(text); found !== null; found = mark.exec(text)) {
    const at = found.index;
    if (text[at] === '"') {
      const end = stringEnd(text, at);
      if (end === undefined) return undefined;
      scan.readString(at, end);
      mark.lastIndex = end;
    } else if (text[at] === '{' || text[at] === '[') {
      if (!scan.open(at)) return undefined;
    } else if (scan.close(at)) return scan.list(at);
  }
  return undefined;
}

/** Follows the brackets of a list, whose items are at depth 3. */
class ListScan {
  readonly #text: string;
  readonly #items: (readonly [number, number])[] = [];
  #depth = 0;
  /** True if the last string at depth 1 was the key `items`. */
  #isItemsKey = false;
  #arrayAt = -1;
  #beginAt = -1;
  #endAt = -1;

  constructor(text: string) {
    this.#text = text;
  }

  readString(at: number, end: number): void {
    if (this.#depth === 1) this.#isItemsKey = this.#text.slice(at, end) === '"items"';
  }

  /** Records an opening bracket. Returns false if the text is not a list of objects. */
  open(at: number): boolean {
    this.#depth += 1;
    if (this.#depth === 2 && this.#isItemsKey) {
      this.#arrayAt = at;
      this.#endAt = at + 1;
      return this.#text[at] === '[';
    }
    if (this.#depth === 3 && this.#arrayAt >= 0) {
      this.#beginAt = at;
      return isSeparator(this.#text.slice(this.#endAt, at), this.#items.length > 0);
    }
    return true;
  }

  /** Records a closing bracket. Returns true if the array of the items ends with it. */
  close(at: number): boolean {
    this.#depth -= 1;
    if (this.#arrayAt < 0) return false;
    if (this.#depth === 2) {
      this.#endAt = at + 1;
      this.#items.push([this.#beginAt, this.#endAt]);
    }
    return this.#depth === 1;
  }

  /** Returns the list; undefined if other text than space is between its last item and the end of the array. */
  list(at: number): ListText | undefined {
    if (this.#text.slice(this.#endAt, at).trim() !== '') return undefined;
    return { list: `${this.#text.slice(0, this.#arrayAt)}[]${this.#text.slice(at + 1)}`, items: this.#items };
  }
}

/** Returns the index after the closing quote of the string that begins at `at`. */
function stringEnd(text: string, at: number): number | undefined {
  for (let end = text.indexOf('"', at + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text.charCodeAt(end - 1 - slashes) === backslash) slashes += 1;
    if (slashes % 2 === 0) return end + 1;
  }
  return undefined;
}

/** Reports whether the text between two items contains nothing except the comma and space. Other text would be lost. */
function isSeparator(text: string, isComma: boolean): boolean {
  return text.trim() === (isComma ? ',' : '');
}
