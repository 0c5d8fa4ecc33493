// Serves the requests to the model of the API server: parses the path, authorises, executes, answers, and tells the observers.

import { objectIn, optionalJson, patchIn } from './body.ts';
import { deleteOptionsOf, dryRunCauses, remove } from './deletion.ts';
import { discover } from './discovery.ts';
import type { FrontEnd } from './front-end.ts';
import { objectOf } from './json.ts';
import { hasSubresource, resourceOf, type ServedKind } from './kinds.ts';
import { listText } from './list.ts';
import {
  answer,
  badRequest,
  forbidden,
  invalid,
  methodNotAllowed,
  noSuchResource,
  notFound,
  pageNotFound,
  Refusal,
  refused,
} from './refusal.ts';
import type { Actor, Answered, Json, ModelRequest, ModelResponse, ModelWatch, WatchSink } from './request.ts';
import { selectionOf } from './selector.ts';
import { textOf } from './store.ts';
import { evict, readScale, writeScale } from './subresources.ts';
import { openWatch } from './watch.ts';
import { type Core, create, patch, refuseOtherKind, replace } from './write.ts';

interface RequestsOptions {
  readonly core: Core;
  readonly kinds: readonly ServedKind[];
  /** Returns a random number from 0 to 1. Each watch gets a new number. */
  readonly chance: () => number;
  readonly nowMs: () => number;
  readonly answered: (answered: Answered) => void;
}

interface RoutedRequest {
  readonly request: ModelRequest;
  readonly address: Address;
  readonly route: Route;
  readonly frontEnd: FrontEnd;
  /** The values that observers receive. The execution of the request completes them. */
  readonly report: Report;
}

/** The name of the object, and whether the request is a dry run, as far as they are known. */
interface Report {
  name: string;
  isDryRun: boolean;
}

export class Requests {
  /** The denied permissions as `verb resource[/subresource]`. `*` is any verb. */
  readonly forbidden = new Set<string>();
  readonly #options: RequestsOptions;
  readonly #kinds: KindIndex;
  readonly #routes = new Map<string, Route>();
  /** The requester of the current request, and the revisions that the request committed. */
  #current: { readonly actor: Actor | undefined; readonly revisions: number[] } = { actor: undefined, revisions: [] };

  constructor(options: RequestsOptions) {
    this.#options = options;
    this.#kinds = indexOf(options.kinds);
    options.core.storage.onCommit(({ revision, actor }) => {
      if (actor === this.#current.actor) this.#current.revisions.push(revision);
    });
  }

  handle(request: ModelRequest, frontEnd: FrontEnd): ModelResponse {
    const address = addressOf(request.path);
    let route: Route | undefined;
    try {
      const found = request.method === 'GET' ? discover(this.#options.kinds, address.path, request.accept ?? '') : undefined;
      if (found !== undefined) return found;
      route = this.#routeOf(address, request.method);
    } catch (error) {
      return refusedBy(error);
    }
    if (route === undefined) return pageNotFound;
    const routed = { request, address, route, frontEnd, report: { name: route.name, isDryRun: false } };
    const outer = this.#current;
    const revisions: number[] = [];
    this.#current = { actor: request.actor, revisions };
    let response: ModelResponse;
    try {
      this.#permit(routed);
      response = this.#serve(routed);
    } catch (error) {
      response = refusedBy(error);
    } finally {
      this.#current = outer;
    }
    return this.#reportAnswer(routed, response, revisions);
  }

  watch(request: ModelRequest, frontEnd: FrontEnd, sink: WatchSink): ModelWatch | ModelResponse {
    const address = addressOf(request.path);
    try {
      const route = this.#routeOf(address, request.method);
      if (route === undefined) return pageNotFound;
      if (route.verb !== 'watch') throw badRequest('the request asks for no watch');
      this.#permit({ request, route });
      const { kind, namespace } = route;
      const { selects } = selectionOf(kind, address.query);
      const options = { kind, namespace, query: address.query, selects, chance: this.#options.chance() };
      return openWatch(frontEnd.cache(resourceOf(kind)), options, sink);
    } catch (error) {
      return refusedBy(error);
    }
  }

  /** Returns the route of a path from a cache. Paths that are rejected or have a query are parsed each time. */
  #routeOf(address: Address, method: ModelRequest['method']): Route | undefined {
    if (address.query.size > 0) return routeOf(address, method, this.#kinds);
    const key = `${method} ${address.path}`;
    const known = this.#routes.get(key);
    if (known !== undefined) return known;
    const route = routeOf(address, method, this.#kinds);
    if (route !== undefined) this.#routes.set(key, route);
    return route;
  }

  #permit({ request, route: { kind, verb, subresource, namespace, name } }: Pick<RoutedRequest, 'request' | 'route'>): void {
    const what = subresource === '' ? resourceOf(kind) : `${resourceOf(kind)}/${subresource}`;
    if (!this.forbidden.has(`${verb} ${what}`) && !this.forbidden.has(`* ${what}`)) return;
    throw forbidden(kind, { user: request.actor.user, verb, namespace, name, subresource });
  }

  #serve(routed: RoutedRequest): ModelResponse {
    const { route } = routed;
    switch (route.verb) {
      case 'get':
        return this.#get(routed);
      case 'list':
      case 'watch':
        return this.#list(routed);
      case 'create':
        return route.subresource === 'eviction' ? this.#evict(routed) : this.#create(routed);
      case 'update':
      case 'patch':
        return this.#change(routed);
      case 'delete':
        return this.#delete(routed);
      case 'deletecollection':
        // The model does not delete collections. The judges report the attempt as a violation.
        throw methodNotAllowed();
      default:
        return route.verb satisfies never;
    }
  }

  #get({ route, frontEnd }: RoutedRequest): ModelResponse {
    const { kind, namespace, name, subresource } = route;
    if (subresource === 'scale') return answer(200, JSON.stringify(readScale(this.#options.core, route)));
    const object = frontEnd.cache(resourceOf(kind)).collection.get(namespace, name);
    if (object === undefined) throw notFound(kind, name);
    return answer(200, textOf(object));
  }

  #list({ address: { query }, route: { kind, namespace }, frontEnd }: RoutedRequest): ModelResponse {
    return answer(200, listText(frontEnd.cache(resourceOf(kind)), kind, namespace, query));
  }

  #create({ request, address, route: { kind, namespace }, report }: RoutedRequest): ModelResponse {
    const isDryRun = isDryRunOf(address.query, 'CreateOptions');
    report.isDryRun = isDryRun;
    const object = objectIn(request, kind);
    const { name } = objectOf(object['metadata']);
    if (typeof name === 'string') report.name = name;
    refuseOtherKind(kind, object);
    const created = create(this.#options.core, { kind, namespace }, object, { actor: request.actor, isDryRun });
    report.name = created.metadata.name;
    return answer(201, textOf(created));
  }

  #change({ request, address, route, report }: RoutedRequest): ModelResponse {
    const { core } = this.#options;
    const { kind, subresource, verb } = route;
    const isDryRun = isDryRunOf(address.query, verb === 'update' ? 'UpdateOptions' : 'PatchOptions');
    report.isDryRun = isDryRun;
    const options = { actor: request.actor, isDryRun, subresource };
    if (subresource === 'scale') {
      const make = verb === 'patch' ? patchIn(request, kind) : whole(objectIn(request, { ...kind, kind: 'Scale', isCustom: false }));
      return answer(200, JSON.stringify(writeScale(core, route, make, { ...options, isPatch: verb === 'patch' })));
    }
    if (verb === 'patch') return answer(200, textOf(patch(core, route, patchIn(request, kind), options)));
    const object = objectIn(request, kind);
    refuseOtherKind(kind, object);
    const replaced = replace(core, route, object, options);
    return answer(replaced.isNew ? 201 : 200, textOf(replaced.object));
  }

  #delete({ request, address, route, report }: RoutedRequest): ModelResponse {
    const { kind, name } = route;
    const options = deleteOptionsOf(optionalJson(request.body), address.query);
    report.isDryRun = options.isDryRun;
    const { object, isGone } = remove(this.#options.core, route, options, request);
    // A DELETE returns the object if it still exists, and always for pods and services. Otherwise it returns a Status.
    if (!isGone || ((kind.plural === 'pods' || kind.plural === 'services') && kind.group === '')) return answer(200, textOf(object));
    const details = { name, ...(kind.group !== '' && { group: kind.group }), kind: kind.plural, uid: object.metadata.uid };
    return answer(200, JSON.stringify({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details }));
  }

  #evict({ request, address: { query }, route, report }: RoutedRequest): ModelResponse {
    const { kind, name } = route;
    const eviction = objectOf(optionalJson(request.body));
    const metadata = objectOf(eviction['metadata']);
    if (metadata['name'] !== name) throw badRequest('name in URL does not match name in Eviction object');
    const deleteOptions = deleteOptionsOf(eviction['deleteOptions'] ?? undefined, query);
    report.isDryRun = deleteOptions.isDryRun;
    const budgets = this.#kinds.find('policy', 'v1', 'poddisruptionbudgets');
    if (budgets === undefined) throw notFound(kind, name);
    evict(this.#options.core, route, { actor: request.actor, budgets, isDryRun: deleteOptions.isDryRun, deleteOptions });
    return answer(201, JSON.stringify({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 }));
  }

  #reportAnswer({ request, route, report }: RoutedRequest, response: ModelResponse, revisions: readonly number[]): ModelResponse {
    this.#options.answered({
      request,
      atMs: this.#options.nowMs(),
      verb: verbs[route.verb],
      resource: resourceOf(route.kind),
      namespace: route.namespace,
      name: report.name,
      subresource: route.subresource,
      isDryRun: report.isDryRun,
      status: response.status,
      revisions,
    });
    return response;
  }
}

const verbs: Readonly<Record<Verb, Answered['verb']>> = {
  get: 'get',
  list: 'list',
  watch: 'list',
  create: 'create',
  update: 'update',
  patch: 'patch',
  delete: 'delete',
  deletecollection: 'delete',
};

function whole(object: Json): () => Json {
  return () => object;
}

function isDryRunOf(query: URLSearchParams, options: string): boolean {
  const values = query.getAll('dryRun');
  const causes = dryRunCauses(values);
  if (causes.length > 0) throw invalid({ group: 'meta.k8s.io', kind: options }, '', causes);
  return values.length > 0;
}

type KindIndex = ReturnType<typeof indexOf>;

function indexOf(kinds: readonly ServedKind[]) {
  const byPath = new Map(kinds.map((kind) => [`${kind.group}/${kind.version}/${kind.plural}`, kind]));
  const versions = new Set(kinds.map(({ group, version }) => `${group}/${version}`));
  const builtIn = new Set(kinds.filter(({ isCustom }) => !isCustom).map(({ group }) => group));
  return {
    find: (group: string, version: string, plural: string) => byPath.get(`${group}/${version}/${plural}`),
    has: (group: string, version: string) => versions.has(`${group}/${version}`),
    isBuiltIn: (group: string) => builtIn.has(group),
  };
}

function refusedBy(error: unknown): ModelResponse {
  if (error instanceof Refusal) return refused(error);
  throw error;
}

interface Route {
  readonly kind: ServedKind;
  /** The namespace; empty for cluster-scoped kinds and for all namespaces. */
  readonly namespace: string;
  /** The name; empty for a collection. */
  readonly name: string;
  /** The subresource; empty for the object itself. */
  readonly subresource: string;
  readonly verb: Verb;
}

type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'deletecollection';

interface Address {
  readonly path: string;
  readonly query: URLSearchParams;
}

const noQuery = new URLSearchParams();

function addressOf(text: string): Address {
  const at = text.indexOf('?');
  return at < 0 ? { path: text, query: noQuery } : { path: text.slice(0, at), query: new URLSearchParams(text.slice(at + 1)) };
}

/** Returns the route; undefined outside the API and for unknown custom kinds. Throws Refusal for other invalid paths and methods. */
function routeOf({ path, query }: Address, method: ModelRequest['method'], kinds: KindIndex): Route | undefined {
  const parts = path.split('/').slice(1).map(decodeURIComponent);
  const isCore = parts[0] === 'api';
  if (!isCore && parts[0] !== 'apis') return undefined;
  const [group = '', version = '', ...rest] = isCore ? ['', ...parts.slice(1)] : parts.slice(1);
  if (rest.length === 0) return undefined;
  const place = kinds.has(group, version) ? placeOf(rest, (plural) => kinds.find(group, version, plural)) : undefined;
  // For an unknown path outside the built-in API groups, the answer has no Status.
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

function verbOfCollection(kind: ServedKind, namespace: string, method: ModelRequest['method'], query: URLSearchParams): Verb {
  const isOnePlace = !kind.isNamespaced || namespace !== '';
  if (method === 'GET') return ['1', 'true'].includes(query.get('watch') ?? '') ? 'watch' : 'list';
  if (method === 'DELETE' && isOnePlace) return 'deletecollection';
  if (method === 'POST' && isOnePlace) return 'create';
  if (kind.isCustom && (method === 'PUT' || method === 'PATCH')) throw badRequest('name must be provided');
  throw methodNotAllowed();
}

function verbOf({ kind, namespace, name, subresource }: Place, method: ModelRequest['method'], query: URLSearchParams): Verb {
  if (subresource === 'eviction') {
    if (method !== 'POST') throw methodNotAllowed();
    return 'create';
  }
  if (name === '') return verbOfCollection(kind, namespace, method, query);
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
      // For custom kinds, the API server ignores the name in the path.
      if (kind.isCustom && subresource === '') return 'create';
      throw methodNotAllowed();
    default:
      return method satisfies never;
  }
}
