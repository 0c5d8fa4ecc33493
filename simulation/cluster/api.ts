// Defines what the models around the agents need of the API server: reads of the newest state, writes without preconditions, and every
// commit.
import type { Actor, Json, ModelObject, ServerObserver } from '../server/request.ts';

/**
 * The part of the model server that controllers, kubelets and people use. Resources are named as in Commit, for example
 * `statefulsets.apps`.
 */
export interface ClusterApi {
  readonly get: (resource: string, namespace: string, name: string) => ModelObject | undefined;
  readonly list: (resource: string, namespace?: string) => readonly ModelObject[];
  readonly create: (actor: Actor, resource: string, object: Json) => ModelObject;
  /** Undefined if nothing changes. */
  readonly change: (
    actor: Actor,
    resource: string,
    namespace: string,
    name: string,
    patch: Json,
    subresource?: 'status' | 'binding',
  ) => ModelObject | undefined;
  readonly remove: (
    actor: Actor,
    resource: string,
    namespace: string,
    name: string,
    options?: { readonly propagationPolicy?: 'Background' | 'Orphan' },
  ) => boolean;
  /** Deletes the pod gracefully; the grace period defaults to that of the pod. */
  readonly terminate: (actor: Actor, namespace: string, pod: string, graceSeconds?: number) => boolean;
  /** Returns the HTTP status of an eviction. */
  readonly evict: (actor: Actor, namespace: string, pod: string) => number;
  readonly observe: (observer: ServerObserver) => unknown;
}
