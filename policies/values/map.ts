// Creates the values of a map at their first use, and limits their number.

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
