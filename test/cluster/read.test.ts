import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LineSplitter } from '../../cluster/connection/response-body.ts';
import { ApiFailure, TransportFailure } from '../../cluster/request/failure.ts';
import { isSameJson, parseJson } from '../../cluster/request/json.ts';
import { getObject, listObjects, listProjected, splitList } from '../../cluster/request/read.ts';
import { compareResourceVersions, HighWaterMark, resources } from '../../cluster/request/resource.ts';
import { ModelApi } from '../kit/model-server.ts';
import { list, status, virtualEnv } from '../kit/virtual-env.ts';

const options = { site: 'test.read' };

function withObjects(count: number) {
  const env = virtualEnv();
  const api = new ModelApi({ env });
  for (let index = 0; index < count; index++)
    api.put('configmaps', { metadata: { namespace: 'ns', name: `cm-${String(index).padStart(5, '0')}` } });
  env.replaceServer(api.serve);
  return { api, env };
}

describe('listObjects', () => {
  it('reads pages of 250 without a resourceVersion until the end', async () => {
    const { api, env } = withObjects(600);
    const listed = await env.finish(listObjects(env, resources.configMaps, { ...options, namespace: 'ns' }));
    expect(listed.items.map(({ metadata }) => metadata.name)).toEqual(api.list('configmaps').map(({ metadata }) => metadata.name));
    expect(listed.resourceVersion).toBe(String(api.server.revision()));
    expect(env.requests.map(({ query }) => [query.get('limit'), query.get('resourceVersion'), query.has('continue')])).toEqual([
      ['250', null, false],
      ['250', null, true],
      ['250', null, true],
    ]);
  });

  it('starts again if the list expires during the read, and returns each object once', async () => {
    const { api, env } = withObjects(1200);
    let hasExpired = false;
    env.replaceServer((request) => {
      if (!hasExpired && request.query.has('continue')) {
        hasExpired = true;
        api.remove('configmaps', 'ns', 'cm-00003');
        api.compact();
      }
      return api.serve(request);
    });
    const listed = await env.finish(listObjects(env, resources.configMaps, options));
    expect(listed.items.map(({ metadata }) => metadata.name)).toEqual(api.list('configmaps').map(({ metadata }) => metadata.name));
  });

  it('fails if it expires every time', async () => {
    const { api, env } = withObjects(600);
    env.replaceServer((request) => (request.query.has('continue') ? status(410, 'Expired') : api.serve(request)));
    await expect(env.finish(listObjects(env, resources.configMaps, options))).rejects.toMatchObject({ status: 410 });
    expect(env.requests.length).toBe(8);
  });

  it.each([
    ['cut short', '{"kind":"ConfigMapList","metadata":{"resourceVersion":"1"},"items":[{"meta'],
    ['empty', ''],
    ['an object', '{"kind":"ConfigMap","metadata":{"resourceVersion":"1","name":"a"},"items":[]}'],
    ['a list without items', '{"kind":"ConfigMapList","metadata":{"resourceVersion":"1"}}'],
    ['a list without a version', '{"kind":"ConfigMapList","metadata":{},"items":[]}'],
    ['a list of what has no name', '{"kind":"ConfigMapList","metadata":{"resourceVersion":"1"},"items":[{"metadata":{}}]}'],
    ['null', 'null'],
  ])('fails if the answer is %s', async (_, body) => {
    const env = virtualEnv({ serve: () => ({ status: 200, body }) });
    await expect(env.finish(listObjects(env, resources.configMaps, options))).rejects.toBeInstanceOf(TransportFailure);
  });

  it('fails if a page continues with itself', async () => {
    const env = virtualEnv({ serve: () => list('ConfigMapList', '1', [], 'same') });
    await expect(env.finish(listObjects(env, resources.configMaps, options))).rejects.toThrow('did not change');
  });

  it('sends the selectors', async () => {
    const env = virtualEnv({ serve: () => list('PodList', '1', []) });
    await env.finish(
      listObjects(env, resources.pods, { ...options, namespace: 'a b', labelSelector: 'x in (y,z)', fieldSelector: 'spec.nodeName=n' }),
    );
    const [request] = env.requests;
    expect(request?.pathname).toBe('/api/v1/namespaces/a%20b/pods');
    expect(Object.fromEntries(request?.query ?? [])).toEqual({
      limit: '250',
      labelSelector: 'x in (y,z)',
      fieldSelector: 'spec.nodeName=n',
    });
  });

  it('adds the apiVersion and kind that lists omit', async () => {
    const env = virtualEnv({ serve: () => list('StatefulSetList', '1', [{ metadata: { name: 'a' } }]) });
    const { items } = await env.finish(listObjects(env, resources.statefulSets, options));
    expect(items).toEqual([{ apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name: 'a' } }]);
  });

  it('has the status of the answer in its error', async () => {
    const env = virtualEnv({ serve: () => status(403, 'Forbidden', 'no') });
    await expect(env.finish(listObjects(env, resources.pods, options))).rejects.toMatchObject({
      status: 403,
      reason: 'Forbidden',
      message: 'no',
    });
  });
});

describe('listProjected', () => {
  it('keeps the projected part of each object', async () => {
    const { env } = withObjects(501);
    const { items } = await env.finish(listProjected(env, resources.configMaps, { ...options, project: ({ metadata }) => metadata.name }));
    expect([items.length, items[0], items[500]]).toEqual([501, 'cm-00000', 'cm-00500']);
  });
});

describe('getObject', () => {
  const target = { namespace: 'ns', name: 'cm-00000' };

  it('returns the object', async () => {
    const { env } = withObjects(1);
    const object = await env.finish(getObject(env, resources.configMaps, target, options));
    expect(object?.metadata.name).toBe('cm-00000');
  });

  it('returns undefined if no object has this name', async () => {
    const { env } = withObjects(0);
    expect(await env.finish(getObject(env, resources.configMaps, target, options))).toBeUndefined();
  });

  it('fails if the resource itself is not served', async () => {
    const env = virtualEnv({ serve: () => ({ status: 404, body: '404 page not found\n' }) });
    await expect(env.finish(getObject(env, resources.configMaps, target, options))).rejects.toBeInstanceOf(ApiFailure);
  });

  it('fails if the answer ends early', async () => {
    const env = virtualEnv({ serve: () => ({ status: 200, body: '{"metadata":{"name":"cm' }) });
    await expect(env.finish(getObject(env, resources.configMaps, target, options))).rejects.toBeInstanceOf(TransportFailure);
  });
});

function itemsOf(text: string): readonly unknown[] | undefined {
  return splitList(text)?.items.map(([begin, end]) => JSON.parse(text.slice(begin, end)));
}

describe('splitList', () => {
  it('finds the items of every list, and keeps the rest unchanged', () => {
    const nasty = fc.constantFrom('"items":[{', '\\', '"', '\\"', ']}', '[', '\\u0022', 'é😀');
    const object = fc.dictionary(
      fc.oneof(fc.string(), fc.constantFrom('items', 'a"b')),
      fc.jsonValue({ stringUnit: 'binary', maxDepth: 2 }).chain((value) => fc.oneof(fc.constant(value), nasty)),
      { maxKeys: 3 },
    );
    const before = fc.dictionary(fc.constantFrom('kind', 'metadata', 'list'), fc.oneof(object, nasty));
    fc.assert(
      fc.property(before, fc.array(object, { maxLength: 4 }), object, fc.constantFrom(undefined, 1), (head, items, last, indent) => {
        const list = { ...head, items, last };
        const text = JSON.stringify(list, undefined, indent);
        expect(itemsOf(text)).toEqual(JSON.parse(JSON.stringify(items)));
        expect(JSON.parse(splitList(text)?.list ?? '')).toEqual(JSON.parse(JSON.stringify({ ...list, items: [] })));
      }),
      { numRuns: 30 },
    );
  });

  it('is not confused by a key that is a value or is nested', () => {
    expect(itemsOf('{"kind":"items","spec":{"items":[{"a":1}]},"items":[{"b":2}]}')).toEqual([{ b: 2 }]);
  });

  it.each([
    ['no items', '{"kind":"List"}'],
    ['items that are null', '{"items":null,"metadata":{}}'],
    ['items that are an object', '{"items":{"a":{}}}'],
    ['a number among them', '{"items":[{"a":1},2,{"b":1}]}'],
    ['a number at their end', '{"items":[{"a":1},2]}'],
    ['no comma between them', '{"items":[{"a":1}{"b":1}]}'],
    ['an end inside an item', '{"items":[{"a":1},{"b'],
    ['an end inside a string', '{"items":[{"a":"b\\"'],
    ['an end after an item', '{"items":[{"a":1}'],
    ['nothing', ''],
  ])('finds no items if there are %s', (_, text) => {
    expect(splitList(text)).toBeUndefined();
  });
});

describe('parseJson', () => {
  it.each([
    ['as it is', '{"a":{"__proto__":{"admin":true},"b":1}}'],
    ['escaped', '{"a":{"\\u005f_proto__":{"admin":true},"b":1}}'],
    ['escaped in the middle', '{"a":{"__\\u0070roto__":{"admin":true},"b":1}}'],
  ])('drops the key __proto__, written %s', (_, text) => {
    const { a } = parseJson(text) as { a: Record<string, unknown> };
    expect([Object.keys(a), Object.getPrototypeOf(a)]).toEqual([['b'], Object.prototype]);
  });

  it('keeps values that look like the key', () => {
    expect(parseJson('{"a":"__proto__"}')).toEqual({ a: '__proto__' });
  });

  it('throws for incomplete text', () => {
    expect(() => parseJson('{"a":')).toThrow(SyntaxError);
  });
});

describe('isSameJson', () => {
  it('ignores the order of keys, and keys without a value', () => {
    expect(isSameJson({ a: 1, b: [{ c: 2 }] }, { b: [{ c: 2, d: undefined }], a: 1 })).toBe(true);
  });

  it.each([
    [{ a: 1 }, { a: 2 }],
    [{ a: 1 }, {}],
    [{}, { constructor: 'a' }],
    [[1, 2], [1]],
    [[], {}],
    [null, {}],
  ])('distinguishes %j from %j', (a, b) => {
    expect(isSameJson(a, b)).toBe(false);
  });
});

describe('a line splitter', () => {
  it('finds the same lines in any pieces', () => {
    const lines = fc.array(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 8 }).filter((text) => !text.includes('\n')));
    fc.assert(
      fc.property(lines, fc.string({ maxLength: 4 }), fc.array(fc.nat(5)), (whole, rest, sizes) => {
        const begun = rest.replaceAll('\n', '');
        const bytes = Buffer.from(`${whole.map((line) => `${line}\n`).join('')}${begun}`);
        const found: string[] = [];
        const splitter = new LineSplitter((line) => found.push(line));
        let start = 0;
        for (const size of sizes) {
          splitter.push(bytes.subarray(start, start + size));
          start = Math.min(bytes.length, start + size);
        }
        splitter.push(bytes.subarray(start));
        expect(found).toEqual(whole.map((line) => Buffer.from(line).toString('utf8')));
        expect(splitter.isInsideLine).toBe(begun !== '');
      }),
    );
  });

  it('fails on a line without end', () => {
    const splitter = new LineSplitter(() => undefined);
    const piece = Buffer.alloc(1024 * 1024, 'x');
    expect(() => {
      for (let index = 0; index < 65; index += 1) splitter.push(piece);
    }).toThrow('a line is longer than 64 MiB');
  });
});

describe('the order of resource versions', () => {
  it('is that of unsigned integers of any length', () => {
    const version = fc.bigInt({ min: 0n, max: 10n ** 40n });
    fc.assert(
      fc.property(version, version, (a, b) => {
        const order = compareResourceVersions(String(a), String(b)) ?? Number.NaN;
        expect(Math.sign(order)).toBe(a < b ? -1 : a > b ? 1 : 0);
      }),
    );
  });

  it.each([
    ['abc', '1'],
    ['1', ''],
    ['1.5', '1'],
    ['-1', '1'],
    ['01', '2'],
    ['1e3', '2'],
  ])('does not compare %s with %s', (a, b) => {
    expect(compareResourceVersions(a, b)).toBeUndefined();
  });

  it('treats equal texts as equal versions, also if they are not numbers', () => {
    expect(compareResourceVersions('abc', 'abc')).toBe(0);
  });
});

describe('a high-water mark', () => {
  it('never decreases', () => {
    const mark = new HighWaterMark();
    for (const version of ['9', '10', '9', '2']) mark.raise(version);
    expect(mark.value).toBe('10');
  });

  it('covers older and equal versions, and no version before the first', () => {
    const mark = new HighWaterMark();
    expect(mark.covers('1')).toBe(false);
    mark.raise('100');
    expect(['99', '100', '101', 'abc'].map((version) => mark.covers(version))).toEqual([true, true, false, false]);
  });

  it('is ahead only of known older versions', () => {
    const mark = new HighWaterMark('100');
    expect(['99', '100', '101', 'abc'].map((version) => mark.isOlder(version))).toEqual([true, false, false, false]);
  });
});
