import fc from 'fast-check';
import { expect, it } from 'vitest';
import { fewest } from '../../simulation/search/shrink.ts';

it('keeps what is needed and nothing else, in the same order', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(fc.integer({ min: 0, max: 60 }), { maxLength: 40 }), fc.func(fc.boolean()), async (items, isNeeded) => {
      const needed = items.filter((item) => isNeeded(item));
      const found = await fewest(items, async (kept) => needed.every((item) => kept.includes(item)));
      expect(found).toEqual(needed);
    }),
  );
});

it('answers something that is still so when what is needed depends on the rest', async () => {
  // Either 7 and 9 together, or at least ten of them.
  const isSo = (kept: readonly number[]): boolean => (kept.includes(7) && kept.includes(9)) || kept.length >= 10;
  const found = await fewest(
    Array.from({ length: 30 }, (_, index) => index),
    async (kept) => isSo(kept),
  );
  expect(isSo(found)).toBe(true);
  for (const item of found) expect(isSo(found.filter((other) => other !== item))).toBe(false);
});

it('asks far less often than there are subsets', async () => {
  let asked = 0;
  await fewest(
    Array.from({ length: 256 }, (_, index) => index),
    async (kept) => {
      asked += 1;
      return kept.includes(100) && kept.includes(200);
    },
  );
  expect(asked).toBeLessThan(60);
});

it('keeps everything unless less is enough', async () => {
  expect(await fewest([1, 2, 3], async () => false)).toEqual([1, 2, 3]);
});
