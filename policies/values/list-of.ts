// Reads a list from a JSON value.

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
