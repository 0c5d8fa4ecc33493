// Reads text that may be no JSON.

/** Returns the value of a JSON text; undefined if it is no text or no JSON. */
export function tryParseJson(text: unknown): unknown {
  try {
    return typeof text === 'string' ? JSON.parse(text) : undefined;
  } catch {
    return undefined;
  }
}
