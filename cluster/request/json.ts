// JSON as it comes from outside: keys that could reach an object's prototype are left out.

/** An escaped character of the key `__proto__`. */
const escaped = /\\u00(?:5f|70|72|6f|74)/i;

/** Only text in which the key may be pays for a reviver, which makes parsing several times slower; every text is looked at for it. */
function isSuspicious(text: string): boolean {
  return text.includes('__proto__') || (text.includes('\\u00') && escaped.test(text));
}

/** Parses JSON; entries named `__proto__` are dropped at every depth. Throws SyntaxError. */
export function parseJson(text: string): unknown {
  if (!isSuspicious(text)) return JSON.parse(text);
  return JSON.parse(text, (key, value: unknown) => (key === '__proto__' ? undefined : value));
}

export type JsonObject = Readonly<Record<string, unknown>>;

/** Reports whether the value is a JSON object: no array and not null. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value when it is a JSON object, one without fields otherwise. */
export function asJsonObject(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {};
}

/** Reports whether two values are the same as JSON; the order of keys does not matter, and `undefined` is the same as absent. */
export function isSameJson(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((item, index) => isSameJson(item, b[index]));
  if (!isJsonObject(a) || !isJsonObject(b)) return false;
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].every((key) => isSameJson(a[key], b[key]));
}
