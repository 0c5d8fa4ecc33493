// Defines what the webhook server reports to metrics.
import type { Failure } from '../review/decide.ts';

/** A finished HTTP exchange. */
export interface AnsweredRequest {
  readonly method: string;
  /** The path with `_` for other characters than letters and digits, such as `admission_no_downscale`; `other` for unknown paths. */
  readonly route: string;
  /** 0 if the client disconnected before the answer. */
  readonly status: number;
  readonly durationMs: number;
  /** Bytes of bodies, as far as they were read and written. */
  readonly requestBytes: number;
  readonly responseBytes: number;
}

/** A decided review. */
export interface DecidedReview {
  readonly route: string;
  readonly allowed: boolean;
  /** `status.code` of the answer. */
  readonly code?: number;
  readonly failure?: Failure;
  /** The endpoint's own time, after the body was read. */
  readonly durationMs: number;
}

/** Observes requests and connections. Must not throw. */
export interface WebhookObserver {
  readonly inflight: (method: string, route: string, change: 1 | -1) => void;
  readonly answered: (request: AnsweredRequest) => void;
  readonly decided: (review: DecidedReview) => void;
  /** `given` is the value of the header, empty without one or with several; the route is `<unknown-route>` for an unknown path. */
  readonly wrongCluster: (request: { readonly route: string; readonly wanted: string; readonly given: string }) => void;
  /** A connection was closed before its first request: too many in total, too many from one address, or no handshake. */
  readonly refusedConnection: (why: 'limit' | 'peer-limit' | 'handshake') => void;
  /** A certificate was loaded, or could not be loaded. */
  readonly certificate: (isLoaded: boolean) => void;
}

/** Returns the route label of a path, as in the metrics of grafana/rollout-operator. */
export function routeLabel(path: string): string {
  return path
    .toLowerCase()
    .replace(/[^a-z\d]+/g, '_')
    .replace(/^_+|_+$/g, '');
}
