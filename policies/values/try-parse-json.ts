// Parses text that may not be JSON.

/** Returns the value of a JSON text; undefined if the argument is not text, or not JSON. */
export function tryParseJson(text: unknown): unknown {
  try {
    return typeof text === 'string' ? JSON.parse(text) : undefined;
  } catch {
    return undefined;
  }
}
