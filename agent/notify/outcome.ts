// Derives the outcome of a notification from the service's response: delivered, uncertain, or when to retry.
import type { NotifyResponse } from '../env.ts';

export type Outcome =
  /** Under this handle when it can be edited. */
  | { readonly kind: 'arrived'; readonly handle?: string }
  /** It did not, and never will. */
  | { readonly kind: 'refused'; readonly problem: string }
  /** Not delivered; a setting must change first. */
  | { readonly kind: 'unavailable'; readonly problem: string }
  /** It did not, and may be sent again after a while. */
  | { readonly kind: 'busy'; readonly problem: string; readonly afterMs: number }
  /** Delivery is uncertain. */
  | { readonly kind: 'unknown'; readonly problem: string };

const longestPauseMs = 3_600_000;
const usualPauseMs = 30_000;

/** Returns the outcome of a failed response. Its body is dropped, because it may repeat the request. */
export function outcomeOf(response: NotifyResponse, nowMs: number): Exclude<Outcome, { readonly kind: 'arrived' }> {
  const { status, headers } = response;
  const problem = `the service answered ${status}`;
  // GitHub says that too much was asked with 403, a pause or an empty budget, and only else means what 403 says.
  const isLimited = status === 403 && (headers['retry-after'] !== undefined || headers['x-ratelimit-remaining'] === '0');
  if (status === 429 || status === 408 || status === 425 || isLimited) return { kind: 'busy', problem, afterMs: pauseOf(headers, nowMs) };
  if (status >= 300 && status < 400) return { kind: 'unavailable', problem: `${problem}, a redirect, which the agent does not follow` };
  if (status === 401 || status === 403 || status === 404 || status === 407) return { kind: 'unavailable', problem };
  if (status >= 400 && status < 500) return { kind: 'refused', problem };
  return { kind: 'unknown', problem };
}

/** States how long the service wants to be left alone: Retry-After in seconds or as a date, or the instant at which a budget is filled again. */
export function pauseOf(headers: NotifyResponse['headers'], nowMs: number): number {
  const after = headers['retry-after'];
  const seconds = Number(after ?? Number.NaN);
  const resetMs = Number(headers['x-ratelimit-reset'] ?? Number.NaN) * 1000;
  const wanted = Number.isFinite(seconds) ? seconds * 1000 : after === undefined ? resetMs - nowMs : Date.parse(after) - nowMs;
  return Number.isFinite(wanted) ? Math.min(longestPauseMs, Math.max(1000, wanted)) : usualPauseMs;
}
