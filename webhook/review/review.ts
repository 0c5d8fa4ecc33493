// An AdmissionReview as handlers see it, and what they answer.
import type { JsonObject } from '../../cluster/request/json.ts';

/** `group/version/resource` in parts, as in `request.resource`. */
export interface GroupVersionResource {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
}

export interface GroupVersionKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** Who asks, as the API server has authenticated them. */
export interface ReviewUser {
  readonly name: string;
  readonly groups: readonly string[];
}

/**
 * One request of the API server, taken apart. Nothing in it is to be believed beyond what it asks: anybody who reaches the port can send one, so
 * whatever an answer rests on is read from the API server.
 */
export interface Review {
  readonly apiVersion: 'admission.k8s.io/v1' | 'admission.k8s.io/v1beta1';
  readonly uid: string;
  readonly kind: GroupVersionKind;
  readonly resource: GroupVersionResource;
  /** Empty without one. */
  readonly subresource: string;
  readonly operation: string;
  /** Empty for what has none yet, or belongs to no namespace. */
  readonly namespace: string;
  readonly name: string;
  readonly user: ReviewUser;
  /** undefined when absent or null; anything but an object is a malformed review. */
  readonly object?: JsonObject;
  readonly oldObject?: JsonObject;
  readonly options?: JsonObject;
  /** False when absent. */
  readonly dryRun: boolean;
}

/** One operation of a JSON patch (RFC 6902). */
export type PatchOperation =
  | { readonly op: 'test' | 'add' | 'replace'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string };

/** What a handler says. It goes out with HTTP status 200, whether it allows or not. */
export interface Answer {
  readonly allowed: boolean;
  /** `status.code`; left out where the original gives none, and then the API server reports 400. */
  readonly code?: number;
  /** `status.reason`, such as `TooManyRequests`. */
  readonly reason?: string;
  /** `status.message`. */
  readonly message?: string;
  /** Seconds, as `status.details.retryAfterSeconds`. */
  readonly retryAfterSeconds?: number;
  readonly warnings?: readonly string[];
  /** Mutating endpoints only. */
  readonly patch?: readonly PatchOperation[];
  /** Keys without prefix: the API server puts the webhook's name before them. */
  readonly auditAnnotations?: Readonly<Record<string, string>>;
}

/** What a handler may count on while it works. */
export interface Call {
  /** Monotonic clock of the process: by then the answer must be there. Every request to the API server or a pod ends before. */
  readonly deadlineMs: number;
  /** Aborted at the deadline, and when the client has gone. */
  readonly signal: AbortSignal;
}

/** One endpoint. */
export interface Endpoint {
  /** Such as `/admission/no-downscale`. */
  readonly path: string;
  /** May reject: that is a defect or a failure that it has not thought of, and `onFailure` answers. */
  readonly handle: (review: Review, call: Call) => Promise<Answer>;
  /** When `handle` rejects, or does not answer in time. What protects denies; what only helps allows. */
  readonly onFailure: (review: Review, problem: string) => Answer;
}

/** Milliseconds that are left until the deadline, at least 0: the time-out of the next request. */
export function leftMs({ deadlineMs }: Call, monotonicMs: number): number {
  return Math.max(0, deadlineMs - monotonicMs);
}
