// The model of the API server in the virtual time of a test, and the direct changes that a test makes in it.
import type { Scheduler } from '../../simulation/scheduler.ts';
import { isObject } from '../../simulation/server/json.ts';
import { projectKinds, type ServedKind } from '../../simulation/server/kinds.ts';
import type { Actor, Json, ModelObject, ModelRequest } from '../../simulation/server/request.ts';
import { ModelServer } from '../../simulation/server/server.ts';
import { type Served, type ServedRequest, type VirtualEnv, VirtualWatch } from './virtual-env.ts';

interface ModelApiOptions {
  readonly env: Pick<VirtualEnv, 'clock' | 'timers'>;
  readonly seed?: number;
  /** Served kinds besides those of Kubernetes; default: those of the project. */
  readonly kinds?: readonly ServedKind[];
  /** User name of every request. */
  readonly user?: string;
  /** As in ModelServer. */
  readonly collectsGarbage?: boolean;
}

/** The user of direct changes. */
export const administrator: Actor = { user: 'kubernetes-admin' };

/** Resources are named as in ModelServer: plural and group, such as `pods` or `statefulsets.apps`. */
export class ModelApi {
  readonly server: ModelServer;
  readonly #user: string;
  #isHeld: (resource: string) => boolean = () => false;
  readonly #held: (() => void)[] = [];

  constructor({ env, seed = 1, kinds = projectKinds, user = 'tester', collectsGarbage = true }: ModelApiOptions) {
    this.server = new ModelServer({ scheduler: schedulerOf(env), wallMs: env.clock.nowMs, seed, kinds, collectsGarbage });
    this.#user = user;
  }

  /** Answers a request of a virtual environment: pass it to `replaceServer`. The request takes effect before this returns. */
  readonly serve = async (request: ServedRequest): Promise<Served> => {
    const { method, path, contentType, accept, body, site } = request;
    const asked: ModelRequest = {
      method,
      path,
      actor: { user: this.#user, site },
      ...(contentType !== undefined && { contentType }),
      ...(accept !== undefined && { accept }),
      ...(body !== undefined && { body }),
    };
    return request.isStream ? this.#watch(asked, request.pathname) : await this.server.handle(asked);
  };

  get(resource: string, namespace: string, name: string): ModelObject | undefined {
    return this.server.get(resource, namespace, name);
  }

  list(resource: string, namespace?: string): readonly ModelObject[] {
    return this.server.list(resource, namespace);
  }

  /** Creates the object with its status, or replaces the content of the existing one, which keeps labels, annotations and status if none are given. */
  put(resource: string, object: Json & { readonly metadata: Json }): ModelObject {
    const namespace = String(object.metadata['namespace'] ?? '');
    const name = String(object.metadata['name']);
    const before = this.get(resource, namespace, name);
    if (before !== undefined) {
      const { apiVersion, kind, status: _status, metadata, ...content } = before;
      const { resourceVersion: _version, ...given } = object.metadata;
      const kept = Object.fromEntries(Object.entries(metadata).filter(([key]) => key in given));
      return this.change(resource, namespace, name, { ...patchTo(content, object), apiVersion, kind, metadata: patchTo(kept, given) });
    }
    const created = this.server.create(administrator, resource, object);
    const { status } = object as Json & { readonly status?: Json };
    return status === undefined ? created : this.change(resource, namespace, name, { status });
  }

  /** Merges the patch into the object and its status, without preconditions. */
  change(resource: string, namespace: string, name: string, { status, ...rest }: Json): ModelObject {
    const place = { resource, namespace, name };
    if (Object.keys(rest).length > 0) this.server.change(administrator, place, rest);
    if (status !== undefined) this.server.change(administrator, place, { status }, 'status');
    const after = this.get(resource, namespace, name);
    if (after === undefined) throw new Error(`${resource} ${namespace}/${name} does not exist`);
    return after;
  }

  /** Deletes it at once; finalizers still apply. */
  remove(resource: string, namespace: string, name: string): void {
    this.server.remove(administrator, { resource, namespace, name });
  }

  /** Deletes the pod gracefully, as a request does. */
  terminate(namespace: string, pod: string): void {
    this.server.terminate(administrator, namespace, pod);
  }

  /** Refuses each `verb resource[/subresource]`, such as `list nodes` or `create pods/eviction`, with 403; `*` is any verb. */
  forbid(...permissions: readonly string[]): void {
    this.server.forbid(...permissions);
  }

  permit(...permissions: readonly string[]): void {
    this.server.permit(...permissions);
  }

  /** Ends every open watch, as a restart of the server does. */
  cutWatches(): void {
    this.server.restartFrontEnd(0, { isCompacted: false });
  }

  /** Ends every open watch and drops the history: older versions can no longer be listed or watched. */
  compact(): void {
    this.server.restartFrontEnd(0, { isCompacted: true });
  }

  /** Holds back the lines of every watch, or of the watches of that resource. Reads are current. */
  hold(resource?: string): void {
    this.#isHeld = (one) => resource === undefined || one === resource;
  }

  /** Sends the lines that were held back, and no longer holds any. */
  release(): void {
    this.#isHeld = () => false;
    for (const send of this.#held.splice(0)) send();
  }

  /** No longer holds lines; those that were held back are lost. */
  forgetHeld(): void {
    this.#held.splice(0);
    this.release();
  }

  #watch(request: ModelRequest, pathname: string): Served {
    const resource = watchedResource(pathname);
    const watch = new VirtualWatch();
    const line = (text: string): void => {
      if (this.#isHeld(resource)) this.#held.push(() => watch.send(text));
      else watch.send(text);
    };
    const opened = this.server.watch(request, { line, end: (reason) => watch.end(reason) });
    if ('status' in opened) return opened;
    watch.onOver(() => opened.close());
    return { watch };
  }
}

/** Virtual time as the models use it, in whole milliseconds. */
export function schedulerOf({ clock, timers }: Pick<VirtualEnv, 'clock' | 'timers'>): Pick<Scheduler, 'nowMs' | 'after'> {
  return { nowMs: clock.monotonicMs, after: (delayMs, callback) => timers.after(Math.ceil(delayMs), callback) };
}

/** The resource of a collection's path. */
function watchedResource(pathname: string): string {
  const [, group, plural = ''] = /^\/(?:api|apis\/([^/]+))\/[^/]+\/(?:namespaces\/[^/]+\/)?([^/]+)/.exec(pathname) ?? [];
  return group === undefined ? plural : `${plural}.${group}`;
}

/** The merge patch from one object to the other. */
function patchTo(before: Json, after: Json): Json {
  const patch: Record<string, unknown> = Object.fromEntries(Object.keys(before).map((key) => [key, null]));
  for (const [key, value] of Object.entries(after)) {
    const known = before[key];
    patch[key] = isObject(known) && isObject(value) ? patchTo(known, value) : value;
  }
  return patch;
}
