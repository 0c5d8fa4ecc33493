// A small API server in memory, for virtual time: versions, preconditions, merge patches, pages, watches with history and bookmarks.
import { type Serve, type Served, type ServedRequest, status, VirtualWatch } from './virtual-env.ts';

export interface FakeObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly uid?: string;
    readonly resourceVersion?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly [field: string]: unknown;
  };
  readonly [field: string]: unknown;
}

interface Place {
  /** Path of the collection in all namespaces. */
  readonly collection: string;
  readonly namespace: string;
  readonly name: string | undefined;
  readonly subresource: string | undefined;
}

interface Event {
  readonly revision: number;
  readonly collection: string;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: FakeObject;
  /** Before the change; a selector decides by both. */
  readonly before?: FakeObject;
}

interface Listener {
  readonly place: Place;
  readonly selector: string | null;
  readonly watch: VirtualWatch;
}

export class FakeApi {
  #revision = 100;
  #compacted = 0;
  #uids = 0;
  readonly #objects = new Map<string, FakeObject>();
  readonly #events: Event[] = [];
  readonly #listeners = new Set<Listener>();

  readonly serve: Serve = (request) => this.#answer(request);

  get revision(): number {
    return this.#revision;
  }

  /** Of a collection such as `/api/v1/pods`, sorted by namespace and name. */
  list(collection: string, namespace = ''): readonly FakeObject[] {
    const inside = `${collection} ${namespace}`;
    const keys = [...this.#objects.keys()].filter((key) =>
      namespace === '' ? key.startsWith(`${collection} `) : key.startsWith(`${inside} `),
    );
    return keys.sort().flatMap((key) => this.#objects.get(key) ?? []);
  }

  get(collection: string, namespace: string, name: string): FakeObject | undefined {
    return this.#objects.get(keyOf({ collection, namespace, name }));
  }

  /** Creates or changes an object, as somebody else would. */
  put(collection: string, object: FakeObject): FakeObject {
    const { namespace = '', name } = object.metadata;
    return this.#store({ collection, namespace, name }, object);
  }

  remove(collection: string, namespace: string, name: string): void {
    const before = this.get(collection, namespace, name);
    if (before === undefined) return;
    this.#revision++;
    this.#objects.delete(keyOf({ collection, namespace, name }));
    const object = { ...before, metadata: { ...before.metadata, resourceVersion: String(this.#revision) } };
    this.#tell({ revision: this.#revision, collection, type: 'DELETED', object, before });
  }

  /** Forgets the history: watches and pages of before cannot go on. */
  compact(): void {
    this.#compacted = this.#revision;
    this.#events.length = 0;
  }

  sendBookmarks(): void {
    for (const { watch } of this.#listeners) watch.bookmark(String(this.#revision));
  }

  cutWatches(reason?: string): void {
    for (const { watch } of [...this.#listeners]) watch.end(reason);
  }

  #answer(request: ServedRequest): Served {
    const place = placeOf(request.pathname);
    if (place === undefined) return status(404, '', '404 page not found');
    if (request.isStream) return this.#watch(request, place);
    switch (request.method) {
      case 'GET':
        return place.name === undefined ? this.#list(request, place) : this.#found(place, (object) => ({ status: 200, body: object }));
      case 'POST':
        return place.subresource === 'eviction' ? this.#delete(place, request) : this.#create(place, request.json as FakeObject);
      case 'PUT':
        return this.#change(place, request.json as FakeObject, () => request.json as FakeObject);
      case 'PATCH':
        return this.#change(place, request.json as FakeObject, (object) => mergePatch(object, request.json) as FakeObject);
      case 'DELETE':
        return this.#delete(place, request);
      default:
        return request.method satisfies never;
    }
  }

  #list(request: ServedRequest, place: Place): Served {
    const [revision = this.#revision, from = 0] = (request.query.get('continue') ?? '').split('.').filter(Boolean).map(Number);
    if (revision < this.#compacted) return status(410, 'Expired', 'the continue token is too old');
    const limit = Number(request.query.get('limit') ?? 0) || Number.POSITIVE_INFINITY;
    const all = this.list(place.collection, place.namespace).filter((object) => fits(object, request.query.get('labelSelector')));
    const next = from + limit < all.length ? `${revision}.${from + limit}` : '';
    const metadata = { resourceVersion: String(revision), ...(next === '' ? {} : { continue: next }) };
    return { status: 200, body: { kind: 'List', apiVersion: 'v1', metadata, items: all.slice(from, from + limit) } };
  }

  #watch(request: ServedRequest, place: Place): Served {
    const from = Number(request.query.get('resourceVersion'));
    const watch = new VirtualWatch();
    if (from < this.#compacted) {
      watch.send({ type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired', message: `too old resource version: ${from}` } });
      watch.end();
      return { watch };
    }
    const listener = { place, selector: request.query.get('labelSelector'), watch };
    for (const event of this.#events) if (event.revision > from) deliver(listener, event);
    this.#listeners.add(listener);
    watch.onOver(() => this.#listeners.delete(listener));
    return { watch };
  }

  #create(place: Place, object: FakeObject): Served {
    const at = { ...place, name: object.metadata.name };
    if (this.#objects.has(keyOf(at))) return status(409, 'AlreadyExists', `"${at.name}" already exists`);
    return { status: 201, body: this.#store(at, object) };
  }

  #change(place: Place, asked: FakeObject, to: (object: FakeObject) => FakeObject): Served {
    return this.#found(place, (object) => {
      const conflict = conflictOf(object, asked.metadata);
      return conflict ?? { status: 200, body: this.#store({ ...place, name: object.metadata.name }, to(object)) };
    });
  }

  #delete(place: Place, { json }: ServedRequest): Served {
    const body = (json ?? {}) as { preconditions?: Preconditions; deleteOptions?: { preconditions?: Preconditions } };
    return this.#found(place, (object) => {
      const conflict = conflictOf(object, body.preconditions ?? body.deleteOptions?.preconditions ?? {});
      if (conflict !== undefined) return conflict;
      this.remove(place.collection, place.namespace, object.metadata.name);
      return { status: 200, body: { kind: 'Status', status: 'Success' } };
    });
  }

  #found(place: Place, then: (object: FakeObject) => Served): Served {
    const object = this.#objects.get(keyOf(place));
    return object === undefined ? status(404, 'NotFound', `"${place.name}" not found`, { name: place.name }) : then(object);
  }

  #store(
    { collection, namespace, name }: Pick<Place, 'collection' | 'namespace'> & { readonly name: string },
    object: FakeObject,
  ): FakeObject {
    const key = keyOf({ collection, namespace, name });
    const before = this.#objects.get(key);
    this.#revision++;
    const uid = before?.metadata.uid ?? `uid-${++this.#uids}`;
    const inside = namespace === '' ? {} : { namespace };
    const stored = { ...object, metadata: { ...object.metadata, name, ...inside, uid, resourceVersion: String(this.#revision) } };
    this.#objects.set(key, stored);
    const type = before === undefined ? 'ADDED' : 'MODIFIED';
    this.#tell({ revision: this.#revision, collection, type, object: stored, ...(before === undefined ? {} : { before }) });
    return stored;
  }

  #tell(event: Event): void {
    this.#events.push(event);
    for (const listener of this.#listeners) deliver(listener, event);
  }
}

interface Preconditions {
  readonly uid?: string;
  readonly resourceVersion?: string;
}

function conflictOf({ metadata }: FakeObject, { uid, resourceVersion }: Preconditions): Served | undefined {
  const isSame = (uid ?? metadata.uid) === metadata.uid && (resourceVersion ?? metadata.resourceVersion) === metadata.resourceVersion;
  return isSame ? undefined : status(409, 'Conflict', 'the object has been modified', { name: metadata.name });
}

/** What leaves a selection is deleted for whoever watches it, and what enters it is added. */
function deliver({ place, selector, watch }: Listener, { collection, type, object, before }: Event): void {
  if (collection !== place.collection || (place.namespace !== '' && object.metadata.namespace !== place.namespace)) return;
  const was = before !== undefined && fits(before, selector);
  const is = type !== 'DELETED' && fits(object, selector);
  if (is) watch.send({ type: was ? 'MODIFIED' : 'ADDED', object });
  else if (was) watch.deleted({ ...before, metadata: { ...before.metadata, resourceVersion: object.metadata.resourceVersion } });
}

/** Equality only: `a=b,c=d`. */
function fits({ metadata }: FakeObject, selector: string | null): boolean {
  return (selector ?? '')
    .split(',')
    .filter(Boolean)
    .every((part) => {
      const [key = '', value = ''] = part.split('=');
      return metadata.labels?.[key] === value;
    });
}

function placeOf(pathname: string): Place | undefined {
  const parts = pathname.split('/').filter(Boolean).map(decodeURIComponent);
  const root = parts.splice(0, parts[0] === 'api' ? 2 : 3);
  const hasNamespace = parts[0] === 'namespaces' && parts.length > 2;
  const namespace = hasNamespace ? (parts.splice(0, 2)[1] ?? '') : '';
  const [plural, name, subresource] = parts;
  if (plural === undefined) return undefined;
  return { collection: `/${root.join('/')}/${plural}`, namespace, name, subresource };
}

function keyOf({ collection, namespace, name }: { collection: string; namespace: string; name: string | undefined }): string {
  return `${collection} ${namespace} ${name}`;
}

/** RFC 7386. */
function mergePatch(target: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
  const merged: Record<string, unknown> = typeof target === 'object' && target !== null && !Array.isArray(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete merged[key];
    else merged[key] = mergePatch(merged[key], value);
  }
  return merged;
}
