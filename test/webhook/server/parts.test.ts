import { describe, expect, it } from 'vitest';
import { routeLabel } from '../../../webhook/env.ts';
import { slots, watchLoad } from '../../../webhook/server/load.ts';
import { virtualEnv } from '../../kit/virtual-env.ts';

const unbroken = new AbortController().signal;

describe('the load', () => {
  it('is too high with too many open requests', () => {
    const load = watchLoad({ ...virtualEnv(), maxInHandling: 2, maxLoopDelayMs: 1000 });
    const first = load.begin();
    expect(load.begin()).toBeDefined();
    expect(load.begin()).toBeUndefined();
    first?.();
    first?.();
    expect(load.begin()).toBeDefined();
    expect(load.begin()).toBeUndefined();
  });

  it('is too high while timers are late, twice in a row', async () => {
    const env = virtualEnv();
    const load = watchLoad({ ...env, maxInHandling: 2, maxLoopDelayMs: 1000 });
    await env.stall(1500);
    expect(load.begin()?.()).toBeUndefined();
    await env.stall(1500);
    expect(load.begin()).toBeUndefined();
    await env.advance(100);
    expect(load.begin()).toBeDefined();
    load.stop();
    expect(env.timerCount()).toBe(0);
  });

  it('is normal for a process that was late once, and in time since', async () => {
    const env = virtualEnv();
    const load = watchLoad({ ...env, maxInHandling: 2, maxLoopDelayMs: 1000 });
    await env.stall(5000);
    await env.advance(500);
    await env.stall(5000);
    expect(load.begin()).toBeDefined();
  });
});

describe('slots', () => {
  it('are given at once while some are free, and then in the order of requests', async () => {
    const env = virtualEnv();
    const places = slots({ count: 1, waitMs: 1000, timers: env.timers });
    const order: string[] = [];
    const first = await places.take(unbroken);
    const others = ['a', 'b'].map(async (name) => {
      const release = await places.take(unbroken);
      order.push(name);
      return release;
    });
    await env.settle();
    expect(order).toEqual([]);
    first?.();
    first?.();
    await env.settle();
    expect(order).toEqual(['a']);
    (await others[0])?.();
    (await others[1])?.();
    expect(order).toEqual(['a', 'b']);
    expect(await places.take(unbroken)).toBeDefined();
    expect(env.timerCount()).toBe(0);
  });

  it('have a time limit, and are not given to a disconnected client', async () => {
    const env = virtualEnv();
    const places = slots({ count: 1, waitMs: 1000, timers: env.timers });
    const first = await places.take(unbroken);
    expect(await env.finish(places.take(unbroken))).toBeUndefined();
    const controller = new AbortController();
    const waiting = places.take(controller.signal);
    controller.abort();
    expect(await waiting).toBeUndefined();
    expect(await places.take(controller.signal)).toBeUndefined();
    first?.();
    expect(await places.take(unbroken)).toBeDefined();
    expect(env.timerCount()).toBe(0);
  });
});

describe('the label of a route', () => {
  it('is its path in lower case, with one _ for other characters between letters and digits', () => {
    expect(routeLabel('/admission/no-downscale')).toBe('admission_no_downscale');
    expect(routeLabel('/admission/zpdb-validation')).toBe('admission_zpdb_validation');
    expect(routeLabel('//Native/V1//x/')).toBe('native_v1_x');
  });
});
