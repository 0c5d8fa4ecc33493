// Stable text of JSON values, and a short hash of text. For identity within our own data, never for security.

/** JSON with the keys of every object in code-unit order, without spaces. Members that are undefined are left out, as JSON does. */
export function canonicalJson(value: unknown): string {
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

/** FNV-1a, 64 bits, of the text in UTF-8, as 16 hexadecimal digits. */
export function hashText(text: string): string {
  // Two lanes of 32 bits: the prime is 2^40 + 0x1b3, and every product below stays far under 2^53.
  let high = 0xcbf29ce4;
  let low = 0x84222325;
  for (const byte of new TextEncoder().encode(text)) {
    low = (low ^ byte) >>> 0;
    const product = low * 0x1b3;
    high = (high * 0x1b3 + Math.floor(product / 0x1_0000_0000) + low * 0x100) % 0x1_0000_0000;
    low = product % 0x1_0000_0000;
  }
  return high.toString(16).padStart(8, '0') + low.toString(16).padStart(8, '0');
}
