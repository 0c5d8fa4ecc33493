// Defines the AdmissionReview that endpoints get, and their answer.
import { asJsonObject, type JsonObject } from '../../cluster/request/json.ts';

export interface ReviewUser {
  readonly name: string;
  readonly groups: readonly string[];
}

/** A parsed request. Any client can send one, so endpoints read the facts for their answer from the API server. */
export interface Review {
  readonly apiVersion: 'admission.k8s.io/v1' | 'admission.k8s.io/v1beta1';
  readonly uid: string;
  readonly kind: Readonly<Record<'group' | 'version' | 'kind', string>>;
  readonly resource: Readonly<Record<'group' | 'version' | 'resource', string>>;
  /** Empty without a subresource. */
  readonly subresource: string;
  readonly operation: string;
  /** Empty for cluster-scoped objects. */
  readonly namespace: string;
  readonly name: string;
  readonly user: ReviewUser;
  /** Undefined if absent or null. A value that is not an object makes the review malformed. */
  readonly object?: JsonObject;
  readonly oldObject?: JsonObject;
  readonly options?: JsonObject;
  /** False if absent. */
  readonly dryRun: boolean;
}

/** One operation of a JSON patch (RFC 6902). */
export type PatchOperation =
  | { readonly op: 'test' | 'add' | 'replace'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string };

/** The answer of an endpoint. Its HTTP status is 200, also for a denial. */
export interface Answer {
  readonly allowed: boolean;
  /** `status.code`. If it is absent, the API server returns 400 for a denial. */
  readonly code?: number;
  /** `status.reason`, such as `TooManyRequests`. */
  readonly reason?: string;
  /** `status.message`. */
  readonly message?: string;
  /** Seconds, as `status.details.retryAfterSeconds`. */
  readonly retryAfterSeconds?: number;
  readonly warnings?: readonly string[];
  /** Only for mutating endpoints. */
  readonly patch?: readonly PatchOperation[];
  /** True if the request passes although the endpoint could not read what it needs for a decision. Not part of the AdmissionReview. */
  readonly isUnjudged?: true;
  /** Keys without prefix: the API server adds the name of the webhook. */
  readonly auditAnnotations?: Readonly<Record<string, string>>;
}

/** The `reason` that Kubernetes assigns to each code. */
const statusReasons: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  403: 'Forbidden',
  422: 'Invalid',
  429: 'TooManyRequests',
  500: 'InternalError',
};

export function deny(code: number, message: string): Answer {
  const reason = statusReasons[code];
  return { allowed: false, code, message, ...(reason === undefined ? {} : { reason }) };
}

export interface Call {
  /** Deadline of the answer on the monotonic clock. All requests to the API server or to pods end before. */
  readonly deadlineMs: number;
  /** Aborted at the deadline, and if the client disconnects. */
  readonly signal: AbortSignal;
}

export interface Endpoint {
  /** For example `/admission/no-downscale`. */
  readonly path: string;
  /** May reject on unexpected failures; then `onFailure` answers. */
  readonly handle: (review: Review, call: Call) => Promise<Answer>;
  /** Answers if `handle` rejects or is late, or if the process is overloaded. Protective endpoints deny; others allow. */
  readonly onFailure: (review: Review, problem: string) => Answer;
}

/** Returns the milliseconds until the deadline, at least 0: the timeout of the next request. */
export function leftMs({ deadlineMs }: Call, monotonicMs: number): number {
  return Math.max(0, deadlineMs - monotonicMs);
}

/** Returns whether the request is a dry run. `kubectl drain --dry-run=server` says so only in the delete options of an eviction. */
export function isDryRun({ dryRun, object, subresource }: Review): boolean {
  const options = asJsonObject(asJsonObject(object)['deleteOptions'])['dryRun'];
  return dryRun || (subresource === 'eviction' && Array.isArray(options) && options.includes('All'));
}

const ellipsis = '…';

/** Returns the text in at most `maxBytes` (at least 3) bytes of UTF-8, ending with an ellipsis if it was longer. */
export function boundedText(text: string, maxBytes: number): string {
  // Each UTF-16 unit takes at least one byte, so the rest cannot fit.
  const bytes = Buffer.from(text.slice(0, maxBytes + 1));
  if (bytes.length <= maxBytes) return bytes.toString();
  let end = maxBytes - Buffer.byteLength(ellipsis);
  // A byte 10xxxxxx continues the previous character.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end) + ellipsis;
}
