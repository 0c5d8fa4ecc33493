// Computes the SHA-256 of text without node:crypto, which policies/ and engine/ may not import.
import { sha256 as digest } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';

/** Returns the SHA-256 of the text in UTF-8, as 64 hexadecimal digits. */
export function sha256(text: string): string {
  return bytesToHex(digest(utf8ToBytes(text)));
}

/** Returns the first 16 hexadecimal digits of the SHA-256 of the text. */
export function hashText(text: string): string {
  return sha256(text).slice(0, 16);
}
