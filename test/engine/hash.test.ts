import { expect, it } from 'vitest';
import { canonicalJson, hashText } from '../../engine/hash.ts';

it.each([
  ['', 'cbf29ce484222325'],
  ['a', 'af63dc4c8601ec8c'],
  ['foobar', '85944171f73967e8'],
  ['ü', '0ac20a07b71807ea'],
])('hashes %j as the published FNV-1a of 64 bits does', (text, expected) => {
  expect(hashText(text)).toBe(expected);
});

it('writes the same JSON whatever the order of keys, and leaves out what is undefined', () => {
  const one = { b: [1, { d: null, c: undefined }], a: 'x' };
  const other = { a: 'x', b: [1, { d: null }] };
  expect([canonicalJson(one), canonicalJson(other)]).toEqual(['{"a":"x","b":[1,{"d":null}]}', '{"a":"x","b":[1,{"d":null}]}']);
});
