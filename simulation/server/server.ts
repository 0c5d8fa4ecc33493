// The model of the API server: requests and watches as text for agents, and the same storage in process for the models of controllers and people.
import type { Scheduler } from '../scheduler.ts';
import type { ServedKind } from './kinds.ts';
import type { Actor, Json, ModelObject, ModelRequest, ModelResponse, ModelWatch, ServerObserver, WatchSink } from './request.ts';

export interface ModelServerOptions {
  readonly scheduler: Pick<Scheduler, 'nowMs' | 'after'>;
  /** The server's wall clock, in milliseconds since 1970. */
  readonly wallMs: () => number;
  readonly seed: number;
  /** How many processes serve the one storage, each with a watch cache of its own; 1 when left out. */
  readonly frontEnds?: number;
  /** Served beside those of Kubernetes itself; those of the project when left out. */
  readonly kinds?: readonly ServedKind[];
  /** Whether owners take what they own with them (the garbage collector of kube-controller-manager); true when left out. */
  readonly collectsGarbage?: boolean;
}

export interface RemoveOptions {
  /** `Background` when left out. */
  readonly propagationPolicy?: 'Background' | 'Foreground' | 'Orphan';
}

export class ModelServer {
  constructor(options: ModelServerOptions) {
    void options;
  }

  /** Answers one request; watches go through `watch`. A promise only for reads that wait for a version which the front end has not seen. */
  handle(request: ModelRequest, frontEnd = 0): ModelResponse | Promise<ModelResponse> {
    throw new Error(`not served yet: ${request.path} at ${frontEnd}`);
  }

  /** Opens a watch; the answer is a response when the server refuses to. The sink is never called before this returns. */
  watch(request: ModelRequest, sink: WatchSink, frontEnd = 0): ModelWatch | ModelResponse {
    throw new Error(`not served yet: ${request.path} at ${frontEnd} ${typeof sink}`);
  }

  /** Told of every commit and every answered request, at once and in order. The answer ends it. */
  observe(observer: ServerObserver): () => void {
    void observer;
    return () => undefined;
  }

  /** The newest state of the storage. `namespace` is empty for kinds without. */
  get(resource: string, namespace: string, name: string): ModelObject | undefined {
    throw new Error(`not served yet: ${resource} ${namespace} ${name}`);
  }

  /** The newest state of the storage, by namespace and name; of all namespaces when none is named. */
  list(resource: string, namespace?: string): readonly ModelObject[] {
    throw new Error(`not served yet: ${resource} ${namespace}`);
  }

  /** Creates the object. Throws Refusal when the server would not, as when the name is taken. */
  create(actor: Actor, resource: string, object: Json): ModelObject {
    throw new Error(`not served yet: ${actor.user} ${resource} ${JSON.stringify(object)}`);
  }

  /**
   * Merges the patch into the object, or into its `status`, without preconditions. Undefined when nothing changes, or there is no such object.
   * As in requests, a status is changed by subresource `status` only. Throws Refusal when the result is invalid.
   */
  change(actor: Actor, resource: string, namespace: string, name: string, patch: Json, subresource?: 'status'): ModelObject | undefined {
    throw new Error(`not served yet: ${actor.user} ${resource} ${namespace} ${name} ${JSON.stringify(patch)} ${subresource}`);
  }

  /** Deletes it without grace, as the kubelet does when a pod has ended; finalizers hold it all the same. False when there is no such object. */
  remove(actor: Actor, resource: string, namespace: string, name: string, options: RemoveOptions = {}): boolean {
    throw new Error(`not served yet: ${actor.user} ${resource} ${namespace} ${name} ${options.propagationPolicy}`);
  }

  /** Deletes the pod gracefully, its own grace period when none is given. False when there is no such pod. */
  terminate(actor: Actor, namespace: string, pod: string, graceSeconds?: number): boolean {
    throw new Error(`not served yet: ${actor.user} ${namespace} ${pod} ${graceSeconds}`);
  }

  /** Evicts the pod under its budgets; the answer is the HTTP status, such as 201, 404 or 429. */
  evict(actor: Actor, namespace: string, pod: string): number {
    throw new Error(`not served yet: ${actor.user} ${namespace} ${pod}`);
  }

  /** Each `verb resource[/subresource]`, such as `list nodes` or `create pods/eviction`, is refused with 403 from now on; `*` is any verb. */
  forbid(...permissions: readonly string[]): void {
    void permissions;
  }

  permit(...permissions: readonly string[]): void {
    void permissions;
  }

  /** The front end sees nothing new until that instant on the scheduler's clock. */
  lagFrontEnd(frontEnd: number, untilMs: number): void {
    void frontEnd;
    void untilMs;
  }

  /** Every watch of the front end ends; with `isCompacted` it cannot tell what was before either. */
  restartFrontEnd(frontEnd: number, options: { readonly isCompacted: boolean }): void {
    void frontEnd;
    void options;
  }

  /** Of the newest commit. */
  revision(): number {
    return 0;
  }
}
