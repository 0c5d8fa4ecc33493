// Minimises a list: omits halves, then quarters, at last single items.

/**
 * Returns a shorter list with the property, in the same order. Tries to omit shorter and shorter parts until no single item can go, or
 * until `isSo` has reached its limit and returns false. Calls `isSo` at most about n log n + n² times for n items, far less if most can go.
 */
export async function fewest<Item>(items: readonly Item[], isSo: (items: readonly Item[]) => Promise<boolean>): Promise<readonly Item[]> {
  if (items.length === 0 || (await isSo([]))) return [];
  let kept = items;
  let stretch = Math.ceil(kept.length / 2);
  for (;;) {
    let isShorter = false;
    for (let from = 0; from < kept.length; ) {
      const rest = [...kept.slice(0, from), ...kept.slice(from + stretch)];
      if (rest.length > 0 && (await isSo(rest))) {
        kept = rest;
        isShorter = true;
      } else from += stretch;
    }
    if (stretch === 1 && !isShorter) return kept;
    // Repeats at single items until nothing can go: an item may have been needed only by a removed one.
    stretch = Math.max(1, Math.ceil(stretch / 2));
  }
}
