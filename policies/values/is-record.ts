// Distinguishes maps from other values.

/** Returns whether a value is a map, not a list and not null. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
