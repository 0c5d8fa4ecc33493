import { describe, expect, it } from 'vitest';
import type { KubernetesObject } from '../../cluster/request/resource.ts';
import { Contact } from '../../cluster/watch/reflector.ts';
import { list, VirtualWatch, virtualEnv } from '../kit/virtual-env.ts';
import { bookmarkMs, follow, viewOf } from './following.ts';

describe('a reflector', () => {
  it('reads the list and watches from there, with bookmarks and a time limit of 5 to 10 minutes', async () => {
    const { env, api, reflector, values, states } = follow({ before: ['a', 'b'] });
    await env.settle();
    expect(values()).toEqual(['a=1', 'b=1']);
    expect(reflector.state()).toEqual({ kind: 'synced', atMs: env.clock.nowMs() });
    expect(states).toEqual([reflector.state()]);
    const watch = env.requests.find(({ isStream }) => isStream);
    expect(Object.fromEntries(watch?.query ?? [])).toMatchObject({
      watch: '1',
      allowWatchBookmarks: 'true',
      resourceVersion: String(api.server.revision()),
    });
    const seconds = Number(watch?.query.get('timeoutSeconds'));
    expect(seconds >= 300 && seconds < 600 && Number.isInteger(seconds)).toBe(true);
  });

  it('has no state until the first list', async () => {
    const { env, reflector } = follow({ serve: () => () => ({ lost: 'reply', forever: true }) });
    await env.settle();
    expect([reflector.state(), reflector.resourceVersion(), reflector.silentMs(), reflector.hasSeen('1')]).toEqual([
      { kind: 'starting' },
      undefined,
      undefined,
      false,
    ]);
  });

  it('reports every change once, with the previous state', async () => {
    const { env, put, remove, deliver, changes, told, values } = follow({ before: ['a'] });
    await env.settle();
    put('b', '1');
    put('a', '2');
    remove('b');
    await deliver();
    expect(told()).toEqual(['added a=1', 'added b=1', 'modified a=2', 'deleted b']);
    expect(changes.map(({ before }) => before?.value)).toEqual([undefined, undefined, '1', '1']);
    expect(values()).toEqual(['a=2']);
  });

  it('has seen the reported versions, and the version of a bookmark', async () => {
    const { env, api, reflector, put, deliver } = follow();
    await env.settle();
    put('a', '1');
    await deliver();
    const seen = String(api.server.revision());
    api.put('leases.coordination.k8s.io', { metadata: { name: 'elsewhere', namespace: 'ns' } });
    const later = String(api.server.revision());
    await deliver();
    expect([reflector.hasSeen(seen), reflector.hasSeen(later)]).toEqual([true, false]);
    await env.advance(bookmarkMs);
    expect([reflector.hasSeen(later), reflector.resourceVersion()]).toEqual([true, later]);
  });

  it('watches one namespace and one selection if configured', async () => {
    const { env, api, values, deliver } = follow({ namespace: 'ns', labelSelector: 'app=x' });
    await env.settle();
    const make = (namespace: string, name: string, app: string) =>
      api.put('configmaps', { metadata: { namespace, name, labels: { app } }, data: { value: '1' } });
    make('ns', 'a', 'x');
    make('ns', 'b', 'y');
    make('other', 'c', 'x');
    await deliver();
    expect(values()).toEqual(['a=1']);
    make('ns', 'a', 'y');
    await deliver();
    expect(values()).toEqual([]);
  });

  it('reports an object that takes the name of another as deleted and added', async () => {
    const { env, put, remove, deliver, told, reflector } = follow({ before: ['a'] });
    await env.settle();
    const before = reflector.store.get('ns', 'a');
    remove('a');
    put('a', '2');
    await deliver();
    expect(told()).toEqual(['added a=1', 'deleted a', 'added a=2']);
    expect(reflector.store.get('ns', 'a')?.uid).not.toBe(before?.uid);
  });

  it('does so also if one event contains both', async () => {
    const watch = new VirtualWatch();
    const object = (uid: string, resourceVersion: string) => ({ metadata: { namespace: 'ns', name: 'a', uid, resourceVersion } });
    const serve = () => (request: { isStream: boolean }) =>
      request.isStream ? { watch } : list('ConfigMapList', '10', [object('first', '5')]);
    const { env, changes } = follow({ serve });
    await env.settle();
    watch.modified(object('second', '12'));
    await env.settle();
    expect(changes.map(({ kind, view, before }) => [kind, view?.uid, before?.uid])).toEqual([
      ['added', 'first', undefined],
      ['deleted', undefined, 'first'],
      ['added', 'second', undefined],
    ]);
  });

  it('keeps valid objects if there is an invalid one', async () => {
    const { env, put, deliver, reflector, values, states, changes } = follow({ before: ['a', 'b'] });
    await env.settle();
    put('a', 'broken');
    put('b', '2');
    await deliver();
    expect(values()).toEqual(['b=2']);
    expect(reflector.store.invalid()).toEqual([{ namespace: 'ns', name: 'a', message: 'the value is broken' }]);
    expect(changes.at(-2)).toMatchObject({ kind: 'modified', name: 'a', before: { value: '1' } });
    expect(reflector.state()).toMatchObject({
      kind: 'failing',
      reason: 'invalid',
      message: 'ConfigMap ns/a cannot be parsed: the value is broken',
      hasSynced: true,
    });
    put('a', '3');
    await deliver();
    expect(values()).toEqual(['a=3', 'b=2']);
    expect(states.map(({ kind }) => kind)).toEqual(['synced', 'failing', 'synced']);
  });

  it('continues if listeners throw', async () => {
    const throws = () => {
      throw new Error('a defect');
    };
    const { env, put, deliver, values } = follow({ before: ['a'], onChange: throws, onState: throws });
    await env.settle();
    put('b', '1');
    await deliver();
    expect(values()).toEqual(['a=1', 'b=1']);
  });

  it('lists at once if its store is known to be wrong, but not over and over', async () => {
    const lost = new VirtualWatch();
    let watches = 0;
    const { env, put, values, reflector, listCount, watchCount } = follow({
      before: ['a'],
      // The first watch tells of nothing.
      serve: (api) => (request) => {
        if (request.isStream) watches += 1;
        return request.isStream && watches === 1 ? { watch: lost } : api.serve(request);
      },
    });
    await env.settle();
    put('a', '2');
    reflector.relist();
    await env.settle();
    expect([values(), listCount(), watchCount()]).toEqual([['a=1'], 1, 1]);
    await env.advance(10_000);
    reflector.relist();
    reflector.relist();
    await env.settle();
    expect([values(), listCount(), watchCount(), lost.isOpen]).toEqual([['a=2'], 2, 2, false]);
    reflector.relist();
    put('b', '1');
    await env.advance(5000);
    expect([values(), listCount()]).toEqual([['a=2', 'b=1'], 2]);
    reflector.stop();
    reflector.relist();
    await env.advance(60_000);
    expect([listCount(), env.timerCount()]).toEqual([2, 0]);
  });

  it('drops keys that would reach a prototype', async () => {
    const watch = new VirtualWatch();
    const seen: unknown[] = [];
    const serve = () => (request: { isStream: boolean }) => (request.isStream ? { watch } : list('ConfigMapList', '10', []));
    const project = (object: KubernetesObject) => {
      seen.push(object['data']);
      return viewOf(object);
    };
    const { env } = follow({ serve, project });
    await env.settle();
    watch.send('{"type":"ADDED","object":{"metadata":{"name":"a","uid":"u","resourceVersion":"11"},"data":{"__proto__":{"x":1},"y":"2"}}}');
    await env.settle();
    expect(seen.map((data) => Object.keys(data as object))).toEqual([['y']]);
  });
});

describe('a reflector that is stopped', () => {
  it('leaves no timer, no request and no watch, and calls no listener', async () => {
    const { env, reflector, put, told } = follow({ before: ['a'] });
    await env.settle();
    reflector.stop();
    await env.settle();
    put('b', '1');
    await env.advance(3_600_000);
    expect([env.timerCount(), env.openRequestCount(), env.openWatchCount(), told()]).toEqual([0, 0, 0, ['added a=1']]);
  });

  it('closes a watch that was being opened', async () => {
    const { env, reflector } = follow({
      serve: (api) => async (request) => ({ ...(await api.serve(request)), ...(request.isStream ? { delayMs: 5000 } : {}) }),
    });
    await env.advance(1000);
    reflector.stop();
    await env.advance(10_000);
    expect([env.timerCount(), env.openRequestCount(), env.openWatchCount()]).toEqual([0, 0, 0]);
  });

  it('drops the answer to a list', async () => {
    const { env, reflector, told } = follow({
      before: ['a'],
      serve: (api) => async (request) => ({ ...(await api.serve(request)), delayMs: 5000 }),
    });
    await env.settle();
    reflector.stop();
    await env.advance(10_000);
    expect([told(), env.requests.length, env.timerCount()]).toEqual([[], 1, 0]);
  });

  it('does not wait for the end of a retry pause', async () => {
    const { env, reflector } = follow({ serve: () => () => ({ lost: 'reply' }) });
    await env.settle();
    reflector.stop();
    await env.settle();
    expect(env.timerCount()).toBe(0);
  });
});

describe('events of a watch are certain', () => {
  it('not before it has reported everything once', async () => {
    const env = virtualEnv();
    const contact = new Contact(env.clock);
    contact.recordMessage();
    contact.recordNews();
    expect([contact.silentMs(), contact.ageMs()]).toEqual([0, Number.POSITIVE_INFINITY]);
    await env.advance(3000);
    contact.recordList(env.clock.monotonicMs() - 2000);
    expect([contact.silentMs(), contact.ageMs()]).toEqual([3000, 2000]);
  });

  it('as of the message before the latest one, which may describe the silence between them', async () => {
    const env = virtualEnv();
    const contact = new Contact(env.clock);
    contact.recordList(env.clock.monotonicMs());
    await env.advance(40_000);
    contact.recordNews();
    expect(contact.ageMs()).toBe(40_000);
    await env.advance(999);
    contact.recordNews();
    // Lines so near to one another are one word.
    expect(contact.ageMs()).toBe(40_999);
    await env.advance(2000);
    contact.recordNews();
    expect(contact.ageMs()).toBe(2000);
  });

  it('not later after messages without an event', async () => {
    const { env, api, put, reflector } = follow({ before: ['a'] });
    await env.settle();
    // The same version as before: nobody knows whether the server has come further.
    await env.advance(bookmarkMs);
    expect([reflector.silentMs(), reflector.ageMs()]).toEqual([0, bookmarkMs]);
    await env.advance(bookmarkMs);
    expect([reflector.silentMs(), reflector.ageMs()]).toEqual([0, 2 * bookmarkMs]);
    api.cutWatches();
    await env.advance(3000);
    expect(reflector.ageMs()).toBe(2 * bookmarkMs + 3000);
    put('a', '2');
    await env.advance(2000);
    const toldMs = env.clock.monotonicMs() - (reflector.silentMs() ?? 0);
    put('a', '3');
    await env.until(() => reflector.silentMs() === 0);
    expect(reflector.ageMs()).toBe(env.clock.monotonicMs() - toldMs);
  });
});
