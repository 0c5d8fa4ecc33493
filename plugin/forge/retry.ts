// States when a request to a forge is sent again: after a problem of the network or of the forge, and after a rate limit.
import type { HttpResponse } from '../../cluster/connection/http-exchange.ts';

/** The properties of a request that decide about a second attempt. */
export interface Repeating {
  /** True if a second request has no second effect. */
  readonly isRepeatable: boolean;
  /** Statuses other than 2xx that the caller handles. */
  readonly accepts?: readonly number[];
}

/** The longest wait for one rate limit, in milliseconds. */
const longestWaitMs = 120_000;
/** The first wait for a rate limit without an end. GitHub requests a minute at least, and GitLab counts per minute. */
const unstatedWaitMs = 60_000;

/** Returns the pause before the next attempt in milliseconds; undefined if the answer is final. `attempt` counts from 1. */
export function pauseMs(response: HttpResponse | undefined, request: Repeating, nowMs: number, attempt: number): number | undefined {
  const backoffMs = 500 * 2 ** (attempt - 1);
  if (response === undefined) return backoffMs;
  const limitMs = rateLimitMs(response, nowMs, attempt);
  if (limitMs !== undefined) return limitMs > longestWaitMs ? undefined : Math.max(limitMs, backoffMs);
  const isTransient = response.status >= 500 || response.status === 409 || response.status === 408;
  return isTransient && request.isRepeatable && request.accepts?.includes(response.status) !== true ? backoffMs : undefined;
}

/**
 * Returns the time until the rate limit ends; undefined if the answer is not about a rate limit. Without an end in the answer, returns a minute,
 * and twice as long after each further attempt.
 */
export function rateLimitMs({ status, headers, body }: HttpResponse, nowMs: number, attempt = 1): number | undefined {
  if (status !== 429 && status !== 403) return undefined;
  const { 'retry-after': after = '', 'x-ratelimit-remaining': remaining = '', 'x-ratelimit-reset': reset = '' } = headers;
  if (/^\d{1,9}$/.test(after)) return Number(after) * 1000;
  // At GitHub, the end of the hourly limit says nothing about the other limits.
  const endsAt = remaining === '0' ? reset : status === 429 ? (headers['ratelimit-reset'] ?? '') : '';
  if (/^\d{9,11}$/.test(endsAt)) return Math.max(0, Number(endsAt) * 1000 - nowMs);
  return status === 429 || /rate limit/i.test(body) ? unstatedWaitMs * 2 ** (attempt - 1) : undefined;
}
