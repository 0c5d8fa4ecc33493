// Limits requests with one token bucket per API group, like grafana/rollout-operator.
import type { Clock, Timers } from '../env.ts';

export interface RateLimit {
  /** Requests per second, in each API group. 0 or less: no limit. */
  readonly qps: number;
  /** States how many may be sent at once after a pause. 0 or less: no limit. */
  readonly burst: number;
}

interface RateLimiterOptions extends RateLimit {
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly timers: Timers;
  /** A request was refused because its deadline comes before its turn. */
  readonly onThrottled?: (apiGroup: string) => void;
}

/** The request's deadline comes before its turn, so it was not sent. */
class RateLimited extends Error {
  override readonly name = 'RateLimited';
  readonly apiGroup: string;

  constructor(apiGroup: string, timeoutMs: number) {
    super(
      `the client-side rate limiter of API group "${apiGroup}" has no capacity for the request within ${Math.round(timeoutMs)} ms; it was not sent`,
    );
    this.apiGroup = apiGroup;
  }
}

/** Tokens may be below zero: those are the requests that already wait. */
interface Bucket {
  tokens: number;
  atMs: number;
}

/**
 * Passes requests in the order of their arrival. A watch counts as one request, when it opens.
 *
 * Requests of Leases never wait: a delayed renewal costs the leadership. Leases have the separate API group
 * `coordination.k8s.io` without other kinds, so exempting the group is enough.
 */
export class RateLimiter {
  readonly #options: RateLimiterOptions;
  readonly #buckets = new Map<string, Bucket>();

  constructor(options: RateLimiterOptions) {
    this.#options = options;
  }

  /**
   * Undefined when the request may be sent at once; otherwise resolves when it may.
   * @param path as in the request: without the prefix that the server's address may have
   * @throws {RateLimited} at once, when the turn comes after `timeoutMs`; the request then takes no token
   */
  turn(path: string, timeoutMs: number): Promise<void> | undefined {
    const { qps, burst, clock, timers, onThrottled } = this.#options;
    const apiGroup = apiGroupOf(path);
    if (!(qps > 0 && burst > 0) || apiGroup === 'coordination.k8s.io') return undefined;
    const nowMs = clock.monotonicMs();
    const bucket = this.#buckets.get(apiGroup) ?? { tokens: burst, atMs: nowMs };
    const tokens = Math.min(burst, bucket.tokens + ((nowMs - bucket.atMs) / 1000) * qps) - 1;
    const waitMs = tokens >= 0 ? 0 : (-tokens / qps) * 1000;
    if (waitMs > timeoutMs) {
      onThrottled?.(apiGroup);
      throw new RateLimited(apiGroup, timeoutMs);
    }
    this.#buckets.set(apiGroup, { tokens, atMs: nowMs });
    return waitMs === 0 ? undefined : new Promise((resolve) => timers.after(waitMs, resolve));
  }
}

/** The name of the bucket, which metrics show too: `core`, a group, or the first part of the path of what belongs to no group. */
export function apiGroupOf(path: string): string {
  const [first = '', second = ''] = path
    .replace(/[?#].*$/, '')
    .split('/')
    .slice(1);
  if (first === 'api') return 'core';
  if (first === 'apis') return second === '' ? 'apis' : second;
  return `/${first}`;
}
