// Sends the writes of people and autoscalers to the API server, which asks the webhooks first.
import { numberAt } from '../objects.ts';
import { mergePatch, objectOf } from '../server/json.ts';
import { applied, type Manifest } from '../server/managed-fields.ts';
import type { Actor, Json, ModelObject } from '../server/request.ts';
import { type Admit, admitAll, mostReviews, type ReviewedRequest } from './admitted.ts';
import type { ClusterApi } from './world.ts';

interface ObjectRef {
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
}

/** Callbacks after a request: `done` if it is allowed, `denied` if it is not. */
interface Callbacks {
  readonly done?: () => void;
  readonly denied?: () => void;
}

/** A request that begins when the earlier requests for its object have ended, and calls `end` with the next callback. */
type Turn = (end: (next?: () => void) => void) => void;

interface Update {
  readonly reference: ObjectRef;
  /** Returns the request for the stored object; undefined if nothing is left to change. */
  readonly review: (stored: ModelObject) => ReviewedRequest | undefined;
  /** Writes the admitted object. */
  readonly write: (actor: Actor, object: Json) => void;
}

/** The pause after which people and GitOps tools repeat a denied write. */
export const repeatMs = 20_000;

/** Sends writes. The requests for one object follow each other. Without webhooks, each write happens at once. */
export class Client {
  readonly #server: ClusterApi;
  readonly #admit: Admit;
  readonly #waiting = new Map<string, Turn[]>();
  /** True if webhooks review the writes. */
  readonly isReviewed: boolean;

  constructor(server: ClusterApi, admit: Admit | undefined) {
    this.#server = server;
    this.#admit = admit ?? admitAll;
    this.isReviewed = admit !== undefined;
  }

  /** Creates the object, unless it exists when the webhooks have answered. */
  create(actor: Actor, resource: string, object: Json, { done, denied }: Callbacks = {}): void {
    const { name, namespace = '' } = object['metadata'] as ModelObject['metadata'];
    this.#inTurn({ resource, namespace, name }, (end) =>
      this.#admit({ operation: 'CREATE', resource, subresource: '', namespace, name, actor, object }, (verdict) => {
        const isNew = this.#server.get(resource, namespace, name) === undefined && !this.#server.isTerminating(namespace);
        if (verdict.isAllowed && isNew) this.#server.create(verdict.actor, resource, verdict.object);
        end(verdict.isAllowed ? done : denied);
      }),
    );
  }

  /** Merges a change into the object. The change is computed when the earlier requests for the object have ended. */
  change(actor: Actor, reference: ObjectRef, changeOf: (stored: ModelObject) => Json | undefined, callbacks: Callbacks = {}): void {
    let change: Json | undefined;
    const review = (stored: ModelObject): ReviewedRequest | undefined => {
      change = changeOf(stored);
      const object = mergePatch(stored, change ?? {}) as Json;
      return object === stored ? undefined : { ...requestOf(actor, reference, stored), oldObject: stored, object };
    };
    const write = (by: Actor, { spec }: Json): void => {
      const { requestedBy } = objectOf(spec);
      // A mutating webhook changes only the requester.
      const stamp = requestedBy === undefined ? {} : { spec: { ...objectOf(change?.['spec']), requestedBy } };
      this.#server.change(by, reference, { ...change, ...stamp });
    };
    this.#inTurn(reference, (end) => this.#update({ reference, review, write }, callbacks, end));
  }

  /** Applies a manifest by server-side apply. Calls `denied` also after a conflict with another manager. */
  apply(actor: Actor, reference: ObjectRef, manifest: Manifest, { done, denied }: Callbacks = {}): void {
    let isApplied = true;
    const review = (stored: ModelObject): ReviewedRequest | undefined => {
      const result = applied(stored, manifest, '');
      isApplied = !('conflicts' in result);
      return 'conflicts' in result ? undefined : { ...requestOf(actor, reference, stored), oldObject: stored, object: result.object };
    };
    const write = (by: Actor): void => {
      isApplied = this.#server.apply(by, reference, manifest);
    };
    const ended = (): void => (isApplied ? done?.() : denied?.());
    this.#inTurn(reference, (end) =>
      this.#update({ reference, review, write }, { done: ended, ...(denied === undefined ? {} : { denied }) }, end),
    );
  }

  /** Writes the replicas through the subresource `scale` of a StatefulSet. */
  scale(actor: Actor, reference: ObjectRef, replicas: number, callbacks: Callbacks = {}): void {
    const review = (stored: ModelObject): ReviewedRequest => ({
      ...requestOf(actor, reference, stored),
      subresource: 'scale',
      oldObject: scaleOf(stored, numberAt(stored, 'spec', 'replicas') ?? 1),
      object: scaleOf(stored, replicas),
    });
    const write = (by: Actor): void => void this.#server.change(by, reference, { spec: { replicas } });
    this.#inTurn(reference, (end) => this.#update({ reference, review, write }, callbacks, end));
  }

  /** Deletes the object. */
  remove(actor: Actor, reference: ObjectRef, propagationPolicy: 'Background' | 'Orphan', { done, denied }: Callbacks = {}): void {
    this.#inTurn(reference, (end) => {
      const stored = this.#read(reference);
      if (stored === undefined) end(done);
      else
        this.#admit({ ...requestOf(actor, reference, stored), operation: 'DELETE', oldObject: stored }, (verdict) => {
          if (verdict.isAllowed) this.#server.remove(verdict.actor, reference, { propagationPolicy });
          end(verdict.isAllowed ? done : denied);
        });
    });
  }

  #read({ resource, namespace, name }: ObjectRef): ModelObject | undefined {
    return this.#server.get(resource, namespace, name);
  }

  #inTurn({ resource, namespace, name }: ObjectRef, turn: Turn): void {
    const key = `${resource} ${namespace}/${name}`;
    const waiting = this.#waiting.get(key);
    if (waiting !== undefined) {
      waiting.push(turn);
      return;
    }
    const turns: Turn[] = [turn];
    this.#waiting.set(key, turns);
    const begin = (): void => {
      const next = turns.shift();
      if (next === undefined) this.#waiting.delete(key);
      else
        next((then) => {
          begin();
          then?.();
        });
    };
    begin();
  }

  #update(update: Update, callbacks: Callbacks, end: (next?: () => void) => void, attempt = 1): void {
    const stored = this.#read(update.reference);
    const request = stored && update.review(stored);
    if (stored === undefined || request === undefined) {
      end(callbacks.done);
      return;
    }
    this.#admit(request, (verdict) => {
      if (!verdict.isAllowed) end(callbacks.denied);
      else if (this.#read(update.reference)?.metadata.resourceVersion !== stored.metadata.resourceVersion && attempt < mostReviews)
        this.#update(update, callbacks, end, attempt + 1);
      else {
        update.write(verdict.actor, verdict.object);
        end(callbacks.done);
      }
    });
  }
}

function requestOf(actor: Actor, reference: ObjectRef, { metadata }: ModelObject): Omit<ReviewedRequest, 'object' | 'oldObject'> {
  return { operation: 'UPDATE', ...reference, subresource: '', actor, uid: metadata.uid };
}

function scaleOf({ metadata: { name, namespace, uid, resourceVersion } }: ModelObject, replicas: number): Json {
  return { apiVersion: 'autoscaling/v1', kind: 'Scale', metadata: { name, namespace, uid, resourceVersion }, spec: { replicas } };
}
