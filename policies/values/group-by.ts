// Groups the items of lists. Node.js 20 has no `Map.groupBy`.

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
