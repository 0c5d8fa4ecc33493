// Limits requests with one token bucket per API group, like grafana/rollout-operator.
import type { Clock, Timers } from '../env.ts';

export interface RateLimit {
  /** The requests per second in each API group. 0 or less: no limit. */
  readonly qps: number;
  /** The requests that may be sent at once after a pause. 0 or less: no limit. */
  readonly burst: number;
}

interface RateLimiterOptions extends RateLimit {
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly timers: Timers;
  /** Runs for each request that would have to wait longer than its timeout. */
  readonly onThrottled?: (apiGroup: string) => void;
}

/** The failure of a request that would have to wait longer than its timeout. The request is not sent. */
class RateLimited extends Error {
  override readonly name = 'RateLimited';

  constructor(apiGroup: string, timeoutMs: number) {
    const time = `${Math.round(timeoutMs)} ms`;
    super(`the client-side rate limiter of API group "${apiGroup}" has no capacity for the request within ${time}; it was not sent`);
  }
}

/** Delays requests in order of arrival. Requests for Leases never wait, because a delayed renewal loses the leadership. */
export class RateLimiter {
  readonly #options: RateLimiterOptions;
  /** The tokens by API group. A negative number counts the requests that already wait. */
  readonly #buckets = new Map<string, { tokens: number; atMs: number }>();

  constructor(options: RateLimiterOptions) {
    this.#options = options;
  }

  /**
   * Takes a token for a request. Returns undefined if the request may be sent now, otherwise a promise that resolves when it may be sent.
   * Throws RateLimited and takes no token if the wait exceeds `timeoutMs`. `path` begins after the path of the server's URL, such as `/apis/apps/v1`.
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

/** Returns the API group of a path for the rate limit and for metrics: `core`, the group, or else the first part of the path. */
export function apiGroupOf(path: string): string {
  const [first = '', second = ''] = path
    .replace(/[?#].*$/, '')
    .split('/')
    .slice(1);
  if (first === 'api') return 'core';
  if (first === 'apis') return second === '' ? 'apis' : second;
  return `/${first}`;
}
