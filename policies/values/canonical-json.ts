// Writes JSON values as stable text for digests, and compares them.

/** Returns JSON with the keys of every object in code-unit order, without spaces. Like JSON.stringify, omits undefined members. */
export function canonicalJson(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  if (!Array.isArray(value)) return canonicalObject(value as Readonly<Record<string, unknown>>);
  // A shortcut for long lists of texts and numbers, which are common and have no keys to sort.
  if (value.every(isScalar)) return JSON.stringify(value);
  return `[${value.map((item) => canonicalJson(item)).join(',')}]`;
}

function canonicalObject(value: Readonly<Record<string, unknown>>): string {
  let members = '';
  for (const key of Object.keys(value).sort()) {
    const member = value[key];
    if (member !== undefined) members += `${members === '' ? '' : ','}${quoted(key)}:${canonicalJson(member)}`;
  }
  return `{${members}}`;
}

const plainKey = /^[\w./-]+$/;

/** Returns the key as JSON. Most keys need no escapes, and JSON.stringify would be a large part of the time. */
function quoted(key: string): string {
  return plainKey.test(key) ? `"${key}"` : JSON.stringify(key);
}

export function isSameValue(a: unknown, b: unknown): boolean {
  return a === b || canonicalJson(a) === canonicalJson(b);
}

function isScalar(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'number';
}
