// A seeded random generator, so that every run can be repeated.

/** Returns numbers in [0, 1), the same for the same seed. */
export interface Random {
  readonly next: () => number;
  /** Returns a whole number from 0 to `end`, without `end`. */
  readonly below: (end: number) => number;
  /** Returns one of the items; undefined without items. */
  readonly pick: <Item>(items: readonly Item[]) => Item | undefined;
}

/** Creates a generator (mulberry32) for a seed, of which only the lowest 32 bits count. */
export function randomFrom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  const below = (end: number): number => Math.floor(next() * end);
  return { next, below, pick: (items) => items[below(items.length)] };
}
