// Reads a list from a JSON value.

/** Returns the list; [] for another value. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
