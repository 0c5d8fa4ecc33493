import { describe, expect, it } from 'vitest';
import { isSameJson, parseJson } from '../../cluster/request/json.ts';

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

  it('throws for text that is cut short', () => {
    expect(() => parseJson('{"a":')).toThrow(SyntaxError);
  });
});

describe('isSameJson', () => {
  it('does not look at the order of keys, nor at keys without a value', () => {
    expect(isSameJson({ a: 1, b: [{ c: 2 }] }, { b: [{ c: 2, d: undefined }], a: 1 })).toBe(true);
  });

  it.each([
    [{ a: 1 }, { a: 2 }],
    [{ a: 1 }, {}],
    [{}, { constructor: 'a' }],
    [[1, 2], [1]],
    [[], {}],
    [null, {}],
  ])('tells %j from %j', (a, b) => {
    expect(isSameJson(a, b)).toBe(false);
  });
});
