// Reads a value from a map, and creates it at its first use.

/** Returns the value of the key. If the map lacks the key, stores and returns the result of `create`. */
export function getOrCreate<Key, Value>(map: Map<Key, Value>, key: Key, create: () => Value): Value {
  const known = map.get(key);
  if (known !== undefined) return known;
  const created = create();
  map.set(key, created);
  return created;
}
