import { describe, expect, it } from 'vitest';
import { type KubernetesObject, resources } from '../../cluster/request/resource.ts';
import { WriteRefused } from '../../cluster/request/write.ts';
import { ObjectTooLarge, SharedObject, type SharedObjectOptions } from '../../cluster/shared/shared-object.ts';
import { ModelApi } from '../kit/model-server.ts';
import { type Serve, type Served, type ServedRequest, status, type VirtualEnv, virtualEnv } from '../kit/virtual-env.ts';

function sharedList(env: VirtualEnv, options: Partial<SharedObjectOptions<readonly string[]>> = {}): SharedObject<readonly string[]> {
  return new SharedObject<readonly string[]>({
    env,
    resource: resources.configMaps,
    namespace: 'ns',
    name: 'list',
    decode: (object) => {
      const data = object?.['data'] as { readonly list?: string } | undefined;
      return data?.list === undefined ? [] : (JSON.parse(data.list) as string[]);
    },
    encode: (value) => ({ metadata: { labels: { kind: 'list' } }, data: { list: JSON.stringify(value) } }),
    site: 'test',
    ...options,
  });
}

function setUp(serve: (api: ModelApi) => Serve = (api) => api.serve, options: Partial<SharedObjectOptions<readonly string[]>> = {}) {
  const env = virtualEnv();
  const api = new ModelApi({ env });
  env.replaceServer(serve(api));
  const shared = sharedList(env, options);
  const object = (): KubernetesObject | undefined => api.get('configmaps', 'ns', 'list');
  return {
    api,
    env,
    shared,
    object,
    add: (item: string) => shared.update((list) => [...list, item]),
    stored: (): readonly string[] => JSON.parse((object()?.['data'] as { list?: string } | undefined)?.list ?? '[]') as string[],
    writes: (): readonly ServedRequest[] => env.requests.filter(({ method }) => method !== 'GET'),
  };
}

/** Answers the first write in another way, and everything else as usual. */
function firstWrite(answer: (api: ModelApi, request: ServedRequest) => Served | Promise<Served>): (api: ModelApi) => Serve {
  let isOver = false;
  return (api) => (request) => {
    if (request.method === 'GET' || isOver) return api.serve(request);
    isOver = true;
    return answer(api, request);
  };
}

describe('a shared object', () => {
  it('is created if it is missing, and read back', async () => {
    const { env, add, shared, object } = setUp();
    const written = await env.finish(add('a'));
    expect(written).toEqual({ value: ['a'], resourceVersion: object()?.metadata.resourceVersion });
    expect(await env.finish(shared.read())).toEqual(written);
    expect(object()).toMatchObject({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { labels: { kind: 'list' } } });
  });

  it('has the empty value while it is missing', async () => {
    const { env, shared } = setUp();
    expect(await env.finish(shared.read())).toEqual({ value: [] });
  });

  it('applies all waiting changes in one write, in their order', async () => {
    const { env, add, stored, writes } = setUp();
    const answers = await env.finish(Promise.all(['a', 'b', 'c'].map(add)));
    expect([stored(), writes().length]).toEqual([['a', 'b', 'c'], 1]);
    expect(answers.map(({ value }) => value)).toEqual(Array(3).fill(['a', 'b', 'c']));
  });

  it('applies changes during a write in the next one', async () => {
    const { env, add, stored, writes } = setUp((api) => async (request) => ({ ...(await api.serve(request)), delayMs: 100 }));
    const first = add('a');
    await env.advance(150);
    const others = Promise.all([add('b'), add('c')]);
    await env.finish(Promise.all([first, others]));
    expect([stored(), writes().length]).toEqual([['a', 'b', 'c'], 2]);
  });

  it('is not read again between its own writes', async () => {
    const { env, add } = setUp();
    for (const item of ['a', 'b', 'c']) await env.finish(add(item));
    expect(env.requests.map(({ method }) => method)).toEqual(['GET', 'POST', 'PUT', 'PUT']);
  });

  it('keeps foreign fields, labels and annotations', async () => {
    const { api, env, add, object } = setUp();
    api.put('configmaps', {
      metadata: { namespace: 'ns', name: 'list', labels: { theirs: 'x' }, annotations: { note: 'y' } },
      binaryData: { z: '' },
    });
    await env.finish(add('a'));
    expect(object()).toMatchObject({
      metadata: { labels: { theirs: 'x', kind: 'list' }, annotations: { note: 'y' } },
      binaryData: { z: '' },
    });
  });

  it('is not written for an equal value', async () => {
    const { env, add, shared, writes } = setUp();
    await env.finish(add('a'));
    await env.finish(shared.update((list) => list));
    await env.finish(shared.update((list) => [...list]));
    expect(writes().length).toBe(1);
  });

  it('is read again before it reports that no write is needed', async () => {
    const { api, env, add, shared } = setUp();
    await env.finish(add('a'));
    api.put('configmaps', { metadata: { namespace: 'ns', name: 'list' }, data: { list: '["b"]' } });
    const { value } = await env.finish(shared.update((list) => (list.includes('a') ? list : [...list, 'a'])));
    expect(value).toEqual(['b', 'a']);
  });

  it('rejects the change that throws, and only that one', async () => {
    const { env, add, shared, stored } = setUp();
    const bad = shared.update(() => {
      throw new Error('not like this');
    });
    const good = add('a');
    await expect(env.finish(bad)).rejects.toThrow('not like this');
    await env.finish(good);
    expect(stored()).toEqual(['a']);
  });

  it('is not sent if it is too large, without an effect on other changes', async () => {
    const { env, add, stored, writes } = setUp(undefined, { maxBytes: 2000 });
    const [small, large, another] = [add('a'), add('x'.repeat(3000)), add('b')];
    await expect(env.finish(large)).rejects.toBeInstanceOf(ObjectTooLarge);
    await env.finish(Promise.all([small, another]));
    expect([stored(), writes().length]).toEqual([['a', 'b'], 1]);
  });

  it('is not written by a process without permission', async () => {
    let mayWrite = true;
    const { env, add, writes } = setUp(undefined, { mayWrite: () => mayWrite });
    await env.finish(add('a'));
    mayWrite = false;
    await expect(env.finish(add('b'))).rejects.toBeInstanceOf(WriteRefused);
    expect(writes().length).toBe(1);
  });

  it('rejects readers and writers if it is invalid', async () => {
    const { api, env, add, shared, writes } = setUp();
    api.put('configmaps', { metadata: { namespace: 'ns', name: 'list' }, data: { list: '[' } });
    await expect(env.finish(shared.read())).rejects.toBeInstanceOf(SyntaxError);
    await expect(env.finish(add('a'))).rejects.toBeInstanceOf(SyntaxError);
    expect(writes()).toEqual([]);
  });

  it.each([403, 404, 413, 422, 429])('rejects with %i at once', async (code) => {
    const { env, add, writes } = setUp(firstWrite(() => status(code, 'No')));
    await expect(env.finish(add('a'))).rejects.toMatchObject({ status: code });
    expect(writes().length).toBe(1);
  });
});

describe('a conflict', () => {
  it('leads to a read at once and to a change of the new state', async () => {
    const { api, env, add, stored } = setUp();
    await env.finish(add('a'));
    api.put('configmaps', { metadata: { namespace: 'ns', name: 'list' }, data: { list: '["a","theirs"]' } });
    const beforeMs = env.clock.monotonicMs();
    await env.finish(add('b'));
    expect([stored(), env.clock.monotonicMs() - beforeMs]).toEqual([['a', 'theirs', 'b'], 0]);
  });

  it('with a client that created it first applies the change to that object', async () => {
    const { env, add, stored } = setUp(
      firstWrite((api, request) => {
        api.put('configmaps', { metadata: { namespace: 'ns', name: 'list' }, data: { list: '["theirs"]' } });
        return api.serve(request);
      }),
    );
    await env.finish(add('a'));
    expect(stored()).toEqual(['theirs', 'a']);
  });

  it('with a client that deleted it creates a new one', async () => {
    const { api, env, add, stored } = setUp();
    await env.finish(add('a'));
    api.remove('configmaps', 'ns', 'list');
    await env.finish(add('b'));
    expect(stored()).toEqual(['b']);
  });

  it('that does not end is given up after 30 rounds with growing pauses', async () => {
    const { env, add, writes } = setUp((api) => (request) => (request.method === 'GET' ? api.serve(request) : status(409, 'Conflict')));
    await expect(env.finish(add('a'))).rejects.toMatchObject({ status: 409 });
    expect([writes().length, env.timerCount()]).toEqual([30, 0]);
    const sentMs = writes().map(({ sentAtMs }) => sentAtMs);
    expect((sentMs[29] ?? 0) - (sentMs[19] ?? 0)).toBeGreaterThan((sentMs[10] ?? 0) - (sentMs[0] ?? 0));
    expect((sentMs[29] ?? 0) - (sentMs[0] ?? 0)).toBeLessThan(30_000);
  });
});

describe('a lost answer', () => {
  it.each<[string, Served]>([
    ['that no server gave', { lost: 'reply' }],
    ['of a server that failed after it had stored', status(504, 'Timeout')],
  ])('to a write, %s, is reported as uncertain, and no write is repeated', async (_, answer) => {
    const { env, add, stored, writes } = setUp(
      firstWrite(async (api, request) => {
        await api.serve(request);
        return answer;
      }),
    );
    await expect(env.finish(add('a'))).rejects.toMatchObject({ name: 'TransportFailure', mayBeApplied: true });
    expect([stored(), writes().length, env.timerCount()]).toEqual([['a'], 1, 0]);
    await env.finish(add('b'));
    expect(stored()).toEqual(['a', 'b']);
  });

  it('to a write that was not sent is certain', async () => {
    const { env, add } = setUp(firstWrite(() => ({ lost: 'before-apply' })));
    await expect(env.finish(add('a'))).rejects.toMatchObject({ name: 'TransportFailure', mayBeApplied: false });
  });

  it('to reads reports that nothing was changed', async () => {
    const { env, add } = setUp(() => () => ({ lost: 'reply' }));
    await expect(env.finish(add('a'))).rejects.toMatchObject({ name: 'TransportFailure', mayBeApplied: false });
  });
});
