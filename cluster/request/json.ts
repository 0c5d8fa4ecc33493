// Parses and compares JSON from outside, without keys that reach an object's prototype.

/** An escaped character of the key `__proto__`. */
const escaped = /\\u00(?:5f|70|72|6f|74)/i;

/** Returns whether the text may contain the key. Only such a text needs a reviver, which makes parsing several times slower. */
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

/** Returns the value if it is a JSON object; otherwise an empty one. */
export function asJsonObject(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {};
}

/** Reports whether two parsed JSON values are the same. The order of keys does not matter, and `undefined` equals absent. */
export function isSameJson(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((item, index) => isSameJson(item, b[index]));
  if (!isJsonObject(a) || !isJsonObject(b)) return false;
  // The loops build no list of keys: that would slow down the simulation, which compares objects often.
  for (const key in a) if (!isSameJson(a[key], memberOf(b, key))) return false;
  for (const key in b) if (b[key] !== undefined && memberOf(a, key) === undefined) return false;
  return true;
}

/** Returns the object's own member. A label may have the name of an inherited member, such as `constructor`. */
function memberOf(object: JsonObject, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}
