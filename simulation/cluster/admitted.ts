// Defines the requests that the webhooks review before the API server performs them.

import type { Answer, Review } from '../../webhook/review/review.ts';
import type { Reviewed } from '../oracles/oracle.ts';
import type { Life } from '../process/life.ts';
import type { Scheduler } from '../scheduler.ts';
import type { Actor, Json, ModelRequest, ModelResponse } from '../server/request.ts';
import type { ModelServer } from '../server/server.ts';

export interface ReviewedRequest {
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE';
  /** The plural and the group, such as `pods` or `statefulsets.apps`. */
  readonly resource: string;
  /** Empty without a subresource. */
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  readonly actor: Actor;
  /** The UID of the stored object; absent for a new object. */
  readonly uid?: string;
  readonly object?: Json;
  readonly oldObject?: Json;
}

/** The decision about a request: the actor and the object to store, or the error for the client. */
export type Verdict =
  | { readonly isAllowed: true; readonly actor: Actor; readonly object: Json }
  | { readonly isAllowed: false; readonly status: number; readonly message: string };

/** The API server repeats the review of a patch if the object changed meanwhile. */
export const mostReviews = 5;

/** Asks the webhooks, and calls back once. */
export type Admit = (request: ReviewedRequest, decided: (verdict: Verdict) => void) => void;

/** Admits every request at once, as the API server does without webhooks. */
export const admitAll: Admit = ({ actor, object = {} }, decided) => decided({ isAllowed: true, actor, object });

/** Returns the eviction of a pod, as a request. */
export function evictionOf(
  pod: { readonly namespace: string; readonly name: string; readonly uid: string },
  actor: Actor,
): ReviewedRequest {
  const { namespace, name, uid } = pod;
  const object = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } };
  return { operation: 'CREATE', resource: 'pods', subresource: 'eviction', namespace, name, actor, uid, object };
}

/** A webhook of an installation. */
export interface InstalledWebhook {
  readonly name: string;
  readonly path: string;
  readonly isMutating: boolean;
  /** True if the webhook counts disruptions: /admission/enforce, and /admission/pod-eviction with a ZoneAwarePodDisruptionBudget. */
  readonly isJudging: boolean;
  readonly failurePolicy: 'Fail' | 'Ignore';
  readonly timeoutMs: number;
  /** True if the API server may call the webhook again after another webhook changed the object. */
  readonly isReinvoked: boolean;
  readonly covers: (request: Pick<ReviewedRequest, 'resource' | 'subresource' | 'operation'>) => boolean;
  /** Returns whether the API server asks the webhook about the request; undefined if a match condition fails. */
  readonly isAsked: (request: ReviewedRequest) => boolean | undefined;
}

/** A process whose webhooks answer reviews. */
export interface Reviewer {
  readonly life: Life;
  readonly review: (path: string, review: Review) => Promise<Answer>;
}

/** The webhooks of a simulation. */
export interface Admission {
  readonly ask: Admit;
  readonly webhooks: readonly InstalledWebhook[];
  /** Delays every call by this time; undefined makes every call fail at once. */
  readonly setDelay: (delayMs: number | undefined) => void;
  /** Reviews the request of an agent. */
  readonly admit: (request: ModelRequest, decided: (denial?: ModelResponse) => void) => void;
}

/** The parts of a simulation with which its webhooks work. */
export interface AdmissionPorts {
  readonly scheduler: Pick<Scheduler, 'nowMs' | 'after'>;
  readonly server: Pick<ModelServer, 'handle' | 'get'>;
  /** Returns the ready processes, which the Service of the webhook selects. */
  readonly reviewers: () => readonly Reviewer[];
  readonly note: (...parts: readonly (string | number)[]) => void;
  /** Receives each call and its outcome. */
  readonly reviewed: (reviewed: Reviewed) => void;
}

const objectPath = /^\/(?:api\/v1|apis\/([^/]+)\/[^/]+)\/namespaces\/([^/]+)\/([^/?]+)(?:\/([^/?]+))?(?:\/([^/?]+))?/;

/** Returns the object of a request; its name is empty for a list, and all parts are empty outside a namespace. */
export function objectOfPath(path: string): Pick<ReviewedRequest, 'resource' | 'subresource' | 'namespace' | 'name'> {
  const [, group, namespace = '', plural = '', name = '', subresource = ''] = objectPath.exec(path) ?? [];
  return { resource: group === undefined ? plural : `${plural}.${group}`, subresource, namespace, name: decodeURIComponent(name) };
}
