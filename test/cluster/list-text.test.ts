// Items of a list are found in its text as a parser finds them, whatever is in their strings.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { splitList } from '../../cluster/request/read.ts';

function itemsOf(text: string): readonly unknown[] | undefined {
  return splitList(text)?.items.map(([begin, end]) => JSON.parse(text.slice(begin, end)));
}

describe('splitList', () => {
  it('finds the items of every list, and leaves the rest as it is', () => {
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

  it('is not misled by a key that is a value, or lies deeper', () => {
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
  ])('finds none where there are %s', (_, text) => {
    expect(splitList(text)).toBeUndefined();
  });
});
