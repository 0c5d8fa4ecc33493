// Models the API server: it serves requests and watches of agents as text, and gives the models of controllers and people direct access.
import { secondText } from '../../policies/instant.ts';
import { draw, streamOf } from '../random.ts';
import type { Scheduler } from '../scheduler.ts';
import { type DeleteOptions, remove } from './deletion.ts';
import { FrontEnd } from './front-end.ts';
import { collectGarbage } from './garbage.ts';
import { mergePatch, objectOf } from './json.ts';
import { kubernetesKinds, projectKinds, resourceOf, type ServedKind } from './kinds.ts';
import { applied, type Manifest } from './managed-fields.ts';
import { Refusal } from './refusal.ts';
import type { Actor, Json, ModelObject, ModelRequest, ModelResponse, ModelWatch, ServerObserver, WatchSink } from './request.ts';
import { Requests } from './requests.ts';
import { Storage } from './store.ts';
import { bind, evict } from './subresources.ts';
import { type Core, create, patch, type Target } from './write.ts';

export interface ModelServerOptions {
  readonly scheduler: Pick<Scheduler, 'nowMs' | 'after'>;
  readonly wallMs: () => number;
  readonly seed: number;
  /** The number of front ends over one storage, each with its own watch caches; 1 by default. */
  readonly frontEnds?: number;
  /** The kinds that are served in addition to the built-in kinds; `projectKinds` by default. */
  readonly kinds?: readonly ServedKind[];
  /** True if the garbage collector of kube-controller-manager runs; true by default. */
  readonly collectsGarbage?: boolean;
}

interface ObjectRef {
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
}

interface RemoveOptions {
  /** The propagation policy; `Background` by default. */
  readonly propagationPolicy?: 'Background' | 'Orphan';
}

export class ModelServer {
  readonly #core: Core;
  readonly #kinds: ReadonlyMap<string, ServedKind>;
  readonly #frontEnds: readonly FrontEnd[];
  readonly #observers = new Set<ServerObserver>();
  readonly #requests: Requests;

  constructor({ scheduler, wallMs, seed, frontEnds = 1, kinds = projectKinds, collectsGarbage = true }: ModelServerOptions) {
    const storage = new Storage(() => scheduler.nowMs());
    const all = [...kubernetesKinds, ...kinds];
    this.#kinds = new Map(all.map((kind) => [resourceOf(kind), kind]));
    this.#core = { storage, wallMs, newUid: uidsOf(seed), terminating: new Set() };
    this.#frontEnds = Array.from({ length: frontEnds }, (_, index) => new FrontEnd({ scheduler, storage, seed, index }));
    storage.onCommit((commit) => {
      for (const observer of this.#observers) observer.committed?.(commit);
      for (const frontEnd of this.#frontEnds) frontEnd.hear(commit);
    });
    if (collectsGarbage) collectGarbage({ core: this.#core, scheduler, kinds: all, seed });
    let watches = 0;
    this.#requests = new Requests({
      core: this.#core,
      kinds: all,
      chance: () => {
        watches += 1;
        return draw(seed, `watch ${watches}`);
      },
      nowMs: () => scheduler.nowMs(),
      answered: (answered) => {
        for (const observer of this.#observers) observer.answered?.(answered);
      },
    });
  }

  /** Answers one request, except watches. */
  handle(request: ModelRequest, frontEnd = 0): ModelResponse {
    return this.#requests.handle(request, this.#frontEnd(frontEnd));
  }

  /** Opens a watch, or returns the response if the API server rejects it. Never calls the sink before it returns. */
  watch(request: ModelRequest, sink: WatchSink, frontEnd = 0): ModelWatch | ModelResponse {
    return this.#requests.watch(request, this.#frontEnd(frontEnd), sink);
  }

  /** Adds an observer of commits and answered requests. Returns a function that removes the observer. */
  observe(observer: ServerObserver): () => void {
    this.#observers.add(observer);
    return () => {
      this.#observers.delete(observer);
    };
  }

  /** Returns the newest state of the object. `namespace` is empty for cluster-scoped kinds. */
  get(resource: string, namespace: string, name: string): ModelObject | undefined {
    return this.#core.storage.collection(resource).get(namespace, name);
  }

  /** Returns the newest states of the objects, sorted by namespace and name; of all namespaces by default. */
  list(resource: string, namespace?: string): readonly ModelObject[] {
    const all = this.#core.storage.collection(resource).list();
    return namespace === undefined ? all : all.filter(({ metadata }) => (metadata.namespace ?? '') === namespace);
  }

  /** Creates the object as a POST does: without its status, except for nodes. Throws Refusal, for example if the name exists. */
  create(actor: Actor, resource: string, object: Json): ModelObject {
    const kind = this.#kind(resource);
    const { namespace } = objectOf(object['metadata']);
    const place = kind.isNamespaced && typeof namespace === 'string' ? namespace : '';
    return create(this.#core, { kind, namespace: place }, object, { actor, isDryRun: false });
  }

  /**
   * Merges `change` into the object. With `status`, it changes only the status. With `binding`, it sets the node of a pod. Returns
   * undefined if the object does not change or does not exist. Throws Refusal if the result is invalid.
   */
  change(
    actor: Actor,
    { resource, namespace, name }: ObjectRef,
    change: Json,
    subresource?: 'status' | 'binding',
  ): ModelObject | undefined {
    const before = this.get(resource, namespace, name);
    if (before === undefined) return undefined;
    const target = { kind: this.#kind(resource), namespace, name };
    const options = { actor, isDryRun: false, subresource: subresource ?? '' };
    if (subresource === 'binding') return bind(this.#core, target, String(objectOf(change['spec'])['nodeName'] ?? ''), options);
    const after = patch(this.#core, target, (stored) => mergePatch(stored, change), options);
    return after === before ? undefined : after;
  }

  /**
   * Applies the manifest to the object by server-side apply. Returns false on a conflict, and if the object does not exist. Throws Refusal
   * if the result is invalid.
   */
  apply(actor: Actor, { resource, namespace, name }: ObjectRef, manifest: Manifest): boolean {
    const before = this.get(resource, namespace, name);
    if (before === undefined) return false;
    const result = applied(before, manifest, secondText(this.#core.wallMs()));
    if ('conflicts' in result) return false;
    const { object, managedFields } = result;
    patch(this.#core, { kind: this.#kind(resource), namespace, name }, () => object, {
      actor,
      isDryRun: false,
      subresource: '',
      managedFields,
    });
    return true;
  }

  /** Deletes the object without a grace period. Finalizers still apply. Returns false if the object does not exist. */
  remove(actor: Actor, { resource, namespace, name }: ObjectRef, { propagationPolicy }: RemoveOptions = {}): boolean {
    const options = { gracePeriodSeconds: 0, isDryRun: false, ...(propagationPolicy !== undefined && { propagationPolicy }) };
    return this.#remove({ kind: this.#kind(resource), namespace, name }, options, actor);
  }

  /** Deletes the pod with a grace period, by default that of the pod. Returns false if the pod does not exist. */
  terminate(actor: Actor, namespace: string, pod: string, graceSeconds?: number): boolean {
    const options = { isDryRun: false, ...(graceSeconds !== undefined && { gracePeriodSeconds: graceSeconds }) };
    return this.#remove({ kind: this.#kind('pods'), namespace, name: pod }, options, actor);
  }

  /** Evicts the pod if its PodDisruptionBudget allows it. Returns the HTTP status, such as 201, 404 or 429. */
  evict(actor: Actor, namespace: string, pod: string): number {
    const target = { kind: this.#kind('pods'), namespace, name: pod };
    const budgets = this.#kind('poddisruptionbudgets.policy');
    try {
      evict(this.#core, target, { actor, budgets, isDryRun: false, deleteOptions: { isDryRun: false } });
      return 201;
    } catch (error) {
      if (error instanceof Refusal) return error.status;
      throw error;
    }
  }

  /** Denies each `verb resource[/subresource]`, such as `list nodes` or `create pods/eviction`, with 403. `*` is any verb. */
  forbid(...permissions: readonly string[]): void {
    for (const permission of permissions) this.#requests.forbidden.add(permission);
  }

  permit(...permissions: readonly string[]): void {
    for (const permission of permissions) this.#requests.forbidden.delete(permission);
  }

  /** Refuses creations in the namespace from now on. The namespace controller deletes its objects. */
  terminateNamespace(namespace: string): void {
    this.#core.terminating.add(namespace);
  }

  isTerminating(namespace: string): boolean {
    return this.#core.terminating.has(namespace);
  }

  /** Makes the front end show no new state until that time (scheduler clock). Reads without a resource version stay current. */
  lagFrontEnd(frontEnd: number, untilMs: number): void {
    this.#frontEnd(frontEnd).lag(untilMs);
  }

  endLag(): void {
    for (const frontEnd of this.#frontEnds) frontEnd.endLag();
  }

  /** Makes the front end show that earlier revision until that time. Reads without a resource version stay current. */
  goBackFrontEnd(frontEnd: number, revision: number, untilMs: number): void {
    this.#frontEnd(frontEnd).goBack(revision, untilMs);
  }

  /** Ends every watch of the front end. If `isCompacted`, revisions older than the newest can no longer be listed or watched. */
  restartFrontEnd(frontEnd: number, { isCompacted }: { readonly isCompacted: boolean }): void {
    if (isCompacted) this.#core.storage.compact();
    this.#frontEnd(frontEnd).restart(isCompacted);
  }

  revision(): number {
    return this.#core.storage.revision;
  }

  #remove(target: Target, options: DeleteOptions, actor: Actor): boolean {
    if (this.get(resourceOf(target.kind), target.namespace, target.name) === undefined) return false;
    remove(this.#core, target, options, { actor });
    return true;
  }

  #kind(resource: string): ServedKind {
    const kind = this.#kinds.get(resource);
    if (kind === undefined) throw new Error(`${resource} is not served`);
    return kind;
  }

  #frontEnd(index: number): FrontEnd {
    const frontEnd = this.#frontEnds[index];
    if (frontEnd === undefined) throw new Error(`there is no front end ${index}`);
    return frontEnd;
  }
}

/** Returns a function that creates UIDs of version 4, as the API server does. */
function uidsOf(seed: number): () => string {
  const random = streamOf(seed, 'uid');
  const hex = (digits: number): string => Array.from({ length: digits }, () => Math.floor(random() * 16).toString(16)).join('');
  return () => `${hex(8)}-${hex(4)}-4${hex(3)}-${'89ab'[Math.floor(random() * 4)]}${hex(3)}-${hex(12)}`;
}
