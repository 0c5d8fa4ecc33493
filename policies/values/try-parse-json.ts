// Parses text that may not be JSON.

/** Returns the value of a JSON text; undefined for other values and for text that is not JSON. */
export function tryParseJson(text: unknown): unknown {
  try {
    return typeof text === 'string' ? JSON.parse(text) : undefined;
  } catch {
    return undefined;
  }
}
