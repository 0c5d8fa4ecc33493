// Writes JSON values as stable text, for digests and comparisons.

/** Returns JSON with the keys of every object in code-unit order, without spaces. Like JSON.stringify, omits undefined members. */
export function canonicalJson(value: unknown): string {
  // A shortcut for long lists of texts and numbers, which are common and have no keys to sort.
  if (Array.isArray(value) && value.every(isScalar)) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item)).join(',')}]`;
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value)
      .filter(([, member]) => member !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, member]) => `${JSON.stringify(key)}:${canonicalJson(member)}`);
    return `{${members.join(',')}}`;
  }
  return JSON.stringify(value) ?? 'null';
}

export function isSameValue(a: unknown, b: unknown): boolean {
  return canonicalJson(a) === canonicalJson(b);
}

function isScalar(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'number';
}
