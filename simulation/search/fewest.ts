// Leaves out of a list what is not needed: first halves of it, then quarters, at last single items.

/**
 * A shorter list that still is so, in the same order. Asks about shorter and shorter stretches to leave out until no single item can go, or
 * `isSo` has had enough and answers false to everything. Asks at most about n log n + n² times for n items, far less when most can go.
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
    // At single items it goes round until nothing goes any more: what was needed may have been needed by what has gone since.
    stretch = Math.max(1, Math.ceil(stretch / 2));
  }
}
