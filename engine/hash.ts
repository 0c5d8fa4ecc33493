// A short hash of text, beside the stable text of JSON values. For identity within our own data, never for security.

export { canonicalJson } from '../policies/values/canonical-json.ts';

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
