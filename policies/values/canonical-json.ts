// Writes JSON values as stable text for digests, and compares them.

/** Returns JSON with the keys of every object in code-unit order, without spaces. Like JSON.stringify, omits undefined members. */
export function canonicalJson(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  if (!Array.isArray(value)) return canonicalObject(value as Members);
  // A shortcut for long lists of texts and numbers, which are common and have no keys to sort.
  if (value.every(isScalar)) return JSON.stringify(value);
  return `[${value.map((item) => canonicalJson(item)).join(',')}]`;
}

function canonicalObject(value: Members): string {
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

/** Reports whether both values have the same canonical JSON. Compares them without writing the texts. */
export function isSameValue(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return canonicalJson(a) === canonicalJson(b);
  if (Array.isArray(a) || Array.isArray(b)) {
    return Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((item, index) => isSameValue(item, b[index]));
  }
  return isSameObject(a as Members, b as Members);
}

type Members = Readonly<Record<string, unknown>>;

function isSameObject(a: Members, b: Members): boolean {
  for (const key of Object.keys(a)) {
    const other = memberOf(b, key);
    if (a[key] !== undefined && (other === undefined || !isSameValue(a[key], other))) return false;
  }
  return Object.keys(b).every((key) => b[key] === undefined || memberOf(a, key) !== undefined);
}

/** Returns the object's own member. A label may have the name of an inherited member, such as `constructor`. */
function memberOf(object: Members, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

function isScalar(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'number';
}
