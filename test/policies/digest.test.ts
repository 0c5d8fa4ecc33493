import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sha256 } from '../../policies/sha256.ts';

describe('the digest of policies', () => {
  it('is SHA-256, at every length around a block and for any text', () => {
    const reference = (text: string) => createHash('sha256').update(text).digest('hex');
    for (let length = 0; length < 200; length += 1) expect(sha256('x'.repeat(length))).toBe(reference('x'.repeat(length)));
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(sha256(text)).toBe(reference(text));
      }),
    );
  });
});
