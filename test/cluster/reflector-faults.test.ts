import { describe, expect, it } from 'vitest';
import type { KubernetesObject } from '../../cluster/request/resource.ts';
import { list, type Served, type ServedRequest, status, VirtualWatch } from '../kit/virtual-env.ts';
import { bookmarkMs, deliveryMs, follow } from './following.ts';

const minute = 60_000;
const hour = 60 * minute;

/** Milliseconds between the requests. */
function gaps(requests: readonly ServedRequest[]): readonly number[] {
  return requests.slice(1).map(({ sentAtMs }, index) => sentAtMs - (requests[index]?.sentAtMs ?? 0));
}

const lists = (requests: readonly ServedRequest[]) => requests.filter(({ isStream }) => !isStream);
const watches = (requests: readonly ServedRequest[]) => requests.filter(({ isStream }) => isStream);

describe('a watch', () => {
  it('that is silent for 90 s is opened again, without a list', async () => {
    const { env, put, deliver, values, listCount, watchCount } = follow({
      serve: (api) => (request) => api.serve({ ...request, path: request.path.replace('allowWatchBookmarks=true', '') }),
    });
    await env.settle();
    await env.advance(89_000);
    expect(watchCount()).toBe(1);
    await env.advance(2000);
    expect([watchCount(), listCount(), env.openWatchCount()]).toEqual([2, 1, 1]);
    put('a', '1');
    await deliver();
    expect(values()).toEqual(['a=1']);
  });

  it('is kept while only bookmarks arrive, until the server ends it', async () => {
    const { env, watchCount, listCount } = follow();
    await env.settle();
    const endsMs = Number(watches(env.requests)[0]?.query.get('timeoutSeconds')) * 1000;
    await env.advance(endsMs - 1);
    expect(watchCount()).toBe(1);
    await env.advance(1);
    expect([watchCount(), listCount()]).toEqual([2, 1]);
  });

  it('that ends after minutes is opened again at once', async () => {
    const { env, api, put, deliver, values, watchCount, listCount } = follow();
    await env.settle();
    await env.advance(minute);
    api.cutWatches();
    put('a', '1');
    await deliver();
    expect([watchCount(), listCount(), values()]).toEqual([2, 1, ['a=1']]);
    const [, opened] = watches(env.requests);
    expect(env.clock.monotonicMs() - (opened?.sentAtMs ?? 0)).toBe(deliveryMs);
  });

  it('that ends at once each time is opened less and less often, at most twice a minute', async () => {
    const { env, reflector, listCount } = follow({
      serve: (api) => (request) => {
        if (!request.isStream) return api.serve(request);
        const watch = new VirtualWatch();
        watch.end();
        return { watch };
      },
    });
    await env.advance(10 * minute);
    const between = gaps(watches(env.requests));
    expect(between.every((gap) => gap >= 800 && gap <= 30_000)).toBe(true);
    expect(between.slice(-10).every((gap) => gap >= 15_000)).toBe(true);
    expect([listCount(), reflector.state().kind]).toEqual([1, 'synced']);
  });

  it('that ends at once after an event is opened again after a second or two', async () => {
    const { env, put, deliver, api, told } = follow();
    await env.settle();
    for (let index = 1; index <= 5; index++) {
      put('a', String(index));
      await deliver();
      api.cutWatches();
      await env.advance(2000 - deliveryMs);
    }
    expect(gaps(watches(env.requests)).every((gap) => gap >= 1000 && gap <= 2000)).toBe(true);
    expect(told()).toEqual(['added a=1', 'modified a=2', 'modified a=3', 'modified a=4', 'modified a=5']);
  });

  it('that has expired leads to a list, which finds what was deleted meanwhile', async () => {
    const { env, api, put, remove, told, values, listCount } = follow({ before: ['a', 'b'] });
    await env.settle();
    api.cutWatches();
    remove('a');
    put('c', '1');
    api.compact();
    await env.advance(5000);
    expect(listCount()).toBe(2);
    expect(told()).toEqual(['added a=1', 'added b=1', 'deleted a', 'added c=1']);
    expect(values()).toEqual(['b=1', 'c=1']);
  });

  it('that is denied with 410 leads to a list, and not at once each time', async () => {
    const { env } = follow({ serve: (api) => (request) => (request.isStream ? status(410, 'Expired') : api.serve(request)) });
    await env.advance(10 * minute);
    expect(gaps(lists(env.requests)).every((gap) => gap >= 800)).toBe(true);
    expect(lists(env.requests).length).toBeLessThan(60);
  });

  it.each([
    ['is cut short', '{"type":"MODIFIED","object":{"metadata":{"name":"a"'],
    ['is no event', '[]'],
    ['has no object', '{"type":"MODIFIED"}'],
    ['has no version', '{"type":"MODIFIED","object":{"metadata":{"name":"a"}}}'],
    ['has no name', '{"type":"MODIFIED","object":{"metadata":{"resourceVersion":"9000"}}}'],
    ['is a bookmark without a version', '{"type":"BOOKMARK","object":{"metadata":{}}}'],
    ['is of an unknown type', '{"type":"RENAMED","object":{"metadata":{"name":"a","resourceVersion":"9000"}}}'],
  ])('with a line that %s is followed by a list', async (_, line) => {
    let watch: VirtualWatch | undefined;
    const { env, put, values, listCount } = follow({
      before: ['a'],
      serve: (api) => async (request) => {
        const served = await api.serve(request);
        if ('watch' in served) watch = served.watch;
        return served;
      },
    });
    await env.settle();
    watch?.send(line);
    put('a', '2');
    await env.advance(2000);
    expect([listCount(), values(), env.openWatchCount()]).toEqual([2, ['a=2'], 1]);
  });

  it('does not restore an older state or a deleted object', async () => {
    const watch = new VirtualWatch();
    const object = (name: string, resourceVersion: string, value: string) => ({
      metadata: { namespace: 'ns', name, uid: name, resourceVersion },
      data: { value },
    });
    const { env, values, told } = follow({
      serve: () => (request) =>
        request.isStream ? { watch } : list('ConfigMapList', '10', [object('a', '5', 'old'), object('b', '6', 'old')]),
    });
    await env.settle();
    watch.modified(object('a', '20', 'new'));
    watch.modified(object('a', '20', 'new'));
    watch.modified(object('a', '9', 'older'));
    watch.deleted(object('b', '21', 'old'));
    watch.added(object('b', '15', 'ghost'));
    watch.deleted(object('a', '19', 'older'));
    await env.settle();
    expect(told()).toEqual(['added a=old', 'added b=old', 'modified a=new', 'deleted b']);
    expect(values()).toEqual(['a=new']);
  });

  it('that loses an event is detected within 40 minutes', async () => {
    let isDeaf = false;
    const { env, put, deliver, values } = follow({
      serve: (api) => async (request) => {
        const served = await api.serve(request);
        if (!('watch' in served)) return served;
        const through = new VirtualWatch();
        served.watch.onOver(() => through.end());
        served.watch.connect((line) => {
          if (!isDeaf) through.send(line);
        });
        return { watch: through };
      },
    });
    await env.settle();
    isDeaf = true;
    put('a', '1');
    await deliver();
    expect(values()).toEqual([]);
    isDeaf = false;
    await env.advance(40 * minute);
    expect(values()).toEqual(['a=1']);
  });
});

describe('a list', () => {
  it('of the past is ignored', async () => {
    let isStale = false;
    const { env, api, put, deliver, reflector, values } = follow({
      before: ['a'],
      serve: (api) => (request) => {
        if (isStale && !request.isStream) return list('ConfigMapList', '50', []);
        return api.serve(request);
      },
    });
    await env.settle();
    put('b', '1');
    await deliver();
    isStale = true;
    api.cutWatches();
    put('c', '1');
    api.compact();
    await env.advance(20_000);
    expect(values()).toContain('b=1');
    expect(reflector.state()).toMatchObject({
      kind: 'failing',
      reason: 'unreachable',
      hasSynced: true,
      message: expect.stringContaining('stale list'),
    });
    isStale = false;
    await env.advance(minute);
    expect([values(), reflector.state().kind]).toEqual([['a=1', 'b=1', 'c=1'], 'synced']);
  });

  it('that ends early does not remove objects', async () => {
    let isCut = false;
    const { env, api, values, reflector } = follow({
      before: ['a', 'b'],
      serve: (api) => (request) =>
        isCut && !request.isStream
          ? { status: 200, body: '{"kind":"ConfigMapList","metadata":{"resourceVersion":"9999"},"items":[' }
          : api.serve(request),
    });
    await env.settle();
    isCut = true;
    api.cutWatches();
    api.put('leases.coordination.k8s.io', { metadata: { name: 'l', namespace: 'ns' } });
    api.compact();
    await env.advance(minute);
    expect([values(), reflector.state()]).toMatchObject([['a=1', 'b=1'], { kind: 'failing', reason: 'unreachable', hasSynced: true }]);
  });
});

describe('a server that denies', () => {
  it.each([
    [403, 'Forbidden', 'forbidden'],
    [404, 'NotFound', 'missing'],
  ] as const)('with %i is retried slowly, and used again when it allows', async (code, reason, expected) => {
    let isRefusing = true;
    const { env, reflector, states } = follow({
      serve: (api) => (request) => (isRefusing ? status(code, reason, 'why') : api.serve(request)),
    });
    await env.advance(hour);
    expect(reflector.state()).toMatchObject({ kind: 'failing', reason: expected, message: 'why', hasSynced: false });
    const between = gaps(env.requests);
    expect(between.every((gap) => gap >= 30_000 && gap <= 300_000)).toBe(true);
    expect(between.length).toBeLessThan(30);
    isRefusing = false;
    await env.advance(5 * minute);
    expect(states.map(({ kind }) => kind)).toEqual(['failing', 'synced']);
  });

  it.each([
    [5_000, ['a=1', 'b=1'], 'synced'],
    [undefined, ['a=1'], 'failing'],
  ] as const)('only the watch is replaced by lists each %s ms, if the client asks for them', async (deniedWatchMs, expected, kind) => {
    const isWatch = (path: string): boolean => path.includes('watch=1');
    const { env, put, values, reflector } = follow({
      before: ['a'],
      serve: (api) => (request) => (isWatch(request.path) ? status(403, 'Forbidden') : api.serve(request)),
      deniedWatchMs,
    });
    await env.advance(1_000);
    put('b', '1');
    await env.advance(6_000);
    expect([values(), reflector.state().kind]).toEqual([expected, kind]);
  });

  it('during a watch keeps the known objects, and reports the start of the failure', async () => {
    let isRefusing = false;
    const { env, api, values, reflector } = follow({
      before: ['a'],
      serve: (api) => (request) => (isRefusing ? status(403, 'Forbidden') : api.serve(request)),
    });
    await env.advance(bookmarkMs);
    isRefusing = true;
    api.cutWatches();
    await env.advance(10 * minute);
    expect(values()).toEqual(['a=1']);
    expect(reflector.state()).toMatchObject({ kind: 'failing', reason: 'forbidden', hasSynced: true });
    expect(reflector.silentMs()).toBe(10 * minute);
  });

  const unreachable: readonly (readonly [string, Served])[] = [
    ['401', status(401, 'Unauthorized')],
    ['429', status(429, 'TooManyRequests')],
    ['500', status(500, 'InternalError')],
    ['503', { status: 503, body: 'upstream is down' }],
    ['no answer', { lost: 'reply' }],
  ];
  it.each(unreachable)('with %s is retried within half a minute, less and less often', async (_, answer) => {
    const { env, reflector } = follow({ serve: () => () => answer });
    await env.advance(10 * minute);
    const between = gaps(env.requests);
    expect(between.slice(0, 5).map((gap, index) => gap >= 800 * 2 ** index && gap <= 1600 * 2 ** index)).toEqual(Array(5).fill(true));
    expect(between.slice(5).every((gap) => gap >= 15_000 && gap <= 30_000)).toBe(true);
    expect(reflector.state()).toMatchObject({ kind: 'failing', reason: 'unreachable', hasSynced: false });
  });

  it('gets no request during its retry time', async () => {
    const answer: Served = { ...status(429, 'TooManyRequests'), headers: { 'retry-after': '100' } } as Served;
    const { env } = follow({ serve: () => () => answer });
    await env.advance(10 * minute);
    expect(gaps(env.requests).every((gap) => gap >= 100_000)).toBe(true);
  });

  it('gets no request during its retry time, if only its watches are denied', async () => {
    const answer: Served = { ...status(429, 'TooManyRequests'), headers: { 'retry-after': '100' } } as Served;
    const { env } = follow({ serve: (api) => (request) => (request.isStream ? answer : api.serve(request)) });
    await env.advance(10 * minute);
    const watches = env.requests.filter(({ path }) => path.includes('watch=1'));
    expect(watches.length).toBeGreaterThan(3);
    expect(gaps(watches).every((gap) => gap >= 100_000)).toBe(true);
  });

  it('gets no request during its retry time, if a list is needed meanwhile', async () => {
    const answer: Served = { ...status(429, 'TooManyRequests'), headers: { 'retry-after': '100' } } as Served;
    const { env, reflector } = follow({ serve: (api) => (request) => (request.isStream ? answer : api.serve(request)) });
    for (let count = 0; count < 20; count += 1) {
      await env.advance(30_000);
      reflector.relist();
    }
    const isWatch = ({ path }: (typeof env.requests)[number]): boolean => path.includes('watch=1');
    const afterDenial = env.requests.flatMap((request, index) => (isWatch(request) ? [env.requests.slice(index, index + 2)] : []));
    expect(afterDenial.length).toBeGreaterThan(3);
    expect(afterDenial.flatMap(gaps).every((gap) => gap >= 100_000)).toBe(true);
  });

  it('is followed again within a minute after hours of absence, by the watch alone', async () => {
    let isAway = false;
    const { env, api, put, values, reflector, listCount, states } = follow({
      before: ['a'],
      serve: (api) => (request) => (isAway ? { lost: 'before-apply' } : api.serve(request)),
    });
    await env.advance(minute);
    isAway = true;
    api.cutWatches();
    await env.advance(20 * minute);
    expect(reflector.state()).toMatchObject({ kind: 'failing', reason: 'unreachable', hasSynced: true });
    put('b', '1');
    isAway = false;
    await env.advance(minute);
    expect([values(), listCount(), states.map(({ kind }) => kind)]).toEqual([['a=1', 'b=1'], 1, ['synced', 'failing', 'synced']]);
  });

  it.each([
    [503, 'unreachable', 800, 1600],
    [403, 'forbidden', 30_000, 60_000],
  ])('with %i again, after an answer, is retried as soon as the first time', async (code, reason, leastMs, maxMs) => {
    let isRefusing = true;
    const { env, api, reflector } = follow({ serve: (api) => (request) => (isRefusing ? status(code, 'No') : api.serve(request)) });
    await env.advance(hour);
    isRefusing = false;
    await env.advance(10 * minute);
    expect(reflector.state().kind).toBe('synced');
    isRefusing = true;
    api.cutWatches();
    const askedBefore = env.requests.length;
    await env.advance(2 * minute);
    const between = gaps(env.requests.slice(askedBefore));
    expect([reflector.state(), (between[0] ?? 0) >= leastMs, (between[0] ?? 0) <= maxMs]).toMatchObject([{ reason }, true, true]);
  });

  it('without the version yet is retried for the same watch', async () => {
    let isBehind = true;
    const { env, put, values, listCount } = follow({
      before: ['a'],
      serve: (api) => (request) => {
        if (!request.isStream || !isBehind) return api.serve(request);
        const watch = new VirtualWatch();
        const details = { causes: [{ reason: 'ResourceVersionTooLarge' }], retryAfterSeconds: 1 };
        watch.send({
          type: 'ERROR',
          object: { kind: 'Status', code: 504, reason: 'Timeout', message: 'Too large resource version', details },
        });
        return { watch };
      },
    });
    await env.advance(5000);
    isBehind = false;
    put('b', '1');
    await env.advance(30_000);
    expect([values(), listCount()]).toEqual([['a=1', 'b=1'], 1]);
  });
});

describe('clocks', () => {
  it('that are changed have no effect', async () => {
    const { env, put, deliver, values, watchCount } = follow();
    await env.settle();
    for (const byMs of [hour, -3 * hour, 400 * 24 * hour]) {
      env.jumpWallClock(byMs);
      await env.advance(bookmarkMs);
    }
    put('a', '1');
    await deliver();
    expect([watchCount(), values()]).toEqual([1, ['a=1']]);
  });
});

describe('many objects', () => {
  it('10,000 of them are listed in pages, change in a storm, and are complete in the end', async () => {
    const before = Array.from({ length: 10_000 }, (_, index) => `o-${index}`);
    const { env, api, put, deliver, reflector, listCount } = follow({
      before,
      project: ({ metadata }: KubernetesObject) => ({ name: metadata.name, uid: '', version: metadata.resourceVersion ?? '', value: '' }),
    });
    await env.settle();
    await env.settle();
    await env.until(() => reflector.state().kind === 'synced', minute);
    for (const name of before) put(name, '2');
    await deliver();
    api.cutWatches();
    api.compact();
    await env.advance(5000);
    const versions = api.list('configmaps').map(({ metadata }) => metadata.resourceVersion);
    expect(
      reflector.store
        .list()
        .map(({ version }) => version)
        .sort(),
    ).toEqual(versions.sort());
    expect(listCount()).toBeLessThanOrEqual(42);
  });
});
