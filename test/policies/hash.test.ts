import { expect, it } from 'vitest';
import { canonicalJson } from '../../policies/values/canonical-json.ts';
import { hashText } from '../../policies/values/hash.ts';

it('is the beginning of the SHA-256', () => {
  expect(hashText('foobar')).toBe('c3ab8ff13720e8ad');
});

it('writes the same JSON for any order of keys, and leaves out undefined values', () => {
  const one = { b: [1, { d: null, c: undefined }], a: 'x' };
  const other = { a: 'x', b: [1, { d: null }] };
  expect([canonicalJson(one), canonicalJson(other)]).toEqual(['{"a":"x","b":[1,{"d":null}]}', '{"a":"x","b":[1,{"d":null}]}']);
});
