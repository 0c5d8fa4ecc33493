import { describe, expect, it } from 'vitest';
import { apiGroupOf, RateLimiter } from '../../cluster/connection/rate-limit.ts';
import { ManualTimers } from './loopback.ts';

function limiter(qps: number, burst: number) {
  const time = { nowMs: 0 };
  const timers = new ManualTimers();
  const throttled: string[] = [];
  const clock = { monotonicMs: () => time.nowMs };
  const limited = new RateLimiter({ qps, burst, clock, timers, onThrottled: (group) => throttled.push(group) });
  /** How long each of so many requests that come now has to wait, in milliseconds. */
  const waits = (count: number, path = '/api/v1/pods', timeoutMs = 60_000): readonly (number | undefined)[] =>
    Array.from({ length: count }, () => (limited.turn(path, timeoutMs) === undefined ? undefined : timers.delaysMs.at(-1)));
  return { time, timers, throttled, limited, waits };
}

describe('the rate limiter', () => {
  it('lets a burst pass, then one request each interval, in order', () => {
    const { time, waits } = limiter(5, 3);
    expect(waits(5)).toEqual([undefined, undefined, undefined, 200, 400]);
    time.nowMs = 1000;
    expect(waits(4)).toEqual([undefined, undefined, undefined, 200]);
  });

  it('saves at most one burst', () => {
    const { time, waits } = limiter(5, 2);
    time.nowMs = 3_600_000;
    expect(waits(3)).toEqual([undefined, undefined, 200]);
  });

  it('wakes a waiting request', async () => {
    const { limited, timers } = limiter(1, 1);
    expect(limited.turn('/api', 5000)).toBeUndefined();
    const waiting = limited.turn('/api', 5000);
    timers.fire();
    await expect(waiting).resolves.toBeUndefined();
  });

  it('rejects a request at once if it would be too late, and it takes no slot', () => {
    const { throttled, waits } = limiter(1, 1);
    expect(waits(2)).toEqual([undefined, 1000]);
    expect(() => waits(1, '/apis/apps/v1/statefulsets', 0)).not.toThrow();
    expect(() => waits(1, '/apis/apps/v1/statefulsets', 999)).toThrow(
      'the client-side rate limiter of API group "apps" has no capacity for the request within 999 ms; it was not sent',
    );
    expect(waits(1, '/apis/apps/v1/statefulsets', 1000)).toEqual([1000]);
    expect(throttled).toEqual(['apps']);
  });

  it('has a bucket for each API group, and none for Leases', () => {
    const { waits } = limiter(1, 1);
    expect(waits(2, '/api/v1/pods')).toEqual([undefined, 1000]);
    expect(waits(2, '/apis/apps/v1/statefulsets')).toEqual([undefined, 1000]);
    expect(waits(2, '/api/v1/nodes')).toEqual([2000, 3000]);
    expect(waits(3, '/apis/coordination.k8s.io/v1/namespaces/a/leases/b')).toEqual([undefined, undefined, undefined]);
  });

  it.each([
    [0, 10],
    [-1, 10],
    [5, 0],
    [Number.NaN, 10],
  ])('has no limit with qps %d and burst %d', (qps, burst) => {
    expect(limiter(qps, burst).waits(20)).toEqual(Array(20).fill(undefined));
  });

  it.each([
    ['/api', 'core'],
    ['/api/v1/namespaces/x/pods?watch=1', 'core'],
    ['/apis', 'apis'],
    ['/apis?timeout=32s', 'apis'],
    ['/apis/apps/v1/statefulsets', 'apps'],
    ['/apis/rollout.example/v1/x', 'rollout.example'],
    ['/', '/'],
    ['/healthz', '/healthz'],
    ['/openapi/v2', '/openapi'],
  ])('counts %s as %s', (path, group) => {
    expect(apiGroupOf(path)).toBe(group);
  });
});
