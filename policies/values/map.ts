// Creates values at their first use, and limits their number.

/** Returns the value of the key. If the map lacks the key, stores and returns the result of `create`. */
export function getOrCreate<Key, Value>(map: Map<Key, Value>, key: Key, create: () => Value): Value {
  const known = map.get(key);
  if (known !== undefined) return known;
  const created = create();
  map.set(key, created);
  return created;
}

/** Stores the value as the newest of the map. Removes the oldest values if the map has more than `limit`. */
export function putNewest<Key, Value>(map: Map<Key, Value>, key: Key, value: Value, limit: number): void {
  map.delete(key);
  map.set(key, value);
  for (const oldest of map.keys()) {
    if (map.size <= limit) return;
    map.delete(oldest);
  }
}

/** Returns the function, with each result kept as long as its argument. Equal arguments that are not the same object are computed again. */
export function keptByObject<Key extends object, Value>(compute: (key: Key) => Value): (key: Key) => Value {
  const known = new WeakMap<Key, { readonly value: Value }>();
  return (key) => {
    const kept = known.get(key);
    if (kept !== undefined) return kept.value;
    const value = compute(key);
    known.set(key, { value });
    return value;
  };
}
