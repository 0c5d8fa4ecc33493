// Defines the requests of people and drains that the webhooks review before the API server performs them.
import type { Review } from '../../webhook/review/review.ts';
import type { Actor, ModelObject } from '../server/request.ts';

export interface ReviewedRequest {
  readonly verb: 'deletePod' | 'evictPod';
  readonly namespace: string;
  readonly name: string;
  readonly actor: Actor;
  /** The stored pod. */
  readonly pod: ModelObject;
}

/** Asks the webhooks, and calls back once: with the actor of the request, or with undefined if it is denied. */
export type Admit = (request: ReviewedRequest, decided: (actor: Actor | undefined) => void) => void;

/** Admits every request at once, as the API server does without webhooks. */
export const admitAll: Admit = ({ actor }, decided) => decided(actor);

/** Returns the review of the request as the API server sends it. */
export function objectReview({ verb, namespace, name, actor, pod }: ReviewedRequest, uid: string): Review {
  const isEviction = verb === 'evictPod';
  return {
    apiVersion: 'admission.k8s.io/v1',
    uid,
    kind: isEviction ? { group: 'policy', version: 'v1', kind: 'Eviction' } : { group: '', version: 'v1', kind: 'Pod' },
    resource: { group: '', version: 'v1', resource: 'pods' },
    subresource: isEviction ? 'eviction' : '',
    operation: isEviction ? 'CREATE' : 'DELETE',
    namespace,
    name,
    user: { name: actor.user, groups: ['system:authenticated'] },
    ...(isEviction ? { object: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } } } : { oldObject: pod }),
    dryRun: false,
  };
}
