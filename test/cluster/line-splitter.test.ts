import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LineSplitter } from '../../cluster/connection/response-body.ts';

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

  it('gives up on a line without end', () => {
    const splitter = new LineSplitter(() => undefined);
    const piece = Buffer.alloc(1024 * 1024, 'x');
    expect(() => {
      for (let index = 0; index < 65; index += 1) splitter.push(piece);
    }).toThrow('a line is longer than 64 MiB');
  });
});
