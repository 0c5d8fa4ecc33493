// A short hash of text, for identity within our own data.
import { sha256 } from '../policies/values/hash.ts';

export { canonicalJson } from '../policies/values/canonical-json.ts';

/** Returns the first 16 hexadecimal digits of the SHA-256 of the text. */
export function hashText(text: string): string {
  return sha256(text).slice(0, 16);
}
