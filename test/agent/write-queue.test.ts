import { describe, expect, it } from 'vitest';
import { WriteQueue } from '../../agent/published/write-queue.ts';
import { ApiFailure } from '../../cluster/request/failure.ts';
import { virtualEnv } from '../kit/virtual-env.ts';

/** A queue whose writes are all answered with this status, and the pauses between its attempts in seconds. */
async function pausesAfter(status: number, forMs: number): Promise<readonly number[]> {
  const env = virtualEnv({ serve: () => Promise.reject(new Error('nothing is sent')) });
  const atMs: number[] = [];
  const queue = new WriteQueue({
    env,
    everyMs: 0,
    write: () => {
      atMs.push(env.clock.monotonicMs());
      return Promise.reject(new ApiFailure({ status, headers: {}, body: '' }, 'test.write'));
    },
    mayWrite: () => true,
    onFailure: () => undefined,
  });
  queue.queueWrite('a');
  await env.advance(forMs);
  return atMs.slice(1).map((instant, index) => (instant - (atMs[index] ?? 0)) / 1000);
}

it('writes nothing while the process may not, and then the newest value; the hand-over writes it in any case', async () => {
  const env = virtualEnv({ serve: () => Promise.reject(new Error('nothing is sent')) });
  const written: string[] = [];
  let value = 'old';
  let mayWrite = false;
  const queue = new WriteQueue({
    env,
    everyMs: 0,
    mayWrite: () => mayWrite,
    write: async (key) => {
      written.push(`${key} ${value}`);
      return 'written';
    },
    onFailure: () => undefined,
  });
  queue.queueWrite('a');
  await env.advance(60_000);
  expect(written).toEqual([]);
  value = 'new';
  mayWrite = true;
  await env.advance(2_000);
  expect(written).toEqual(['a new']);
  mayWrite = false;
  queue.queueWrite('b');
  await queue.close();
  expect(written).toEqual(['a new', 'b new']);
});

describe('a rejected write', () => {
  it.each([401, 403, 404])(
    'with %s is retried within half a minute, later at least every five, and not together with others',
    async (status) => {
      const pauses = await pausesAfter(status, 3_600_000);
      const longest = [30, 60, 120, 240, 300, 300, 300];
      for (const [index, limit] of longest.entries()) {
        expect(pauses[index]).toBeGreaterThanOrEqual(limit / 2);
        expect(pauses[index]).toBeLessThanOrEqual(limit);
      }
      expect(Math.max(...pauses)).toBeLessThanOrEqual(300);
      expect(new Set(pauses.slice(4)).size).toBeGreaterThan(1);
    },
  );

  it('for other reasons is retried within a second, and at least every minute however long it lasts', async () => {
    const pauses = await pausesAfter(500, 3_600_000);
    expect(pauses[0]).toBeLessThanOrEqual(1);
    expect(Math.max(...pauses)).toBeGreaterThan(30);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(60);
  });
});
