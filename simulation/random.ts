// Draws random numbers by seed and name, so that a draw does not change if other draws are added.

/** Returns a number of at least 0 and less than 1, the same for the same seed and name. */
export function draw(seed: number, name: string): number {
  let hash = 0x811c9dc5 ^ seed;
  for (let index = 0; index < name.length; index += 1) hash = Math.imul(hash ^ name.charCodeAt(index), 0x01000193);
  return mixed(hash ^ Math.imul(seed, 0x9e3779b1)) / 4_294_967_296;
}

/** A function that returns a number of at least 0 and less than 1 at each call (mulberry32). */
export type Random = () => number;

/** Returns a stream of random numbers that is independent for each name. */
export function streamOf(seed: number, name: string): Random {
  let state = Math.floor(draw(seed, name) * 4_294_967_296) >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let value = Math.imul(state ^ (state >>> 15), state | 1);
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61);
    return ((value ^ (value >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Returns a number of at least `from` and less than `to`. */
export function between(random: Random, from: number, to: number): number {
  return from + random() * (to - from);
}

/** Returns a whole number from `from` up to, not including, `to`. */
export function wholeBetween(random: Random, from: number, to: number): number {
  return Math.floor(between(random, from, to));
}

/** Returns one item of a non-empty list. */
export function oneOf<Item>(random: Random, items: readonly Item[]): Item {
  const item = items[Math.floor(random() * items.length)];
  if (item === undefined) throw new Error('the list is empty');
  return item;
}

function mixed(value: number): number {
  let bits = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
