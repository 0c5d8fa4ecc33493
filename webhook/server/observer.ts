// What the webhook server tells its metrics.
import type { Failure } from '../review/decide.ts';

/** One HTTP exchange that is over. */
export interface AnsweredRequest {
  readonly method: string;
  /** The path with `_` for whatever is no letter or digit, such as `admission_no_downscale`; `other` for every path that there is not. */
  readonly route: string;
  /** 0 when the client went before there was an answer. */
  readonly status: number;
  readonly durationMs: number;
  /** Of bodies, as far as they were read and written. */
  readonly requestBytes: number;
  readonly responseBytes: number;
}

/** One review that was decided. */
export interface DecidedReview {
  readonly route: string;
  readonly allowed: boolean;
  /** `status.code` of the answer. */
  readonly code?: number;
  readonly failure?: Failure;
  /** The endpoint's own time: the body is read by then. */
  readonly durationMs: number;
}

/** Hears of requests and connections. Must not throw. */
export interface WebhookObserver {
  readonly inflight: (method: string, route: string, change: 1 | -1) => void;
  readonly answered: (request: AnsweredRequest) => void;
  readonly decided: (review: DecidedReview) => void;
  /** `given` is what the header said, empty when there was none or more than one; the route is `<unknown-route>` for a path that there is not. */
  readonly wrongCluster: (request: { readonly route: string; readonly wanted: string; readonly given: string }) => void;
  /** A connection was ended before its first request: too many in all, too many from one address, or no handshake. */
  readonly refusedConnection: (why: 'limit' | 'peer-limit' | 'handshake') => void;
  /** A certificate was taken into use, or could not be. */
  readonly certificate: (isLoaded: boolean) => void;
}

/** The route label of a path, in the way of the metrics of grafana/rollout-operator. */
export function routeLabel(path: string): string {
  return path
    .toLowerCase()
    .replace(/[^a-z\d]+/g, '_')
    .replace(/^_+|_+$/g, '');
}
