// Cuts foreign text to a length that fits an answer or a log line.

const ellipsis = '…';

/**
 * Returns the text in at most `maxBytes` (at least 3) bytes of UTF-8. A longer text ends with an ellipsis, and no character is cut. An
 * unpaired surrogate becomes U+FFFD.
 */
export function boundedText(text: string, maxBytes: number): string {
  // Each UTF-16 unit takes at least one byte, so the rest cannot fit.
  const bytes = Buffer.from(text.slice(0, maxBytes + 1));
  if (bytes.length <= maxBytes) return bytes.toString();
  let end = maxBytes - Buffer.byteLength(ellipsis);
  // A byte 10xxxxxx continues the previous character.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end) + ellipsis;
}
