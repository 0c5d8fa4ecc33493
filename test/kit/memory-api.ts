// A small API server in memory: objects with resource versions, preconditions, merge patches, watches, evictions and permissions.
import { merge, selectorOf } from './memory-json.ts';
import { type Served, type ServedRequest, status, VirtualWatch } from './virtual-env.ts';

export type Json = Readonly<Record<string, unknown>>;

export interface StoredObject extends Json {
  readonly metadata: Json & {
    readonly name: string;
    readonly namespace?: string;
    readonly uid: string;
    readonly resourceVersion: string;
    readonly deletionTimestamp?: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
}

interface Place {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly namespace: string;
  readonly name: string;
  readonly subresource: string;
}

interface OpenWatch {
  readonly place: Place;
  readonly selects: (object: StoredObject) => boolean;
  readonly watch: VirtualWatch;
}

interface MemoryApiOptions {
  readonly nowMs: () => number;
  /** Served kinds beside those of Kubernetes itself, as `group/version/plural`, with their kind. */
  readonly customKinds?: Readonly<Record<string, string>>;
}

const ownKinds: Readonly<Record<string, string>> = {
  '/v1/pods': 'Pod',
  '/v1/nodes': 'Node',
  '/v1/configmaps': 'ConfigMap',
  'apps/v1/statefulsets': 'StatefulSet',
  'policy/v1/poddisruptionbudgets': 'PodDisruptionBudget',
  'coordination.k8s.io/v1/leases': 'Lease',
};

/** The kinds of ours, and the zone-aware budget, for tests with CRDs. */
export const customKinds: Readonly<Record<string, string>> = {
  'rollout-group.dev/v1alpha1/rolloutgroups': 'RolloutGroup',
  'rollout-group.dev/v1alpha1/rolloutpolicies': 'RolloutPolicy',
  'rollout-group.dev/v1alpha1/rolloutexceptions': 'RolloutException',
  'rollout-group.dev/v1alpha1/rolloutintents': 'RolloutIntent',
  'rollout-operator.grafana.com/v1/zoneawarepoddisruptionbudgets': 'ZoneAwarePodDisruptionBudget',
  'rollout-operator.grafana.com/v1/replicatemplates': 'ReplicaTemplate',
};

export class MemoryApi {
  readonly #objects = new Map<string, StoredObject>();
  readonly #kinds: Readonly<Record<string, string>>;
  readonly #watches = new Set<OpenWatch>();
  readonly #history: { readonly key: string; readonly type: string; readonly object: StoredObject }[] = [];
  readonly #forbidden = new Set<string>();
  readonly #nowMs: () => number;
  #version = 1000;
  #uids = 0;
  /** Called after each change of an object. */
  onChange: (plural: string, object: StoredObject) => void = () => undefined;
  /** Events are held back while true, as by a watch cache that lags; lists and gets tell the truth. */
  isWatchFrozen = false;
  /** As `isWatchFrozen`, for one kind. */
  frozenPlural: string | undefined;
  readonly #held: (() => void)[] = [];

  constructor({ nowMs, customKinds: custom = customKinds }: MemoryApiOptions) {
    this.#nowMs = nowMs;
    this.#kinds = { ...ownKinds, ...custom };
  }

  /** `verb plural`, such as `list nodes` or `patch pods`, is refused with 403 from now on; `* plural` refuses everything. */
  forbid(...permissions: readonly string[]): void {
    for (const permission of permissions) this.#forbidden.add(permission);
  }

  permit(...permissions: readonly string[]): void {
    for (const permission of permissions) this.#forbidden.delete(permission);
  }

  get(plural: string, namespace: string, name: string): StoredObject | undefined {
    return this.list(plural, namespace).find((object) => object.metadata.name === name);
  }

  list(plural: string, namespace?: string): readonly StoredObject[] {
    const found: StoredObject[] = [];
    for (const [key, object] of this.#objects) {
      if (!key.includes(`/${plural}|`) || (namespace !== undefined && (object.metadata.namespace ?? '') !== namespace)) continue;
      found.push(object);
    }
    return found.sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  }

  /** Creates or replaces, as an administrator would, with every field given. */
  put(kindKey: string, object: Json & { readonly metadata: Json }): StoredObject {
    const name = String(object.metadata['name']);
    const namespace = String(object.metadata['namespace'] ?? '');
    const key = keyOf(kindKey, namespace, name);
    const before = this.#objects.get(key);
    return this.#store(kindKey, key, object, before);
  }

  /** Merges into the object as a controller would, without preconditions. */
  change(kindKey: string, namespace: string, name: string, patch: Json): StoredObject {
    const key = keyOf(kindKey, namespace, name);
    const before = this.#objects.get(key);
    if (before === undefined) throw new Error(`${key} does not exist`);
    return this.#store(kindKey, key, merge(before, patch) as StoredObject, before);
  }

  remove(kindKey: string, namespace: string, name: string): void {
    const key = keyOf(kindKey, namespace, name);
    const before = this.#objects.get(key);
    if (before === undefined) return;
    this.#objects.delete(key);
    this.#version += 1;
    const gone = { ...before, metadata: { ...before.metadata, resourceVersion: `${this.#version}` } };
    this.#emit(kindKey, 'DELETED', gone);
  }

  /** Ends every open watch, as a restart of the server does. */
  cutWatches(): void {
    for (const { watch } of [...this.#watches]) watch.end('cut');
  }

  /** Lets the events through that were held back. */
  thaw(): void {
    this.isWatchFrozen = false;
    this.frozenPlural = undefined;
    for (const send of this.#held.splice(0)) send();
  }

  /** The events that were held back are never told. */
  forgetHeld(): void {
    this.#held.splice(0);
    this.thaw();
  }

  readonly serve = (request: ServedRequest): Served => {
    const discovery = this.#discover(request.pathname);
    if (discovery !== undefined) return discovery;
    const place = placeOf(request.pathname);
    if (place === undefined) return status(404, 'NotFound', 'the server could not find the requested resource');
    const verb = verbOf(request, place);
    const what = place.subresource === '' ? place.plural : `${place.plural}/${place.subresource}`;
    if (this.#forbidden.has(`${verb} ${what}`) || this.#forbidden.has(`* ${what}`)) {
      return status(403, 'Forbidden', `${what} is forbidden: cannot ${verb}`);
    }
    const kind = this.#kinds[kindKeyOf(place)];
    if (kind === undefined) return status(404, 'NotFound', 'the server could not find the requested resource');
    switch (verb) {
      case 'list':
        return this.#listed(place, request, kind);
      case 'watch':
        return this.#watched(place, request);
      case 'get':
        return this.#got(place);
      case 'create':
        return place.subresource === 'eviction' ? this.#evict(place, request.json) : this.#create(place, request.json);
      case 'update':
        return this.#update(place, request.json);
      case 'patch':
        return this.#patch(place, request.json);
      default:
        return this.#delete(place, request.json);
    }
  };

  #listed(place: Place, { query }: ServedRequest, kind: string): Served {
    const selects = selectorOf(query);
    const items = this.list(place.plural, place.namespace === '' ? undefined : place.namespace).filter(selects);
    return { status: 200, body: { kind: `${kind}List`, metadata: { resourceVersion: `${this.#version}` }, items } };
  }

  #watched(place: Place, { query }: ServedRequest): Served {
    const watch = new VirtualWatch();
    const open: OpenWatch = { place, selects: selectorOf(query), watch };
    const from = Number(query.get('resourceVersion') ?? 0);
    for (const { key, type, object } of this.#history) {
      if (Number(object.metadata.resourceVersion) > from) this.#send(open, key, type, object);
    }
    this.#watches.add(open);
    const opened = { watch };
    const end = watch.end.bind(watch);
    watch.end = (reason) => {
      this.#watches.delete(open);
      end(reason);
    };
    return opened;
  }

  #got(place: Place): Served {
    const object = this.#objects.get(keyOf(kindKeyOf(place), place.namespace, place.name));
    if (object === undefined) return notFound(place);
    return { status: 200, body: place.subresource === 'scale' ? scaleOf(object) : object };
  }

  #create(place: Place, body: unknown): Served {
    const object = body as Json & { readonly metadata: Json };
    const name = String(object.metadata['name']);
    const key = keyOf(kindKeyOf(place), place.namespace, name);
    if (this.#objects.has(key)) return status(409, 'AlreadyExists', `${name} already exists`);
    return { status: 201, body: this.#store(kindKeyOf(place), key, object, undefined) };
  }

  #update(place: Place, body: unknown): Served {
    return this.#write(place, body as Json, (before) => ({ ...before, ...(body as Json) }));
  }

  #patch(place: Place, body: unknown): Served {
    const { status: newStatus, ...rest } = body as Json;
    const isStatus = place.subresource === 'status';
    const patch = isStatus ? { status: newStatus ?? {} } : rest;
    return this.#write(place, body as Json, (before) => merge(before, { ...patch, metadata: isStatus ? {} : rest['metadata'] }) as Json);
  }

  #write(place: Place, body: Json, make: (before: StoredObject) => Json): Served {
    const key = keyOf(kindKeyOf(place), place.namespace, place.name);
    const before = this.#objects.get(key);
    if (before === undefined) return notFound(place);
    const metadata = (body['metadata'] ?? {}) as Json;
    const isOther = metadata['uid'] !== undefined && metadata['uid'] !== before.metadata.uid;
    const isOld = metadata['resourceVersion'] !== undefined && metadata['resourceVersion'] !== before.metadata.resourceVersion;
    if (isOther || isOld) return status(409, 'Conflict', 'the object has been modified');
    return { status: 200, body: this.#store(kindKeyOf(place), key, make(before) as Json & { readonly metadata: Json }, before) };
  }

  #delete(place: Place, body: unknown): Served {
    const before = this.#objects.get(keyOf(kindKeyOf(place), place.namespace, place.name));
    if (before === undefined) return notFound(place);
    const { preconditions = {} } = (body ?? {}) as { readonly preconditions?: Json };
    const isOther = preconditions['uid'] !== undefined && preconditions['uid'] !== before.metadata.uid;
    const isOld = preconditions['resourceVersion'] !== undefined && preconditions['resourceVersion'] !== before.metadata.resourceVersion;
    if (isOther || isOld) return status(409, 'Conflict', 'the precondition failed');
    if (place.plural === 'pods') return { status: 200, body: this.#terminate(place, before) };
    this.remove(kindKeyOf(place), place.namespace, place.name);
    return { status: 200, body: { kind: 'Status', status: 'Success' } };
  }

  #terminate(place: Place, before: StoredObject): StoredObject {
    if (before.metadata.deletionTimestamp !== undefined) return before;
    return this.change(kindKeyOf(place), place.namespace, place.name, { metadata: { deletionTimestamp: this.#instant() } });
  }

  /** Budgets select by labels; an eviction may go when enough of the pods that are selected stay ready. */
  #evict(place: Place, body: unknown): Served {
    const pod = this.get('pods', place.namespace, place.name);
    if (pod === undefined) return notFound(place);
    const { deleteOptions = {} } = body as { readonly deleteOptions?: { readonly preconditions?: Json } };
    const uid = deleteOptions.preconditions?.['uid'];
    if (uid !== undefined && uid !== pod.metadata.uid) return status(409, 'Conflict', 'another pod has the name');
    for (const budget of this.list('poddisruptionbudgets', place.namespace)) {
      const spec = budget['spec'] as { readonly maxUnavailable: number; readonly selector: { readonly matchLabels: Json } };
      const selected = this.list('pods', place.namespace).filter((one) => hasLabels(one, spec.selector.matchLabels));
      const down = selected.filter((one) => !isReadyPod(one)).length;
      if (hasLabels(pod, spec.selector.matchLabels) && isReadyPod(pod) && down >= spec.maxUnavailable) {
        return status(429, 'TooManyRequests', "cannot evict pod as it would violate the pod's disruption budget");
      }
    }
    this.#terminate({ ...place, subresource: '' }, pod);
    return { status: 201, body: { kind: 'Status', status: 'Success' } };
  }

  #store(kindKey: string, key: string, object: Json & { readonly metadata: Json }, before: StoredObject | undefined): StoredObject {
    this.#version += 1;
    const [group = '', version = ''] = kindKey.split('/');
    const isSpecNew = JSON.stringify(before?.['spec']) !== JSON.stringify(object['spec']);
    const generation = Number(before?.metadata['generation'] ?? 0) + (isSpecNew ? 1 : 0);
    const stored: StoredObject = {
      apiVersion: group === '' ? version : `${group}/${version}`,
      kind: this.#kinds[kindKey],
      ...object,
      metadata: {
        creationTimestamp: this.#instant(),
        ...object.metadata,
        name: String(object.metadata['name']),
        uid: before?.metadata.uid ?? this.#newUid(),
        resourceVersion: `${this.#version}`,
        generation,
      },
    };
    if (before !== undefined && isSameButVersion(before, stored)) {
      this.#version -= 1;
      return before;
    }
    this.#objects.set(key, stored);
    this.#emit(kindKey, before === undefined ? 'ADDED' : 'MODIFIED', stored);
    return stored;
  }

  #emit(kindKey: string, type: string, object: StoredObject): void {
    this.#history.push({ key: kindKey, type, object });
    for (const open of this.#watches) this.#send(open, kindKey, type, object);
    this.onChange(kindKey.split('/')[2] ?? '', object);
  }

  #send({ place, selects, watch }: OpenWatch, key: string, type: string, object: StoredObject): void {
    const isMeant =
      kindKeyOf(place) === key && (place.namespace === '' || place.namespace === object.metadata.namespace) && selects(object);
    if (!isMeant) return;
    const send = (): void => watch.send({ type, object });
    if (this.isWatchFrozen || this.frozenPlural === place.plural) this.#held.push(send);
    else send();
  }

  #discover(pathname: string): Served | undefined {
    if (pathname === '/api') return { status: 200, body: { kind: 'APIVersions', versions: ['v1'] } };
    const keys = Object.keys(this.#kinds);
    if (pathname === '/apis') {
      const names = new Map(keys.filter((key) => !key.startsWith('/')).map((key) => [key.split('/')[0], key.split('/')[1]]));
      const groups = [...names].map(([name, version]) => ({
        name,
        versions: [{ version }],
        preferredVersion: { version },
      }));
      return { status: 200, body: { kind: 'APIGroupList', groups } };
    }
    const prefix = /^\/api\/v1$/.test(pathname) ? '/v1' : /^\/apis\/([^/]+\/[^/]+)$/.exec(pathname)?.[1];
    if (prefix === undefined) return undefined;
    const entries = keys.filter((key) => key.startsWith(`${prefix}/`));
    if (entries.length === 0) return status(404, 'NotFound', 'the server could not find the requested resource');
    const resources = entries.map((key) => ({ name: key.split('/')[2], kind: this.#kinds[key], namespaced: !key.endsWith('/nodes') }));
    return { status: 200, body: { kind: 'APIResourceList', resources } };
  }

  #newUid(): string {
    this.#uids += 1;
    return `uid-${this.#uids}`;
  }

  #instant(): string {
    return new Date(this.#nowMs()).toISOString();
  }
}

export function isReadyPod(pod: StoredObject): boolean {
  const { conditions = [] } = (pod['status'] ?? {}) as {
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
  return pod.metadata.deletionTimestamp === undefined && conditions.some((one) => one.type === 'Ready' && one.status === 'True');
}

function placeOf(pathname: string): Place | undefined {
  const [, , group = '', version = '', rest = ''] = /^\/(api|apis\/([^/]+))\/([^/]+)\/(.*)$/.exec(pathname) ?? [];
  const parts = rest.split('/').map(decodeURIComponent);
  const [namespace = '', plural = '', name = '', subresource = ''] =
    parts[0] === 'namespaces' && parts.length > 2 ? parts.slice(1) : ['', ...parts];
  return plural === '' ? undefined : { group, version, plural, namespace, name, subresource };
}

function verbOf({ method, isStream, query }: ServedRequest, { name }: Place): string {
  if (isStream || query.get('watch') === '1') return 'watch';
  const verbs = { GET: name === '' ? 'list' : 'get', POST: 'create', PUT: 'update', PATCH: 'patch', DELETE: 'delete' };
  return verbs[method];
}

function kindKeyOf({ group, version, plural }: Place): string {
  return `${group}/${version}/${plural}`;
}

function keyOf(kindKey: string, namespace: string, name: string): string {
  return `/${kindKey}|${namespace}/${name}`;
}

function notFound({ plural, name }: Place): Served {
  return status(404, 'NotFound', `${plural} "${name}" not found`, { name, kind: plural });
}

function scaleOf({ metadata, spec, status: current }: StoredObject): Json {
  const replicas = (value: unknown): unknown => (value as Json | undefined)?.['replicas'];
  const { name, namespace, uid, resourceVersion } = metadata;
  return {
    apiVersion: 'autoscaling/v1',
    kind: 'Scale',
    metadata: { name, namespace, uid, resourceVersion },
    spec: { replicas: replicas(spec) },
    status: { replicas: replicas(current) ?? 0 },
  };
}

function hasLabels({ metadata }: StoredObject, wanted: Json): boolean {
  return Object.entries(wanted).every(([key, value]) => metadata.labels?.[key] === value);
}

function isSameButVersion(a: StoredObject, b: StoredObject): boolean {
  const bare = ({ metadata, ...rest }: StoredObject) => JSON.stringify([rest, { ...metadata, resourceVersion: '', creationTimestamp: '' }]);
  return bare(a) === bare(b);
}
