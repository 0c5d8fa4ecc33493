import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { resources } from '../../cluster/request/resource.ts';
import { SharedObject } from '../../cluster/shared/shared-object.ts';
import { ModelApi } from '../kit/model-server.ts';
import { type Serve, seededRandom, status, type VirtualEnv, virtualEnv } from '../kit/virtual-env.ts';

type List = readonly string[];

function storedIn(api: ModelApi): List {
  const data = api.get('configmaps', 'ns', 'list')?.['data'] as { readonly list: string } | undefined;
  return data === undefined ? [] : (JSON.parse(data.list) as List);
}

function sharedList(env: VirtualEnv): SharedObject<List> {
  return new SharedObject<List>({
    env,
    resource: resources.configMaps,
    namespace: 'ns',
    name: 'list',
    decode: (object) => JSON.parse((object?.['data'] as { list?: string } | undefined)?.list ?? '[]') as List,
    encode: (value) => ({ data: { list: JSON.stringify(value) } }),
    site: 'test',
  });
}

/** Answers as the server, and does to each tenth or so what networks and servers do. */
function unreliable(api: ModelApi, env: VirtualEnv, random: () => number, share: number): Serve {
  const wait = (delayMs: number) =>
    new Promise<void>((resolve) => {
      env.timers.after(delayMs, resolve);
    });
  return async (request) => {
    await wait(1 + random() * 20);
    if (random() >= share) return { ...(await api.serve(request)), delayMs: random() * 20 };
    switch (Math.floor(random() * 8)) {
      case 0:
        return { lost: 'before-apply' };
      case 1:
        return { lost: 'reply' };
      case 2:
        await api.serve(request);
        return { lost: 'reply', delayMs: random() * 15_000 };
      case 3:
        // Takes effect long after its sender has given it up.
        await wait(random() * 40_000);
        return api.serve(request);
      case 4:
        await api.serve(request);
        return status(504, 'Timeout');
      case 5:
        return status(409, 'Conflict');
      case 6:
        return status(503, 'ServiceUnavailable');
      default:
        return { ...(await api.serve(request)), body: '{"metadata":{"na' };
    }
  };
}

describe('shared objects of several processes on an unreliable server', () => {
  it('contain each change exactly once, or not at all if its sender got an error', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer(), fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 40 }), async (seed, writers, changes) => {
        const env = virtualEnv({ seed });
        const api = new ModelApi({ env, seed });
        const random = seededRandom(seed);
        env.replaceServer(unreliable(api, env, random, 0.25));
        const objects = Array.from({ length: writers }, () => sharedList(env));
        const outcomes = new Map<string, 'stored' | 'not stored' | 'unknown'>();
        const work = Array.from({ length: changes }, async (_, index) => {
          await new Promise<void>((resolve) => {
            env.timers.after(random() * 5000, resolve);
          });
          const item = `change-${index}`;
          await objects[index % writers]
            ?.update((list) => [...list, item])
            .then(
              ({ value }) => outcomes.set(item, value.includes(item) ? 'stored' : 'unknown'),
              (error: { mayBeApplied?: boolean }) => outcomes.set(item, error.mayBeApplied === true ? 'unknown' : 'not stored'),
            );
        });
        await env.finish(Promise.all(work), 3_600_000);
        // Until the last late write has arrived.
        await env.advance(120_000);
        const stored = storedIn(api);
        expect(new Set(stored).size).toBe(stored.length);
        for (const [item, outcome] of outcomes) {
          if (outcome !== 'unknown') expect([item, outcome, stored.includes(item)]).toEqual([item, outcome, outcome === 'stored']);
        }
        expect([outcomes.size, env.timerCount()]).toEqual([changes, 0]);
      }),
      { numRuns: 150 },
    );
  });

  it('let 20 processes that write at the same moment all succeed within 2 seconds', async () => {
    const env = virtualEnv();
    const api = new ModelApi({ env });
    env.replaceServer(unreliable(api, env, seededRandom(7), 0));
    const objects = Array.from({ length: 20 }, () => sharedList(env));
    const startMs = env.clock.monotonicMs();
    await env.finish(Promise.all(objects.map((object, index) => object.update((list) => [...list, String(index)]))));
    expect(storedIn(api)).toHaveLength(20);
    expect(env.clock.monotonicMs() - startMs).toBeLessThan(2000);
  });
});
