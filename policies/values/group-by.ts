// Groups the items of lists. Node.js 20 has no `Map.groupBy`.
import { compareText } from './compare-text.ts';

/** Returns the items by key, in their order. Leaves out items without a key. */
export function groupBy<T>(items: readonly T[], keyOf: (item: T) => string | undefined): ReadonlyMap<string, readonly [T, ...T[]]> {
  const groups = new Map<string, [T, ...T[]]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = key === undefined ? undefined : groups.get(key);
    if (group !== undefined) group.push(item);
    else if (key !== undefined) groups.set(key, [item]);
  }
  return groups;
}

/** Returns the first item of each key, sorted by key. */
export function firstByKey<T>(items: readonly T[], keyOf: (item: T) => string): readonly T[] {
  const first = new Map(items.toReversed().map((item) => [keyOf(item), item]));
  return [...first].sort(([a], [b]) => compareText(a, b)).map(([, item]) => item);
}
